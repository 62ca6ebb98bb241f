//! Reads a stream of Chat Completions.

use super::super::{Decoder, garbled, read, stream_error};
use super::{NAME, Thoughts};
use crate::error::{ErrorKind, ModelError};
use crate::{Delta, DeltaSink, sse};
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{Answer, Block, Json, Reasoning, StopReason, ToolUse, Usage};
use serde::Deserialize;
use std::borrow::Cow;

/// What has arrived of an answer.
#[derive(Default)]
pub(super) struct Stream {
    model: String,
    text: String,
    refusal: String,
    thoughts: Option<Thoughts>,
    calls: Vec<Call>,
    stop: Option<StopReason>,
    usage: Usage,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(default, borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Counts>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    delta: Option<Piece<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(default, borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, borrow)]
    function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Failure {
    Object {
        #[serde(default)]
        code: Option<serde_json::Value>,
        #[serde(default, rename = "type")]
        kind: Option<String>,
        #[serde(default)]
        message: Option<String>,
    },
    Text(String),
}

#[derive(Deserialize, Default)]
struct Counts {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl Decoder for Stream {
    fn event(
        &mut self,
        event: sse::Event<'_>,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Option<Answer>, ModelError> {
        if event.data.trim() == "[DONE]" {
            return self.finish().map(Some);
        }
        let chunk: Chunk<'_> = read(event)?;
        if let Some(failure) = chunk.error {
            return Err(failure.into_error());
        }
        if let Some(model) = chunk.model.filter(|_| self.model.is_empty()) {
            self.model = model;
        }
        if let Some(counts) = chunk.usage {
            let details = counts.prompt_tokens_details.unwrap_or_default();
            let (read, write) = (
                details.cached_tokens.unwrap_or_default(),
                details.cache_write_tokens.unwrap_or_default(),
            );
            self.usage = Usage {
                input: counts.prompt_tokens.saturating_sub(read + write),
                cache_read: read,
                cache_write: write,
                output: counts.completion_tokens,
            };
        }
        // One answer was asked for; a second choice would be another answer.
        if let Some(choice) = chunk.choices.into_iter().next() {
            if let Some(piece) = choice.delta {
                self.grow(piece, deltas)?;
            }
            if let Some(reason) = choice.finish_reason {
                self.stop = Some(stop_reason(&reason)?);
            }
        }
        Ok(None)
    }
}

impl Stream {
    fn grow(&mut self, piece: Piece<'_>, deltas: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        let named = [
            ("reasoning_content", piece.reasoning_content),
            ("reasoning", piece.reasoning),
        ];
        // A server that fills both says the same in both.
        let named = named
            .into_iter()
            .find_map(|(field, text)| Some((field, text?)));
        if let Some((field, text)) = named {
            let thoughts = self.thoughts.get_or_insert_with(|| Thoughts {
                field: field.to_owned(),
                text: String::new(),
            });
            thoughts.text.push_str(&text);
            deltas(Delta::Reasoning(&text));
        }
        if let Some(text) = piece.content {
            self.text.push_str(&text);
            deltas(Delta::Text(&text));
        }
        if let Some(text) = piece.refusal {
            self.refusal.push_str(&text);
            deltas(Delta::Text(&text));
        }
        for call in piece.tool_calls.unwrap_or_default() {
            self.grow_call(call, deltas)?;
        }
        Ok(())
    }

    /// Pieces of a call are joined by its index. Some servers leave the index out or give the
    /// same one to every call; there a new id begins a new call.
    fn grow_call(
        &mut self,
        piece: CallPiece<'_>,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let id = piece.id.unwrap_or_default();
        let continues = |call: &Call| {
            let same_place = piece.index.is_none() || call.index == piece.index;
            same_place && (id.is_empty() || call.id.is_empty() || call.id == id)
        };
        let function = piece.function;
        let place = self.calls.iter().rposition(continues);
        let call = match place {
            Some(place) => &mut self.calls[place],
            None => {
                self.calls.push(Call {
                    index: piece.index,
                    ..Call::default()
                });
                let last = self.calls.last_mut();
                last.ok_or_else(|| garbled("no call"))?
            }
        };
        if call.id.is_empty() {
            call.id = id;
        }
        if let Some(function) = function {
            if let Some(name) = function.name.filter(|_| call.name.is_empty()) {
                deltas(Delta::Call(&name));
                call.name = name;
            }
            call.arguments
                .push_str(&function.arguments.unwrap_or_default());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Answer, ModelError> {
        let stop = self
            .stop
            .ok_or_else(|| garbled("the end came without a finish reason"))?;
        let mut blocks = Vec::new();
        if let Some(thoughts) = self.thoughts.take() {
            blocks.push(Block::Reasoning(Reasoning {
                raw: Some(RawReasoning {
                    wire: NAME.to_owned(),
                    json: Json::of(&thoughts),
                }),
                text: thoughts.text,
            }));
        }
        let is_refusal = !self.refusal.is_empty();
        for text in [&mut self.text, &mut self.refusal] {
            if !text.is_empty() {
                blocks.push(Block::text(std::mem::take(text)));
            }
        }
        for (place, call) in self.calls.drain(..).enumerate() {
            if call.name.is_empty() {
                return Err(garbled("a tool call without a name"));
            }
            // Some local servers give no ids; within one answer the place is one.
            let id = if call.id.is_empty() {
                format!("call_{place}")
            } else {
                call.id
            };
            blocks.push(Block::ToolUse(ToolUse {
                id,
                name: call.name,
                input: ToolInput::from_text(&call.arguments),
            }));
        }
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse(_)));
        let stop = match stop {
            // Servers say `stop` and `tool_calls` both ways round.
            StopReason::EndTurn | StopReason::ToolUse if calls => StopReason::ToolUse,
            StopReason::ToolUse => StopReason::EndTurn,
            StopReason::EndTurn if is_refusal => StopReason::Refusal,
            stop => stop,
        };
        Ok(Answer {
            blocks,
            stop,
            usage: self.usage,
            model: std::mem::take(&mut self.model),
        })
    }
}

impl Failure {
    fn into_error(self) -> ModelError {
        match self {
            Self::Text(text) => stream_error("", &text),
            Self::Object {
                code,
                kind,
                message,
            } => {
                let code = match code {
                    Some(serde_json::Value::String(code)) => code,
                    Some(serde_json::Value::Number(code)) => code.to_string(),
                    _ => kind.unwrap_or_default(),
                };
                stream_error(&code, message.as_deref().unwrap_or_default())
            }
        }
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, ModelError> {
    Ok(match reason {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        "error" => return Err(stream_error("", "the server gave up in the middle")),
        other => {
            let message = format!("the model stopped for the reason `{other}`");
            return Err(ModelError::new(ErrorKind::Unsupported, message));
        }
    })
}
