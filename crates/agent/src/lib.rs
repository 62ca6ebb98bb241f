//! One agent, alone: an inbox, a set of tools, a transcript and a place for events. It knows no
//! other agent.

mod agent;
pub mod agent_type;
mod allowance;
mod ask;
mod calls;
mod compact;
mod context;
mod documents;
mod hear;
mod hooks;
mod inbox;
mod memory;
mod places;
pub mod prompt;
mod recording;
mod switch;

pub use agent::{Agent, AgentError, Outcome, Parts};
pub use agent_type::{AgentType, AgentTypes};
pub use allowance::{Allowance, GRACE, Say, Unlimited};
pub use compact::{Compaction, CompactionLimits, Memo, Request as CompactionRequest};
pub use context::Surroundings;
pub use documents::{Document, Documents};
pub use inbox::{Announced, Inbox, Sender, inbox};
pub use memory::{Memory, MemoryError};
pub use places::Places;
