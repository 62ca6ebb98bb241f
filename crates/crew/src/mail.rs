//! Messages to workers: who is meant, and what becomes of the message.

use crate::crew::Crew;
use crate::roster::{Roster, State, Task};
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, AgentName, Block, CallId, MailId, Origin};
use gaffer_store::book::{Change, Letter, Step};
use std::fmt;
use tokio::sync::oneshot;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Human,
    Agent(AgentId),
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub id: MailId,
    pub to: AgentId,
    pub name: AgentName,
    pub fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs, and reads the message at its next step.
    Queued,
    /// It had ended, and goes on with the message.
    Resumed,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, to, name, fate } = self;
        match fate {
            Fate::Queued => write!(
                f,
                "{id}: queued for {name} ({to}), which reads it at its next step"
            ),
            Fate::Resumed => write!(f, "{id}: {name} ({to}) goes on with it"),
        }
    }
}

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    #[error("there is nobody called `{to}`{}", listed(.there))]
    Unknown { to: String, there: Vec<String> },
    #[error("nobody is running who could hear it")]
    Nobody,
    #[error("{0}: messages beyond this session are not available here")]
    Elsewhere(&'static str),
    #[error("that is yourself")]
    Oneself,
    #[error("{0} cannot be continued: workers of its type answer once. Start a fresh one")]
    OneShot(AgentName),
    #[error("the session could not take it down: {0}")]
    NotKept(String),
    #[error("{0} was not continued: {1}")]
    Budget(AgentName, String),
    #[error("the user stopped {0}; only the user can let it go on")]
    StoppedByUser(AgentName),
}

pub(crate) fn listed(there: &[String]) -> String {
    match there {
        [] => "; no worker was started yet".to_owned(),
        all => format!("; there are {}", all.join(", ")),
    }
}

impl Crew {
    /// Sends a message to a worker by its id or name, or to all that run.
    pub async fn send(
        &self,
        from: Sender,
        to: &str,
        text: &str,
    ) -> Result<Vec<Receipt>, MailError> {
        self.send_by(from, to, text, None).await
    }

    /// The same for a call of an agent, which has then taken effect. Its answer ends with what is
    /// to be said about the message.
    pub(crate) async fn send_by(
        &self,
        from: Sender,
        to: &str,
        text: &str,
        call: Option<(AgentId, CallId, String)>,
    ) -> Result<Vec<Receipt>, MailError> {
        let to = to.trim();
        if to.starts_with("uds:") {
            return Err(MailError::Elsewhere("uds:"));
        }
        if to.starts_with("bridge:") {
            return Err(MailError::Elsewhere("bridge:"));
        }
        let block = self.letter(from, text);
        let receipts = self.address(from, to)?;
        let crew = self.clone();
        let (answer, answered) = oneshot::channel();
        // Once it is in the book it is delivered, even if nobody waits for the receipt.
        self.0.tasks.spawn(async move {
            drop(answer.send(crew.post(from, receipts, block, call).await));
        });
        let lost = || Err(MailError::NotKept("the session is over".to_owned()));
        answered.await.unwrap_or_else(|_| lost())
    }

    /// Everybody who gets it, and what will become of it as things stand.
    fn address(&self, from: Sender, to: &str) -> Result<Vec<Receipt>, MailError> {
        let roster = self.0.roster();
        let mut receipts = Vec::new();
        let mut refused = None;
        for task in addressees(&roster, from, to)? {
            let covered = |fate: Fate| match fate {
                Fate::Queued => Ok(fate),
                Fate::Resumed => {
                    let may = self.0.purses().may_continue(task.id, self.0.age());
                    may.map(|()| fate)
                        .map_err(|why| MailError::Budget(task.name.clone(), why))
                }
            };
            match fate(task, from).and_then(covered) {
                Ok(fate) => receipts.push(Receipt {
                    id: self.0.next_letter(),
                    to: task.id,
                    name: task.name.clone(),
                    fate,
                }),
                // One of many who cannot hear it keeps it from nobody else.
                Err(why) => refused = Some(why),
            }
        }
        match refused.filter(|_| receipts.is_empty()) {
            Some(why) => Err(why),
            None => Ok(receipts),
        }
    }

    /// Takes a message down and delivers it.
    async fn post(
        &self,
        from: Sender,
        mut receipts: Vec<Receipt>,
        block: Block,
        call: Option<(AgentId, CallId, String)>,
    ) -> Result<Vec<Receipt>, MailError> {
        let letter = |receipt: &Receipt| {
            Change::Send(Letter {
                id: receipt.id,
                to: receipt.to,
                about: None,
                block: block.clone().by_mail(receipt.id),
                is_held: false,
            })
        };
        let mut changes: Vec<Change> = receipts.iter().map(letter).collect();
        if let Some((agent, call, advice)) = call {
            let lines: Vec<String> = receipts.iter().map(ToString::to_string).collect();
            let answer = lines.join("\n") + &advice;
            changes.push(Change::Answered {
                agent,
                call,
                answer,
            });
        }
        let written = self.0.parts.book.write(Step::synced(changes)).await;
        written.map_err(|why| MailError::NotKept(why.to_string()))?;
        for receipt in &mut receipts {
            let block = block.clone().by_mail(receipt.id);
            // Whatever it did meanwhile: what it does now counts.
            match self.deliver(from, receipt.to, &block) {
                Ok(Fate::Queued) => receipt.fate = Fate::Queued,
                Ok(Fate::Resumed) => {
                    receipt.fate = Fate::Resumed;
                    self.go_on(receipt.to, vec![block]).await;
                }
                Err(why) => {
                    let gone = Step::written(vec![Change::Heard(vec![receipt.id])]);
                    drop(self.0.parts.book.write(gone).await);
                    return Err(why);
                }
            }
        }
        Ok(receipts)
    }

    /// Puts a message where its reader finds it, if it reads; else it must be woken with it.
    fn deliver(&self, from: Sender, id: AgentId, block: &Block) -> Result<Fate, MailError> {
        let roster = self.0.roster();
        let task = roster.get(id).ok_or(MailError::Nobody)?;
        let fate = fate(task, from)?;
        if let (Fate::Queued, Some(live)) = (fate, task.live()) {
            live.inbox.send(block.clone());
        }
        Ok(fate)
    }

    /// A message as its reader sees it. Who wrote it stands around it, not in it.
    fn letter(&self, from: Sender, text: &str) -> Block {
        let id = match from {
            Sender::Human => return Block::from_human(text),
            Sender::Agent(id) => id,
        };
        let name = match self.0.roster().get(id) {
            Some(task) => task.name.to_string(),
            None => "coordinator".to_owned(),
        };
        let text = escape(text);
        let text = format!("<message from=\"{name}\">\n{text}\n</message>");
        Block::from(Origin::Agent, text)
    }
}

fn addressees<'a>(roster: &'a Roster, from: Sender, to: &str) -> Result<Vec<&'a Task>, MailError> {
    let is_sender = |task: &Task| from == Sender::Agent(task.id);
    if to == "*" {
        let all = roster.live().map(|(task, _)| task);
        let all: Vec<&Task> = all.filter(|task| !is_sender(task)).collect();
        return match all.is_empty() {
            true => Err(MailError::Nobody),
            false => Ok(all),
        };
    }
    match roster.find(to) {
        Some(task) if is_sender(task) => Err(MailError::Oneself),
        Some(task) => Ok(vec![task]),
        None if to == AgentName::main().to_string() => Err(MailError::Oneself),
        None => Err(MailError::Unknown {
            to: to.chars().take(100).collect(),
            there: roster
                .all()
                .map(|task| format!("{} ({})", task.name, task.id))
                .collect(),
        }),
    }
}

/// What becomes of a message to a worker as it is now.
fn fate(task: &Task, from: Sender) -> Result<Fate, MailError> {
    match &task.state {
        State::Live(live) if live.reads_mail() => Ok(Fate::Queued),
        _ if task.kind.is_one_shot => Err(MailError::OneShot(task.name.clone())),
        state if from != Sender::Human && state.is_stopped_by_user() => {
            Err(MailError::StoppedByUser(task.name.clone()))
        }
        // One that is about to end goes on with it, once it has ended.
        State::Live(_) | State::Ended(_) => Ok(Fate::Resumed),
    }
}
