//! Admission: what stands between a call and its run. Hooks are asked first, then the policy, then
//! whoever can be asked; and when the call has run, hooks hear what came of it.

use crate::context::Context;
use crate::guard::Guard;
use crate::hook::{Choice, EventKind, Merged, Moment};
use crate::permission::{Kind, Outcome, Reason};
use crate::question::Draft;
use crate::tool::{Output, Tool};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Json, Permission, ResultPart, ToolUse};
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::time::Duration;

/// A call that may run.
#[derive(Debug, Default)]
pub struct Admitted {
    /// What a hook put in place of its input.
    pub input: Option<ToolInput>,
    /// What hooks add for the model.
    notes: Vec<String>,
}

/// A call that may not run, and what the model is told.
#[derive(Debug)]
pub struct Refused {
    pub output: Output,
    /// Why the whole work is to end, if it is.
    pub stop: Option<String>,
}

/// Lets a call pass, or says why not. What is not JSON passes: no tool carries it out, and the
/// tool's own word about it is the better one.
pub async fn admit(
    tool: &dyn Tool,
    call: &ToolUse,
    context: &Context,
) -> Result<Admitted, Refused> {
    let ToolInput::Json(json) = &call.input else {
        return Ok(Admitted::default());
    };
    if context.guard.is_none() && context.hooks.is_none() {
        return Ok(Admitted::default());
    }
    let mut admission = Admission {
        tool,
        call,
        context,
        input: json.read().unwrap_or_default(),
        is_changed: false,
        notes: Vec::new(),
    };
    let wish = admission.ask_hooks().await?;
    admission.ask_policy(wish).await?;
    let input = admission.is_changed.then(|| admission.as_input());
    Ok(Admitted {
        input,
        notes: admission.notes,
    })
}

/// A call on its way to be admitted.
struct Admission<'a> {
    tool: &'a dyn Tool,
    call: &'a ToolUse,
    context: &'a Context,
    input: Value,
    is_changed: bool,
    notes: Vec<String>,
}

/// What hooks want of a call, with their reason.
struct Wish {
    choice: Choice,
    reason: String,
}

impl Admission<'_> {
    async fn ask_hooks(&mut self) -> Result<Option<Wish>, Refused> {
        let context = self.context;
        let hooks = context.hooks.as_ref();
        let Some(hooks) = hooks.filter(|hooks| hooks.has(EventKind::PreToolUse)) else {
            return Ok(None);
        };
        let moment = Moment::PreToolUse {
            tool_name: self.call.name.clone(),
            tool_input: self.input.clone(),
            tool_use_id: self.call.id.clone(),
        };
        let merged = hooks.at(context.cwd.get(), moment).await;
        if let Some(why) = merged.stop {
            return Err(self.end(&why));
        }
        if let Some(why) = merged.blocked() {
            return Err(self.refuse(&format!("A hook refused it: {why}")));
        }
        self.notes.extend(merged.context);
        if let Some(input) = merged.updated_input {
            self.replace(input)?;
        }
        Ok(merged.decision.map(|decision| Wish {
            choice: decision.choice,
            reason: decision.reason.unwrap_or_default(),
        }))
    }

    /// Puts a hook's input in place of the model's.
    fn replace(&mut self, input: Map<String, Value>) -> Result<(), Refused> {
        self.input = Value::Object(input);
        self.is_changed = true;
        match self.tool.check(&self.as_input()) {
            Ok(()) => Ok(()),
            Err(output) => {
                let mut refused =
                    self.refuse(&"A hook changed the input, and not to one that fits.");
                refused.output.parts.extend(output.parts);
                Err(refused)
            }
        }
    }

    async fn ask_policy(&mut self, wish: Option<Wish>) -> Result<(), Refused> {
        let choice = wish.as_ref().map(|wish| wish.choice);
        let wants_question = matches!(choice, Some(Choice::Ask | Choice::Defer));
        let Some(guard) = &self.context.guard else {
            return match wants_question {
                true => {
                    Err(self.refuse(&"A hook wants it asked about, and nobody can be asked here."))
                }
                false => Ok(()),
            };
        };
        let decision = guard.decide(self.tool, &self.input, self.context);
        let Some(decision) = decision else {
            return Ok(());
        };
        let by_policy = decision.outcome != Outcome::Allow;
        let (why, may_ask, by_rule) = match (decision.outcome, decision.reason) {
            (Outcome::Allow, _) if !wants_question => return Ok(()),
            (Outcome::Allow, _) => {
                let why = wish.map(|wish| wish.reason).unwrap_or_default();
                (format!("A hook wants it asked about: {why}"), true, true)
            }
            (Outcome::Ask, reason) => (reason.to_string(), true, is_ask_rule(&reason)),
            (Outcome::Deny, reason) => match &reason {
                Reason::NobodyToAsk { why, silent } => {
                    let hooks = silent.may_be_answered_by_hooks();
                    (reason.to_string(), hooks, is_ask_rule(why))
                }
                _ => return Err(self.refuse(&reason)),
            },
        };
        // A hook has answered the question already. Rules of the user's that ask go before it.
        if choice == Some(Choice::Allow) && !by_rule {
            return Ok(());
        }
        self.question(why, may_ask, by_policy).await
    }

    /// Asks hooks for the user's word, then the user. Where nobody can be asked, it is no.
    async fn question(
        &mut self,
        why: String,
        may_ask: bool,
        by_policy: bool,
    ) -> Result<(), Refused> {
        let context = self.context;
        let suggestions: Vec<String> = match &context.guard {
            Some(guard) => guard
                .suggest(self.tool, &self.input, context)
                .iter()
                .map(ToString::to_string)
                .collect(),
            None => Vec::new(),
        };
        if may_ask && let Some(answer) = self.permission_hooks(&suggestions).await {
            return self.take_answer(answer);
        }
        let guard = context.guard.as_ref().filter(|_| may_ask);
        let asking = guard.and_then(|guard| Some((guard, guard.whom_to_ask()?)));
        let Some((guard, (agent, questions))) = asking else {
            return Err(self.refuse(&why));
        };
        self.notify(&why).await;
        let draft = Draft {
            tool: self.call.name.clone(),
            input: self.input.clone(),
            reason: why,
            suggestions,
        };
        let permission = tokio::select! {
            biased;
            permission = questions.ask(*agent, draft) => permission,
            // What the user said to another question can be the answer to this one too.
            () = self.until_allowed(guard), if by_policy => return Ok(()),
        };
        match permission {
            Permission::Allow { rules } => {
                if !rules.is_empty() {
                    guard.allow(&rules, context.cwd.get());
                }
                Ok(())
            }
            Permission::Deny { message } if message.trim().is_empty() => {
                Err(self.refuse(&"The user said no."))
            }
            Permission::Deny { message } => {
                Err(self.refuse(&format!("The user said no: {}", message.trim())))
            }
        }
    }

    /// Waits until what the user says lets the call run unasked.
    async fn until_allowed(&self, guard: &Guard) {
        let mut changes = guard.changes();
        while changes.changed().await.is_ok() {
            let decision = guard.decide(self.tool, &self.input, self.context);
            if decision.is_none_or(|decision| decision.outcome == Outcome::Allow) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    async fn permission_hooks(&self, suggestions: &[String]) -> Option<Merged> {
        let hooks = self.context.hooks.as_ref();
        let hooks = hooks.filter(|hooks| hooks.has(EventKind::PermissionRequest))?;
        let moment = Moment::PermissionRequest {
            tool_name: self.call.name.clone(),
            tool_input: self.input.clone(),
            permission_suggestions: suggestions.iter().map(|rule| suggestion(rule)).collect(),
        };
        let merged = hooks.at(self.context.cwd.get(), moment).await;
        let decides = merged.stop.is_some()
            || merged
                .decision
                .as_ref()
                .is_some_and(|it| matches!(it.choice, Choice::Allow | Choice::Deny));
        decides.then_some(merged)
    }

    fn take_answer(&mut self, answer: Merged) -> Result<(), Refused> {
        if let Some(why) = answer.stop {
            return Err(self.end(&why));
        }
        if let Some(why) = answer.blocked() {
            let mut refused = self.refuse(&format!("A hook refused it: {why}"));
            refused.stop = answer.interrupt.then(|| why.to_owned());
            return Err(refused);
        }
        let Some(input) = answer.updated_input else {
            return Ok(());
        };
        self.replace(input)?;
        // What was allowed is another call now; what denies must hear of it.
        let guard = self.context.guard.as_ref();
        let decision = guard.and_then(|guard| guard.decide(self.tool, &self.input, self.context));
        match decision {
            Some(decision)
                if decision.outcome == Outcome::Deny
                    && !matches!(decision.reason, Reason::NobodyToAsk { .. }) =>
            {
                Err(self.refuse(&decision.reason))
            }
            _ => Ok(()),
        }
    }

    /// Users may be elsewhere: their hooks can fetch them.
    async fn notify(&self, why: &str) {
        let hooks = self.context.hooks.as_ref();
        if let Some(hooks) = hooks.filter(|hooks| hooks.has(EventKind::Notification)) {
            let moment = Moment::Notification {
                message: format!("{} waits for your permission. {why}", self.call.name),
                title: None,
                notification_type: "permission_prompt".to_owned(),
            };
            hooks.at(self.context.cwd.get(), moment).await;
        }
    }

    fn as_input(&self) -> ToolInput {
        ToolInput::Json(Json::of(&self.input))
    }

    fn refuse(&self, why: &dyn Display) -> Refused {
        if let Some(guard) = &self.context.guard {
            guard.turned_away(self.tool, &self.input, self.context, why);
        }
        let output = Output::error(format!("Not allowed, and not carried out: {why}"));
        Refused { output, stop: None }
    }

    fn end(&self, why: &str) -> Refused {
        let mut refused = self.refuse(&format!("A hook ended the work: {why}"));
        refused.stop = Some(why.to_owned());
        refused
    }
}

fn is_ask_rule(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::Rule {
            kind: Kind::Ask,
            ..
        }
    )
}

/// A rule in the form that hooks know suggestions in.
fn suggestion(rule: &str) -> Value {
    let (tool, content) = match rule.split_once('(') {
        Some((tool, rest)) => (tool, rest.strip_suffix(')')),
        None => (rule, None),
    };
    let mut entry = json!({"toolName": tool});
    if let (Some(content), Some(members)) = (content, entry.as_object_mut()) {
        members.insert("ruleContent".to_owned(), content.into());
    }
    json!({"type": "addRules", "rules": [entry], "behavior": "allow", "destination": "session"})
}

/// Tells hooks what came of a call, and answers with what the model is to hear of it, and why the
/// whole work is to end, if it is.
pub async fn after(
    call: &ToolUse,
    admitted: Admitted,
    mut output: Output,
    took: Duration,
    context: &Context,
) -> (Output, Option<String>) {
    let kind = match output.is_error {
        true => EventKind::PostToolUseFailure,
        false => EventKind::PostToolUse,
    };
    let hooks = context.hooks.as_ref().filter(|hooks| hooks.has(kind));
    let mut stop = None;
    let mut notes = admitted.notes;
    if let Some(hooks) = hooks {
        let input = admitted.input.as_ref().unwrap_or(&call.input);
        let moment = moment(call, input, &output, took);
        let merged = hooks.at(context.cwd.get(), moment).await;
        if let Some(new) = &merged.updated_output {
            let text = match new {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            output.parts = vec![ResultPart::Text(text)];
        }
        notes.extend(
            merged
                .blocked()
                .map(|why| format!("something is wrong: {why}")),
        );
        notes.extend(merged.context);
        stop = merged.stop;
    }
    let notes = notes
        .into_iter()
        .map(|note| ResultPart::Text(format!("[From a hook of the user's: {note}]")));
    output.parts.extend(notes);
    (output, stop)
}

fn moment(call: &ToolUse, input: &ToolInput, output: &Output, took: Duration) -> Moment {
    let tool_input = match input {
        ToolInput::Json(json) => json.read().unwrap_or_default(),
        ToolInput::Broken(text) => text.as_str().into(),
    };
    let duration_ms = Some(took.as_millis() as u64);
    let tool_name = call.name.clone();
    let tool_use_id = call.id.clone();
    if output.is_error {
        return Moment::PostToolUseFailure {
            tool_name,
            tool_input,
            tool_use_id,
            error: text(output),
            is_interrupt: false,
            duration_ms,
        };
    }
    Moment::PostToolUse {
        tool_name,
        tool_input,
        tool_response: json!({"content": text(output)}),
        tool_use_id,
        duration_ms,
    }
}

/// The texts of a result; of images only that they are there.
fn text(output: &Output) -> String {
    let texts = output.parts.iter().map(|part| match part {
        ResultPart::Text(text) => text.as_str(),
        ResultPart::Image(_) => "[image]",
    });
    texts.collect::<Vec<_>>().join("\n")
}
