//! Who is in the crew and what each of them does: plain state, without any waiting.

use crate::history::{History, Traces};
use crate::phases::Stint;
use crate::report::Report;
use gaffer_agent::Sender;
use gaffer_agent::agent_type::AgentType;
use gaffer_protocol::{
    AgentId, AgentName, Block, CallId, Cost, End, EventKind, Terms, Usage, Waiting,
};
use gaffer_store::book;
use gaffer_tools::Seen;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// All tasks of a session, in the order of their starts.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    tasks: Vec<Task>,
    /// Where each stands among them.
    index: HashMap<AgentId, usize>,
    /// Who waits for a place, the next one first.
    queue: VecDeque<AgentId>,
    names: HashMap<AgentName, AgentId>,
    /// How many of each type were started, for names.
    started: HashMap<String, u32>,
    /// What the session's own agent has spent.
    pub(crate) main: Spending,
}

/// One worker, running or not. Ended it is small: what it said stands on disk.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: AgentId,
    pub(crate) name: AgentName,
    pub(crate) kind: Arc<AgentType>,
    pub(crate) description: String,
    pub(crate) parent: AgentId,
    pub(crate) depth: u32,
    pub(crate) model: Option<String>,
    pub(crate) transcript: PathBuf,
    /// The tasks that must have completed before it begins.
    pub(crate) depends_on: Vec<AgentId>,
    /// Whether it is told their results.
    pub(crate) includes_results: bool,
    pub(crate) terms: Arc<Terms>,
    /// How often it was started: once, and once more for each time it was continued.
    pub(crate) runs: u32,
    pub(crate) spending: Spending,
    pub(crate) state: State,
    /// What it was sent and has not read; it stands before the rest of its next run.
    pub(crate) unread: Vec<Block>,
    /// Answers of calls that took effect when it was interrupted, which it has not heard.
    pub(crate) answers: HashMap<CallId, String>,
    /// Where it was when it ended.
    pub(crate) cwd: Option<PathBuf>,
    /// Which files it had before it, if they are not too many to keep.
    pub(crate) seen: Option<Seen>,
    /// What it has before it, for who decides whether to continue it.
    pub(crate) history: History,
    /// How good its orders were: the one it was started with, and those that followed.
    pub(crate) scores: Vec<u8>,
    /// Its runs, as the course of the session sees them.
    pub(crate) stints: Vec<Stint>,
}

#[derive(Debug)]
pub(crate) enum State {
    Live(Box<Live>),
    Ended(End),
}

/// A worker that has not ended.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) inbox: Sender,
    pub(crate) stop: CancellationToken,
    /// Ends what it does right now, and not itself.
    pub(crate) turn: CancellationToken,
    /// Why it was stopped, once it was.
    pub(crate) stopped: Option<End>,
    pub(crate) progress: Progress,
    /// Its place among those that run. One that waits for a worker of its own has given it up.
    pub(crate) place: Option<OwnedSemaphorePermit>,
    /// Who waits for its end instead of a notification.
    pub(crate) waiter: Option<oneshot::Sender<Report>>,
    /// Whether they are a call, whose agent records what it hears.
    pub(crate) is_called: bool,
    /// Messages that came when it was about to end: for the next run.
    pub(crate) late: Vec<Block>,
    /// Changes when it is gone, and all that it started.
    pub(crate) gone: watch::Receiver<bool>,
    pub(crate) since: Instant,
    pub(crate) heard: Instant,
    pub(crate) waiting: Waiting,
    pub(crate) last_tool: Option<String>,
}

impl State {
    /// Whether only the user may let it go on.
    pub(crate) fn is_stopped_by_user(&self) -> bool {
        let end = match self {
            Self::Live(live) => live.stopped.as_ref(),
            Self::Ended(end) => Some(end),
        };
        end == Some(&End::StoppedByUser)
    }
}

impl Live {
    /// Whether it comes to a step at which it reads what arrives now.
    pub(crate) fn reads_mail(&self) -> bool {
        self.progress != Progress::Leaving && self.stopped.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Others must complete first.
    Held,
    /// Others have files of its order. It stands in no queue meanwhile.
    Barred,
    Queued,
    Running,
    /// It has had its last turn.
    Leaving,
}

/// What an agent has used up, by the model that answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    pub by_model: BTreeMap<String, (Usage, Cost)>,
    pub turns: u32,
    pub tool_uses: u32,
    /// In all runs together.
    pub time: std::time::Duration,
}

impl Spending {
    pub fn usage(&self) -> Usage {
        self.by_model.values().map(|(usage, _)| *usage).sum()
    }

    fn see(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Answered { answer, cost, .. } => {
                self.turns += 1;
                let entry = self.by_model.entry(answer.model.clone()).or_default();
                entry.0 += answer.usage;
                entry.1 += *cost;
            }
            EventKind::Spent { model, usage, cost } => {
                let entry = self.by_model.entry(model.clone()).or_default();
                entry.0 += *usage;
                entry.1 += *cost;
            }
            EventKind::ToolStarted { .. } => self.tool_uses += 1,
            _ => {}
        }
    }
}

impl Roster {
    pub(crate) fn get(&self, id: AgentId) -> Option<&Task> {
        self.tasks.get(*self.index.get(&id)?)
    }

    pub(crate) fn get_mut(&mut self, id: AgentId) -> Option<&mut Task> {
        self.tasks.get_mut(*self.index.get(&id)?)
    }

    /// A worker by what people or models call it.
    pub(crate) fn find(&self, text: &str) -> Option<&Task> {
        let text = text.trim();
        let id = match AgentId::parse(text) {
            Ok(id) => id,
            Err(_) => *self.names.get(&AgentName::parse(text).ok()?)?,
        };
        self.get(id)
    }

    pub(crate) fn has_name(&self, name: &AgentName) -> bool {
        *name == AgentName::main() || self.names.contains_key(name)
    }

    /// A name for a worker that was given none: its type and a number.
    pub(crate) fn next_name(&mut self, kind: &str) -> AgentName {
        loop {
            let count = self.started.entry(kind.to_owned()).or_default();
            *count += 1;
            let name = AgentName::parse(&format!("{kind}-{count}"));
            match name {
                Ok(name) if !self.has_name(&name) => return name,
                Ok(_) => {}
                // A type's name may be as long as an agent's may be.
                Err(_) => return self.next_name("worker"),
            }
        }
    }

    pub(crate) fn has_id(&self, id: AgentId) -> bool {
        self.index.contains_key(&id)
    }

    pub(crate) fn add(&mut self, task: Task) {
        self.names.insert(task.name.clone(), task.id);
        self.index.insert(task.id, self.tasks.len());
        self.tasks.push(task);
    }

    /// Takes back one that never began.
    pub(crate) fn remove(&mut self, id: AgentId) {
        let Some(place) = self.index.remove(&id) else {
            return;
        };
        let task = self.tasks.remove(place);
        self.names.remove(&task.name);
        for (place, task) in self.tasks.iter().enumerate().skip(place) {
            self.index.insert(task.id, place);
        }
        self.leave_queue(id);
    }

    /// Lets a worker wait for a place, behind all others. Its place among them.
    pub(crate) fn line_up(&mut self, id: AgentId) -> usize {
        self.queue.push_back(id);
        self.queue.len()
    }

    /// It has a place, or needs none any more.
    pub(crate) fn leave_queue(&mut self, id: AgentId) {
        if self.queue.front() == Some(&id) {
            self.queue.pop_front();
        } else {
            self.queue.retain(|other| *other != id);
        }
    }

    /// Who waits for a place, the next one first.
    pub(crate) fn queue(&self) -> impl Iterator<Item = AgentId> {
        self.queue.iter().copied()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = (&Task, &Live)> {
        self.all().filter_map(|task| match &task.state {
            State::Live(live) => Some((task, &**live)),
            State::Ended(_) => None,
        })
    }

    /// Takes note of what an agent does.
    pub(crate) fn see(&mut self, agent: AgentId, kind: &EventKind, traces: Option<Traces>) {
        let Some(task) = self.index.get(&agent).map(|place| &mut self.tasks[*place]) else {
            self.main.see(kind);
            return;
        };
        task.spending.see(kind);
        if let Some(stint) = task.stints.last_mut() {
            stint.spending.see(kind);
        }
        if let Some(traces) = traces {
            task.history.add(traces);
        }
        let State::Live(live) = &mut task.state else {
            return;
        };
        live.heard = Instant::now();
        match kind {
            EventKind::Waiting(waiting) => live.waiting = waiting.clone(),
            EventKind::ToolStarted { tool_use } => live.last_tool = Some(tool_use.name.clone()),
            _ => {}
        }
    }
}

impl Task {
    pub(crate) fn new(
        task: &book::Task,
        kind: Arc<AgentType>,
        transcript: PathBuf,
        state: State,
    ) -> Self {
        Self {
            id: task.id,
            name: task.name.clone(),
            kind,
            description: task.description.clone(),
            parent: task.parent,
            depth: task.depth,
            model: task.model.clone(),
            transcript,
            depends_on: task.depends_on.clone(),
            includes_results: task.includes_results,
            terms: Arc::new(task.terms.clone()),
            runs: 1,
            spending: Spending::default(),
            state,
            unread: Vec::new(),
            answers: HashMap::new(),
            cwd: None,
            seen: None,
            history: History::default(),
            scores: Vec::new(),
            stints: Vec::new(),
        }
    }

    pub(crate) fn live(&self) -> Option<&Live> {
        match &self.state {
            State::Live(live) => Some(live),
            State::Ended(_) => None,
        }
    }

    pub(crate) fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.state {
            State::Live(live) => Some(live),
            State::Ended(_) => None,
        }
    }
}
