//! The record of a compaction: what the conversation is from there on, and what it cost.

use gaffer_protocol::{Message, Trigger, Usage};
use serde::{Deserialize, Serialize};

/// A conversation that was made shorter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    pub trigger: Trigger,
    /// As far as it can be estimated.
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub messages: Vec<Message>,
    /// What the summary cost, and who wrote it.
    pub usage: Usage,
    pub model: String,
    #[serde(default)]
    pub notes: Notes,
}

/// What the next compaction has to know of this one and of those before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// The ends of tasks that were told and acted on, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}
