//! Messages to workers: who is meant, and what becomes of the message.

use crate::crew::Crew;
use crate::roster::{Roster, State};
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, AgentName, Block, Origin};

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Human,
    Agent(AgentId),
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Of the message.
    pub id: String,
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
    #[error("the user stopped {0}; only the user can let it go on")]
    StoppedByUser(AgentName),
}

fn listed(there: &[String]) -> String {
    match there {
        [] => "; no worker was started yet".to_owned(),
        all => format!("; there are {}", all.join(", ")),
    }
}

impl Crew {
    /// Sends a message to a worker by its id or name, or to all that run.
    pub fn send(&self, from: Sender, to: &str, text: &str) -> Result<Vec<Receipt>, MailError> {
        let to = to.trim();
        if to.starts_with("uds:") {
            return Err(MailError::Elsewhere("uds:"));
        }
        if to.starts_with("bridge:") {
            return Err(MailError::Elsewhere("bridge:"));
        }
        let block = self.letter(from, text);
        let message = self.0.next_message();
        let mut receipts = Vec::new();
        let mut resumed = Vec::new();
        {
            let mut roster = self.0.roster();
            let mut refused = None;
            for id in addressees(&roster, from, to)? {
                match deliver(&mut roster, from, id, &block, &message) {
                    Ok((receipt, resumes)) => {
                        receipts.push(receipt);
                        resumed.extend(resumes.then_some(id));
                    }
                    // One of many who cannot hear it keeps it from nobody else.
                    Err(why) => refused = Some(why),
                }
            }
            if let Some(why) = refused.filter(|_| receipts.is_empty()) {
                return Err(why);
            }
        }
        for id in resumed {
            self.go_on(id, vec![block.clone()]);
        }
        Ok(receipts)
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

fn addressees(roster: &Roster, from: Sender, to: &str) -> Result<Vec<AgentId>, MailError> {
    let is_sender = |id: AgentId| from == Sender::Agent(id);
    if to == "*" {
        let all = roster.live().map(|(task, _)| task.id);
        let all: Vec<AgentId> = all.filter(|id| !is_sender(*id)).collect();
        return match all.is_empty() {
            true => Err(MailError::Nobody),
            false => Ok(all),
        };
    }
    match roster.find(to) {
        Some(task) if is_sender(task.id) => Err(MailError::Oneself),
        Some(task) => Ok(vec![task.id]),
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

/// Puts a message where its reader finds it; whether the reader must be woken.
fn deliver(
    roster: &mut Roster,
    from: Sender,
    id: AgentId,
    block: &Block,
    message: &str,
) -> Result<(Receipt, bool), MailError> {
    let unknown = || MailError::Unknown {
        to: id.to_string(),
        there: Vec::new(),
    };
    let task = roster.get_mut(id).ok_or_else(unknown)?;
    let name = task.name.clone();
    let is_one_shot = task.kind.is_one_shot;
    let receipt = |fate| Receipt {
        id: message.to_owned(),
        to: id,
        name,
        fate,
    };
    match &mut task.state {
        State::Live(live) if live.reads_mail() => {
            live.inbox.send(block.clone());
            Ok((receipt(Fate::Queued), false))
        }
        _ if is_one_shot => Err(MailError::OneShot(task.name.clone())),
        state if from != Sender::Human && state.is_stopped_by_user() => {
            Err(MailError::StoppedByUser(task.name.clone()))
        }
        State::Live(live) => {
            live.late.push(block.clone());
            Ok((receipt(Fate::Resumed), false))
        }
        State::Ended(_) => Ok((receipt(Fate::Resumed), true)),
    }
}
