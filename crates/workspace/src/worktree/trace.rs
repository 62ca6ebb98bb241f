//! What a worker left in a worktree, and what else speaks against taking it away.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// Files that git knows and that are not as the last commit has them.
    Changed(usize),
    /// Files that git neither knows nor ignores.
    Untracked(usize),
    /// Files that git ignores: build output, or a worker's notes.
    Ignored(usize),
    /// Files that came by `.worktreeinclude` and were changed.
    Included(usize),
    /// Files whose changes git was told to overlook.
    Overlooked(usize),
    /// Commits since the beginning, and how many of them no other branch or tag has.
    Commits {
        count: usize,
        alone: usize,
    },
    /// Commits that only a log remembers: amended, reset or left behind.
    LeftBehind(usize),
    /// HEAD is not on the worktree's branch; where it is instead.
    Elsewhere(String),
    /// Something that git has not ended, such as a rebase, by the name of its file.
    UnderWay(String),
    Stashed(usize),
    /// Somebody locked it, for a reason.
    Locked(String),
    /// Git does not remove what has submodules.
    Submodules,
    /// It could not be looked at.
    Unclear(String),
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = |count: &usize| match count {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        match self {
            Self::Changed(count) => write!(f, "{} changed and not committed", files(count)),
            Self::Untracked(count) => write!(f, "{} that git does not track", files(count)),
            Self::Ignored(count) => write!(f, "{} that git ignores", files(count)),
            Self::Included(count) => {
                write!(f, "{} from .worktreeinclude changed", files(count))
            }
            Self::Overlooked(count) => {
                write!(f, "{} that git was told to overlook", files(count))
            }
            Self::Commits { count: 0, .. } => f.write_str("its branch is behind where it began"),
            Self::Commits { count, alone: 0 } => {
                write!(f, "{}, all of them in other branches", commits(*count))
            }
            Self::Commits { count, alone } if count == alone => {
                write!(f, "{} that no other branch has", commits(*count))
            }
            Self::Commits { count, alone } => {
                write!(f, "{}, {alone} of them in no other branch", commits(*count))
            }
            Self::LeftBehind(count) => {
                write!(f, "{} left behind that only its log knows", commits(*count))
            }
            Self::Elsewhere(head) => write!(f, "its HEAD is not on its branch but at {head}"),
            Self::UnderWay(name) => write!(f, "git has something under way there ({name})"),
            Self::Stashed(1) => f.write_str("1 stash"),
            Self::Stashed(count) => write!(f, "{count} stashes"),
            Self::Locked(reason) if reason.is_empty() => f.write_str("it is locked"),
            Self::Locked(reason) => write!(f, "it is locked: {reason}"),
            Self::Submodules => {
                f.write_str("it has submodules, and git does not remove such worktrees")
            }
            Self::Unclear(why) => write!(f, "it could not be checked: {why}"),
        }
    }
}

fn commits(count: usize) -> String {
    match count {
        1 => "1 commit".to_owned(),
        count => format!("{count} commits"),
    }
}
