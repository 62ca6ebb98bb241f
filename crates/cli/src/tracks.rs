//! When a session's agents worked, rested and answered, and what it was all about: read from their
//! transcripts, without what they hold.

use crate::show::{Account, Member};
use gaffer_protocol::{AgentId, Answer, Block, End, Message, Origin, ResultPart, Timestamp};
use gaffer_store::records::Line;
use gaffer_store::{Entry, Found, Record};
use std::collections::HashMap;
use std::io;

/// So much of the task and of the result is kept, in bytes.
const LONGEST: usize = 100_000;

/// What a reader wants to know before anything else.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// The user's first words.
    pub(crate) task: Option<String>,
    /// The last words of the session's own agent.
    pub(crate) result: Option<String>,
    /// As many as there are members, in their order.
    pub(crate) tracks: Vec<Track>,
}

/// The time of one agent.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// When it was ordered, if that is known: until its first run it stood in the queue.
    pub(crate) ordered: Option<Timestamp>,
    pub(crate) runs: Vec<Run>,
}

/// One stretch of work.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// When each answer was there.
    pub(crate) turns: Vec<Timestamp>,
    pub(crate) calls: usize,
    /// Times in which it had nothing to do but to wait for mail.
    pub(crate) rests: Vec<(Timestamp, Timestamp)>,
    /// None where its process went away under it, or it still runs.
    pub(crate) end: Option<End>,
}

impl Story {
    pub(crate) fn read(found: &Found, account: &Account) -> io::Result<Self> {
        let mut story = Self::default();
        let mut ordered = HashMap::new();
        for member in &account.members {
            let mut reader = Reader::default();
            for line in found.folder.records(member.id)? {
                if let Line::Record(record) = line? {
                    reader.record(&record);
                }
            }
            ordered.extend(reader.ordered.drain());
            if is_main(member, account) {
                story.task = reader.task.take();
                story.result = reader.said.take();
            }
            story.tracks.push(Track {
                ordered: None,
                runs: reader.runs,
            });
        }
        for (track, member) in story.tracks.iter_mut().zip(&account.members) {
            track.ordered = ordered.get(&member.id).copied();
        }
        Ok(story)
    }
}

fn is_main(member: &Member, account: &Account) -> bool {
    let main = account.main().map(|start| start.agent);
    main == Some(member.id)
}

/// A fold over the records of one agent.
#[derive(Debug, Default)]
struct Reader {
    runs: Vec<Run>,
    is_open: bool,
    /// Since when it has nothing to do.
    rests_since: Option<Timestamp>,
    last: Option<Timestamp>,
    task: Option<String>,
    said: Option<String>,
    ordered: HashMap<AgentId, Timestamp>,
}

impl Reader {
    fn record(&mut self, record: &Record) {
        // A clock that was set back stands still instead.
        let at = self.last.map_or(record.at, |last| last.max(record.at));
        if matches!(record.entry, Entry::Start(_)) {
            // Another process goes on: what was under way ended with the one before.
            self.is_open = false;
            self.rests_since = None;
        }
        self.last = Some(at);
        if !self.is_open {
            self.is_open = true;
            self.runs.push(Run {
                from: at,
                to: at,
                turns: Vec::new(),
                calls: 0,
                rests: Vec::new(),
                end: None,
            });
        }
        let rested = self.rests_since.take();
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        run.to = at;
        run.rests
            .extend(rested.filter(|since| *since < at).map(|it| (it, at)));
        match &record.entry {
            Entry::Start(_) | Entry::Compacted(_) => {}
            Entry::Input(message) => self.input(message),
            Entry::Answer(answer) => {
                run.turns.push(at);
                let calls = answer.tool_uses().count();
                run.calls += calls;
                self.rests_since = (calls == 0).then_some(at);
                self.answer(answer);
            }
            Entry::Result(result) => {
                for part in &result.parts {
                    if let ResultPart::Text(text) = part
                        && let Some(agent) = started(text)
                    {
                        self.ordered.entry(agent).or_insert(at);
                    }
                }
            }
            Entry::End(end) => {
                run.end = Some(end.clone());
                self.is_open = false;
            }
        }
    }

    fn input(&mut self, message: &Message) {
        let is_human = |block: &&Block| matches!(block, Block::Text(text) if text.origin == Some(Origin::Human));
        let first = message.blocks.iter().find(is_human);
        if let (None, Some(Block::Text(text))) = (&self.task, first) {
            self.task = Some(beginning(&text.text));
        }
    }

    fn answer(&mut self, answer: &Answer) {
        let texts = answer.blocks.iter().filter_map(|block| match block {
            Block::Text(text) if !text.text.trim().is_empty() => Some(text.text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        if !texts.is_empty() {
            self.said = Some(beginning(&texts.join("\n\n")));
        }
    }
}

/// The worker that a result speaks of as started.
fn started(text: &str) -> Option<AgentId> {
    let id = text.strip_prefix("task_id: ")?.split_whitespace().next()?;
    AgentId::parse(id).ok()
}

fn beginning(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    text[..end].to_owned()
}
