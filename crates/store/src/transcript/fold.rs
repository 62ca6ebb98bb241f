//! A transcript read back: one pass, one line at a time.
//!
//! The conversation that comes out is valid on every wire, whatever lines are missing or changed.
//! It begins with the user's side, the two sides alternate, and every call has one result right
//! behind its answer. Where the record has a hole, the conversation says so.

use super::calls::{Ids, Known, Open};
use super::damage::Damage;
use super::heal;
use super::reading::{self, Kept};
use super::record::{Entry, Start};
use crate::compacted::{Compacted, Notes};
use gaffer_protocol::{
    Answer, Block, End, MailId, Message, Origin, Role, StopReason, Timestamp, ToolResult, Usage,
};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// What stands where records are missing.
const LOST: &str = "[A part of the record of this conversation was lost here.]";

/// A transcript read back.
#[derive(Debug, Default)]
pub struct Fold {
    pub start: Option<Start>,
    /// The conversation: every call of it has its result, whatever the record ends with.
    pub messages: Vec<Message>,
    /// The end, unless the agent went on after it or never came to one.
    pub end: Option<End>,
    pub usage: Usage,
    /// Every answer, without what it says.
    pub turns: Vec<Turn>,
    /// The first record's time, and the last one's.
    pub span: Option<(Timestamp, Timestamp)>,
    /// How often it came to an end.
    pub ends: u32,
    /// How long it worked, in milliseconds: time between an end and the next run is left out.
    pub worked_ms: u64,
    /// The letters that it has heard.
    pub heard: HashSet<MailId>,
    /// What the last compaction noted, if there was one.
    pub notes: Notes,
    /// How often it was compacted.
    pub compactions: u32,
    /// What could not be read.
    pub damaged: Damage,
    /// Calls of the last answer that still wait for their result, in order, with what came.
    open: Open,
    /// When the run that is not over yet began.
    run: Option<Timestamp>,
    ids: Ids,
    /// Whether the answer before was a part that the provider wanted to go on with.
    is_paused: bool,
    /// Whether something is missing that the conversation does not tell yet.
    is_lost: bool,
    /// What was made up and belongs before the entry that was taken last.
    made: Vec<Entry>,
    known: Known,
}

/// What one answer cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// As the answer names it; empty where it names none.
    pub model: Arc<str>,
    pub usage: Usage,
    /// Whether it was a summary, which is no turn of the agent's.
    pub is_summary: bool,
    /// Calls that it made, if it was whole: those of a cut answer are never run.
    pub calls: u32,
}

impl Fold {
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = BufReader::with_capacity(reading::CHUNK, File::open(path)?);
        Ok(reading::fold(Self::default(), file, &mut |_| Ok(()))?.0)
    }

    /// The same from a record on that stands at this place.
    pub fn read_from(path: &Path, start: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        let file = BufReader::with_capacity(reading::CHUNK, file);
        Ok(reading::fold(Self::default(), file, &mut |_| Ok(()))?.0)
    }

    /// An empty one that knows the answers of some calls.
    pub(super) fn knowing(known: Known) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// The fold of bytes that are in memory already.
    pub fn of(bytes: &[u8]) -> Self {
        // Reading from memory cannot fail.
        reading::fold(Self::default(), bytes, &mut |_: Kept<'_>| Ok(()))
            .map_or_else(|_| Self::default(), |(fold, _)| fold)
    }

    /// Takes the next record. Answers whether it is of any use.
    pub(super) fn add(&mut self, at: Timestamp, entry: Entry) -> bool {
        self.pass(at, &entry);
        let gaps = self.damaged.gaps();
        let is_result = matches!(entry, Entry::Result(_));
        self.take(entry);
        !is_result || self.damaged.gaps() == gaps
    }

    /// A line could not be read.
    pub(super) fn lose(&mut self, line: usize, bytes: u64) {
        self.damaged.add_line(line, bytes);
        // A byte alone is a newline that was changed.
        self.is_lost |= bytes > 1;
    }

    /// What was made up since this was asked last: the record would be whole with it.
    pub(super) fn take_made(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.made)
    }

    /// There are no more records.
    pub(super) fn finish(&mut self) {
        // Only of calls that were under way when the record ends is anything known from elsewhere:
        // what is made up for them is written down, and so is the same the next time.
        let known = std::mem::take(&mut self.known);
        self.close_calls_knowing(&known);
        self.settle();
        if let (Some(began), Some((_, last))) = (self.run.take(), self.span) {
            let worked = last.0.saturating_sub(began.0);
            self.worked_ms = self.worked_ms.saturating_add(worked);
        }
    }

    /// Keeps the time.
    fn pass(&mut self, at: Timestamp, entry: &Entry) {
        let first = self.span.map_or(at, |(first, _)| first);
        self.span = Some((first, at));
        let began = *self.run.get_or_insert(at);
        if matches!(entry, Entry::End(_)) {
            self.ends += 1;
            self.run = None;
            let worked = at.0.saturating_sub(began.0);
            self.worked_ms = self.worked_ms.saturating_add(worked);
        }
    }

    fn count(&mut self, answer: &Answer) {
        let is_whole = is_whole(answer.stop);
        let calls = answer.tool_uses().filter(|_| is_whole).count();
        self.count_turn(&answer.model, answer.usage, Some(calls));
    }

    /// Without calls: a summary.
    fn count_turn(&mut self, model: &str, usage: Usage, calls: Option<usize>) {
        self.usage += usage;
        // Almost always the same as before: one text for all.
        let last = self.turns.last().map(|turn| turn.model.clone());
        let known = last.filter(|known| **known == *model);
        self.turns.push(Turn {
            model: known.unwrap_or_else(|| model.into()),
            usage,
            is_summary: calls.is_none(),
            calls: u32::try_from(calls.unwrap_or(0)).unwrap_or(u32::MAX),
        });
    }

    /// The conversation goes on with other messages. They are taken as if they had been said one
    /// after another, so that whatever was changed in them is made valid like all else.
    fn restart(&mut self, compacted: Compacted) {
        self.close_calls();
        if compacted.usage != Usage::default() {
            self.count_turn(&compacted.model, compacted.usage, None);
        }
        self.compactions += 1;
        self.notes = compacted.notes;
        self.messages.clear();
        self.ids = Ids::default();
        self.is_paused = false;
        self.is_lost = false;
        let made = std::mem::take(&mut self.made);
        for message in compacted.messages {
            self.say_again(message);
        }
        self.close_calls();
        // What is missing inside stands in no record of its own.
        self.made = made;
    }

    fn say_again(&mut self, message: Message) {
        match message.role {
            Role::Assistant => {
                self.close_calls();
                self.push_answer(Answer {
                    blocks: message.blocks,
                    stop: StopReason::ToolUse,
                    usage: Usage::default(),
                    model: String::new(),
                });
            }
            Role::User => {
                let (results, others): (Vec<Block>, Vec<Block>) = message
                    .blocks
                    .into_iter()
                    .partition(|block| matches!(block, Block::ToolResult(_)));
                for block in results {
                    if let Block::ToolResult(result) = block {
                        self.take_result(Arc::new(result));
                    }
                }
                self.close_calls();
                if !others.is_empty() {
                    self.hear(others);
                }
            }
        }
    }

    fn take(&mut self, entry: Entry) {
        // A process that took the session up has not yet done anything with it.
        if !matches!(entry, Entry::Start(_)) {
            self.end = None;
        }
        match entry {
            Entry::Start(start) => self.start = Some(*start),
            Entry::Input(message) => {
                self.close_calls();
                self.hear(Arc::unwrap_or_clone(message).blocks);
            }
            Entry::Answer(answer) => {
                self.close_calls();
                self.count(&answer);
                self.push_answer(Arc::unwrap_or_clone(answer));
            }
            Entry::Result(result) => self.take_result(result),
            Entry::Compacted(compacted) => self.restart(Arc::unwrap_or_clone(compacted)),
            Entry::End(end) => {
                self.close_calls();
                self.end = Some(end);
            }
        }
    }

    fn hear(&mut self, blocks: Vec<Block>) {
        self.heard.extend(blocks.iter().filter_map(Block::mail));
        if blocks == [lost()] {
            // An earlier repair has said it.
            self.is_lost = false;
        } else if self.is_lost {
            self.tell_loss();
        }
        self.push_user(heal::input(blocks));
    }

    fn push_answer(&mut self, answer: Answer) {
        let mut blocks = heal::answer(answer.blocks);
        let mut open = Open::new(is_whole(answer.stop));
        for block in &mut blocks {
            if let Block::ToolUse(call) = block {
                let id = self.ids.unique(&call.id);
                open.add(&call.id, &id);
                call.id = id;
            }
        }
        self.open = open;
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            // What goes on after a pause is one answer.
            Some(last) if last.role == Role::Assistant && self.is_paused && !self.is_lost => {
                last.blocks.append(&mut blocks);
            }
            Some(last) if last.role == Role::User && !self.is_lost => {}
            _ => self.tell_loss(),
        }
        self.is_paused = answer.stop == StopReason::Pause;
        if !blocks.is_empty() {
            self.messages.push(Message::assistant(blocks));
        }
    }

    fn take_result(&mut self, result: Arc<ToolResult>) {
        self.heard.extend(result.mail);
        if let Err(result) = self.open.take(result)
            && !self.ids.knows(&result.call)
        {
            // Its call is missing. One that comes twice is no loss.
            self.damaged.add_gap();
            self.is_lost = true;
        }
    }

    /// The results of one answer are one message, in the order of the calls.
    fn close_calls(&mut self) {
        self.close_calls_knowing(&Known::new());
    }

    fn close_calls_knowing(&mut self, known: &Known) {
        let mut results = Vec::new();
        let mut is_told = false;
        for closed in std::mem::take(&mut self.open).close(self.is_lost, known) {
            results.push(Block::ToolResult(closed.result));
            if let Some(made) = closed.made {
                self.made.push(Entry::Result(Arc::new(made)));
                is_told = true;
            }
        }
        self.is_lost &= !is_told;
        self.push_user(results);
    }

    fn tell_loss(&mut self) {
        if !std::mem::take(&mut self.is_lost) {
            self.damaged.add_gap();
        }
        let message = Message::user(vec![lost()]);
        self.made.push(Entry::Input(Arc::new(message)));
        self.push_user(vec![lost()]);
    }

    fn push_user(&mut self, mut blocks: Vec<Block>) {
        if blocks.is_empty() {
            return;
        }
        self.settle();
        if blocks.iter().any(|block| matches!(block, Block::Image(_))) {
            // Chat servers take a text or a list with images, and a text cannot become a list.
            let is_text = |block: &Block| matches!(block, Block::Text(_));
            let is_plain = |message: &Message| {
                message.role == Role::User && message.blocks.iter().all(is_text)
            };
            let others = self.messages.iter().rposition(|message| !is_plain(message));
            let texts = self.messages.drain(others.map_or(0, |n| n + 1)..);
            let mut joined: Vec<Block> = texts.flat_map(|message| message.blocks).collect();
            joined.append(&mut blocks);
            blocks = joined;
        }
        self.messages.push(Message::user(blocks));
    }

    /// The last answer is over.
    fn settle(&mut self) {
        self.is_paused = false;
        if let Some(last) = self.messages.last_mut()
            && last.role == Role::Assistant
        {
            heal::drop_last_thoughts(&mut last.blocks);
        }
    }
}

fn lost() -> Block {
    Block::from(Origin::Context, LOST)
}

/// Whether an answer's calls are run.
fn is_whole(stop: StopReason) -> bool {
    matches!(stop, StopReason::ToolUse | StopReason::EndTurn)
}

#[cfg(test)]
mod tests;
