//! Reads a stream of Responses.

use super::super::{Decoder, garbled, read, stream_error};
use super::NAME;
use crate::error::{ErrorKind, ModelError};
use crate::{Delta, DeltaSink, sse};
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{Answer, Block, Json, Reasoning, StopReason, ToolUse, Usage};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What has arrived of an answer: the items that are whole, by their place.
#[derive(Default)]
pub(super) struct Stream {
    items: BTreeMap<u64, Vec<Block>>,
    open: u32,
    is_refusal: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    output_index: u64,
    #[serde(default, borrow)]
    delta: Option<Cow<'a, str>>,
    item: Option<Json>,
    response: Option<Response>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    model: String,
    usage: Option<Counts>,
    incomplete_details: Option<Incomplete>,
    error: Option<Failure>,
    #[serde(default)]
    output: Vec<Json>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Failure {
    code: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize, Default)]
struct Counts {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize, Default)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: u64,
    #[serde(default)]
    cache_write_tokens: u64,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    #[serde(default)]
    content: Option<Vec<Part>>,
    #[serde(default)]
    summary: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    refusal: String,
}

impl Decoder for Stream {
    fn event(
        &mut self,
        event: sse::Event<'_>,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Option<Answer>, ModelError> {
        let event: Event<'_> = read(event)?;
        let delta = event.delta.as_deref().unwrap_or_default();
        match event.kind.as_ref() {
            "response.output_text.delta" | "response.refusal.delta" => deltas(Delta::Text(delta)),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas(Delta::Reasoning(delta));
            }
            "response.output_item.added" => {
                self.open += 1;
                let item: Option<Item> = event.item.as_ref().and_then(|item| item.read().ok());
                if let Some(name) = item.and_then(|item| item.name) {
                    deltas(Delta::Call(&name));
                }
            }
            "response.output_item.done" => {
                self.open = self.open.saturating_sub(1);
                let item = event
                    .item
                    .ok_or_else(|| garbled("an item ended without itself"))?;
                let blocks = self.close(&item)?;
                self.items.insert(event.output_index, blocks);
            }
            "response.completed" | "response.incomplete" => {
                let response = event
                    .response
                    .ok_or_else(|| garbled("an end without a response"))?;
                return self.finish(response).map(Some);
            }
            "response.failed" | "error" => {
                let failure = event.response.and_then(|r| r.error).or(event.error);
                let (code, message) = match failure {
                    Some(failure) => (failure.code.or(failure.kind), failure.message),
                    None => (event.code, event.message),
                };
                let (code, message) = (code.unwrap_or_default(), message.unwrap_or_default());
                return Err(stream_error(&code, &message));
            }
            _ => {}
        }
        Ok(None)
    }
}

impl Stream {
    fn close(&mut self, json: &Json) -> Result<Vec<Block>, ModelError> {
        let item: Item = json.read().map_err(garbled)?;
        let texts = |parts: Option<Vec<Part>>| {
            let texts = parts.unwrap_or_default().into_iter().map(|part| part.text);
            texts.collect::<Vec<_>>().join("\n\n")
        };
        Ok(match item.kind.as_str() {
            "message" => {
                let mut blocks = Vec::new();
                for part in item.content.unwrap_or_default() {
                    let is_refusal = part.kind == "refusal";
                    self.is_refusal |= is_refusal;
                    let text = if is_refusal { part.refusal } else { part.text };
                    blocks.push(Block::text(text));
                }
                blocks
            }
            "function_call" => {
                let id = item.call_id.filter(|id| !id.is_empty());
                let name = item.name.filter(|name| !name.is_empty());
                let (Some(id), Some(name)) = (id, name) else {
                    return Err(garbled("a function call without an id or a name"));
                };
                let input = ToolInput::from_text(item.arguments.as_deref().unwrap_or_default());
                vec![Block::ToolUse(ToolUse { id, name, input })]
            }
            kind => vec![Block::Reasoning(Reasoning {
                text: if kind == "reasoning" {
                    texts(item.summary)
                } else {
                    String::new()
                },
                raw: Some(RawReasoning {
                    wire: NAME.to_owned(),
                    json: json.clone(),
                }),
            })],
        })
    }

    fn finish(&mut self, response: Response) -> Result<Answer, ModelError> {
        if self.items.is_empty() {
            // A server that sends no item events gives all of them here.
            for (index, item) in response.output.iter().enumerate() {
                let blocks = self.close(item)?;
                self.items.insert(index as u64, blocks);
            }
        } else if self.open > 0 {
            return Err(garbled("the end came while an item was open"));
        }
        let blocks: Vec<Block> = std::mem::take(&mut self.items)
            .into_values()
            .flatten()
            .collect();
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse(_)));
        let stop = match response.incomplete_details.map(|details| details.reason) {
            Some(reason) if reason == "max_output_tokens" => StopReason::MaxTokens,
            Some(reason) if reason == "content_filter" => StopReason::Refusal,
            Some(reason) => {
                let message = format!("the model stopped for the reason `{reason}`");
                return Err(ModelError::new(ErrorKind::Unsupported, message));
            }
            None if self.is_refusal => StopReason::Refusal,
            None if calls => StopReason::ToolUse,
            None => StopReason::EndTurn,
        };
        let counts = response.usage.unwrap_or_default();
        let details = counts.input_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens + details.cache_write_tokens;
        Ok(Answer {
            blocks,
            stop,
            usage: Usage {
                input: counts.input_tokens.saturating_sub(cached),
                cache_read: details.cached_tokens,
                cache_write: details.cache_write_tokens,
                output: counts.output_tokens,
            },
            model: response.model,
        })
    }
}
