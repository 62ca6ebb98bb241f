//! The guard: holds an agent's policy, whom it can ask, and a list of what was turned away.

use crate::bash::Bash;
use crate::context::Context;
use crate::permission::{Decision, Denial, Kind, Level, Policy, Request, Rule, Ruled, Source};
use crate::question::Questions;
use crate::tool::{Run, Tool};
use gaffer_protocol::AgentId;
use serde_json::Value;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Clones share their state: they guard the same agent.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: Arc<Mutex<Arc<Policy>>>,
    denials: Arc<Mutex<Vec<Denial>>>,
    asking: Option<(AgentId, Questions)>,
}

/// Members of inputs that name files.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

impl Guard {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy: Arc::new(Mutex::new(policy)),
            denials: Arc::default(),
            asking: None,
        }
    }

    /// The same for an agent whose questions reach somebody.
    pub fn asking(self, agent: AgentId, questions: Questions) -> Self {
        Self {
            asking: Some((agent, questions)),
            ..self
        }
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Everything that was turned away so far.
    pub fn denials(&self) -> Vec<Denial> {
        let denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        denials.clone()
    }

    pub(crate) fn whom_to_ask(&self) -> Option<&(AgentId, Questions)> {
        self.asking.as_ref()
    }

    /// What the policy says of a call. None where there is nothing to decide.
    pub(crate) fn decide(
        &self,
        tool: &dyn Tool,
        input: &Value,
        context: &Context,
    ) -> Option<Decision> {
        // Without a command Bash starts nothing: it looks at a job of the agent's own, or at none.
        if tool.spec().name == Bash::NAME && input.get("command").is_none_or(Value::is_null) {
            return None;
        }
        let paths = paths(input, context);
        let request = |request: &Request<'_>| self.policy().decide(request);
        Some(with_request(tool, input, context, &paths, request))
    }

    /// Rules that would let a call run unasked.
    pub(crate) fn suggest(&self, tool: &dyn Tool, input: &Value, context: &Context) -> Vec<Rule> {
        let paths = paths(input, context);
        let suggest = |request: &Request<'_>| self.policy().suggest(request);
        with_request(tool, input, context, &paths, suggest)
    }

    /// Lists a call as turned away.
    pub(crate) fn turned_away(
        &self,
        tool: &dyn Tool,
        input: &Value,
        context: &Context,
        reason: &dyn Display,
    ) {
        let denial = |request: &Request<'_>| Denial::new(request, reason);
        let denial = with_request(tool, input, context, &[], denial);
        self.denials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(denial);
    }

    /// Allows what these rules speak of until the session ends. What is no rule is left out: the
    /// next such call is asked about again.
    pub(crate) fn allow(&self, rules: &[String], folder: PathBuf) {
        let rules = rules
            .iter()
            .filter_map(|text| Rule::parse_for(Kind::Allow, text).ok());
        let source = Source::new(Level::Session, folder);
        let ruled = rules.map(|rule| Ruled {
            rule,
            source: source.clone(),
        });
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Policy::clone(&policy);
        changed.allow.extend(ruled);
        *policy = Arc::new(changed);
    }
}

fn with_request<T>(
    tool: &dyn Tool,
    input: &Value,
    context: &Context,
    paths: &[PathBuf],
    then: impl FnOnce(&Request<'_>) -> T,
) -> T {
    let cwd = context.cwd.get();
    then(&Request {
        tool: &tool.spec().name,
        input,
        access: tool.access(),
        cwd: &cwd,
        paths,
    })
}

/// The files that a call names, as they really are: rules are not fooled by links.
fn paths(input: &Value, context: &Context) -> Vec<PathBuf> {
    let named = PATHS
        .iter()
        .filter_map(|member| input.get(member)?.as_str());
    let located = named.filter_map(|path| context.fence.locate(&context.cwd.get(), path).ok());
    located.map(|fenced| fenced.path()).collect()
}
