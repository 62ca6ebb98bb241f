//! What one line of a transcript says.

use crate::compacted::Compacted;
use gaffer_protocol::{AgentId, AgentName, Answer, End, Message, SessionId, Timestamp, ToolResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub at: Timestamp,
    pub entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Start(Box<Start>),
    /// User-side input other than results.
    Input(Arc<Message>),
    Answer(Arc<Answer>),
    /// The result of one call, written as soon as it is there.
    Result(Arc<ToolResult>),
    /// The conversation goes on from here with these messages instead of all that stands above.
    Compacted(Arc<Compacted>),
    End(End),
}

/// What an agent was started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub version: String,
    pub session: SessionId,
    pub agent: AgentId,
    pub name: AgentName,
    pub agent_type: String,
    pub mode: String,
    pub provider: String,
    pub model: String,
    pub cwd: String,
    /// Of the system prompt, the tools and their order.
    pub prefix_hash: String,
    /// Of the prompt file alone.
    pub prompt_hash: String,
    /// Who started it; none for the session's own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// What it was to do, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}
