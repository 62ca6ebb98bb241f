//! Models: one trait, streaming always, cancelled by dropping the future.
//!
//! From the wire upwards: `sse` cuts a byte stream into events, `wire` turns events into an
//! answer, `http` sends one request under its deadlines, `retry` repeats it through the `gate`.

pub mod conversation;
pub mod error;
pub mod gate;
mod http;
pub mod price;
pub mod provider;
pub mod retry;
mod rope;
pub mod script;
pub mod sse;
pub mod wire;

pub use conversation::{Checkpoint, Conversation, Prefix, Who};
pub use error::{ErrorKind, ModelError};
pub use gate::Gate;
pub use price::Prices;

use futures_util::future::BoxFuture;
use gaffer_protocol::Answer;
use std::time::Duration;

/// Something that answers conversations.
pub trait Model: Send + Sync + std::fmt::Debug {
    /// The model's name as settings give it.
    fn name(&self) -> &str;

    /// Begins a conversation in this model's own encoding.
    fn open(&self, prefix: &Prefix, who: Who) -> Conversation;

    /// Asks for the next answer. The future resolves only when the provider's final event has
    /// arrived; what comes before goes to `deltas` as it streams. Dropping it cancels the request.
    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;
}

/// Receives what streams in before an answer is whole.
pub type DeltaSink<'a> = dyn FnMut(Delta<'_>) + Send + 'a;

/// News about an answer on its way: for showing, never for acting on.
#[derive(Debug, Clone, Copy)]
pub enum Delta<'a> {
    /// Waits for a place in the gate.
    Queued,
    /// Word for the user about how the provider is asked.
    Notice(&'a str),
    /// The request goes out now.
    Sent,
    Text(&'a str),
    Reasoning(&'a str),
    /// The model begins a call of this tool.
    Call(&'a str),
    /// The attempt failed and what it streamed is void.
    Retry {
        attempt: u32,
        delay: Duration,
        error: &'a ModelError,
    },
}
