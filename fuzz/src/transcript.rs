//! Transcripts: whatever they hold, the conversation goes on.
//!
//! An input is a transcript.

use gaffer_model::wire::anthropic::Anthropic;
use gaffer_model::wire::chat::Chat;
use gaffer_model::wire::responses::Responses;
use gaffer_model::wire::{Wire, WireOptions};
use gaffer_model::{Conversation, Prefix, Who};
use gaffer_protocol::{AgentId, AgentName, Block, Message};
use gaffer_store::Fold;
use gaffer_testkit::world::Seeded;
use gaffer_testkit::{WireKind, violations};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) fn run(bytes: &[u8]) {
    let fold = Fold::of(bytes);
    let mut ids = HashSet::new();
    for block in fold.messages.iter().flat_map(|message| &message.blocks) {
        if let Block::ToolUse(call) = block {
            assert!(ids.insert(&call.id), "two calls have the id {:?}", call.id);
        }
    }
    for kind in WireKind::ALL {
        goes_on(kind, &fold.messages);
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(fold.damaged.len() <= lines);
    assert!(fold.damaged.bytes() <= bytes.len() as u64);
    assert!(!fold.damaged.to_string().is_empty());
    // Newlines between the lines change nothing that was said.
    let spread = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>();
    let again = Fold::of(&spread.join(&b"\n\n"[..]));
    assert_eq!(fold.messages, again.messages);
}

fn goes_on(kind: WireKind, messages: &[Message]) {
    let who = Who {
        id: AgentId::random(&Seeded::new(1)),
        name: AgentName::main(),
        agent_type: "t".into(),
    };
    let prefix = Prefix {
        system: "system".into(),
        tools: Vec::new(),
    };
    let mut conversation = Conversation::new(wire(kind), &prefix, who);
    for message in messages {
        conversation.push(message);
    }
    conversation.push(&Message::user(vec![Block::from_human("go on")]));
    let request = conversation.request().to_vec();
    let wrong = violations(kind, &request);
    assert!(
        wrong.is_empty(),
        "{wrong:?} in {}",
        String::from_utf8_lossy(&request)
    );
}

fn wire(kind: WireKind) -> Arc<dyn Wire> {
    let options = WireOptions {
        model: "m".into(),
        max_output: 100,
        extra: serde_json::Map::new(),
        images: true,
        server_tools: Vec::new(),
    };
    match kind {
        WireKind::Anthropic => Arc::new(Anthropic { options }),
        WireKind::Responses => Arc::new(Responses { options }),
        WireKind::Chat => Arc::new(Chat { options }),
    }
}
