//! Asks all hooks of a moment, side by side.

use super::config::{Background, Handler, HookConfig, Runner};
use super::event::HookEvent;
use super::http::Clients;
use super::kind::{EventKind, OnTimeout};
use super::outcome::{Choice, Decision, Merged, Reply, Verdict};
use super::{command, http};
use futures_util::future::{BoxFuture, join_all};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Whether a call of a tool with this input fits a permission rule.
pub type Conditions = Arc<dyn Fn(&str, &str, &Value) -> Result<bool, String> + Send + Sync>;

/// The value of an environment variable, for headers. What must never leave is not given.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What hooks need from outside, the same for all of them.
#[derive(Clone)]
pub struct Surroundings {
    /// What `CLAUDE_PROJECT_DIR` and `GAFFER_PROJECT_DIR` name.
    pub project: PathBuf,
    /// Variables that hooks' processes must not see.
    pub hidden: Vec<String>,
    pub variables: Variables,
    pub conditions: Conditions,
    /// Where it is to be other than [`EventKind::on_timeout`] says.
    pub on_timeout: BTreeMap<EventKind, OnTimeout>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("project", &self.project)
            .field("on_timeout", &self.on_timeout)
            .finish_non_exhaustive()
    }
}

/// The hooks of a session.
#[derive(Debug, Clone)]
pub struct Hooks {
    config: Arc<HookConfig>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    surroundings: Surroundings,
    clients: Clients,
}

impl Hooks {
    pub fn new(config: HookConfig, surroundings: Surroundings) -> Self {
        let clients = Clients::default();
        Self {
            config: Arc::new(config),
            shared: Arc::new(Shared {
                surroundings,
                clients,
            }),
        }
    }

    /// Whether there is any hook for moments of this kind. Without one, nothing need be prepared.
    pub fn has(&self, kind: EventKind) -> bool {
        self.config.groups.iter().any(|group| group.event == kind)
    }

    /// What is wrong with the settings.
    pub fn warnings(&self) -> &[String] {
        &self.config.warnings
    }

    /// Asks all hooks that the moment concerns. They run at the same time; their verdicts count in
    /// the order of the settings. Dropping the future ends them.
    pub async fn run(&self, event: &HookEvent) -> Merged {
        let mut merged = Merged::default();
        let chosen = self.choose(event, &mut merged);
        if chosen.is_empty() {
            return merged;
        }
        // Scripts that read a line need its end.
        let input: Arc<str> = format!("{}\n", event.to_json()).into();
        let asking = |handler: Arc<Handler>| Asking {
            kind: event.moment.kind(),
            cwd: event.cwd.clone(),
            input: input.clone(),
            shared: self.shared.clone(),
            handler,
        };
        let (now, later): (Vec<Asking>, Vec<Asking>) = chosen
            .into_iter()
            .map(asking)
            .partition(|asking| asking.handler.background == Background::No);
        merged.later = later.into_iter().map(Later::new).collect();
        let labels: Vec<String> = now.iter().map(|asking| asking.handler.label()).collect();
        let verdicts = join_all(now.into_iter().map(Asking::run)).await;
        for (label, verdict) in labels.iter().zip(verdicts) {
            merged.add(label, verdict);
        }
        merged
    }

    /// The hooks that the moment concerns, each once. What cannot be judged is refused before a
    /// tool's call, and otherwise reported.
    fn choose(&self, event: &HookEvent, merged: &mut Merged) -> Vec<Arc<Handler>> {
        let kind = event.moment.kind();
        let subjects = event.moment.subjects();
        let mut chosen: Vec<Arc<Handler>> = Vec::new();
        for group in self.config.groups.iter().filter(|it| it.event == kind) {
            if let Some(why) = group.matcher.fault()
                && kind == EventKind::PreToolUse
            {
                merged.add(&group.place, unjudged(kind, why.to_owned()));
            }
            if !group.matcher.fits(&subjects) {
                continue;
            }
            for handler in &group.handlers {
                match self.fits(handler, event) {
                    Ok(false) => {}
                    Ok(true) => {
                        let is_same = |other: &Arc<Handler>| {
                            other.runner == handler.runner && other.background == handler.background
                        };
                        if !chosen.iter().any(is_same) {
                            chosen.push(handler.clone());
                        }
                    }
                    Err(why) => merged.add(&handler.label(), unjudged(kind, why)),
                }
            }
        }
        chosen
    }

    /// Whether a hook's own condition holds. Without a tool there is nothing that could fit it.
    fn fits(&self, handler: &Handler, event: &HookEvent) -> Result<bool, String> {
        let Some(rule) = &handler.condition else {
            return Ok(true);
        };
        let Some((tool, input)) = event.moment.tool() else {
            return Ok(false);
        };
        (self.shared.surroundings.conditions)(rule, tool, input)
            .map_err(|why| format!("its `if` rule `{rule}` cannot be judged: {why}"))
    }
}

/// Nobody knows whether a hook was to be asked.
fn unjudged(kind: EventKind, why: String) -> Verdict {
    let decision = (kind == EventKind::PreToolUse).then(|| Decision {
        choice: Choice::Deny,
        reason: Some(format!("a hook's settings are wrong: {why}")),
    });
    Verdict {
        decision,
        reports: vec![why],
        ..Verdict::default()
    }
}

/// One hook on its way. It owns what it needs, so that it can outlive the moment.
#[derive(Debug)]
struct Asking {
    kind: EventKind,
    cwd: PathBuf,
    input: Arc<str>,
    handler: Arc<Handler>,
    shared: Arc<Shared>,
}

impl Asking {
    async fn run(self) -> Verdict {
        let reply = self.reply(self.handler.time(self.kind)).await;
        let set = self.shared.surroundings.on_timeout.get(&self.kind).copied();
        let on_timeout = match self.handler.background {
            Background::No => set.unwrap_or(self.kind.on_timeout()),
            // The moment is over: there is nothing left to block.
            Background::Quiet | Background::Wakes => OnTimeout::Pass,
        };
        Verdict::of(self.kind, reply, on_timeout)
    }

    async fn reply(&self, time: Duration) -> Reply {
        let surroundings = &self.shared.surroundings;
        match &self.handler.runner {
            Runner::Command(hook) => {
                command::run(hook, surroundings, &self.cwd, &self.input, time).await
            }
            Runner::Http(hook) => {
                let clients = &self.shared.clients;
                http::post(hook, clients, &surroundings.variables, &self.input, time).await
            }
            Runner::Broken { why, .. } => Reply::NotStarted(why.clone()),
        }
    }
}

/// A hook with `async`: whoever looks after tasks runs it while the agent goes on.
pub struct Later {
    hook: String,
    merged: BoxFuture<'static, Merged>,
}

impl Later {
    fn new(asking: Asking) -> Self {
        let hook = asking.handler.label();
        let label = hook.clone();
        let wakes = asking.handler.background == Background::Wakes;
        let merged = Box::pin(async move {
            let verdict = asking.run().await;
            let mut merged = Merged::default();
            merged.add(
                &label,
                Verdict {
                    decision: verdict.decision.filter(|_| wakes),
                    message: verdict.message,
                    context: verdict.context,
                    reports: verdict.reports,
                    ..Verdict::default()
                },
            );
            merged
        });
        Self { hook, merged }
    }

    /// How it is named in reports.
    pub fn hook(&self) -> &str {
        &self.hook
    }

    /// Runs it. Its messages and its context are for the agent's next turn; a refusal, which only
    /// hooks with `asyncRewake` can give, is reason to wake the agent with it.
    pub async fn finish(self) -> Merged {
        self.merged.await
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Later").field(&self.hook).finish()
    }
}
