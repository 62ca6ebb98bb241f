//! What all hooks of one moment say together.

use super::{Choice, Decision, Verdict};
use crate::hook::run::Later;
use serde_json::{Map, Value};
use std::fmt;

/// The verdicts of all hooks of one moment, in the order of the settings, as one.
#[derive(Debug, Default)]
pub struct Merged {
    /// The strictest: deny, then defer, ask, allow. Reasons of equal decisions follow each other.
    pub decision: Option<Decision>,
    /// The work is to end, and what the user is told. It goes before every decision.
    pub stop: Option<String>,
    /// For the user, one a hook.
    pub messages: Vec<String>,
    /// For the model.
    pub context: Option<String>,
    /// From the first hook that has one.
    pub updated_input: Option<Map<String, Value>>,
    /// From the first hook that has one.
    pub updated_output: Option<Value>,
    pub interrupt: bool,
    /// What went wrong with hooks, for the user and the log.
    pub reports: Vec<Report>,
    /// Hooks that nobody waits for. They run only if someone runs them.
    pub later: Vec<Later>,
}

/// What went wrong with one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub hook: String,
    pub text: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hook `{}` {}", self.hook, self.text)
    }
}

impl Merged {
    /// Why the thing is refused, if it is.
    pub fn blocked(&self) -> Option<&str> {
        let decision = self.decision.as_ref()?;
        let reason = decision.reason.as_deref().unwrap_or_default();
        (decision.choice == Choice::Deny).then_some(reason)
    }

    /// Adds the next hook's verdict.
    pub fn add(&mut self, hook: &str, verdict: Verdict) {
        let report = |text: String| Report {
            hook: hook.to_owned(),
            text,
        };
        self.reports.extend(verdict.reports.into_iter().map(report));
        if let Some(decision) = verdict.decision {
            self.decide(decision);
        }
        if self.stop.is_none() {
            self.stop = verdict.stop;
        }
        self.messages.extend(verdict.message);
        append(&mut self.context, verdict.context);
        let text = "rewrote the input too, but an earlier hook did so first";
        if !first(&mut self.updated_input, verdict.updated_input) {
            self.reports.push(report(text.to_owned()));
        }
        let text = "rewrote the output too, but an earlier hook did so first";
        if !first(&mut self.updated_output, verdict.updated_output) {
            self.reports.push(report(text.to_owned()));
        }
        self.interrupt |= verdict.interrupt;
    }

    fn decide(&mut self, new: Decision) {
        match &mut self.decision {
            Some(old) if old.choice > new.choice => {}
            Some(old) if old.choice == new.choice => append(&mut old.reason, new.reason),
            slot => *slot = Some(new),
        }
    }
}

/// Adds a text on a line of its own, unless it was said already.
fn append(all: &mut Option<String>, more: Option<String>) {
    match (all, more) {
        (_, None) => {}
        (Some(all), Some(more)) => {
            if *all != more {
                all.push('\n');
                all.push_str(&more);
            }
        }
        (slot, more) => *slot = more,
    }
}

/// Takes the value if there is none yet. False if there is another one already.
fn first<T: PartialEq>(slot: &mut Option<T>, new: Option<T>) -> bool {
    match (&slot, &new) {
        (_, None) => true,
        (None, _) => {
            *slot = new;
            true
        }
        (Some(old), Some(new)) => old == new,
    }
}
