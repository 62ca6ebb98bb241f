//! All that happened in a simulated run, in order, and what keeps simulated time from running on
//! while a real process works.

use crate::sim::mind::roll;
use gaffer_crew::Crew;
use gaffer_protocol::{AgentId, EventKind, EventSink, ToolResult, ToolUse, Waiting};
use gaffer_testkit::world::Seeded;
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// So long simulated time waits for a process, in real time.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// A model was asked.
    Request(AgentId),
    Event(AgentId, EventKind),
}

#[derive(Debug, Default)]
pub(crate) struct Diary {
    entries: Mutex<Vec<Entry>>,
    /// Whose own agent is interrupted at the very moment at which a worker ends, now and then.
    pub(crate) nervous: OnceLock<(Crew, Seeded)>,
    /// Who waits for a command that is to prove its work.
    proving: Mutex<HashMap<AgentId, Brake>>,
}

/// While it is there, simulated time stands still: the runtime does not let time run on as long as
/// a thread of its own is at work.
#[derive(Debug)]
pub(crate) struct Brake {
    _hold: Sender<()>,
}

impl Brake {
    pub(crate) fn new() -> Self {
        let (hold, held) = channel::<()>();
        drop(tokio::task::spawn_blocking(move || {
            let _ = held.recv_timeout(PATIENCE);
        }));
        Self { _hold: hold }
    }
}

impl Diary {
    pub(crate) fn asked(&self, agent: AgentId) {
        self.entries.lock().unwrap().push(Entry::Request(agent));
    }

    pub(crate) fn all(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// One line for each entry, for who looks for the cause of a failure.
    #[expect(clippy::print_stdout, reason = "somebody asked for it")]
    pub(crate) fn show(&self) {
        for (at, entry) in self.all().iter().enumerate() {
            let (agent, what) = match entry {
                Entry::Request(agent) => (agent, "Request".to_owned()),
                Entry::Event(agent, kind) => (agent, format!("{kind:?}")),
            };
            let what: String = what.chars().take(300).collect();
            println!("{at} {agent} {what}");
        }
    }

    /// Somebody may be stopped, which takes time.
    pub(crate) fn let_go(&self) {
        self.proving.lock().unwrap().clear();
    }
}

impl EventSink for Diary {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        let proves = matches!(&kind, EventKind::Waiting(Waiting::Tools(calls)) if calls.iter().any(|it| it == "done_when"));
        match (&kind, proves) {
            (_, true) => drop(self.proving.lock().unwrap().insert(agent, Brake::new())),
            (EventKind::ToolStarted { tool_use }, _) if tool_use.name == "TaskStop" => {
                self.let_go();
            }
            _ => drop(self.proving.lock().unwrap().remove(&agent)),
        }
        if matches!(kind, EventKind::AgentEnded(_))
            && let Some((crew, dice)) = self.nervous.get()
            && roll(dice, 5) == 0
        {
            crew.interrupt();
        }
        self.entries.lock().unwrap().push(Entry::Event(agent, kind));
    }
}

/// A call that has ended, and where in the diary.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) agent: AgentId,
    pub(crate) at: usize,
    pub(crate) made: Arc<ToolUse>,
    pub(crate) result: Arc<ToolResult>,
}

/// All calls that have ended, in the order of their ends.
pub(crate) fn calls(entries: &[Entry]) -> Vec<Call> {
    let mut open: HashMap<&str, &Arc<ToolUse>> = HashMap::new();
    let mut calls = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Event(_, EventKind::ToolStarted { tool_use }) => {
                open.insert(&tool_use.id, tool_use);
            }
            Entry::Event(agent, EventKind::ToolFinished { result, .. }) => {
                calls.extend(open.remove(result.call.as_str()).map(|made| Call {
                    agent: *agent,
                    at,
                    made: made.clone(),
                    result: result.clone(),
                }));
            }
            _ => {}
        }
    }
    calls
}
