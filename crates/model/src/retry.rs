//! A model that asks again: through the gate, with patience that depends on what went wrong.

use crate::conversation::{Conversation, Prefix, Who};
use crate::error::{Action, ErrorKind, ModelError};
use crate::gate::Gate;
use crate::{Delta, DeltaSink, Model};
use futures_util::future::BoxFuture;
use gaffer_protocol::{Answer, Entropy};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long and how often a request is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// Attempts for errors that are nobody's load: broken connections, 5xx, cut streams.
    pub attempts: u32,
    /// Time for one answer while the provider is overloaded or limits the rate.
    pub overload: Duration,
    /// The first delay; it doubles with each attempt.
    pub first_delay: Duration,
    /// No delay is longer, but for what the provider asks for itself.
    pub longest_delay: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 8,
            overload: Duration::from_secs(2 * 60 * 60),
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(60),
        }
    }
}

/// Wraps a model whose `answer` is one attempt.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn Model>,
    gate: Gate,
    patience: Patience,
    entropy: Arc<dyn Entropy>,
}

impl Retrying {
    pub fn new(
        inner: Arc<dyn Model>,
        gate: Gate,
        patience: Patience,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self {
            inner,
            gate,
            patience,
            entropy,
        }
    }

    /// Between half of the back-off and all of it, so that many agents do not come back together.
    fn delay(&self, attempt: u32, error: &ModelError) -> Duration {
        let doubled = self
            .patience
            .first_delay
            .saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let longest = doubled.min(self.patience.longest_delay);
        let share = self.entropy.next() as f64 / u64::MAX as f64;
        let jittered = longest.mul_f64(0.5 + 0.5 * share);
        match error.retry_after {
            // The provider's word is the least; the jitter keeps the crowd apart behind it.
            Some(wait) => wait + jittered.min(self.patience.first_delay),
            None => jittered,
        }
    }

    async fn attempts(
        &self,
        conversation: &Conversation,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Answer, ModelError> {
        let began = Instant::now();
        let mut tried = 0;
        let mut failed = 0;
        loop {
            let left = self.patience.overload.saturating_sub(began.elapsed());
            let entered = self.gate.enter(|| deltas(Delta::Queued));
            let Ok(place) = tokio::time::timeout(left, entered).await else {
                let error =
                    ModelError::new(ErrorKind::Overloaded, "no free place with the provider");
                return Err(exhausted(error, tried, began));
            };
            if let Some(notice) = self.gate.notice() {
                deltas(Delta::Notice(&notice));
            }
            tried += 1;
            deltas(Delta::Sent);
            let error = match self.inner.answer(conversation, deltas).await {
                Ok(answer) => {
                    place.succeeded();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            match error.kind.pressure() {
                Some(pressure) => place.pressed(pressure, error.retry_after),
                None => drop(place),
            }
            let delay = self.delay(tried, &error);
            match error.kind.action() {
                Action::GiveUp => return Err(error),
                Action::Retry => {
                    failed += 1;
                    if failed >= self.patience.attempts {
                        return Err(exhausted(error, tried, began));
                    }
                }
                Action::Wait => {
                    if began.elapsed() + delay > self.patience.overload {
                        return Err(exhausted(error, tried, began));
                    }
                }
            }
            deltas(Delta::Retry {
                attempt: tried,
                delay,
                error: &error,
            });
            tokio::time::sleep(delay).await;
        }
    }
}

fn exhausted(mut error: ModelError, tried: u32, began: Instant) -> ModelError {
    let seconds = began.elapsed().as_secs();
    let separator = if error.message.is_empty() { "" } else { "; " };
    error.message = format!(
        "{}{separator}given up after {tried} attempts in {seconds} s",
        error.message
    );
    error
}

impl Model for Retrying {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.inner.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.attempts(conversation, deltas))
    }
}

/// Whether an error is worth telling apart from "the provider failed": nothing came in time.
pub fn is_no_progress(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NoFirstByte | ErrorKind::Silent)
}
