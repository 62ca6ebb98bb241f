//! One question to the model: what streams in on the way is shown as it comes, and what an error
//! means for the agent.

use crate::agent::Parts;
use gaffer_model::{Conversation, Delta, ErrorKind, ModelError, retry};
use gaffer_protocol::{Answer, End, EventKind, Waiting};
use std::time::Duration;
use tokio::time::Instant;

/// One answer, and how long it took. Words that are no part of the conversation are not shown.
pub(crate) async fn ask(
    parts: &Parts,
    conversation: &Conversation,
    is_shown: bool,
) -> (Result<Answer, ModelError>, Duration) {
    let began = Instant::now();
    let emit = |kind| parts.events.emit(parts.id, kind);
    let mut deltas = |delta: Delta<'_>| match delta {
        Delta::Queued => emit(EventKind::Waiting(Waiting::Gate)),
        Delta::Notice(text) => emit(EventKind::Notice(text.to_owned())),
        Delta::Sent => emit(EventKind::Waiting(Waiting::Model)),
        Delta::Retry {
            attempt,
            delay,
            error,
        } => {
            emit(EventKind::Waiting(Waiting::Gate));
            emit(EventKind::Retry {
                attempt,
                delay_ms: delay.as_millis() as u64,
                status: error.status,
                error: error.to_string(),
            });
        }
        _ if !is_shown => {}
        Delta::Text(text) => emit(EventKind::TextDelta(text.to_owned())),
        Delta::Reasoning(text) => emit(EventKind::ReasoningDelta(text.to_owned())),
        Delta::Call(tool) => emit(EventKind::CallDelta {
            tool: tool.to_owned(),
        }),
    };
    let answer = parts.model.answer(conversation, &mut deltas).await;
    (answer, began.elapsed())
}

pub(crate) fn end_of(error: &ModelError) -> End {
    match error.kind {
        ErrorKind::PromptTooLong => End::Context,
        kind if retry::is_no_progress(kind) => End::NoProgress(error.with_hint()),
        _ => End::ProviderError(error.with_hint()),
    }
}
