//! The JSON that hooks reply with.

use super::{Choice, Decision, Verdict, cap};
use crate::hook::kind::EventKind;
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Reads a reply. What stands beside the verdict is why it cannot be relied on: then something
/// was decided, and nobody knows what.
pub(super) fn read(kind: EventKind, text: &str, is_whole: bool) -> (Verdict, Option<String>) {
    if !is_whole {
        let why = "it is too long".to_owned();
        return (Verdict::default(), Some(why));
    }
    let members: Object = match serde_json::from_str(text) {
        Ok(members) => members,
        Err(error) => return (Verdict::default(), Some(format!("no JSON: {error}"))),
    };
    let mut reader = Reader {
        kind,
        verdict: Verdict::default(),
        unclear: None,
    };
    reader.top(&members);
    (reader.verdict, reader.unclear)
}

/// The reason that a reply names, if it is one at all.
pub(super) fn reason(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let specific = &value["hookSpecificOutput"];
    let places = [&specific["permissionDecisionReason"], &value["reason"]];
    places
        .into_iter()
        .find_map(|reason| reason.as_str().map(str::to_owned))
}

struct Reader {
    kind: EventKind,
    verdict: Verdict,
    unclear: Option<String>,
}

impl Reader {
    fn top(&mut self, members: &Object) {
        if self.flag(members, "continue") == Some(false) {
            let reason = self.text(members, "stopReason");
            let reason = reason.unwrap_or_else(|| "a hook ended the work".to_owned());
            self.verdict.stop = Some(reason);
        }
        self.verdict.message = self.text(members, "systemMessage");
        let reason = self.text(members, "reason");
        match member(members, "decision").map(Value::as_str) {
            None => {}
            Some(Some("block")) => self.decide(Choice::Deny, reason),
            // The older form, which only calls of tools had.
            Some(Some("approve")) if self.kind == EventKind::PreToolUse => {
                self.decide(Choice::Allow, reason);
            }
            Some(Some("approve")) => {}
            Some(_) => self.unclear("`decision` is not \"block\""),
        }
        if member(members, "permissionDecision").is_some() {
            self.unclear("`permissionDecision` belongs into `hookSpecificOutput`");
        }
        if member(members, "additionalContext").is_some() {
            let report = "`additionalContext` belongs into `hookSpecificOutput`; it was left out";
            self.verdict.reports.push(report.to_owned());
        }
        match member(members, "hookSpecificOutput") {
            None => {}
            Some(Value::Object(specific)) => self.specific(specific),
            Some(_) => self.unclear("`hookSpecificOutput` is no object"),
        }
    }

    fn specific(&mut self, members: &Object) {
        let name = self.kind.name();
        match member(members, "hookEventName") {
            // Without it there is still no doubt which event is meant.
            None => {}
            Some(Value::String(event)) if event == name => {}
            Some(other) => {
                return self.unclear(&format!("`hookEventName` is {other}, not \"{name}\""));
            }
        }
        self.verdict.context = self.text(members, "additionalContext");
        match self.kind {
            EventKind::PreToolUse => {
                self.permission_decision(members);
                self.verdict.updated_input = self.object(members, "updatedInput");
            }
            EventKind::PermissionRequest => {
                if let Some(decision) = self.object(members, "decision") {
                    self.behaviour(&decision);
                }
            }
            EventKind::PostToolUse => {
                self.verdict.updated_output = member(members, "updatedToolOutput").cloned();
            }
            _ => {}
        }
    }

    fn permission_decision(&mut self, members: &Object) {
        let reason = self.text(members, "permissionDecisionReason");
        let choice = match member(members, "permissionDecision").map(Value::as_str) {
            None => return,
            Some(Some("allow")) => Choice::Allow,
            Some(Some("ask")) => Choice::Ask,
            Some(Some("defer")) => Choice::Defer,
            Some(Some("deny")) => Choice::Deny,
            Some(_) => {
                return self.unclear("`permissionDecision` is none of allow, deny, ask, defer");
            }
        };
        self.decide(choice, reason);
    }

    /// The answer to a permission's question.
    fn behaviour(&mut self, members: &Object) {
        let message = self.text(members, "message");
        match member(members, "behavior").map(Value::as_str) {
            Some(Some("allow")) => {
                self.decide(Choice::Allow, message);
                self.verdict.updated_input = self.object(members, "updatedInput");
            }
            Some(Some("deny")) => {
                self.decide(Choice::Deny, message);
                self.verdict.interrupt = self.flag(members, "interrupt") == Some(true);
            }
            _ => self.unclear("`behavior` is neither allow nor deny"),
        }
        if member(members, "updatedPermissions").is_some() {
            let report = "`updatedPermissions` is not available here; no rule was changed";
            self.verdict.reports.push(report.to_owned());
        }
    }

    /// Of two decisions in one reply the stricter holds.
    fn decide(&mut self, choice: Choice, reason: Option<String>) {
        let is_stricter = match &self.verdict.decision {
            Some(decision) => decision.choice < choice,
            None => true,
        };
        if !is_stricter {
            return;
        }
        match choice {
            Choice::Deny => self.verdict.refuse(self.kind, reason.unwrap_or_default()),
            _ => self.verdict.decision = Some(Decision { choice, reason }),
        }
    }

    fn unclear(&mut self, why: &str) {
        self.unclear.get_or_insert_with(|| why.to_owned());
    }

    /// A text for people or the model. One of the wrong type is no reason to distrust the rest.
    fn text(&mut self, members: &Object, name: &str) -> Option<String> {
        match member(members, name)? {
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => {
                let what = format!("`{name}`");
                Some(cap(text, &what, &mut self.verdict.reports))
            }
            _ => {
                let report = format!("`{name}` is no text; it was left out");
                self.verdict.reports.push(report);
                None
            }
        }
    }

    fn flag(&mut self, members: &Object, name: &str) -> Option<bool> {
        let flag = member(members, name)?.as_bool();
        if flag.is_none() {
            self.unclear(&format!("`{name}` is neither true nor false"));
        }
        flag
    }

    fn object(&mut self, members: &Object, name: &str) -> Option<Object> {
        let object = member(members, name)?.as_object().cloned();
        if object.is_none() {
            self.unclear(&format!("`{name}` is no object"));
        }
        object
    }
}

/// A member that is there and not null.
fn member<'a>(members: &'a Object, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}
