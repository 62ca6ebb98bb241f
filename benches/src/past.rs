//! Sessions as gaffer leaves them: records of agents that worked, and a book that knows them.

use crate::events::MODEL;
use anyhow::Context;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{
    AgentId, AgentName, Answer, Block, End, MailId, Message, Origin, ResultPart, SessionId,
    StopReason, Timestamp, ToolResult, ToolUse, Trigger, Usage,
};
use gaffer_store::book::{Change, Letter, Step, Task};
use gaffer_store::{
    About, Book, Compacted, Entry, Home, Record, Rights, SessionFolder, Start, Transcript,
};
use std::path::Path;
use std::sync::Arc;

pub(crate) const SESSION: &str = "past";
/// Of one result of a tool. Some are shorter and some longer; this is their mean.
const RESULT: usize = 20 << 10;
/// A conversation of so many bytes is compacted.
const MOST_TALK: usize = 600 << 10;

/// What a session consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Past {
    /// Workers that have ended, and others that were at work when the process was killed.
    pub(crate) ended: u32,
    pub(crate) live: u32,
    /// How long the transcript of a worker is, and that of the session's own agent.
    pub(crate) worker: usize,
    pub(crate) main: usize,
}

impl Past {
    pub(crate) fn words(self) -> [String; 4] {
        let Self {
            ended,
            live,
            worker,
            main,
        } = self;
        [
            ended.to_string(),
            live.to_string(),
            worker.to_string(),
            main.to_string(),
        ]
    }

    fn parse(words: &[&str]) -> Option<Self> {
        let [ended, live, worker, main] = words else {
            return None;
        };
        Some(Self {
            ended: ended.parse().ok()?,
            live: live.parse().ok()?,
            worker: worker.parse().ok()?,
            main: main.parse().ok()?,
        })
    }

    pub(crate) fn workers(self) -> u32 {
        self.ended + self.live
    }
}

/// A writer of one agent's records, a second apart.
#[derive(Debug)]
pub(crate) struct Pen {
    transcript: Transcript,
    at: u64,
    calls: u64,
}

impl Pen {
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            transcript: Transcript::create(path.to_owned())?,
            at: 1_790_000_000_000,
            calls: 0,
        })
    }

    pub(crate) fn write(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.at += 1000;
        let at = Timestamp(self.at);
        Ok(self.transcript.append(&Record { at, entry })?)
    }

    pub(crate) fn hear(&mut self, blocks: Vec<Block>) -> anyhow::Result<()> {
        self.write(Entry::Input(Arc::new(Message::user(blocks))))
    }

    /// One turn: an answer with a call, and its result of so many bytes.
    pub(crate) fn turn(&mut self, bytes: usize) -> anyhow::Result<()> {
        self.calls += 1;
        let id = format!("toolu_{:08}", self.calls);
        let call = ToolUse {
            id: id.clone(),
            name: "Read".into(),
            input: ToolInput::from_text(r#"{"file_path":"src/engine/scheduler.rs","limit":400}"#),
        };
        let word = "Now I look at the scheduler, which holds the queue that the task is about.";
        self.write(answer(vec![Block::text(word), Block::ToolUse(call)]))?;
        self.write(result(id, bytes))
    }

    /// Turns until the transcript is so long.
    pub(crate) fn turns_until(&mut self, bytes: usize) -> anyhow::Result<()> {
        while self.transcript.end()? < bytes as u64 {
            let size = RESULT / 4 + (self.calls as usize * 7919) % (RESULT * 3 / 2);
            self.turn(size)?;
        }
        Ok(())
    }

    fn len(&self) -> anyhow::Result<usize> {
        Ok(usize::try_from(self.transcript.end()?)?)
    }
}

pub(crate) fn answer(blocks: Vec<Block>) -> Entry {
    Entry::Answer(Arc::new(Answer {
        blocks,
        stop: StopReason::ToolUse,
        usage: Usage {
            input: 12,
            cache_read: 40_000,
            cache_write: 5_000,
            output: 240,
        },
        model: MODEL.to_owned(),
    }))
}

pub(crate) fn result(call: String, bytes: usize) -> Entry {
    Entry::Result(Arc::new(ToolResult {
        call,
        parts: vec![ResultPart::Text(source(bytes))],
        is_error: false,
        mail: None,
    }))
}

/// Text as tools read it: lines with quotes, tabs and now and then something that is no ASCII.
pub(crate) fn source(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 100);
    let mut number = 0;
    while out.len() < bytes {
        number += 1;
        let mark = if number % 16 == 0 { "… \u{e9}" } else { "" };
        out.push_str(&format!(
            "{number:>6}\t\tlet value_{number} = table.get(\"key {number}\")?; // why{mark}\n"
        ));
    }
    out
}

pub(crate) fn agent(number: u32) -> anyhow::Result<AgentId> {
    Ok(AgentId::parse(&format!("agent-{number:08x}"))?)
}

pub(crate) fn task(number: u32, main: AgentId) -> anyhow::Result<Task> {
    Ok(Task {
        id: agent(number)?,
        name: AgentName::parse(&format!("worker-{number}"))?,
        kind: "worker".to_owned(),
        description: "Look at the scheduler".to_owned(),
        parent: main,
        depth: 1,
        model: None,
        depends_on: Vec::new(),
        includes_results: false,
        terms: gaffer_protocol::Terms::default(),
    })
}

pub(crate) fn start(task: Option<&Task>, main: AgentId, cwd: &Path) -> anyhow::Result<Start> {
    Ok(Start {
        version: "0.1.0".to_owned(),
        session: SessionId::parse(SESSION)?,
        agent: task.map_or(main, |task| task.id),
        name: task.map_or_else(AgentName::main, |task| task.name.clone()),
        agent_type: task.map_or("coordinator", |_| "worker").to_owned(),
        mode: "coordinator".to_owned(),
        provider: "anthropic".to_owned(),
        model: MODEL.to_owned(),
        cwd: cwd.display().to_string(),
        prefix_hash: "0".repeat(64),
        prompt_hash: "0".repeat(64),
        parent: task.map(|_| main),
        description: task.map_or_else(String::new, |task| task.description.clone()),
    })
}

/// The letter that a worker begins with has an odd number, the one about its end an even one.
pub(crate) fn order(number: u32, to: AgentId) -> Letter {
    let id = MailId(u64::from(number) * 2 - 1);
    let text = format!("Find out how the queue keeps its order, part {number}.");
    Letter {
        id,
        to,
        about: None,
        block: Block::from(Origin::Agent, text).by_mail(id),
        is_held: false,
    }
}

/// What the coordinator is told of an end. One in eight is long.
pub(crate) fn news(number: u32, task: AgentId, main: AgentId) -> Letter {
    let id = MailId(u64::from(number) * 2);
    let size = if number.is_multiple_of(8) {
        8 << 10
    } else {
        1 << 10
    };
    Letter {
        id,
        to: main,
        about: Some(task),
        block: Block::from(Origin::TaskNotification, source(size)).by_mail(id),
        is_held: false,
    }
}

/// What the crew notes of a task that has ended.
pub(crate) fn notes(cwd: &Path) -> String {
    let spent = serde_json::json!({
        "by_model": { MODEL: [{"input": 240, "cache_read": 800_000, "output": 4800}, 0] },
        "turns": 20, "tool_uses": 19, "time": {"secs": 80, "nanos": 0},
    });
    serde_json::json!({ "cwd": cwd, "spending": spent }).to_string()
}

/// `__past HOME CWD …`: writes a session and ends as a killed process does, with its book open.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let (Some((home, cwd)), Some(past)) = (
        words.first().zip(words.get(1)),
        words.get(2..).and_then(Past::parse),
    ) else {
        anyhow::bail!("cannot make {words:?}");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let book = runtime.block_on(make(Path::new(home), Path::new(cwd), past))?;
    // Closed in good order it would be another book: all in one file, without its log.
    std::mem::forget(book);
    std::process::exit(0);
}

async fn make(home: &Path, cwd: &Path, past: Past) -> anyhow::Result<Book> {
    let session = SessionId::parse(SESSION)?;
    let main = agent(0)?;
    let folder = Home::new(home.to_owned()).create_session(cwd, &session)?;
    folder.set_about(&About {
        session,
        main,
        mode: "coordinator".to_owned(),
        cwd: cwd.display().to_string(),
        created: Timestamp(1_790_000_000_000),
        name: None,
        title: "Look at all of it".to_owned(),
        rights: Rights::default(),
        forked_from: None,
        budget: gaffer_protocol::Budget::default(),
        account: None,
    })?;
    let book = folder.book();
    let mut pen = Pen::new(&folder.transcript(main))?;
    pen.write(Entry::Start(Box::new(start(None, main, cwd)?)))?;
    pen.hear(vec![Block::from_human("Look at all of it.")])?;
    let mut compacted = 0;
    for number in 1..=past.workers() {
        let is_ended = number <= past.ended;
        worker(&folder, &book, (number, main, cwd), past, is_ended).await?;
        if is_ended {
            pen.hear(vec![news(number, agent(number)?, main).block])?;
        }
        pen.turns_until(past.main / past.workers() as usize * number as usize)?;
        if pen.len()? > compacted + MOST_TALK {
            pen.write(summary())?;
            compacted = pen.len()?;
        }
    }
    while pen.len()? < past.main {
        let next = past.main.min(pen.len()? + MOST_TALK);
        pen.turns_until(next)?;
        pen.write(summary())?;
    }
    pen.write(answer(vec![Block::text("I wait for the others.")]))?;
    Ok(book)
}

fn summary() -> Entry {
    let text = format!("What was said so far:\n{}", source(8 << 10));
    Entry::Compacted(Arc::new(Compacted {
        trigger: Trigger::Auto,
        tokens_before: 150_000,
        tokens_after: 2_000,
        messages: vec![Message::user(vec![Block::from(Origin::Compacted, text)])],
        usage: Usage::default(),
        model: MODEL.to_owned(),
        notes: gaffer_store::Notes::default(),
    }))
}

/// One worker on record and in the book, step for step as its crew writes it.
async fn worker(
    folder: &SessionFolder,
    book: &Book,
    (number, main, cwd): (u32, AgentId, &Path),
    past: Past,
    is_ended: bool,
) -> anyhow::Result<()> {
    let task = task(number, main)?;
    let id = task.id;
    let order = order(number, id);
    let mut pen = Pen::new(&folder.transcript(id))?;
    pen.write(Entry::Start(Box::new(start(Some(&task), main, cwd)?)))?;
    pen.hear(vec![order.block.clone()])?;
    pen.turns_until(past.worker)?;
    let call = format!("toolu_{number:08}");
    let transcript = folder.transcript(id);
    let began = Step::written(vec![
        Change::Start(Box::new(task)),
        Change::Send(order.clone()),
        Change::Answered {
            agent: main,
            call,
            answer: format!("task_id: {id}\ntranscript: {}", transcript.display()),
        },
    ]);
    book.write(began).await.context("cannot write the book")?;
    if is_ended {
        pen.write(answer(vec![Block::text("It is kept by a heap.")]))?;
        pen.write(Entry::End(End::Done))?;
        // Whether it is synced makes no difference to whoever reads it.
        book.write(Step::written(vec![
            Change::End {
                task: id,
                end: End::Done,
                notes: notes(cwd),
            },
            Change::Heard(vec![order.id]),
            Change::Settled(id),
            Change::Send(news(number, id, main)),
        ]))
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_past_reads_back_what_it_wrote() {
        let past = Past {
            ended: 3,
            live: 1,
            worker: 5,
            main: 7,
        };
        let words = past.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(Past::parse(&words), Some(past));
        assert_eq!(Past::parse(&words[1..]), None);
    }

    #[tokio::test]
    async fn what_was_made_is_what_the_store_reads() {
        let temp = tempfile::tempdir().unwrap();
        let past = Past {
            ended: 3,
            live: 1,
            worker: 50_000,
            main: 100_000,
        };
        let book = make(&temp.path().join("home"), temp.path(), past)
            .await
            .unwrap();
        let contents = book.read().unwrap();
        assert_eq!((contents.tasks.len(), contents.letters.len()), (4, 4));
        let ended = contents.tasks.iter().filter(|it| it.end.is_some()).count();
        assert_eq!((ended, contents.answers.len()), (3, 4));
        let folder = book.path().parent().unwrap();
        let fold = gaffer_store::Fold::read(&folder.join("agent-00000001.jsonl")).unwrap();
        assert_eq!(fold.end, Some(End::Done));
        assert!(fold.damaged.is_empty() && fold.turns.len() > 2);
        let main = gaffer_store::Fold::read(&folder.join("agent-00000000.jsonl")).unwrap();
        assert!(main.damaged.is_empty() && main.heard.len() == 3);
    }
}
