//! How full an agent's context is: what the provider counted last, and an estimate of what was
//! added since. Nothing here walks the conversation.

use crate::prompt;
use crate::recording::Room;
use gaffer_model::Conversation;
use gaffer_protocol::Usage;

/// Bytes for a token until a provider has counted: low, because English has more and code less.
const FIRST_GUESS: f64 = 3.0;
/// What providers charge for an image of the size that tools hand out, about.
const IMAGE: u64 = 1_600;

#[derive(Debug, Clone)]
pub(crate) struct Gauge {
    /// How many tokens the model takes, as far as anybody has said so.
    window: Option<u64>,
    /// How many of them an answer may need.
    answer: u64,
    /// Tokens and bytes of text up to the last answer, as it reported them.
    counted: (u64, usize),
    counted_images: u64,
    bytes_per_token: f64,
    /// The most that was ever answered: the window is no smaller, whatever is refused.
    accepted: u64,
    /// Whether there was no answer since the last compaction.
    fresh: bool,
    /// Up to here the next one would gain too little.
    floor: u64,
}

impl Gauge {
    pub(crate) fn new(window: Option<u64>, answer: u64) -> Self {
        Self {
            window,
            answer,
            counted: (0, 0),
            counted_images: 0,
            bytes_per_token: FIRST_GUESS,
            accepted: 0,
            fresh: false,
            floor: 0,
        }
    }

    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// The tokens of the next request, about.
    pub(crate) fn tokens(&self, conversation: &Conversation) -> u64 {
        let (tokens, bytes) = self.counted;
        let added = text(conversation).saturating_sub(bytes);
        let images = conversation.images().count;
        let images = images.saturating_sub(self.counted_images);
        tokens + self.tokens_of(added) + images * IMAGE
    }

    fn tokens_of(&self, bytes: usize) -> u64 {
        (bytes as f64 / self.bytes_per_token).ceil() as u64
    }

    pub(crate) fn bytes_of(&self, tokens: u64) -> usize {
        (tokens as f64 * self.bytes_per_token) as usize
    }

    /// An answer came to what had so many bytes when it was asked; it is in the conversation now.
    pub(crate) fn answered(&mut self, usage: Usage, asked: usize, conversation: &Conversation) {
        self.fresh = false;
        let input = usage.all_input();
        if input == 0 {
            return;
        }
        self.accepted = self.accepted.max(input);
        let images = conversation.images();
        let now = text(conversation);
        let before = asked.saturating_sub(images.bytes);
        let of_text = input.saturating_sub(images.count * IMAGE).max(1);
        // A server that counts in its own way must not lead us far astray.
        self.bytes_per_token = (before as f64 / of_text as f64).clamp(1.0, 6.0);
        // What a model thought is counted, and on some wires not sent again. No token is shorter
        // than a byte.
        let output = usage.output.min(now.saturating_sub(before) as u64);
        self.counted = (input.saturating_add(output), now);
        self.counted_images = images.count;
    }

    /// The provider refused a request of this many tokens.
    pub(crate) fn refused(&mut self, tokens: u64) {
        let learnt = (tokens / 10 * 9).max(self.accepted).max(1);
        self.window = Some(self.window.map_or(learnt, |window| window.min(learnt)));
    }

    /// So full it may be, with room for an answer, for the question for a summary, and some to
    /// spare; none where nobody knows.
    pub(crate) fn limit(&self) -> Option<u64> {
        let window = self.window?;
        let answer = self.answer.min(window / 2);
        let question = self.tokens_of(prompt::COMPACT.text.len()).min(window / 8);
        // 30 % are to stay free, and what was added since the last count is an estimate.
        Some((window / 100 * 68).min(window - answer) - question)
    }

    /// Whether the conversation is to be compacted before it is sent.
    pub(crate) fn is_due(&self, conversation: &Conversation) -> bool {
        // Where there was no answer since the last time, another would bring nothing.
        let limit = self.limit().filter(|_| !self.fresh);
        limit.is_some_and(|limit| self.tokens(conversation) > limit.max(self.floor))
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// What the results of one answer may have: an eighth of the window each, a quarter together.
    pub(crate) fn room_for_results(&self) -> Room {
        let share = |part: u64| match self.window {
            Some(window) => self.bytes_of(window / part),
            None => usize::MAX,
        };
        Room {
            each: share(8),
            all: share(4),
        }
    }

    /// Begins to count for a conversation that has replaced the one before.
    pub(crate) fn restart(&mut self, conversation: &Conversation) {
        self.counted = (0, 0);
        self.counted_images = 0;
        self.fresh = true;
        self.postpone(conversation);
    }

    /// Little or nothing was gained: the next one waits until there is something to gain. A prefix
    /// that fills most of a small window would otherwise be compacted at every turn.
    pub(crate) fn postpone(&mut self, conversation: &Conversation) {
        let window = self.window.unwrap_or(0);
        let grown = self.tokens(conversation) + window / 10;
        self.floor = grown.min(window / 20 * 19);
    }

    /// The tokens of a conversation that was not asked yet.
    pub(crate) fn estimate(&self, conversation: &Conversation) -> u64 {
        let mut fresh = Self::new(self.window, self.answer);
        fresh.bytes_per_token = self.bytes_per_token;
        fresh.tokens(conversation)
    }
}

/// The bytes that are not an image's.
fn text(conversation: &Conversation) -> usize {
    conversation.len() - conversation.images().bytes
}
