//! What the UI is given by whoever starts it, and what it leaves behind.

use crate::keys::slash::SlashCommand;
use gaffer_protocol::{Budget, SessionId};

type Keep = Box<dyn FnMut(&str) + Send>;
type Files = Box<dyn Fn(&str) -> Vec<String> + Send>;
type Suspend = Box<dyn Fn() + Send>;

/// All of it may be left out.
#[derive(Default)]
pub struct Options {
    /// No colours, only attributes. `run` sets it too where `NO_COLOR` is in the environment.
    pub is_colorless: bool,
    /// What the user wrote in earlier sessions, oldest first.
    pub history: Vec<String>,
    /// Called with everything that the user sends, to be kept for later sessions.
    pub keep: Option<Keep>,
    /// Files whose names begin like this, for completion behind an @. It is called while the user
    /// types, on the UI's thread: it has to be quick.
    pub files: Option<Files>,
    /// Commands behind a slash beside the UI's own: skills, for one.
    pub commands: Vec<SlashCommand>,
    /// What the session may use, for the cost page.
    pub budget: Budget,
    /// Stops the process until it is told to go on, as Ctrl-Z does elsewhere. The terminal is
    /// given back before it and taken again after it.
    pub suspend: Option<Suspend>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("is_colorless", &self.is_colorless)
            .field("commands", &self.commands)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// How it was when the user left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    pub session: Option<SessionId>,
    /// The names of workers that had not ended.
    pub running: Vec<String>,
    /// Whether the user left, and not the session ended.
    pub is_by_user: bool,
}

/// What to tell the user on the terminal that was given back.
impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.running.as_slice() {
            [] => {}
            [one] => writeln!(f, "1 worker had not ended: {one}")?,
            all => writeln!(f, "{} workers had not ended: {}", all.len(), names(all))?,
        }
        match &self.session {
            Some(session) => write!(f, "to go on: gaffer --resume {session}"),
            None => f.write_str("nothing was begun"),
        }
    }
}

fn names(all: &[String]) -> String {
    match all.split_at_checked(5) {
        Some((first, [])) => first.join(", "),
        Some((first, more)) => format!("{} and {} more", first.join(", "), more.len()),
        None => all.join(", "),
    }
}
