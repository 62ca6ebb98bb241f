//! How what has arrived becomes a part of the conversation.

use crate::agent::Agent;
use crate::compact::Request;
use gaffer_protocol::{Block, End, EventKind, Message, Origin, tags};
use gaffer_store::Entry;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

impl Agent {
    /// Takes what has arrived into the conversation, unless hooks refuse it.
    pub(crate) async fn hear(&mut self) -> io::Result<Result<(), End>> {
        if self.unheard.is_empty() {
            return Ok(Ok(()));
        }
        if let Some(at) = self.unheard.iter().position(is_request) {
            self.wanted = Request::read(&self.unheard.remove(at));
            if self.unheard.is_empty() {
                return Ok(Ok(()));
            }
        }
        let mut blocks = self.unheard.clone();
        let from_human = |block: &Block| matches!(block, Block::Text(text) if text.origin == Some(Origin::Human));
        if let Err(end) = self.show_prompts(&mut blocks).await {
            // What others wrote was not refused, and waits.
            self.unheard.retain(|block| !from_human(block));
            return Ok(Err(end));
        }
        self.unheard.clear();
        if blocks.iter().any(from_human) {
            self.held = 0;
        }
        let is_context = |block: &Block| matches!(block, Block::Text(text) if text.origin == Some(Origin::Context));
        self.is_asked |= !blocks.iter().all(is_context);
        blocks.iter_mut().for_each(disarm);
        let message = Arc::new(Message::user(blocks));
        self.record(Entry::Input(message.clone()))?;
        self.heard
            .extend(message.blocks.iter().filter_map(Block::mail));
        self.parts.conversation.push(&message);
        self.emit(EventKind::Input(message));
        Ok(Ok(()))
    }
}

fn is_request(block: &Block) -> bool {
    Request::read(block).is_some()
}

/// Only a notification looks like one, whoever else writes its tag.
fn disarm(block: &mut Block) {
    if let Block::Text(text) = block
        && text.origin != Some(Origin::TaskNotification)
        && let Cow::Owned(changed) = tags::disarm(&text.text, "task-notification")
    {
        text.text = changed;
    }
}
