//! The guard: stands before every call of an agent and keeps a list of what it turned away.

use crate::bash::Bash;
use crate::context::Context;
use crate::permission::{Denial, Outcome, Policy, Request};
use crate::tool::{Run, Tool};
use gaffer_protocol::message::ToolInput;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Clones share their list: they guard the same agent.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: Arc<Policy>,
    denials: Arc<Mutex<Vec<Denial>>>,
}

/// Members of inputs that name files.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

impl Guard {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            denials: Arc::default(),
        }
    }

    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Everything that was turned away so far.
    pub fn denials(&self) -> Vec<Denial> {
        let denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        denials.clone()
    }

    /// Lets a call pass, or says why not. A question that nobody here can answer is a denial.
    pub fn check(
        &self,
        tool: &dyn Tool,
        input: &ToolInput,
        context: &Context,
    ) -> Result<(), String> {
        // What is not JSON is not carried out by any tool; the tool's own word is the better one.
        let ToolInput::Json(json) = input else {
            return Ok(());
        };
        let value: Value = json.read().unwrap_or_default();
        // Without a command Bash starts nothing: it looks at a job of the agent's own, or at none.
        if tool.spec().name == Bash::NAME && value.get("command").is_none_or(Value::is_null) {
            return Ok(());
        }
        let cwd = context.cwd.get();
        let request = Request {
            tool: &tool.spec().name,
            input: &value,
            access: tool.access(),
            cwd: &cwd,
            paths: &paths(&value, context),
        };
        let decision = self.policy.decide(&request);
        if decision.outcome == Outcome::Allow {
            return Ok(());
        }
        let denial = Denial::new(&request, &decision.reason);
        let why = format!("Not allowed, and not carried out: {}", denial.reason);
        self.denials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(denial);
        Err(why)
    }
}

/// The files that a call names, as they really are: rules are not fooled by links.
fn paths(input: &Value, context: &Context) -> Vec<PathBuf> {
    let named = PATHS
        .iter()
        .filter_map(|member| input.get(member)?.as_str());
    let located = named.filter_map(|path| context.fence.locate(&context.cwd.get(), path).ok());
    located.map(|fenced| fenced.path()).collect()
}
