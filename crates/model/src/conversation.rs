//! A conversation as its provider wants it: serialised once, piece by piece, as it grows.

use crate::rope::Rope;
use crate::wire::{Encoding, Wire};
use bytes::Bytes;
use gaffer_protocol::{
    AgentId, AgentName, Block, Image, Message, Origin, ResultPart, Role, ToolSpec,
};
use http_body::{Body, Frame, SizeHint};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// What stands before every conversation of an agent type: built once and immutable, so that the
/// provider's cache serves all agents of the type.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    pub system: String,
    pub tools: Vec<ToolSpec>,
}

impl Prefix {
    /// Identifies the prefix in transcripts and towards caches.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.system.as_bytes());
        for tool in &self.tools {
            hasher.update([0]);
            hasher.update(tool.name.as_bytes());
            hasher.update([0]);
            hasher.update(tool.description.as_bytes());
            hasher.update([0]);
            hasher.update(tool.schema.as_str().as_bytes());
        }
        hasher
            .finalize()
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Whose conversation it is: scripts match on it, and headers may name it.
#[derive(Debug, Clone, PartialEq)]
pub struct Who {
    pub id: AgentId,
    pub name: AgentName,
    pub agent_type: String,
}

/// The request that is asked next, ready but for what is said next.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Which of an agent's conversations it is: a new one begins where one was compacted.
    number: u64,
    who: Who,
    wire: Arc<dyn Wire>,
    head: Bytes,
    body: Rope,
    encoding: Encoding,
    /// Behind what a conversation tells about its surroundings. Workers that start together are
    /// told the same, so all but the first read it from the cache, and write their task only.
    shared_mark: Option<usize>,
    /// Where the cache mark of the last request stood, and where that of the next one goes. With
    /// both in a request the provider finds the old entry however much was added since.
    sent_mark: Option<usize>,
    next_mark: Option<usize>,
    images: Images,
}

/// The images of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Images {
    pub count: u64,
    /// Of their base64, which is no measure of what they cost.
    pub bytes: usize,
}

impl Images {
    fn of(message: &Message) -> Self {
        let mut images = Self::default();
        let mut take = |image: &Image| {
            images.count += 1;
            images.bytes += image.data.len();
        };
        for block in &message.blocks {
            match block {
                Block::Image(image) => take(image),
                Block::ToolResult(result) => result.parts.iter().for_each(|part| match part {
                    ResultPart::Image(image) => take(image),
                    ResultPart::Text(_) => {}
                }),
                Block::Text(_) | Block::Reasoning(_) | Block::ToolUse(_) => {}
            }
        }
        images
    }
}

/// A place in a conversation, up to which it was sent, and to which it can go back.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    len: usize,
    encoding: Option<Encoding>,
    next_mark: Option<usize>,
    images: Images,
}

/// No two conversations of a process have the same number.
fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

impl Conversation {
    pub fn new(wire: Arc<dyn Wire>, prefix: &Prefix, who: Who) -> Self {
        let head = Bytes::from(wire.head(prefix));
        let encoding = Encoding {
            // Chat Completions has the system text as the first message.
            started: !head.ends_with(b"["),
            ..Encoding::default()
        };
        Self {
            number: next_number(),
            who,
            wire,
            head,
            body: Rope::default(),
            encoding,
            shared_mark: None,
            sent_mark: None,
            next_mark: None,
            images: Images::default(),
        }
    }

    /// The same for another agent. What is said so far is shared, not copied.
    pub fn for_agent(&self, who: Who) -> Self {
        Self {
            who,
            ..self.clone()
        }
    }

    /// A conversation with the same prefix, byte for byte, in which nothing was said.
    #[must_use]
    pub fn blank(&self) -> Self {
        Self {
            number: next_number(),
            ..self.up_to(&Checkpoint::default())
        }
    }

    /// Where it ends now.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            len: self.body.len(),
            encoding: Some(self.encoding.clone()),
            next_mark: self.next_mark,
            images: self.images,
        }
    }

    /// The conversation as it was there. Its bytes are shared, not copied.
    #[must_use]
    pub fn up_to(&self, place: &Checkpoint) -> Self {
        let mut pieces = Vec::new();
        self.body.slice(0, place.len, &mut pieces);
        let mut body = Rope::default();
        pieces.into_iter().for_each(|piece| body.push(piece));
        let blank = || Encoding {
            started: !self.head.ends_with(b"["),
            ..Encoding::default()
        };
        Self {
            body,
            encoding: place.encoding.clone().unwrap_or_else(blank),
            shared_mark: self.shared_mark.filter(|mark| *mark <= place.len),
            // What stood there was sent: whatever follows finds it in the cache.
            sent_mark: place.next_mark,
            next_mark: place.next_mark,
            images: place.images,
            number: self.number,
            who: self.who.clone(),
            wire: self.wire.clone(),
            head: self.head.clone(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Adds a message. Neighbours of one role become one message where the wire wants turns to
    /// alternate.
    pub fn push(&mut self, message: &Message) {
        if message.blocks.is_empty() {
            return;
        }
        let shared = match self.body.len() {
            0 if self.wire.cache_mark().is_some() => surroundings(message),
            _ => 0,
        };
        if shared > 0 {
            let (before, after) = message.blocks.split_at(shared);
            self.add(&Message::user(before.to_vec()));
            self.shared_mark = self.next_mark;
            if !after.is_empty() {
                self.add(&Message::user(after.to_vec()));
            }
        } else {
            self.add(message);
        }
    }

    fn add(&mut self, message: &Message) {
        let mut out = Vec::with_capacity(256);
        let mark = self.wire.encode(message, &mut self.encoding, &mut out);
        match message.role {
            Role::Assistant => self.sent_mark = self.next_mark,
            Role::User => {
                if let Some(at) = mark {
                    self.next_mark = Some(self.body.len() + at);
                }
            }
        }
        let images = Images::of(message);
        self.images.count += images.count;
        // A wire may leave them out.
        self.images.bytes += images.bytes.min(out.len());
        self.body.push(Bytes::from(out));
    }

    pub fn images(&self) -> Images {
        self.images
    }

    /// How many bytes of every request are the prefix.
    pub fn head_len(&self) -> usize {
        self.head.len()
    }

    /// How many bytes the next request has, as a measure of the context in use.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    pub fn is_empty(&self) -> bool {
        self.body.len() == 0
    }

    /// The messages alone from a position on, in the wire's own form.
    pub(crate) fn since(&self, start: usize) -> (Vec<u8>, usize) {
        let mut pieces = Vec::new();
        self.body.slice(start, self.body.len(), &mut pieces);
        (pieces.concat(), self.body.len())
    }

    /// The whole request. Costs as many pointers as the rope has pieces, whatever its length.
    pub fn request(&self) -> RequestBody {
        let mut pieces = Vec::with_capacity(24);
        pieces.push(self.head.clone());
        let mut at = 0;
        if let Some(mark) = self.wire.cache_mark() {
            // In the order in which they stand. With that of the prefix they are four at most,
            // which is what the provider takes.
            let marks = [self.shared_mark, self.sent_mark, self.next_mark];
            for place in marks.into_iter().flatten() {
                if place > at {
                    self.body.slice(at, place, &mut pieces);
                    pieces.push(Bytes::from_static(mark));
                    at = place;
                }
            }
        }
        self.body.slice(at, self.body.len(), &mut pieces);
        pieces.push(Bytes::from_static(self.wire.tail(&self.encoding)));
        let left = pieces.iter().map(Bytes::len).sum::<usize>() as u64;
        RequestBody {
            pieces: pieces.into(),
            left,
        }
    }
}

/// With how many blocks on its surroundings a user's message begins.
fn surroundings(message: &Message) -> usize {
    let is_context =
        |block: &&Block| matches!(block, Block::Text(text) if text.origin == Some(Origin::Context));
    match message.role {
        Role::User => message.blocks.iter().take_while(is_context).count(),
        Role::Assistant => 0,
    }
}

/// A request's body: pieces that were serialised before, and their total length.
#[derive(Debug, Clone)]
pub struct RequestBody {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl RequestBody {
    /// All of it in one buffer, for tests and error messages.
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces
            .iter()
            .flat_map(|piece| piece.iter())
            .copied()
            .collect()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        if let Some(piece) = &piece {
            self.left -= piece.len() as u64;
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
