//! An agent's own record: one JSON record a line, appended before the next step is taken, and
//! read back by a fold.

use gaffer_protocol::{
    AgentId, AgentName, Answer, Block, End, MailId, Message, ResultPart, SessionId, StopReason,
    Timestamp, ToolResult, Usage,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub at: Timestamp,
    pub entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Start(Box<Start>),
    /// User-side input other than results.
    Input(Arc<Message>),
    Answer(Arc<Answer>),
    /// The result of one call, written as soon as it is there.
    Result(Arc<ToolResult>),
    End(End),
}

/// What an agent was started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub version: String,
    pub session: SessionId,
    pub agent: AgentId,
    pub name: AgentName,
    pub agent_type: String,
    pub mode: String,
    pub provider: String,
    pub model: String,
    pub cwd: String,
    /// Of the system prompt, the tools and their order.
    pub prefix_hash: String,
    /// Of the prompt file alone.
    pub prompt_hash: String,
    /// Who started it; none for the session's own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// What it was to do, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// An open transcript. One owner appends to it.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl Transcript {
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            file,
            path,
            buffer: Vec::new(),
        })
    }

    /// Opens one to go on with it. Calls without a result get one: what `known` says of them, or
    /// else that they were interrupted.
    pub fn resume(
        path: PathBuf,
        at: Timestamp,
        known: &dyn Fn(&str) -> Option<String>,
    ) -> io::Result<(Self, Fold)> {
        let bytes = std::fs::read(&path)?;
        let mut transcript = Self::create(path)?;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            transcript.file.write_all(b"\n")?;
        }
        for call in Fold::of(&bytes).dangling {
            let result = match known(&call) {
                Some(text) => ToolResult {
                    call,
                    parts: vec![ResultPart::Text(text)],
                    is_error: false,
                    mail: None,
                },
                None => interrupted(call),
            };
            let entry = Entry::Result(Arc::new(result));
            transcript.append(&Record { at, entry })?;
        }
        let fold = Fold::read(&transcript.path)?;
        Ok((transcript, fold))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, for whoever has to see it on the disk itself.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Appends one record in one write: when this returns, a killed process has not lost it.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, record)?;
        self.buffer.push(b'\n');
        self.file.write_all(&self.buffer)?;
        // One large result must not hold its memory for the agent's whole life.
        self.buffer.shrink_to(64 << 10);
        Ok(())
    }
}

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
    /// Lines that could not be read, counted from 1.
    pub damaged: Vec<usize>,
    /// Calls at the end that have no result in the record.
    pub dangling: Vec<String>,
    /// Calls of the last answer that still wait for their result, in order, with what came.
    open: Vec<(String, Option<Arc<ToolResult>>)>,
    /// When the run that is not over yet began.
    run: Option<Timestamp>,
}

/// What one answer cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// As the answer names it; empty where it names none.
    pub model: Arc<str>,
    pub usage: Usage,
    /// Calls that it made, if it was whole: those of a cut answer are never run.
    pub calls: u32,
}

/// What a call without a result is answered with.
const NO_RESULT: &str = "There is no result: the run was interrupted while this call was under way. \
It may have been carried out in part; look before you repeat it.";

impl Fold {
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&std::fs::read(path)?))
    }

    pub fn of(bytes: &[u8]) -> Self {
        let mut fold = Self::default();
        for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Record>(line) {
                Ok(record) => {
                    fold.pass(record.at, &record.entry);
                    fold.take(record.entry);
                }
                Err(_) => fold.damaged.push(n + 1),
            }
        }
        let open = fold.open.iter().filter(|(_, result)| result.is_none());
        fold.dangling = open.map(|(call, _)| call.clone()).collect();
        fold.close_calls();
        if let (Some(began), Some((_, last))) = (fold.run.take(), fold.span) {
            fold.worked_ms += last.0.saturating_sub(began.0);
        }
        fold
    }

    /// Keeps the time.
    fn pass(&mut self, at: Timestamp, entry: &Entry) {
        let first = self.span.map_or(at, |(first, _)| first);
        self.span = Some((first, at));
        let began = *self.run.get_or_insert(at);
        if matches!(entry, Entry::End(_)) {
            self.ends += 1;
            self.run = None;
            self.worked_ms += at.0.saturating_sub(began.0);
        }
    }

    fn count(&mut self, answer: &Answer) {
        self.usage += answer.usage;
        // Almost always the same as before: one text for all.
        let last = self.turns.last().map(|turn| turn.model.clone());
        let model = last.filter(|model| **model == *answer.model);
        let is_whole = matches!(answer.stop, StopReason::ToolUse | StopReason::EndTurn);
        let calls = answer.tool_uses().filter(|_| is_whole).count();
        self.turns.push(Turn {
            model: model.unwrap_or_else(|| answer.model.as_str().into()),
            usage: answer.usage,
            calls: u32::try_from(calls).unwrap_or(u32::MAX),
        });
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
                self.heard
                    .extend(message.blocks.iter().filter_map(Block::mail));
                self.push_user(message.blocks.clone());
            }
            Entry::Answer(answer) => {
                self.close_calls();
                self.count(&answer);
                let calls = answer.tool_uses().map(|call| (call.id.clone(), None));
                self.open = calls.collect();
                if !answer.blocks.is_empty() {
                    self.messages
                        .push(Message::assistant(answer.blocks.clone()));
                }
            }
            Entry::Result(result) => {
                self.heard.extend(result.mail);
                let waits =
                    |(id, done): &&mut (String, Option<_>)| *id == result.call && done.is_none();
                if let Some((_, done)) = self.open.iter_mut().find(waits) {
                    *done = Some(result);
                }
            }
            Entry::End(end) => {
                self.close_calls();
                self.end = Some(end);
            }
        }
    }

    /// The results of one answer are one message, in the order of the calls.
    fn close_calls(&mut self) {
        let results: Vec<Block> = std::mem::take(&mut self.open)
            .into_iter()
            .map(|(call, result)| {
                Block::ToolResult(match result {
                    Some(result) => Arc::unwrap_or_clone(result),
                    None => interrupted(call),
                })
            })
            .collect();
        self.push_user(results);
    }

    fn push_user(&mut self, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            self.messages.push(Message::user(blocks));
        }
    }
}

/// The honest result of a call that nobody saw end.
pub fn interrupted(call: String) -> ToolResult {
    ToolResult {
        call,
        parts: vec![ResultPart::Text(NO_RESULT.to_owned())],
        is_error: true,
        mail: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gaffer_protocol::message::ToolInput;
    use gaffer_protocol::{Role, ToolUse};
    use proptest::prelude::*;

    fn call(id: &str) -> Block {
        Block::ToolUse(ToolUse {
            id: id.into(),
            name: "Read".into(),
            input: ToolInput::from_text("{}"),
        })
    }

    fn result(id: &str) -> Entry {
        Entry::Result(Arc::new(ToolResult {
            call: id.into(),
            parts: vec![ResultPart::Text(format!("result of {id}"))],
            is_error: false,
            mail: None,
        }))
    }

    fn answer(blocks: Vec<Block>) -> Entry {
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

    fn input(text: &str) -> Entry {
        Entry::Input(Arc::new(Message::user(vec![Block::from_human(text)])))
    }

    fn bytes(entries: Vec<Entry>) -> Vec<u8> {
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

    fn sample() -> Vec<u8> {
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

    /// Every call has one result, right behind its answer and in its order.
    fn assert_valid(messages: &[Message]) {
        let mut expected: Vec<String> = Vec::new();
        for message in messages {
            let results: Vec<String> = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::ToolResult(result) => Some(result.call.clone()),
                    _ => None,
                })
                .collect();
            assert_eq!(results, expected, "{messages:?}");
            expected = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::ToolUse(call) if message.role == Role::Assistant => {
                        Some(call.id.clone())
                    }
                    _ => None,
                })
                .collect();
        }
        assert!(expected.is_empty(), "{messages:?}");
    }

    #[test]
    fn results_stand_in_the_order_of_their_calls() {
        let fold = Fold::of(&sample());
        assert_eq!(fold.messages.len(), 6);
        assert_eq!(fold.end, Some(End::Done));
        assert_eq!(fold.usage.output, 3);
        assert_valid(&fold.messages);
        let Block::ToolResult(first) = &fold.messages[2].blocks[0] else {
            panic!("no result")
        };
        assert_eq!(first.text(), "result of a");
    }

    #[test]
    fn turns_calls_and_time_are_counted_without_the_rest_between_runs() {
        let mut all = sample();
        let fold = Fold::of(&all);
        let calls: Vec<u32> = fold.turns.iter().map(|turn| turn.calls).collect();
        assert_eq!(calls, [2, 1, 0]);
        assert_eq!((fold.ends, fold.worked_ms), (1, 7));
        for (at, entry) in [(100, input("more")), (105, answer(vec![Block::text("x")]))] {
            let at = Timestamp(at);
            serde_json::to_writer(&mut all, &Record { at, entry }).unwrap();
            all.push(b'\n');
        }
        let fold = Fold::of(&all);
        assert_eq!((fold.ends, fold.worked_ms, fold.end), (1, 12, None));
        assert_eq!(fold.span, Some((Timestamp(0), Timestamp(105))));
    }

    #[test]
    fn a_transcript_cut_at_any_byte_is_a_valid_conversation() {
        let all = sample();
        for end in 0..=all.len() {
            let fold = Fold::of(&all[..end]);
            assert_valid(&fold.messages);
            assert!(fold.damaged.len() <= 1);
        }
    }

    proptest! {
        #[test]
        fn noise_in_the_file_is_skipped_and_counted(at in 0usize..900, noise in prop::collection::vec(any::<u8>(), 1..20)) {
            let mut all = sample();
            let at = at.min(all.len());
            all.splice(at..at, noise);
            assert_valid(&Fold::of(&all).messages);
        }
    }

    #[test]
    fn what_was_appended_is_read_back() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("t.jsonl");
        let mut transcript = Transcript::create(path.clone()).unwrap();
        for (n, entry) in [input("hi"), answer(vec![call("a")]), result("a")]
            .into_iter()
            .enumerate()
        {
            transcript
                .append(&Record {
                    at: Timestamp(n as u64),
                    entry,
                })
                .unwrap();
        }
        let fold = Fold::read(&path).unwrap();
        assert_eq!(fold.messages.len(), 3);
        assert!(fold.damaged.is_empty());
    }
}
