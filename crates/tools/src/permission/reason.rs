//! Decisions and the sentences that explain them.

use super::mode::Mode;
use super::request::Request;
use super::rule::Rule;
use super::source::{Kind, Level};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Allow,
    Ask,
    Deny,
}

/// What is decided about a call, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub outcome: Outcome,
    pub reason: Reason,
}

impl Decision {
    pub(super) fn new(outcome: Outcome, reason: Reason) -> Self {
        Self { outcome, reason }
    }
}

/// Why a call is allowed, asked about or denied. Shown as one sentence.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A rule speaks of it.
    Rule {
        kind: Kind,
        rule: Box<Rule>,
        level: Level,
        /// What it matched.
        what: String,
    },
    /// It only reads.
    ReadOnly,
    /// It touches nothing but the crew.
    Unasked,
    /// It runs in the sandbox.
    Sandboxed,
    /// It asks to run outside the sandbox.
    Leaves,
    /// It asks to run outside the sandbox, and nothing may.
    MustStay,
    /// The mode says so.
    Mode(Mode),
    /// It writes where nothing is approved unasked.
    Protected(PathBuf),
    /// It is not certain what would run.
    Unclear(&'static str),
    /// No rule allows it, and the mode does not either.
    Uncovered { what: String, mode: Mode },
    /// It would be asked about, but is not.
    NobodyToAsk { why: Box<Reason>, silent: Silent },
    /// The call cannot be judged.
    Broken(String),
}

/// Why nobody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    Headless,
    DontAsk,
}

impl Silent {
    /// Whether a hook may speak for the user. In the mode dontAsk a question is a no for all.
    pub fn may_be_answered_by_hooks(self) -> bool {
        self == Self::Headless
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule {
                kind,
                rule,
                level,
                what,
            } => write!(
                f,
                "The {kind} rule `{rule}` from {level} matches `{}`.",
                line(what)
            ),
            Self::ReadOnly => f.write_str("It only reads."),
            Self::Unasked => f.write_str("It needs no permission."),
            Self::Sandboxed => f.write_str("It runs in the sandbox."),
            Self::Leaves => f.write_str("It would run outside the sandbox."),
            Self::MustStay => f.write_str(
                "Commands stay in the sandbox: the user's settings do not set `sandbox.allowUnsandboxedCommands`.",
            ),
            Self::Mode(Mode::Plan) => f.write_str("Nothing is written in the mode plan."),
            Self::Mode(mode) => write!(f, "The mode {mode} allows it."),
            Self::Protected(path) => write!(
                f,
                "Writing to {} is never approved unasked.",
                path.display()
            ),
            Self::Unclear(why) => write!(f, "It is not certain what would run: {why}."),
            Self::Uncovered { what, mode } => write!(
                f,
                "No rule allows `{}`, and the mode {mode} asks.",
                line(what)
            ),
            Self::NobodyToAsk { why, silent } => {
                let why = match &**why {
                    Self::Uncovered { what, .. } => format!("No rule allows `{}`", line(what)),
                    why => why.to_string(),
                };
                let because = match silent {
                    Silent::Headless => "nobody can be asked here",
                    Silent::DontAsk => "the mode dontAsk denies what would be asked",
                };
                write!(f, "{}, and {because}.", why.trim_end_matches('.'))
            }
            Self::Broken(why) => write!(f, "The call cannot be judged: {}.", line(why)),
        }
    }
}

/// A denied call, as it is listed in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    pub tool: String,
    /// What the call was about, on one line.
    pub input: String,
    pub reason: String,
}

impl Denial {
    pub fn new(request: &Request<'_>, reason: &dyn fmt::Display) -> Self {
        Self {
            tool: request.tool.to_owned(),
            input: summary(request),
            reason: reason.to_string(),
        }
    }
}

/// The member of an input that says most about it.
pub(super) fn summary(request: &Request<'_>) -> String {
    const TELLING: [&str; 10] = [
        "command",
        "file_path",
        "notebook_path",
        "url",
        "query",
        "path",
        "pattern",
        "skill",
        "subagent_type",
        "description",
    ];
    let texts = TELLING
        .iter()
        .filter_map(|key| request.input.get(key)?.as_str());
    match texts.into_iter().next() {
        Some(text) => line(text),
        None => line(&request.input.to_string()),
    }
}

/// A text cut to one line of at most 200 characters.
fn line(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut out = String::new();
    for (count, c) in text.trim().chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}
