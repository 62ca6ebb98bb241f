//! The sandbox of commands: writes only where they belong, the network by choice.
//!
//! Landlock and seccomp bind the process that asks for them and all below it, for good. So a
//! command is started through this program in the role of a sandbox, which binds itself and then
//! becomes the command. Allocating between fork and exec, which the crates do, is no matter there.
//!
//! Landlock can only add to what is writable. What must stay as it is inside a writable folder is
//! mounted over itself, read-only, in a mount namespace of the command's own.

mod calls;
mod files;
mod git;
mod keep;
mod level;
mod mounts;

pub use git::git_paths;
pub use keep::{Hold, Kept, kept, kept_but, unmade};
pub use level::{Level, Means};

use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first argument that makes this program a sandbox.
pub const ROLE: &str = "__sandbox";

/// What the exit code says when the sandbox itself could not be set up: nothing was run.
const FAILED: u8 = 126;

/// What a command may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Folders and files that it may write; everything else it may only read.
    pub write: Vec<PathBuf>,
    pub network: bool,
    /// What stays as it is inside the folders that it may write, outer folders first.
    pub kept: Vec<Kept>,
    /// What keeps it; without any means it is not kept.
    pub means: Option<Means>,
    /// Files that nobody has a use for but to get around what is kept. They cannot be kept from
    /// being made, so the warden takes them away.
    pub unmade: Vec<PathBuf>,
}

impl Binding {
    /// The command line that runs a command under this binding.
    pub fn wrap(&self, program: &Path, command: Vec<OsString>) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let kept = match &self.means {
            Some(Means::Bubblewrap(bwrap)) => {
                line.extend(level::bubblewrap(bwrap, &self.kept));
                &[]
            }
            Some(Means::Namespace) => self.kept.as_slice(),
            None => &[],
        };
        line.extend([program.into(), ROLE.into()]);
        line.push(network_word(self.network).into());
        line.push(self.write.len().to_string().into());
        line.extend(self.write.iter().map(OsString::from));
        line.push(kept.len().to_string().into());
        for Kept { how, path } in kept {
            line.extend([how.word().into(), path.into()]);
        }
        line.extend(command);
        line
    }

    /// Reads what `wrap` wrote behind the role.
    fn unwrap(mut args: impl Iterator<Item = OsString>) -> Option<(Self, Vec<OsString>)> {
        let count = |text: OsString| text.to_str()?.parse::<usize>().ok();
        let network = args.next()? == network_word(true);
        let writes = count(args.next()?)?;
        let write: Vec<PathBuf> = args.by_ref().take(writes).map(PathBuf::from).collect();
        let keeps = count(args.next()?)?;
        let mut kept = Vec::new();
        for _ in 0..keeps {
            kept.push(Kept {
                how: Hold::read(&args.next()?)?,
                path: args.next()?.into(),
            });
        }
        let command: Vec<OsString> = args.collect();
        let binding = Self {
            write,
            network,
            kept,
            means: Some(Means::Namespace),
            unmade: Vec::new(),
        };
        (!command.is_empty()).then_some((binding, command))
    }
}

fn network_word(network: bool) -> &'static str {
    match network {
        true => "network",
        false => "no-network",
    }
}

/// Binds this process and becomes the command. Returns only if that failed, or if all it was
/// asked for is whether the system lets it.
#[expect(
    clippy::disallowed_methods,
    reason = "the command takes the place of this process"
)]
pub fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let mut args = args.peekable();
    if let Some(done) = args.peek().and_then(|word| level::answer(word)) {
        return done;
    }
    let Some((binding, command)) = Binding::unwrap(args) else {
        return fail("it was called with the wrong arguments");
    };
    if let Err(why) = bind(&binding) {
        return fail(&why);
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    fail(&format!("cannot run {}: {error}", shown(&command[0])))
}

fn shown(name: &OsStr) -> String {
    Path::new(name).display().to_string()
}

fn fail(why: &str) -> u8 {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "sandbox: {why}"));
    FAILED
}

fn bind(binding: &Binding) -> Result<(), String> {
    if !binding.kept.is_empty() {
        mounts::keep(&binding.kept)?;
    }
    mounts::drop_powers().map_err(|error| format!("capabilities: {error}"))?;
    // If the warden is killed, the command goes with it. A change of namespace forgets this, so it
    // comes behind.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    files::bind(binding).map_err(|error| format!("Landlock: {error}"))?;
    calls::bind(binding).map_err(|error| format!("seccomp: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(means: Option<Means>) -> Binding {
        let kept = |how, path: &str| Kept {
            how,
            path: path.into(),
        };
        Binding {
            write: vec!["/p".into(), "/t".into()],
            network: false,
            kept: vec![
                kept(Hold::InPlace, "/p/.git"),
                kept(Hold::ReadOnly, "/p/.git/config"),
                kept(Hold::Writable, "/p/.gaffer/agent-memory"),
            ],
            means,
            unmade: Vec::new(),
        }
    }

    #[test]
    fn a_binding_is_read_as_it_was_written() {
        let binding = binding(Some(Means::Namespace));
        let command = vec!["sh".into(), "-c".into(), "true".into()];
        let line = binding.wrap(Path::new("/g"), command.clone());
        assert_eq!(line[..2], ["/g", ROLE]);
        let read = Binding::unwrap(line.into_iter().skip(2));
        assert_eq!(read, Some((binding, command)));
    }

    #[test]
    fn bubblewrap_stands_before_a_sandbox_that_mounts_nothing() {
        let bwrap = Means::Bubblewrap("/usr/bin/bwrap".into());
        let line = binding(Some(bwrap)).wrap(Path::new("/g"), vec!["true".into()]);
        let line: Vec<&str> = line.iter().filter_map(|word| word.to_str()).collect();
        let text = line.join(" ");
        assert!(text.starts_with("/usr/bin/bwrap --dev-bind / / "), "{text}");
        assert!(
            text.contains(" --ro-bind-try /p/.git/config /p/.git/config "),
            "{text}"
        );
        assert!(
            text.ends_with(" -- /g __sandbox no-network 2 /p /t 0 true"),
            "{text}"
        );
        let line = binding(None).wrap(Path::new("/g"), vec!["true".into()]);
        assert_eq!(line.len(), 8, "{line:?}");
    }

    #[test]
    fn a_line_cut_short_runs_nothing() {
        let line = binding(Some(Means::Namespace)).wrap(Path::new("/g"), vec!["true".into()]);
        for length in 2..line.len() {
            let cut = line[2..length].iter().cloned();
            assert_eq!(Binding::unwrap(cut), None, "{length}");
        }
    }
}
