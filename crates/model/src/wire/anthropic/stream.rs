//! Reads a stream of Anthropic Messages.

use super::super::{Decoder, garbled, read, stream_error};
use super::{NAME, quick};
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
    usage: Usage,
    blocks: Vec<Open>,
    stop: Option<StopReason>,
}

struct Open {
    part: Part,
    is_closed: bool,
}

enum Part {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: String,
        given: Json,
    },
    /// A kind of block that goes back as it came; its input may stream in behind it.
    Opaque {
        block: serde_json::Value,
        input: String,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: serde_json::Value,
    },
    ContentBlockDelta {
        index: usize,
        #[serde(borrow)]
        delta: BlockDelta<'a>,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: StopDelta,
        #[serde(default)]
        usage: Counts,
    },
    MessageStop,
    Error {
        error: ErrorDelta,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Start {
    model: String,
    #[serde(default)]
    usage: Counts,
}

#[derive(Deserialize)]
pub(super) struct StopDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ErrorDelta {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize, Default)]
pub(super) struct Counts {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockDelta<'a> {
    TextDelta {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    ThinkingDelta {
        #[serde(borrow)]
        thinking: Cow<'a, str>,
    },
    SignatureDelta {
        #[serde(borrow)]
        signature: Cow<'a, str>,
    },
    InputJsonDelta {
        #[serde(borrow)]
        partial_json: Cow<'a, str>,
    },
    #[serde(other)]
    Other,
}

impl Decoder for Stream {
    fn event(
        &mut self,
        event: sse::Event<'_>,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Option<Answer>, ModelError> {
        if let Some((index, delta)) = quick::read(&event) {
            self.grow_block(index, &delta, deltas)?;
            return Ok(None);
        }
        match read(event)? {
            Event::MessageStart { message } => {
                self.model = message.model;
                self.count(&message.usage);
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => self.start_block(index, &content_block, deltas)?,
            Event::ContentBlockDelta { index, delta } => self.grow_block(index, &delta, deltas)?,
            Event::ContentBlockStop { index } => {
                let block = self.blocks.get_mut(index);
                block
                    .ok_or_else(|| garbled("a block ended that never began"))?
                    .is_closed = true;
            }
            Event::MessageDelta { delta, usage } => {
                self.count(&usage);
                if let Some(reason) = delta.stop_reason {
                    self.stop = Some(stop_reason(&reason)?);
                }
            }
            Event::MessageStop => return self.finish().map(Some),
            Event::Error { error } => return Err(stream_error(&error.kind, &error.message)),
            Event::Other => {}
        }
        Ok(None)
    }
}

impl Stream {
    /// Figures come at the start and again, cumulative, at the end: the latest counts.
    fn count(&mut self, counts: &Counts) {
        let latest = |now: &mut u64, new: Option<u64>| *now = new.unwrap_or(*now);
        latest(&mut self.usage.input, counts.input_tokens);
        latest(&mut self.usage.cache_read, counts.cache_read_input_tokens);
        latest(
            &mut self.usage.cache_write,
            counts.cache_creation_input_tokens,
        );
        latest(&mut self.usage.output, counts.output_tokens);
    }

    fn start_block(
        &mut self,
        index: usize,
        block: &serde_json::Value,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        if index != self.blocks.len() {
            return Err(garbled(format!("block {index} began out of order")));
        }
        let field = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let part = match block["type"].as_str() {
            Some("text") => Part::Text(field("text")),
            Some("thinking") => Part::Thinking {
                text: field("thinking"),
                signature: field("signature"),
            },
            Some("tool_use") => {
                let (id, name) = (field("id"), field("name"));
                if id.is_empty() || name.is_empty() {
                    return Err(garbled("a tool call without an id or a name"));
                }
                deltas(Delta::Call(&name));
                Part::ToolUse {
                    id,
                    name,
                    input: String::new(),
                    given: Json::of(&block["input"]),
                }
            }
            Some(_) => Part::Opaque {
                block: block.clone(),
                input: String::new(),
            },
            None => return Err(garbled("a block without a type")),
        };
        self.blocks.push(Open {
            part,
            is_closed: false,
        });
        Ok(())
    }

    fn grow_block(
        &mut self,
        index: usize,
        delta: &BlockDelta<'_>,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let block = self.blocks.get_mut(index).filter(|block| !block.is_closed);
        let block = block.ok_or_else(|| garbled("a delta for a block that is not open"))?;
        match (&mut block.part, delta) {
            (Part::Text(all), BlockDelta::TextDelta { text }) => {
                all.push_str(text);
                deltas(Delta::Text(text));
            }
            (Part::Thinking { text, .. }, BlockDelta::ThinkingDelta { thinking }) => {
                text.push_str(thinking);
                deltas(Delta::Reasoning(thinking));
            }
            (Part::Thinking { signature: all, .. }, BlockDelta::SignatureDelta { signature }) => {
                all.push_str(signature);
            }
            (
                Part::ToolUse { input, .. } | Part::Opaque { input, .. },
                BlockDelta::InputJsonDelta { partial_json },
            ) => input.push_str(partial_json),
            (_, BlockDelta::Other) => {}
            _ => return Err(garbled("a delta that does not fit its block")),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Answer, ModelError> {
        let stop = self
            .stop
            .ok_or_else(|| garbled("the end came without a stop reason"))?;
        if self.blocks.iter().any(|block| !block.is_closed) {
            return Err(garbled("the end came while a block was open"));
        }
        Ok(Answer {
            blocks: self
                .blocks
                .drain(..)
                .map(|block| block.part.close())
                .collect(),
            stop,
            usage: self.usage,
            model: std::mem::take(&mut self.model),
        })
    }
}

impl Part {
    fn close(self) -> Block {
        let raw = |json| {
            Some(RawReasoning {
                wire: NAME.to_owned(),
                json,
            })
        };
        match self {
            Self::Text(text) => Block::text(text),
            Self::Thinking { text, signature } => {
                let json = Json::of(&serde_json::json!({
                    "type": "thinking", "thinking": text, "signature": signature,
                }));
                Block::Reasoning(Reasoning {
                    text,
                    raw: raw(json),
                })
            }
            Self::ToolUse {
                id,
                name,
                input,
                given,
            } => {
                // The arguments stream in as text; a server that gives them whole does so here.
                let input = if input.is_empty() && given.is_object() {
                    ToolInput::Json(given)
                } else {
                    ToolInput::from_text(&input)
                };
                Block::ToolUse(ToolUse { id, name, input })
            }
            Self::Opaque { mut block, input } => {
                if let (Ok(input), Some(members)) =
                    (serde_json::from_str(&input), block.as_object_mut())
                {
                    members.insert("input".to_owned(), input);
                }
                Block::Reasoning(Reasoning {
                    text: String::new(),
                    raw: raw(Json::of(&block)),
                })
            }
        }
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, ModelError> {
    Ok(match reason {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "model_context_window_exceeded" => StopReason::ContextFull,
        "refusal" => StopReason::Refusal,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::Pause,
        other => {
            let message = format!("the model stopped for the reason `{other}`");
            return Err(ModelError::new(ErrorKind::Unsupported, message));
        }
    })
}
