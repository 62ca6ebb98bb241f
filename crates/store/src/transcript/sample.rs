//! Transcripts for tests.

use super::*;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{
    Answer, Block, End, Message, ResultPart, StopReason, Timestamp, ToolResult, ToolUse, Usage,
};
use std::sync::Arc;

pub(super) fn call(id: &str) -> Block {
    Block::ToolUse(ToolUse {
        id: id.into(),
        name: "Read".into(),
        input: ToolInput::from_text("{}"),
    })
}

pub(super) fn result(id: &str) -> Entry {
    Entry::Result(Arc::new(ToolResult {
        call: id.into(),
        parts: vec![ResultPart::Text(format!("result of {id}"))],
        is_error: false,
        mail: None,
    }))
}

pub(super) fn answer(blocks: Vec<Block>) -> Entry {
    Entry::Answer(Arc::new(Answer {
        blocks,
        stop: StopReason::ToolUse,
        usage: Usage {
            output: 1,
            ..Usage::default()
        },
        model: "m".into(),
    }))
}

pub(super) fn input(text: &str) -> Entry {
    Entry::Input(Arc::new(Message::user(vec![Block::from_human(text)])))
}

pub(super) fn bytes(entries: Vec<Entry>) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, entry) in entries.into_iter().enumerate() {
        let record = Record {
            at: Timestamp(n as u64),
            entry,
        };
        serde_json::to_writer(&mut out, &record).unwrap();
        out.push(b'\n');
    }
    out
}

pub(super) fn sample() -> Vec<u8> {
    bytes(vec![
        input("go on, é\n"),
        answer(vec![Block::text("two"), call("a"), call("b")]),
        result("b"),
        result("a"),
        answer(vec![call("c")]),
        result("c"),
        answer(vec![Block::text("done")]),
        Entry::End(End::Done),
    ])
}

/// The lines of the sample, each with its end.
pub(super) fn lines() -> Vec<Vec<u8>> {
    let all = sample();
    all.split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}
