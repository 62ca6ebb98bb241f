//! Files that the process may have open at once: as many as the system lets it have, and how many
//! agents that is enough for. What is started by it has the limit that gaffer itself was given.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::ffi::OsStr;
use std::sync::OnceLock;

/// Standard streams, the runtime's own, the book, the gate, the session's lock, the main agent's
/// transcript, and a few that are open for a moment.
const OWN: u64 = 32;
/// An agent has its transcript open, and beside it either a connection or what its calls need. A
/// command takes the most: pipes while it starts, its output, its process.
const OF_A_WORKER: u64 = 10;
/// In a large crew most agents wait for their models at any time. Such a number of commands under
/// way together is already more than a machine has cores for.
const COMMANDS_AT_ONCE: u64 = 512;
/// The runtime's own default.
const MOST_THREADS: u64 = 512;

/// The limit that the process was started with, once it has been raised.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as the system lets everybody do. Programs that cannot cope with many
/// files expect the lower one, so what is started gets that one back.
pub fn raise() {
    let given = getrlimit(Resource::Nofile);
    if given.current == given.maximum {
        return;
    }
    let raised = Rlimit {
        current: given.maximum,
        ..given
    };
    // Where it is refused, the lower limit is what counts from here on.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = GIVEN.set(given);
    }
}

/// The limit that gaffer itself was given, as a word for the warden. Empty if it was not changed.
pub(crate) fn given() -> String {
    let given = GIVEN.get().and_then(|given| given.current);
    given.map_or_else(String::new, |files| files.to_string())
}

/// This process gets the limit that the word says.
pub(crate) fn take_back(word: Option<&OsStr>) {
    let current = word.and_then(|word| word.to_str()?.parse().ok());
    if current.is_some() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // A command with the higher limit is better than none.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}

/// A process that was started a moment ago gets the limit that gaffer itself was given. What it
/// does in its first moment it does with the higher one.
pub(crate) fn give_back(process: Option<u32>) {
    let process = process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(process), Some(given)) = (process, GIVEN.get()) {
        // One that has ended already needs no limit.
        let _ = prlimit(Some(process), Resource::Nofile, *given);
    }
}

/// How many files may be open at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handles(Option<u64>);

impl Handles {
    /// What counts for this process now.
    pub fn allowed() -> Self {
        Self(getrlimit(Resource::Nofile).current)
    }

    /// So many workers can be under way at once.
    pub fn workers(self) -> usize {
        let rest = self.rest();
        let large = rest.saturating_sub(COMMANDS_AT_ONCE * (OF_A_WORKER - 1));
        number((rest / OF_A_WORKER).max(large / 2 + large / 4))
    }

    /// So many requests. Their connections stay open for a while after them.
    pub fn requests(self) -> usize {
        number(self.rest() / 4)
    }

    /// So many threads that read and write files.
    pub fn threads(self) -> usize {
        number((self.rest() / 8).clamp(4, MOST_THREADS))
    }

    pub fn count(self) -> Option<u64> {
        self.0
    }

    fn rest(self) -> u64 {
        self.0.unwrap_or(u64::MAX).saturating_sub(OWN)
    }
}

/// At least one: a crew of one goes on where none would wait for ever.
fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_enough_for_few_workers() {
        let all = |files: u64| {
            let handles = Handles(Some(files));
            (handles.workers(), handles.requests(), handles.threads())
        };
        assert_eq!(all(16), (1, 1, 4));
        assert_eq!(all(64), (3, 8, 4));
        assert_eq!(all(1024), (99, 248, 124));
        // A crew of ten thousand wants no more than any system of today allows.
        let (workers, requests, threads) = all(20_000);
        assert!(workers >= 10_000, "{workers}");
        assert_eq!((requests, threads), (4992, 512));
    }

    #[test]
    fn no_limit_is_no_limit() {
        assert!(Handles(None).workers() > 1 << 40);
        assert_eq!(Handles(None).threads(), 512);
    }
}
