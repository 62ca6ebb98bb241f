//! The real world: the time, randomness, the environment, the terminal.

use gaffer_protocol::{Clock, Entropy, Timestamp};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(since.map_or(0, |since| since.as_millis() as u64))
    }
}

#[derive(Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    /// Where the system has no randomness to give, the time must do: ids stay unlikely to clash.
    fn next(&self) -> u64 {
        getrandom::u64().unwrap_or_else(|_| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let nanos = since.map_or(0, |since| since.as_nanos() as u64);
            nanos.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Gaffer's own folder.
pub(crate) fn home() -> Option<PathBuf> {
    let own = variable("GAFFER_HOME").map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".gaffer")))
}

/// The user's list of what git leaves out in all repositories, as git's variables and settings
/// name it. It may not be there.
pub(crate) fn excludes() -> Option<PathBuf> {
    ignore::gitignore::gitconfig_excludes_path()
}

type Hear = Box<dyn Fn(&str) + Send>;

/// Who hears what is said while the terminal belongs to somebody else.
static HEARS: Mutex<Option<Hear>> = Mutex::new(None);

/// While this is there, what is said goes another way than to standard error.
#[derive(Debug)]
pub(crate) struct Diverted(());

pub(crate) fn divert(hear: impl Fn(&str) + Send + 'static) -> Diverted {
    *HEARS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hear));
    Diverted(())
}

impl Drop for Diverted {
    fn drop(&mut self) {
        *HEARS.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A line for the user beside the answer. Nobody hears it if standard error is closed.
pub(crate) fn say(line: &str) {
    let hears = HEARS.lock().unwrap_or_else(PoisonError::into_inner);
    match &*hears {
        Some(hear) => hear(line),
        None => drop(writeln!(std::io::stderr(), "{line}")),
    }
}

pub(crate) fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// How many columns and rows the terminal at standard error has.
pub(crate) fn terminal_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    let rows = size.map(|size| usize::from(size.ws_row));
    (
        columns.filter(|it| *it >= 20).unwrap_or(80),
        rows.filter(|it| *it >= 5).unwrap_or(24),
    )
}

/// Text that cannot play tricks on a terminal: control characters other than line breaks and
/// tabs are gone, and so is what turns the direction of writing.
pub(crate) fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| !(c.is_control() || turns(*c)) || matches!(c, '\n' | '\t'))
        .collect()
}
