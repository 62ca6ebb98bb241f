//! Blocks as every wire takes them, whatever the record says: what is damaged inside a readable
//! line would otherwise make every request from then on invalid.
//!
//! What an agent recorded itself passes unchanged.

use super::secrets::MARKER;
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{Block, Image, Json, Reasoning, ResultPart, ToolResult};
use serde::Deserialize;
use std::borrow::Cow;

const IMAGE_LOST: &str = "[an image that is damaged on record]";

/// Providers refuse longer ids of calls.
const LONGEST_ID: usize = 64;
/// Providers refuse longer names of tools.
const LONGEST_NAME: usize = 128;

/// What the user's side may hold; results come by themselves.
pub(super) fn input(blocks: Vec<Block>) -> Vec<Block> {
    let mut blocks: Vec<Block> = blocks
        .into_iter()
        .filter_map(|block| match block {
            Block::Text(_) => Some(block),
            Block::Image(image) => Some(match is_image(&image) {
                true => Block::Image(image),
                false => Block::text(IMAGE_LOST),
            }),
            Block::Reasoning(_) | Block::ToolUse(_) | Block::ToolResult(_) => None,
        })
        .collect();
    // What no wire writes must not stand between two answers.
    if !blocks.iter().any(says_something) {
        blocks.clear();
    }
    blocks
}

/// What the model's side may hold.
pub(super) fn answer(blocks: Vec<Block>) -> Vec<Block> {
    let mut blocks: Vec<Block> = blocks
        .into_iter()
        .filter_map(|block| match block {
            Block::Text(_) => Some(block),
            Block::Reasoning(part) => Some(Block::Reasoning(reasoning(part))),
            Block::ToolUse(mut call) => {
                if let ToolInput::Json(json) = &call.input
                    && !(json.is_object() && is_readable(json))
                {
                    call.input = ToolInput::Broken(json.as_str().to_owned());
                }
                if !is_name(&call.name) {
                    call.name = name(&call.name);
                }
                Some(Block::ToolUse(call))
            }
            Block::Image(_) | Block::ToolResult(_) => None,
        })
        .collect();
    if !blocks.iter().any(says_something) {
        blocks.clear();
    }
    blocks
}

pub(super) fn result(mut result: ToolResult) -> ToolResult {
    for part in &mut result.parts {
        if let ResultPart::Image(image) = part
            && !is_image(image)
        {
            *part = ResultPart::Text(IMAGE_LOST.to_owned());
        }
    }
    result
}

/// Thoughts lead to something: at the end of an answer providers refuse them.
pub(super) fn drop_last_thoughts(blocks: &mut Vec<Block>) {
    while blocks.last().is_some_and(|block| !says_something(block)) {
        blocks.pop();
    }
}

/// Whether there is something to read in a block, on the wire that it is meant for.
fn says_something(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        // What a provider's own tools did is kept as it came, among the thoughts.
        Block::Reasoning(part) => part.raw.as_ref().is_some_and(|raw| {
            let kind = kind(raw);
            raw.wire != CHAT && !kind.contains("thinking") && kind != "reasoning"
        }),
        Block::ToolUse(_) | Block::ToolResult(_) | Block::Image(_) => true,
    }
}

const CHAT: &str = "openai-chat";

/// The members by which a raw block is known.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    field: Cow<'a, str>,
}

fn read(raw: &RawReasoning) -> Option<Kind<'_>> {
    raw.json.read().ok()
}

fn kind(raw: &RawReasoning) -> Cow<'_, str> {
    read(raw).map(|read| read.kind).unwrap_or_default()
}

/// What goes back to its provider unchanged must be what it was: without it the thought is left
/// out of requests, which providers allow.
fn reasoning(mut part: Reasoning) -> Reasoning {
    let is_sound = |raw: &RawReasoning| {
        // A signature does not hold for a text that was changed.
        if raw.json.as_str().contains(MARKER) {
            return false;
        }
        let Some(read) = read(raw).filter(|_| is_readable(&raw.json)) else {
            return false;
        };
        match raw.wire.as_str() {
            CHAT => matches!(&*read.field, "reasoning_content" | "reasoning"),
            "openai" => !matches!(
                &*read.kind,
                "" | "message" | "function_call" | "function_call_output"
            ),
            _ => !matches!(
                &*read.kind,
                "" | "text" | "tool_use" | "tool_result" | "image"
            ),
        }
    };
    part.raw = part.raw.filter(is_sound);
    part
}

/// Whether others can read it too. As raw text passes what no reader takes: half of a pair of
/// escapes, numbers beyond all bounds, a thousand lists in each other.
fn is_readable(json: &Json) -> bool {
    json.read::<serde_json::Value>().is_ok()
}

fn is_image(image: &Image) -> bool {
    let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let data = image.data.trim_end_matches('=');
    known.contains(&image.media_type.as_str())
        && image.data.len() - data.len() <= 2
        && image.data.len().is_multiple_of(4)
        && !data.is_empty()
        && data
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Whether an id is one that servers make.
pub(super) fn is_id(id: &str) -> bool {
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_named)
}

fn is_named(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn name(name: &str) -> String {
    let byte = |byte: u8| if is_named(byte) { byte } else { b'_' };
    let name: String = name
        .bytes()
        .take(LONGEST_NAME)
        .map(|own| char::from(byte(own)))
        .collect();
    if name.is_empty() {
        "unknown".into()
    } else {
        name
    }
}
