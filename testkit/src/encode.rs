//! Writes an answer as each wire streams it.

use crate::WireKind;
use gaffer_protocol::{Answer, Block, Reasoning, StopReason};
use serde_json::{Value, json};

/// The events of an answer, each with its closing blank line.
pub fn events(wire: WireKind, answer: &Answer) -> Vec<String> {
    match wire {
        WireKind::Anthropic => anthropic(answer),
        WireKind::Responses => responses(answer),
        WireKind::Chat => chat(answer),
    }
}

/// What of these events comes before the answer is seen to end.
pub fn without_end(wire: WireKind, events: &[String]) -> String {
    let last = match wire {
        WireKind::Anthropic => 2,
        WireKind::Responses => 1,
        WireKind::Chat => 3,
    };
    events[..events.len().saturating_sub(last)].concat()
}

/// Overload as it is told inside a stream.
pub fn overloaded(wire: WireKind) -> String {
    match wire {
        WireKind::Anthropic => named(
            "error",
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ),
        WireKind::Responses => named(
            "error",
            &json!({"type": "error", "code": "overloaded", "message": "Overloaded", "param": null, "sequence_number": 9}),
        ),
        WireKind::Chat => data(&json!({"error": {"type": "overloaded", "message": "Overloaded"}})),
    }
}

fn named(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// Pieces of a text that never cut a character: a few hundred at most.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks((chars.len() / 200).max(7))
        .map(|piece| piece.iter().collect())
        .collect()
}

fn raw_of(reasoning: &Reasoning, wire: &str) -> Option<Value> {
    let raw = reasoning.raw.as_ref().filter(|raw| raw.wire == wire)?;
    raw.json.read().ok()
}

fn anthropic(answer: &Answer) -> Vec<String> {
    let usage = answer.usage;
    let mut out = vec![
        named(
            "message_start",
            &json!({
                "type": "message_start",
                "message": {
                    "id": "msg_1", "type": "message", "role": "assistant", "model": answer.model,
                    "content": [], "stop_reason": null,
                    "usage": {
                        "input_tokens": usage.input,
                        "cache_read_input_tokens": usage.cache_read,
                        "cache_creation_input_tokens": usage.cache_write,
                        "output_tokens": 1,
                    },
                },
            }),
        ),
        named("ping", &json!({"type": "ping"})),
    ];
    for (index, block) in answer.blocks.iter().enumerate() {
        anthropic_block(index, block, &mut out);
    }
    out.push(named(
        "message_delta",
        &json!({
            "type": "message_delta",
            "delta": {"stop_reason": answer.stop.as_str(), "stop_sequence": null},
            "usage": {"output_tokens": usage.output},
        }),
    ));
    out.push(named("message_stop", &json!({"type": "message_stop"})));
    out
}

fn responses(answer: &Answer) -> Vec<String> {
    let event = |kind: &str, mut value: Value| {
        value["type"] = json!(kind);
        named(kind, &value)
    };
    let mut out = vec![event(
        "response.created",
        json!({"response": {"id": "resp_1", "status": "in_progress"}}),
    )];
    for (index, block) in answer.blocks.iter().enumerate() {
        let added = |item: Value| {
            event(
                "response.output_item.added",
                json!({"output_index": index, "item": item}),
            )
        };
        let done = |item: Value| {
            event(
                "response.output_item.done",
                json!({"output_index": index, "item": item}),
            )
        };
        match block {
            Block::Text(text) => {
                let kind = if answer.stop == StopReason::Refusal {
                    "refusal"
                } else {
                    "output_text"
                };
                let member = if kind == "refusal" { "refusal" } else { "text" };
                out.push(added(
                    json!({"type": "message", "role": "assistant", "content": []}),
                ));
                out.extend(pieces(&text.text).iter().map(|piece| {
                    event(
                        &format!("response.{kind}.delta"),
                        json!({"output_index": index, "delta": piece}),
                    )
                }));
                out.push(done(json!({"type": "message", "role": "assistant", "content": [{"type": kind, member: text.text}]})));
            }
            Block::Reasoning(reasoning) => {
                let item = raw_of(reasoning, "openai").unwrap_or_else(|| json!({
                    "type": "reasoning", "id": format!("rs_{index}"), "encrypted_content": "opaque",
                    "summary": [{"type": "summary_text", "text": reasoning.text}],
                }));
                out.push(added(json!({"type": "reasoning", "summary": []})));
                out.push(event(
                    "response.reasoning_summary_text.delta",
                    json!({"output_index": index, "delta": reasoning.text}),
                ));
                out.push(done(item));
            }
            Block::ToolUse(call) => {
                out.push(added(json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": ""})));
                let pieces = pieces(call.input.as_text());
                out.extend(pieces.iter().map(|piece| {
                    event(
                        "response.function_call_arguments.delta",
                        json!({"output_index": index, "delta": piece}),
                    )
                }));
                out.push(done(json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": call.id, "name": call.name, "arguments": call.input.as_text()})));
            }
            Block::ToolResult(_) | Block::Image(_) => {}
        }
    }
    let usage = answer.usage;
    let is_cut = answer.stop == StopReason::MaxTokens;
    let details = is_cut.then(|| json!({"reason": "max_output_tokens"}));
    out.push(event(if is_cut { "response.incomplete" } else { "response.completed" }, json!({"response": {
        "id": "resp_1", "model": answer.model, "incomplete_details": details,
        "usage": {
            "input_tokens": usage.all_input(), "output_tokens": usage.output,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        },
    }})));
    out
}

fn chat(answer: &Answer) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        data(&json!({
            "id": "c1", "object": "chat.completion.chunk", "model": answer.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }))
    };
    let mut out = vec![
        chunk(json!({"role": "assistant", "content": ""}), None),
        ": comment\n\n".to_owned(),
    ];
    let mut calls = 0;
    for block in &answer.blocks {
        match block {
            Block::Text(text) => {
                let member = if answer.stop == StopReason::Refusal {
                    "refusal"
                } else {
                    "content"
                };
                out.extend(
                    pieces(&text.text)
                        .iter()
                        .map(|piece| chunk(json!({member: piece}), None)),
                );
            }
            Block::Reasoning(reasoning) => {
                let raw = raw_of(reasoning, "openai-chat").unwrap_or_default();
                let field = raw["field"].as_str().unwrap_or("reasoning_content");
                out.push(chunk(json!({field: ""}), None));
                out.extend(
                    pieces(&reasoning.text)
                        .iter()
                        .map(|piece| chunk(json!({field: piece}), None)),
                );
            }
            Block::ToolUse(call) => {
                out.push(chunk(json!({"tool_calls": [{"index": calls, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}]}), None));
                for piece in pieces(call.input.as_text()) {
                    out.push(chunk(
                        json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}),
                        None,
                    ));
                }
                calls += 1;
            }
            Block::ToolResult(_) | Block::Image(_) => {}
        }
    }
    let finish = match answer.stop {
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        _ => "stop",
    };
    let usage = answer.usage;
    out.push(chunk(json!({}), Some(finish)));
    out.push(data(&json!({
        "id": "c1", "object": "chat.completion.chunk", "model": answer.model, "choices": [],
        "usage": {
            "prompt_tokens": usage.all_input(), "completion_tokens": usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        },
    })));
    out.push("data: [DONE]\n\n".to_owned());
    out
}

fn anthropic_block(index: usize, block: &Block, out: &mut Vec<String>) {
    let start = |block: Value| {
        named(
            "content_block_start",
            &json!({"type": "content_block_start", "index": index, "content_block": block}),
        )
    };
    let delta = |delta: Value| {
        named(
            "content_block_delta",
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        )
    };
    match block {
        Block::Text(text) => {
            out.push(start(json!({"type": "text", "text": ""})));
            out.extend(
                pieces(&text.text)
                    .iter()
                    .map(|piece| delta(json!({"type": "text_delta", "text": piece}))),
            );
        }
        Block::Reasoning(reasoning) => {
            let raw = raw_of(reasoning, "anthropic").unwrap_or_default();
            if raw["type"] == "thinking" || raw.is_null() {
                out.push(start(
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                ));
                out.extend(
                    pieces(&reasoning.text)
                        .iter()
                        .map(|piece| delta(json!({"type": "thinking_delta", "thinking": piece}))),
                );
                let signature = raw["signature"].as_str().unwrap_or("sig");
                out.push(delta(
                    json!({"type": "signature_delta", "signature": signature}),
                ));
            } else {
                out.push(start(raw));
            }
        }
        Block::ToolUse(call) => {
            out.push(start(
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
            ));
            let pieces = pieces(call.input.as_text());
            out.extend(
                pieces
                    .iter()
                    .map(|piece| delta(json!({"type": "input_json_delta", "partial_json": piece}))),
            );
        }
        Block::ToolResult(_) | Block::Image(_) => return,
    }
    out.push(named(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    ));
}
