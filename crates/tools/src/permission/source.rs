//! Where rules come from, and which list they stand in.

use super::rule::Rule;
use std::fmt;
use std::path::PathBuf;

/// The list that a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Deny,
    Ask,
    Allow,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        })
    }
}

/// Who wrote a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    Managed,
    CommandLine,
    /// Given in answer to a question.
    Session,
    Local,
    Project,
    User,
    /// An agent type's own rules. Allowed by them is allowed for that agent alone.
    Role,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "the managed settings",
            Self::CommandLine => "the command line",
            Self::Session => "this session",
            Self::Local => "the project's local settings",
            Self::Project => "the project's settings",
            Self::User => "the user's settings",
            Self::Role => "the agent's type",
        })
    }
}

/// Who wrote a rule, and the folder where its patterns `/…` start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub level: Level,
    /// For a project's settings the project's folder; without links.
    pub folder: PathBuf,
}

impl Source {
    pub fn new(level: Level, folder: impl Into<PathBuf>) -> Self {
        Self {
            level,
            folder: folder.into(),
        }
    }
}

/// A rule with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruled {
    pub rule: Rule,
    pub source: Source,
}
