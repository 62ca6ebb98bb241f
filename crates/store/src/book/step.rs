//! What is written to the book, in steps that happen as a whole or not at all.

use gaffer_protocol::{AgentId, AgentName, Block, CallId, End, MailId, Terms};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::fs::File;

/// What never changes about a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: AgentId,
    pub name: AgentName,
    /// The agent's type.
    pub kind: String,
    pub description: String,
    pub parent: AgentId,
    pub depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tasks that must have completed before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<AgentId>,
    /// Whether it is told their results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub includes_results: bool,
    #[serde(flatten)]
    pub terms: Terms,
}

/// One message on its way to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    pub id: MailId,
    pub to: AgentId,
    /// The task whose end it tells, if it does.
    pub about: Option<AgentId>,
    pub block: Block,
    /// Its reader ended without having read it, and is not to be woken by it.
    pub is_held: bool,
}

/// Something that changes.
#[derive(Debug, Clone)]
pub enum Change {
    /// A task begins, or waits for its place.
    Start(Box<Task>),
    /// An ended task goes on.
    GoOn(AgentId),
    End {
        task: AgentId,
        end: End,
        /// What the crew wants to know of it later.
        notes: String,
    },
    Send(Letter),
    /// These were heard: the reader's transcript has them.
    Heard(Vec<MailId>),
    /// These were not read when their reader ended.
    Hold(Vec<MailId>),
    /// A call of an agent took effect and is answered so, even if its caller dies before it hears
    /// the answer.
    Answered {
        agent: AgentId,
        call: CallId,
        answer: String,
    },
    /// All calls of an agent so far have their results in its transcript.
    Settled(AgentId),
}

/// Changes that happen together.
#[derive(Debug, Default)]
pub struct Step {
    pub(super) changes: Vec<Change>,
    pub(super) is_synced: bool,
    /// What the step relies on: on the disk before the step is.
    pub(super) files: Vec<File>,
}

impl Step {
    /// A step that survives the death of every process, but not always a loss of power.
    pub fn written(changes: Vec<Change>) -> Self {
        Self {
            changes,
            is_synced: false,
            files: Vec::new(),
        }
    }

    /// A step that is on the disk when it is done.
    pub fn synced(changes: Vec<Change>) -> Self {
        Self {
            changes,
            is_synced: true,
            files: Vec::new(),
        }
    }

    /// The same, on the disk only after this file is.
    pub fn after(mut self, file: File) -> Self {
        self.files.push(file);
        self
    }
}

impl Change {
    pub(super) fn apply(&self, to: &Connection) -> rusqlite::Result<()> {
        match self {
            Self::Start(task) => {
                let sql = "INSERT INTO tasks (id, name, task, runs) VALUES (?1, ?2, ?3, 1)";
                let (id, name) = (task.id.to_string(), task.name.to_string());
                to.prepare_cached(sql)?
                    .execute(params![id, name, json(task)?])?;
            }
            Self::GoOn(task) => {
                let sql = "UPDATE tasks SET end = NULL, runs = runs + 1 WHERE id = ?1";
                to.prepare_cached(sql)?.execute([task.to_string()])?;
                // It reads them now.
                let sql = "UPDATE mail SET is_held = 0 WHERE reader = ?1";
                to.prepare_cached(sql)?.execute([task.to_string()])?;
            }
            Self::End { task, end, notes } => {
                let sql = "UPDATE tasks SET end = ?2, notes = ?3 WHERE id = ?1";
                to.prepare_cached(sql)?
                    .execute(params![task.to_string(), json(end)?, notes])?;
            }
            Self::Send(letter) => {
                let sql = "INSERT INTO mail (id, reader, about, block, is_held) VALUES (?1, ?2, ?3, ?4, ?5)";
                to.prepare_cached(sql)?.execute(params![
                    number(letter.id)?,
                    letter.to.to_string(),
                    letter.about.map(|task| task.to_string()),
                    json(&letter.block)?,
                    letter.is_held,
                ])?;
            }
            Self::Heard(letters) => each(to, "DELETE FROM mail WHERE id = ?1", letters)?,
            Self::Hold(letters) => {
                each(to, "UPDATE mail SET is_held = 1 WHERE id = ?1", letters)?;
            }
            Self::Answered {
                agent,
                call,
                answer,
            } => {
                let sql =
                    "INSERT OR REPLACE INTO answers (agent, call, answer) VALUES (?1, ?2, ?3)";
                to.prepare_cached(sql)?
                    .execute(params![agent.to_string(), call, answer])?;
            }
            Self::Settled(agent) => {
                let sql = "DELETE FROM answers WHERE agent = ?1";
                to.prepare_cached(sql)?.execute([agent.to_string()])?;
            }
        }
        Ok(())
    }
}

fn each(to: &Connection, sql: &str, letters: &[MailId]) -> rusqlite::Result<()> {
    let mut statement = to.prepare_cached(sql)?;
    for letter in letters {
        statement.execute([number(*letter)?])?;
    }
    Ok(())
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|why| rusqlite::Error::ToSqlConversionFailure(why.into()))
}

fn number(id: MailId) -> rusqlite::Result<i64> {
    i64::try_from(id.0).map_err(|why| rusqlite::Error::ToSqlConversionFailure(why.into()))
}

/// A damaged number of runs must not keep anybody busy.
const MOST_RUNS: u32 = 100_000;

/// A task with what has become of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entered {
    pub task: Task,
    pub runs: u32,
    /// None while it runs, or ran when the process died.
    pub end: Option<End>,
    pub notes: Option<String>,
}

/// All that a book says.
#[derive(Debug, Default)]
pub struct Contents {
    /// In the order of their starts.
    pub tasks: Vec<Entered>,
    /// Letters that are not known to be heard, in the order in which they were written.
    pub letters: Vec<Letter>,
    /// Answers of calls that took effect, by caller and call.
    pub answers: Vec<(AgentId, CallId, String)>,
    /// The highest number that any letter ever had.
    pub last_letter: u64,
    /// What could not be understood.
    pub damaged: Vec<String>,
}

impl Contents {
    /// What makes a new book say the same.
    pub(super) fn as_step(&self) -> Step {
        let mut changes = Vec::new();
        for entered in &self.tasks {
            changes.push(Change::Start(Box::new(entered.task.clone())));
            let id = entered.task.id;
            changes.extend((1..entered.runs).map(|_| Change::GoOn(id)));
            changes.extend(entered.end.clone().map(|end| Change::End {
                task: id,
                end,
                notes: entered.notes.clone().unwrap_or_default(),
            }));
        }
        changes.extend(self.letters.iter().cloned().map(Change::Send));
        let answers = self.answers.iter().cloned();
        changes.extend(answers.map(|(agent, call, answer)| Change::Answered {
            agent,
            call,
            answer,
        }));
        Step::synced(changes)
    }

    pub(super) fn read(from: &Connection) -> rusqlite::Result<Self> {
        let mut contents = Self::default();
        let mut damaged = Vec::new();
        let mut tasks =
            from.prepare("SELECT id, task, runs, end, notes FROM tasks ORDER BY place")?;
        let mut rows = tasks.query([])?;
        while let Some(row) = rows.next()? {
            match entered(row) {
                Ok(task) => contents.tasks.push(task),
                Err(why) => damaged.push(format!("a task: {why}")),
            }
        }
        let mut letters =
            from.prepare("SELECT id, reader, about, block, is_held FROM mail ORDER BY id")?;
        let mut rows = letters.query([])?;
        while let Some(row) = rows.next()? {
            match letter(row) {
                Ok(letter) => contents.letters.push(letter),
                Err(why) => damaged.push(format!("a letter: {why}")),
            }
        }
        let mut answers = from.prepare("SELECT agent, call, answer FROM answers")?;
        let mut rows = answers.query([])?;
        while let Some(row) = rows.next()? {
            let agent: String = row.get(0)?;
            match AgentId::parse(&agent) {
                Ok(agent) => contents
                    .answers
                    .push((agent, row.get::<_, String>(1)?, row.get(2)?)),
                Err(why) => damaged.push(format!("an answer: {why}")),
            }
        }
        let last = "SELECT seq FROM sqlite_sequence WHERE name = 'mail'";
        let last: Option<i64> = from.query_row(last, [], |row| row.get(0)).optional()?;
        let highest = contents.letters.iter().map(|letter| letter.id.0).max();
        let last = u64::try_from(last.unwrap_or(0)).unwrap_or(0);
        contents.last_letter = last.max(highest.unwrap_or(0));
        contents.damaged = damaged;
        Ok(contents)
    }
}

type Odd = Box<dyn std::error::Error + Send + Sync>;

fn entered(row: &rusqlite::Row<'_>) -> Result<Entered, Odd> {
    let task: Task = serde_json::from_str(&row.get::<_, String>(1)?)?;
    let end = row.get::<_, Option<String>>(3)?;
    let end = end.map(|end| serde_json::from_str(&end)).transpose()?;
    Ok(Entered {
        task,
        runs: row.get::<_, u32>(2)?.clamp(1, MOST_RUNS),
        end,
        notes: row.get(4)?,
    })
}

fn letter(row: &rusqlite::Row<'_>) -> Result<Letter, Odd> {
    let about = row.get::<_, Option<String>>(2)?;
    Ok(Letter {
        id: MailId(u64::try_from(row.get::<_, i64>(0)?)?),
        to: AgentId::parse(&row.get::<_, String>(1)?)?,
        about: about.map(|id| AgentId::parse(&id)).transpose()?,
        block: serde_json::from_str(&row.get::<_, String>(3)?)?,
        is_held: row.get(4)?,
    })
}
