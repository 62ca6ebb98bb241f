//! Compaction, by one path for every agent: when it is due, what is kept by construction, what the
//! model is asked to summarise, and what the conversation is afterwards.

mod facts;
mod gauge;
mod perform;
mod spill;
#[cfg(test)]
mod tests;

pub(crate) use gauge::Gauge;
pub(crate) use spill::Spill;

use gaffer_protocol::{Block, Origin};
use std::sync::Arc;

/// What an agent is told about compaction by its surroundings.
#[derive(Debug, Clone)]
pub struct Compaction {
    pub limits: CompactionLimits,
    pub memo: Option<Arc<dyn Memo>>,
}

/// What settings may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionLimits {
    /// Whether it happens without anybody asking for it.
    pub is_auto: bool,
    /// So many tokens of a model's context are used at most, however many it has.
    pub window: Option<u64>,
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self {
            is_auto: true,
            window: None,
        }
    }
}

impl From<CompactionLimits> for Compaction {
    fn from(limits: CompactionLimits) -> Self {
        Self { limits, memo: None }
    }
}

impl Default for Compaction {
    fn default() -> Self {
        CompactionLimits::default().into()
    }
}

/// What an agent's surroundings know that must outlive a compaction. An agent knows no other
/// agent, so whoever does says it.
pub trait Memo: Send + Sync + std::fmt::Debug {
    /// What the agent has started and waits for, as it stands.
    fn open_tasks(&self) -> Option<String>;

    /// The agent's conversation was compacted.
    fn compacted(&self);
}

/// Somebody wants a conversation compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What the summary is to heed.
    pub wish: Option<String>,
}

impl Request {
    /// The request that a message of the user's is, if it is one: `/compact`, with or without
    /// words behind it.
    pub fn read(block: &Block) -> Option<Self> {
        let Block::Text(text) = block else {
            return None;
        };
        let rest = text.text.trim().strip_prefix("/compact")?;
        let is_command = rest.is_empty() || rest.starts_with(char::is_whitespace);
        let wish = Some(rest.trim()).filter(|wish| !wish.is_empty());
        (text.origin == Some(Origin::Human) && is_command).then(|| Self {
            wish: wish.map(str::to_owned),
        })
    }
}
