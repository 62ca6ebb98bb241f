//! The one event stream: everything that a surface shows is a fold over these.

use crate::clock::Timestamp;
use crate::course::Course;
use crate::end::End;
use crate::ids::{AgentId, AgentName, CallId, SessionId};
use crate::message::{Answer, Message, ToolResult, ToolUse};
use crate::notification::Notification;
use crate::plan::Plan;
use crate::terms::Phase;
use crate::usage::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Counts up without gaps within a session: a late joiner's cursor.
    pub seq: u64,
    pub at: Timestamp,
    pub agent: AgentId,
    pub kind: EventKind,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    SessionStarted(Box<SessionStarted>),
    AgentStarted(Box<AgentStarted>),
    /// A worker that had ended goes on.
    Continued,
    /// User-role input that entered the conversation (prompts, mail, notifications).
    Input(Arc<Message>),
    /// What the agent waits for from now on: there is always exactly one such state.
    Waiting(Waiting),
    TextDelta(String),
    ReasoningDelta(String),
    /// The model began to write a call; its arguments are not there yet.
    CallDelta {
        tool: String,
    },
    /// What was streamed of this answer is void; it is asked for again.
    Retry {
        attempt: u32,
        delay_ms: u64,
        status: Option<u16>,
        error: String,
    },
    Answered {
        turn: u32,
        answer: Arc<Answer>,
        cost: Cost,
    },
    /// A model was asked beside the conversation: by a tool, or for a summary.
    Spent {
        model: String,
        usage: Usage,
        cost: Cost,
    },
    ToolStarted {
        tool_use: Arc<ToolUse>,
    },
    ToolFinished {
        tool: String,
        result: Arc<ToolResult>,
        duration_ms: u64,
    },
    /// The conversation was near its limit, or somebody asked for it, and is shorter now.
    Compacted {
        trigger: Trigger,
        tokens_before: u64,
        tokens_after: u64,
    },
    /// A call waits until somebody says whether it may run.
    Asked(Arc<Question>),
    /// What is to be done and by whom, which the user wants to approve first.
    Plan(Arc<Plan>),
    /// The question with this number needs no answer any more.
    Settled(u64),
    /// What a guardrail has to say about an order of this agent.
    Advice(Box<Advice>),
    /// What came of integrating the branches of finished workers.
    Integrated(Box<Integrated>),
    /// A budget is near its end or at it, or what came of it.
    Budget(Box<crate::budget::BudgetNews>),
    /// Word for the user that is no part of the conversation: what a hook has to say, for one.
    Notice(String),
    AgentEnded(Box<AgentEnded>),
    /// The phases of a session that had workers, before its own agent ends.
    Course(Arc<Course>),
    /// The end of a task was told to the agent above it.
    Notified(Arc<Notification>),
}

/// What is wrong with an order, or who should have got it instead.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Advice {
    /// The setting that governs it: `orders`, `continue`, `leases`, `budget` or `phases`.
    pub guardrail: &'static str,
    pub rule: String,
    /// The words that it is about; empty where something is missing.
    pub excerpt: String,
    /// What to do instead.
    pub text: String,
    /// How good the order is, of 100; none where that was not asked.
    pub score: Option<u8>,
    /// Whether the order was not carried out for it.
    pub is_refusal: bool,
}

impl std::fmt::Display for Advice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.excerpt.as_str() {
            "" => write!(f, "{}: {}", self.rule, self.text),
            excerpt => write!(f, "{} (\"{excerpt}\"): {}", self.rule, self.text),
        }
    }
}

/// An integration of branches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Integrated {
    /// The branch; none where a new one would have been made and was not.
    pub into: Option<String>,
    pub before: String,
    /// The commit that the branch is at now; none where it was not moved.
    pub after: Option<String>,
    pub merged: usize,
    pub left_out: usize,
    /// All of it in one line.
    pub summary: String,
}

/// Who asked for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    Manual,
    Auto,
}

impl Trigger {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// Whether a call may run. Any surface may answer; the first answer counts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Question {
    /// By which it is answered.
    pub number: u64,
    pub tool: String,
    pub input: serde_json::Value,
    /// Why it is asked.
    pub reason: String,
    /// Rules that would let this call run unasked from now on.
    pub suggestions: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum Permission {
    Allow {
        /// Further calls that these rules speak of are allowed as well, until the session ends.
        #[serde(default)]
        rules: Vec<String>,
    },
    Deny {
        /// For the model.
        #[serde(default)]
        message: String,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct SessionStarted {
    pub session: SessionId,
    pub cwd: String,
    pub mode: String,
    pub provider: String,
    pub model: String,
    pub tools: Vec<String>,
    /// The types of workers that can be started.
    pub agents: Vec<String>,
    pub permission_mode: String,
    pub version: String,
    pub key_source: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct AgentStarted {
    pub name: AgentName,
    pub agent_type: String,
    /// None for the session's own agent.
    pub parent: Option<AgentId>,
    /// What it is to do, in a few words.
    pub description: String,
    /// The call that started it.
    pub call: Option<CallId>,
    /// How many agents are above it.
    pub depth: u32,
    /// What a worker's task is for.
    pub phase: Option<Phase>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AgentEnded {
    pub end: End,
    /// The final text, as far as there was any.
    pub result: String,
    pub turns: u32,
    pub tool_uses: u32,
    pub usage: Usage,
    pub cost: Cost,
    pub duration_ms: u64,
    /// The part of it that was spent waiting for the model.
    pub model_ms: u64,
    pub stop: Option<crate::message::StopReason>,
    /// Calls that were not allowed.
    pub denials: Vec<Denied>,
    /// What a worker's run turned out to be.
    pub phase: Option<Phase>,
    /// Whether there is nothing but a worker's word for what it reports.
    pub is_unverified: bool,
    /// The result in the form that the user asked for.
    pub structured: Option<serde_json::Value>,
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.tool_name, self.summary, self.reason)
    }
}

/// A call that was not allowed.
#[derive(Clone, Debug, Serialize)]
pub struct Denied {
    pub tool_name: String,
    /// What it was about, on one line.
    pub summary: String,
    pub reason: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// For a place among the workers that run; the number is its own in the queue, from 1.
    Queue(usize),
    /// For other tasks to complete.
    Dependencies(Vec<AgentName>),
    /// For these to let go of files.
    Lease(Vec<AgentName>),
    /// For a free place in the provider's gate, or the end of a pause it asked for.
    Gate,
    Model,
    Tools(Vec<CallId>),
    /// For the answer to a question.
    User,
    /// For mail or the user: costs nothing.
    Mail,
}

/// Where an agent's events go. Emitting never blocks and never fails: what nobody reads is gone.
pub trait EventSink: Send + Sync + std::fmt::Debug {
    fn emit(&self, agent: AgentId, kind: EventKind);
}
