//! A model that plays a script in this process: no key, no network, the same path above it.

use super::player::{Outcome, Player, Speaker};
use super::{Fault, Script};
use crate::conversation::{Conversation, Prefix, Who};
use crate::error::{ErrorKind, ModelError};
use crate::provider::Deadlines;
use crate::wire::{Decoder, Encoding, Wire};
use crate::{Delta, DeltaSink, Model, sse};
use futures_util::future::BoxFuture;
use gaffer_protocol::{AgentId, Answer, Block, Message, Role};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub struct Scripted {
    player: Player,
    deadlines: Deadlines,
    wire: Arc<dyn Wire>,
    /// By agent: which conversation was answered last, and how much of it.
    answered: Mutex<HashMap<AgentId, (u64, usize)>>,
}

impl Scripted {
    pub fn new(script: Script, deadlines: Deadlines) -> Self {
        Self {
            player: Player::new(script),
            deadlines,
            wire: Arc::new(Neutral),
            answered: Mutex::default(),
        }
    }

    /// What the run did not come to.
    pub fn left_over(&self) -> Vec<String> {
        self.player.left_over()
    }

    async fn attempt(
        &self,
        conversation: &Conversation,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Answer, ModelError> {
        let who = conversation.who();
        let lock = || self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let number = conversation.number();
        let last = lock().get(&who.id).copied();
        // What was said in an earlier conversation has no place in this one.
        let start = last.filter(|(of, _)| *of == number).map_or(0, |(_, at)| at);
        let (bytes, end) = conversation.since(start);
        let speaker = Speaker {
            id: who.id.to_string(),
            name: who.name.to_string(),
            agent_type: who.agent_type.clone(),
        };
        let script = |what: String| ModelError::new(ErrorKind::Script, what);
        let (past, input) = match rounds(&bytes) {
            Ok(rounds) if start <= end => rounds,
            // The record was repaired or shortened: what was said before is another to the byte.
            _ => rounds(&conversation.since(0).0).map_err(script)?,
        };
        // A conversation that another process began.
        if start == 0 && !past.is_empty() {
            self.player.catch_up(&speaker, &past);
        }
        let turn = self
            .player
            .next(&speaker, &input)
            .map_err(|error| script(error.to_string()))?;
        if !turn.delay.is_zero() {
            tokio::time::sleep(turn.delay).await;
        }
        match turn.outcome {
            Outcome::Answer(answer) => {
                stream(&answer, deltas);
                lock().insert(who.id, (number, end));
                Ok(answer)
            }
            Outcome::Fault(fault, answer) => Err(self.fail(fault, &answer, deltas).await),
        }
    }

    /// Fails as the wire would have failed.
    async fn fail(&self, fault: Fault, answer: &Answer, deltas: &mut DeltaSink<'_>) -> ModelError {
        let status = |kind, status, message: &str| ModelError {
            kind,
            message: message.to_owned(),
            status: Some(status),
            retry_after: None,
        };
        match fault {
            Fault::Overloaded => status(ErrorKind::Overloaded, 529, "Overloaded"),
            Fault::RateLimited(limit) => ModelError {
                retry_after: limit.retry_after.map(|wait| wait.0),
                ..status(ErrorKind::RateLimited, 429, "slow down")
            },
            Fault::ServerError => status(ErrorKind::Server, 500, "internal error"),
            Fault::Unauthorized => status(ErrorKind::Unauthorized, 401, "invalid key"),
            Fault::Forbidden => status(ErrorKind::Forbidden, 403, "forbidden"),
            Fault::BadRequest(words) => status(ErrorKind::BadRequest, 400, &words),
            Fault::PromptTooLong => status(ErrorKind::PromptTooLong, 400, "prompt is too long"),
            Fault::Html => status(ErrorKind::NotAStream, 200, "<html>"),
            Fault::Disconnect => ModelError::new(ErrorKind::Connection, "connection closed"),
            Fault::Hang => {
                tokio::time::sleep(self.deadlines.first_byte).await;
                ModelError::new(ErrorKind::NoFirstByte, "no byte of an answer came")
            }
            Fault::Silence => {
                stream(answer, deltas);
                tokio::time::sleep(self.deadlines.silence).await;
                ModelError::new(ErrorKind::Silent, "nothing came")
            }
            Fault::Cut => {
                stream(answer, deltas);
                ModelError::new(ErrorKind::Cut, "the stream ended before its final event")
            }
            Fault::Garbled | Fault::Flood => {
                stream(answer, deltas);
                ModelError::new(ErrorKind::Garbled, "no event of this wire")
            }
            Fault::OverloadedInside => {
                stream(answer, deltas);
                ModelError::new(ErrorKind::Overloaded, "Overloaded")
            }
        }
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        Conversation::new(self.wire.clone(), prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.attempt(conversation, deltas))
    }
}

/// Hands out an answer in pieces, word by word.
fn stream(answer: &Answer, deltas: &mut DeltaSink<'_>) {
    for block in &answer.blocks {
        match block {
            Block::Text(text) => {
                for piece in text.text.split_inclusive([' ', '\n']) {
                    deltas(Delta::Text(piece));
                }
            }
            Block::Reasoning(reasoning) => deltas(Delta::Reasoning(&reasoning.text)),
            Block::ToolUse(tool_use) => deltas(Delta::Call(&tool_use.name)),
            Block::ToolResult(_) | Block::Image(_) => {}
        }
    }
}

/// The user's side of messages in the neutral encoding: what each answer was given to, and what is
/// not answered yet.
fn rounds(bytes: &[u8]) -> Result<(Vec<Vec<Block>>, Vec<Block>), String> {
    let mut past = Vec::new();
    let mut input = Vec::new();
    for message in serde_json::Deserializer::from_slice(bytes).into_iter::<Message>() {
        let message = message.map_err(|error| error.to_string())?;
        match message.role {
            Role::User => input.extend(message.blocks),
            Role::Assistant => past.push(std::mem::take(&mut input)),
        }
    }
    Ok((past, input))
}

/// Messages as they are, one after another: the encoding of a conversation that goes nowhere.
#[derive(Debug)]
struct Neutral;

impl Wire for Neutral {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn path(&self) -> &'static str {
        ""
    }

    fn headers(&self, _: Option<&str>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn head(&self, _: &Prefix) -> Vec<u8> {
        Vec::new()
    }

    fn encode(&self, message: &Message, _: &mut Encoding, out: &mut Vec<u8>) -> Option<usize> {
        // Writing to a vector and serialising a message cannot fail.
        drop(serde_json::to_writer(&mut *out, message));
        out.push(b'\n');
        None
    }

    fn tail(&self, _: &Encoding) -> &'static [u8] {
        b""
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Neutral)
    }
}

impl Decoder for Neutral {
    fn event(
        &mut self,
        _: sse::Event<'_>,
        _: &mut DeltaSink<'_>,
    ) -> Result<Option<Answer>, ModelError> {
        Ok(None)
    }
}
