//! What a hook's end means: exit codes, outputs, and those that gave no reply at all.

mod json;
mod merge;

pub use merge::{Merged, Report};

use super::kind::{EventKind, OnTimeout};
use serde_json::{Map, Value};
use std::time::Duration;

/// Longer texts are cut: they go to the model or to a screen.
const LONGEST_TEXT: usize = 10_000;
/// So much of standard error is shown of a hook that failed.
const LONGEST_LINE: usize = 300;

/// What came of running one hook.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A process ended, or a server answered that all is well, which is exit code 0.
    Exited {
        code: i32,
        stdout: Text,
        stderr: String,
    },
    /// It failed in a way that says nothing about the moment: a signal, an HTTP status.
    Failed(String),
    TimedOut(Duration),
    NotStarted(String),
}

/// A text that may be too long to be known whole.
#[derive(Debug, Clone)]
pub struct Text {
    pub text: String,
    pub is_whole: bool,
}

/// What is to become of the thing that a hook was asked about. The later wins over the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// No question to the user; rules that deny still hold.
    Allow,
    Ask,
    Defer,
    /// Refused: the call is not run, the prompt not taken, the agent does not stop. After a call
    /// has run it is word for the model that something is wrong.
    Deny,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub choice: Choice,
    pub reason: Option<String>,
}

/// What one hook answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    pub decision: Option<Decision>,
    /// The work is to end, and what the user is told. It goes before every decision.
    pub stop: Option<String>,
    /// For the user.
    pub message: Option<String>,
    /// For the model.
    pub context: Option<String>,
    /// Takes the place of the call's whole input.
    pub updated_input: Option<Map<String, Value>>,
    /// Takes the place of what the call gave back.
    pub updated_output: Option<Value>,
    /// With a denied permission: the agent's turn is to end as well.
    pub interrupt: bool,
    /// What went wrong with the hook itself.
    pub reports: Vec<String>,
}

impl Verdict {
    /// What a hook's end means at a moment of this kind.
    pub fn of(kind: EventKind, reply: Reply, on_timeout: OnTimeout) -> Self {
        match reply {
            Reply::Exited {
                code: 0, stdout, ..
            } => Self::spoken(kind, &stdout, on_timeout),
            Reply::Exited {
                code: 2,
                stdout,
                stderr,
            } => {
                let mut verdict = Self::default();
                let reason = match stderr.trim() {
                    "" => json::reason(&stdout.text).unwrap_or_default(),
                    reason => reason.to_owned(),
                };
                let reason = cap(reason.trim(), "its reason", &mut verdict.reports);
                verdict.refuse(kind, reason);
                verdict
            }
            Reply::Exited { code, stderr, .. } => Self::report(match first_line(&stderr) {
                line if line.is_empty() => format!("failed with exit code {code}"),
                line => format!("failed with exit code {code}: {line}"),
            }),
            Reply::Failed(why) => Self::report(why),
            Reply::TimedOut(time) => {
                let why = format!("gave no answer in {} s and was ended", time.as_secs_f32());
                Self::silent(kind, why, on_timeout)
            }
            Reply::NotStarted(why) => {
                Self::silent(kind, format!("could not be run: {why}"), on_timeout)
            }
        }
    }

    /// Exit code 0: what it printed counts.
    fn spoken(kind: EventKind, stdout: &Text, on_timeout: OnTimeout) -> Self {
        let text = stdout.text.trim();
        if text.starts_with('{') {
            let (mut verdict, unclear) = json::read(kind, text, stdout.is_whole);
            if let Some(why) = unclear {
                verdict.distrust();
                let why = format!("gave an answer that cannot be used: {why}");
                verdict.fail(kind, why, on_timeout);
            }
            return verdict;
        }
        let mut verdict = Self::default();
        if kind.takes_plain_text() && !text.is_empty() {
            verdict.context = Some(cap(text, "its output", &mut verdict.reports));
        }
        verdict
    }

    /// No reply came.
    fn silent(kind: EventKind, why: String, on_timeout: OnTimeout) -> Self {
        let mut verdict = Self::default();
        verdict.fail(kind, why, on_timeout);
        verdict
    }

    /// Of a reply that is wrong in part, only what is strict counts, and what people read.
    fn distrust(&mut self) {
        self.decision.take_if(|it| it.choice != Choice::Deny);
        self.context = None;
        self.updated_input = None;
        self.updated_output = None;
    }

    /// The hook did not do its work; whether that is a refusal is a setting.
    fn fail(&mut self, kind: EventKind, why: String, on_timeout: OnTimeout) {
        let blocks = on_timeout == OnTimeout::Block && kind.can_block();
        if blocks && self.decision.is_none() {
            self.refuse(kind, format!("a hook {why}"));
        }
        self.reports.push(why);
    }

    /// A refusal, or word for the user where nothing can be refused.
    fn refuse(&mut self, kind: EventKind, reason: String) {
        let reason = match reason.is_empty() {
            true => "a hook refused, without a reason".to_owned(),
            false => reason,
        };
        if kind.can_block() {
            self.decision = Some(Decision {
                choice: Choice::Deny,
                reason: Some(reason),
            });
        } else {
            self.message.get_or_insert(reason);
        }
    }

    fn report(why: String) -> Self {
        Self {
            reports: vec![why],
            ..Self::default()
        }
    }
}

/// A text of bearable length. That something was cut is reported.
fn cap(text: &str, what: &str, reports: &mut Vec<String>) -> String {
    let size = text.chars().count();
    if size <= LONGEST_TEXT {
        return text.to_owned();
    }
    reports.push(format!(
        "{what} has {size} characters, and the end of it was left out: {LONGEST_TEXT} is the most"
    ));
    // The word about it counts as well.
    let kept: String = text.chars().take(LONGEST_TEXT - 50).collect();
    let left = size - kept.chars().count();
    format!("{kept}\n[… {left} characters left out]")
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(LONGEST_LINE).collect()
}
