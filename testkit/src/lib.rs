//! For tests: a model server on loopback that plays scripts on all three wires, checks of every
//! request it gets, and time and randomness that stand still.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in tests a broken assumption must stop the test"
)]

mod check;
mod decode;
pub mod encode;
mod front;
mod http;
mod limit;
mod server;
pub mod web;
pub mod world;

pub use check::{asks_for_summary, head, is_compacted, violations};
pub use front::Front;
pub use limit::Limit;
pub use server::{Asked, Decide, Server, Small};

/// A wire format as a server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireKind {
    Anthropic,
    Responses,
    Chat,
}

impl WireKind {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Responses, Self::Chat];

    /// The name of its provider on the command line.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "openai",
            Self::Chat => "openai-chat",
        }
    }

    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/responses" => Some(Self::Responses),
            "/v1/chat/completions" => Some(Self::Chat),
            _ => None,
        }
    }
}
