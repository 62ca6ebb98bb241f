//! The crew as a program sees it in the stream: who was started by which call, and what came of
//! each.

use super::phases;
use gaffer_protocol::event::{Advice, AgentEnded, AgentStarted, Denied, Integrated};
use gaffer_protocol::{
    AgentId, CallId, Course, End, Event, Notification, Status, Timestamp, Usage, Waiting,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// A fold over the events of all workers.
#[derive(Debug, Default)]
pub(super) struct Crew {
    workers: HashMap<AgentId, Worker>,
    started: u32,
    continued: u32,
    /// How many ended for which reason.
    ends: BTreeMap<&'static str, u32>,
    tool_uses: u32,
    turns: u32,
    tokens: u64,
    denials: Vec<Value>,
    /// What guardrails had to say, by rule, and how much of it was a refusal.
    advice: BTreeMap<String, u32>,
    refusals: u32,
    /// Integrations, and the branches that they merged and left out.
    integrations: u32,
    merged: usize,
    left_out: usize,
    /// How often anybody waited for a file that another had.
    lease_waits: u32,
    /// How the session went, once it is over.
    course: Option<Value>,
}

#[derive(Debug)]
struct Worker {
    call: Option<CallId>,
    began: Option<Timestamp>,
    tokens: u64,
    tool_uses: u32,
    status: &'static str,
}

impl Crew {
    pub(super) fn is_worker(&self, agent: AgentId) -> bool {
        self.workers.contains_key(&agent)
    }

    /// The call that started an agent; none for the session's own.
    pub(super) fn call(&self, agent: AgentId) -> Option<&CallId> {
        self.workers.get(&agent)?.call.as_ref()
    }

    pub(super) fn started(&mut self, agent: AgentId, started: &AgentStarted) {
        if started.parent.is_none() {
            return;
        }
        self.started += 1;
        self.workers.insert(
            agent,
            Worker {
                call: started.call.clone(),
                began: None,
                tokens: 0,
                tool_uses: 0,
                status: "",
            },
        );
    }

    pub(super) fn continued(&mut self, agent: AgentId) {
        self.continued += 1;
        if let Some(worker) = self.workers.get_mut(&agent) {
            worker.status = "running";
        }
    }

    /// The worker's state, where it is another than before.
    pub(super) fn status(&mut self, agent: AgentId, waiting: &Waiting) -> Option<&'static str> {
        self.lease_waits += u32::from(matches!(waiting, Waiting::Lease(_)));
        let worker = self.workers.get_mut(&agent)?;
        let status = match waiting {
            Waiting::Queue(_) | Waiting::Dependencies(_) => "queued",
            Waiting::User | Waiting::Lease(_) => "waiting",
            _ => "running",
        };
        let is_news = worker.status != status || matches!(waiting, Waiting::Queue(_));
        worker.status = status;
        is_news.then_some(status)
    }

    pub(super) fn answered(&mut self, agent: AgentId, usage: Usage) {
        if let Some(worker) = self.workers.get_mut(&agent) {
            worker.tokens += usage.total();
            self.tokens += usage.total();
            self.turns += 1;
        }
    }

    /// A worker uses a tool: how far it is.
    pub(super) fn tool(&mut self, event: &Event, tool: &str) -> Value {
        let Some(worker) = self.workers.get_mut(&event.agent) else {
            return Value::Null;
        };
        worker.tool_uses += 1;
        self.tool_uses += 1;
        let began = worker.began.get_or_insert(event.at);
        json!({
            "last_tool_name": tool,
            "usage": {
                "total_tokens": worker.tokens,
                "tool_uses": worker.tool_uses,
                "duration_ms": event.at.0.saturating_sub(began.0),
            },
        })
    }

    pub(super) fn ended(&mut self, agent: AgentId, ended: &AgentEnded) {
        *self.ends.entry(ended.end.reason()).or_default() += 1;
        for denied in &ended.denials {
            self.denials.push(denial(denied, Some(agent)));
        }
    }

    pub(super) fn advised(&mut self, advice: &Advice) {
        *self.advice.entry(advice.rule.clone()).or_default() += 1;
        self.refusals += u32::from(advice.is_refusal);
    }

    pub(super) fn integrated(&mut self, integrated: &Integrated) {
        self.integrations += 1;
        self.left_out += integrated.left_out;
        if integrated.after.is_some() {
            self.merged += integrated.merged;
        }
    }

    pub(super) fn went(&mut self, course: &Course) {
        self.course = Some(phases::json(course));
    }

    /// Those of the session's own agent, then those of workers.
    pub(super) fn denials(&self, own: &[Denied]) -> Vec<Value> {
        let own = own.iter().map(|denied| denial(denied, None));
        own.chain(self.denials.iter().cloned()).collect()
    }

    /// What the workers came to.
    pub(super) fn statistics(&self) -> Value {
        let count = |reason: &str| self.ends.get(reason).copied().unwrap_or(0);
        let done = count(End::Done.reason());
        let by_coordinator = count(End::StoppedByCoordinator.reason());
        let by_user = count(End::StoppedByUser.reason());
        let all: u32 = self.ends.values().sum();
        let said = |rule: &str| self.advice.get(rule).copied().unwrap_or(0);
        json!({
            "started": self.started,
            "continued": self.continued,
            "completed": done,
            "failed": all - done - by_coordinator - by_user,
            "killed_by_coordinator": by_coordinator,
            "killed_by_user": by_user,
            "ends": self.ends,
            "turns": self.turns,
            "tool_uses": self.tool_uses,
            "total_tokens": self.tokens,
            "advice": self.advice,
            "advice_refused": self.refusals,
            "integrations": self.integrations,
            "branches_merged": self.merged,
            "branches_left_out": self.left_out,
            "leases": {
                "waits": self.lease_waits,
                "conflicts": said("held-file") + said("wait-circle"),
                "outside": said("outside-files"),
                "foreign_changes": said("changed-by-command"),
            },
            "phases": self.course,
        })
    }
}

fn denial(denied: &Denied, agent: Option<AgentId>) -> Value {
    let mut value = json!({
        "tool_name": denied.tool_name,
        "summary": denied.summary,
        "reason": denied.reason,
    });
    if let Some(agent) = agent {
        value["agent_id"] = json!(agent);
    }
    value
}

pub(super) fn started(started: &AgentStarted) -> Value {
    json!({
        "description": started.description,
        "name": started.name,
        "subagent_type": started.agent_type,
        "task_type": "local_agent",
        "parent_agent_id": started.parent,
        "spawn_depth": started.depth,
        "phase": started.phase,
    })
}

pub(super) fn advice(advice: &Advice) -> Value {
    json!({
        "type": "system",
        "subtype": "advice",
        "guardrail": advice.guardrail,
        "rule": advice.rule,
        "excerpt": advice.excerpt,
        "text": advice.text,
        "score": advice.score,
        "refused": advice.is_refusal,
    })
}

pub(super) fn integrated(integrated: &Integrated) -> Value {
    json!({
        "type": "system",
        "subtype": "integrated",
        "into": integrated.into,
        "before": integrated.before,
        "after": integrated.after,
        "merged": integrated.merged,
        "left_out": integrated.left_out,
        "summary": integrated.summary,
    })
}

pub(super) fn notified(notification: &Notification) -> Value {
    let status = match notification.status {
        // Programs know this word for it.
        Status::Killed => "stopped",
        other => other.as_str(),
    };
    json!({
        "status": status,
        "summary": notification.summary,
        "output_file": notification.output_file,
        "reason": notification.reason,
        "usage": notification.usage,
        "unverified": notification.is_unverified,
    })
}
