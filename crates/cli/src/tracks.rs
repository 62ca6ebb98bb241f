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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(lines: &[(u64, serde_json::Value)]) -> Reader {
        let mut reader = Reader::default();
        for (at, entry) in lines {
            let record = json!({ "at": Timestamp(*at), "entry": entry });
            reader.record(&serde_json::from_value(record).unwrap());
        }
        reader
    }

    fn said(text: &str, origin: &str) -> serde_json::Value {
        let block = json!({ "text": { "text": text, "origin": origin } });
        json!({ "input": { "role": "user", "blocks": [block] } })
    }

    fn answer(text: &str, calls: usize) -> serde_json::Value {
        let call = json!({ "tool_use": { "id": "c", "name": "Bash", "input": { "json": {} } } });
        let mut blocks = vec![json!({ "text": { "text": text } })];
        blocks.resize(1 + calls, call);
        json!({ "answer": {
            "blocks": blocks, "stop": "end_turn", "usage": { "input": 1, "output": 1 }, "model": "m",
        } })
    }

    fn result(text: &str) -> serde_json::Value {
        json!({ "result": { "call": "c", "parts": [{ "text": text }], "is_error": false } })
    }

    fn start() -> serde_json::Value {
        json!({ "start": {
            "version": "1", "session": "s", "agent": "agent-00000001", "name": "main",
            "agent_type": "coordinator", "mode": "coordinator", "provider": "p", "model": "m",
            "cwd": "/", "prefix_hash": "", "prompt_hash": "",
        } })
    }

    #[test]
    fn an_agent_rests_from_an_answer_without_calls_until_it_hears_something() {
        let reader = read(&[
            (10, start()),
            (10, said("Do it", "human")),
            (20, answer("One", 1)),
            (25, result("task_id: agent-0000000a\nmore")),
            (30, answer("I wait", 0)),
            (70, said("news", "task-notification")),
            (75, result("task_id: agent-0000000a again")),
            (80, answer("Over", 0)),
            (80, json!({ "end": "done" })),
            (200, said("More", "human")),
            (210, answer("Yes", 0)),
        ]);
        let at = Timestamp;
        assert_eq!(reader.task.as_deref(), Some("Do it"));
        assert_eq!(reader.said.as_deref(), Some("Yes"));
        assert_eq!(reader.runs.len(), 2);
        let first = &reader.runs[0];
        assert_eq!((first.from, first.to), (at(10), at(80)));
        assert_eq!(first.rests, [(at(30), at(70))]);
        assert_eq!(first.turns, [at(20), at(30), at(80)]);
        assert_eq!((first.calls, &first.end), (1, &Some(End::Done)));
        assert_eq!((reader.runs[1].from, &reader.runs[1].end), (at(200), &None));
        let worker = AgentId::parse("agent-0000000a").unwrap();
        assert_eq!(reader.ordered, HashMap::from([(worker, at(25))]));
    }

    #[test]
    fn a_session_that_is_taken_up_has_another_run_and_no_time_runs_backwards() {
        let reader = read(&[
            (10, start()),
            (20, answer("I wait", 0)),
            (500, start()),
            (400, answer("Back", 0)),
        ]);
        let runs: Vec<_> = reader
            .runs
            .iter()
            .map(|run| (run.from.0, run.to.0))
            .collect();
        assert_eq!(runs, [(10, 20), (500, 500)]);
        assert!(reader.runs.iter().all(|run| run.rests.is_empty()));
    }
}
