//! Reads requests back into blocks: what an agent was told since its last answer.

use crate::WireKind;
use gaffer_protocol::{Block, Origin, ResultPart, Text, ToolResult};
use serde_json::Value;

pub(crate) fn input(wire: WireKind, body: &[u8]) -> Vec<Block> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match wire {
        WireKind::Anthropic => anthropic(&body["messages"]),
        WireKind::Responses => responses(&body["input"]),
        WireKind::Chat => chat(&body["messages"]),
    }
}

/// The items behind the last one of the assistant.
fn since(items: &Value, is_assistant: impl Fn(&Value) -> bool) -> &[Value] {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    let start = items.iter().rposition(is_assistant).map_or(0, |at| at + 1);
    &items[start..]
}

fn anthropic(messages: &Value) -> Vec<Block> {
    let mut blocks = Vec::new();
    for message in since(messages, |message| message["role"] == "assistant") {
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => blocks.push(text(&block["text"])),
                Some("tool_result") => {
                    let is_error = block["is_error"] == true;
                    blocks.push(result(
                        &block["tool_use_id"],
                        parts(&block["content"]),
                        is_error,
                    ));
                }
                _ => {}
            }
        }
    }
    blocks
}

fn responses(items: &Value) -> Vec<Block> {
    let mut blocks = Vec::new();
    let is_assistant = |item: &Value| {
        item["role"] == "assistant"
            || item["type"] == "function_call"
            || item["type"] == "reasoning"
    };
    for item in since(items, is_assistant) {
        if item["type"] == "function_call_output" {
            let (parts, is_error) = marked(parts(&item["output"]));
            blocks.push(result(&item["call_id"], parts, is_error));
        } else {
            let content = item["content"].as_array().into_iter().flatten();
            blocks.extend(
                content
                    .filter(|part| part["type"] == "input_text")
                    .map(|part| text(&part["text"])),
            );
        }
    }
    blocks
}

fn chat(messages: &Value) -> Vec<Block> {
    let mut blocks = Vec::new();
    for message in since(messages, |message| message["role"] == "assistant") {
        match message["role"].as_str() {
            Some("tool") => {
                let (parts, is_error) = marked(parts(&message["content"]));
                blocks.push(result(&message["tool_call_id"], parts, is_error));
            }
            Some("user") => match &message["content"] {
                Value::Array(content) => {
                    blocks.extend(
                        content
                            .iter()
                            .filter(|part| part["type"] == "text")
                            .map(|part| text(&part["text"])),
                    );
                }
                content => blocks.extend(texts(content)),
            },
            _ => {}
        }
    }
    blocks
}

fn text(value: &Value) -> Block {
    let text = value.as_str().unwrap_or_default().to_owned();
    // On the wire there is no origin; a script counts notifications by their form.
    let origin = text
        .contains("<task-notification>")
        .then_some(Origin::TaskNotification);
    Block::Text(Text {
        text,
        origin,
        mail: None,
    })
}

/// Chat Completions puts the texts of a message into one; each notification in it counts.
fn texts(value: &Value) -> Vec<Block> {
    const BEGIN: &str = "<task-notification>";
    let whole = value.as_str().unwrap_or_default();
    let mut starts: Vec<usize> = whole.match_indices(BEGIN).map(|(at, _)| at).collect();
    starts.insert(0, 0);
    starts.push(whole.len());
    starts.dedup();
    let pieces = starts.windows(2).map(|pair| &whole[pair[0]..pair[1]]);
    pieces.map(|piece| text(&piece.into())).collect()
}

fn parts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

/// Wires without a flag for errors say it in the text.
fn marked(mut parts: Vec<String>) -> (Vec<String>, bool) {
    let rest = parts
        .first()
        .and_then(|text| text.strip_prefix("[error] ").map(str::to_owned));
    let is_error = rest.is_some();
    if let Some(rest) = rest {
        parts[0] = rest;
    }
    (parts, is_error)
}

fn result(call: &Value, parts: Vec<String>, is_error: bool) -> Block {
    Block::ToolResult(ToolResult {
        call: call.as_str().unwrap_or_default().to_owned(),
        parts: parts.into_iter().map(ResultPart::Text).collect(),
        is_error,
        mail: None,
    })
}
