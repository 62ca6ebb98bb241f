//! The crew: starts workers, keeps count of them, stops them, and tells their ends.

use crate::outfit::Outfitter;
use crate::report::Report;
use crate::roster::{Live, Phase, Roster, State, Task};
use crate::worker::{self, Run};
use futures_util::future::FutureExt;
use gaffer_agent::agent_type::AgentType;
use gaffer_agent::{Inbox, Sender, inbox};
use gaffer_model::Prices;
use gaffer_protocol::event::AgentStarted;
use gaffer_protocol::{
    AgentId, AgentName, Block, CallId, Clock, End, Entropy, EventKind, EventSink, Origin,
    SessionId, Waiting,
};
use gaffer_store::SessionFolder;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A session's crew. Clones are the same crew.
#[derive(Debug, Clone)]
pub struct Crew(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub struct CrewParts {
    pub session: SessionId,
    pub folder: SessionFolder,
    pub mode: String,
    pub version: String,
    /// The agent that talks with the user, and the way into its inbox.
    pub main: AgentId,
    pub main_inbox: Sender,
    pub outfitter: Arc<dyn Outfitter>,
    pub events: Arc<dyn EventSink>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub prices: Arc<Prices>,
    pub limits: CrewLimits,
}

#[derive(Debug, Clone, Copy)]
pub struct CrewLimits {
    /// So many workers run at once; more wait.
    pub workers: usize,
    /// How deep workers may start workers: at 1 only the session's own agent may.
    pub depth: u32,
    /// So much of one result is told.
    pub result: usize,
    /// So much of all results together.
    pub results: usize,
}

impl Default for CrewLimits {
    fn default() -> Self {
        Self {
            workers: 16,
            depth: 1,
            result: 16 << 10,
            results: 120 << 10,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) parts: CrewParts,
    events: Arc<dyn EventSink>,
    roster: Mutex<Roster>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    /// How much of the results has been told.
    pub(crate) told: Mutex<usize>,
    messages: AtomicU64,
    /// Ends what the session's own agent does right now.
    turn: Mutex<CancellationToken>,
}

/// What a worker is to do.
#[derive(Debug, Clone)]
pub struct Order {
    pub description: String,
    pub prompt: String,
    pub kind: Arc<AgentType>,
    pub name: Option<AgentName>,
    pub model: Option<String>,
    pub max_turns: Option<u32>,
    pub parent: AgentId,
    pub call: Option<CallId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub id: AgentId,
    pub name: AgentName,
    pub transcript: PathBuf,
    /// Its place among those that wait, if it has to.
    pub place: Option<usize>,
}

/// Why no worker was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "the name `{0}` is taken in this session; choose another, or continue that worker with SendMessage"
    )]
    NameTaken(AgentName),
    #[error(
        "workers of workers are limited to a depth of {0}: do it yourself, or report what is needed"
    )]
    TooDeep(u32),
}

/// How a stop went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// It is gone, and all that it started.
    Gone,
    /// It had ended before.
    Before(End),
}

/// Sees every event on its way to the surfaces.
#[derive(Debug)]
struct Watched {
    crew: Weak<Shared>,
    inner: Arc<dyn EventSink>,
}

impl EventSink for Watched {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        if let Some(shared) = self.crew.upgrade() {
            shared.roster().see(agent, &kind);
        }
        self.inner.emit(agent, kind);
    }
}

impl Shared {
    pub(crate) fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What ends the next turn of the session's own agent: an interrupt, or the end of all.
    pub(crate) fn begin_turn(&self, stop: &CancellationToken) -> CancellationToken {
        let turn = stop.child_token();
        *self.turn() = turn.clone();
        turn
    }

    pub(crate) fn turn(&self) -> MutexGuard<'_, CancellationToken> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a message.
    pub(crate) fn next_message(&self) -> String {
        let number = self.messages.fetch_add(1, Ordering::Relaxed) + 1;
        format!("msg-{number}")
    }
}

impl Crew {
    pub fn new(parts: CrewParts) -> Self {
        Self(Arc::new_cyclic(|crew| {
            let inner = parts.events.clone();
            Shared {
                events: Arc::new(Watched {
                    crew: crew.clone(),
                    inner,
                }),
                roster: Mutex::default(),
                places: Arc::new(Semaphore::new(parts.limits.workers.max(1))),
                tasks: TaskTracker::new(),
                told: Mutex::default(),
                messages: AtomicU64::default(),
                turn: Mutex::default(),
                parts,
            }
        }))
    }

    /// Where all agents of the session, its own included, send their events: the crew keeps
    /// account by them.
    pub fn events(&self) -> Arc<dyn EventSink> {
        self.0.events.clone()
    }

    pub fn parts(&self) -> &CrewParts {
        &self.0.parts
    }

    /// Starts a worker, or lets it wait for a place. Its end will come by notification.
    pub fn start(&self, order: Order) -> Result<Started, Refused> {
        self.begin(order, None)
    }

    /// The same for somebody who waits for the end: then there is no notification, unless they
    /// stop waiting.
    pub fn start_waited(
        &self,
        order: Order,
    ) -> Result<(Started, oneshot::Receiver<Report>), Refused> {
        let (sender, receiver) = oneshot::channel();
        let started = self.begin(order, Some(sender))?;
        Ok((started, receiver))
    }

    fn begin(
        &self,
        order: Order,
        waiter: Option<oneshot::Sender<Report>>,
    ) -> Result<Started, Refused> {
        let parts = &self.0.parts;
        let (sender, inbox) = inbox();
        let permit;
        let (task, started, gone) = {
            let mut roster = self.0.roster();
            let depth = roster.get(order.parent).map_or(0, |task| task.depth) + 1;
            if depth > parts.limits.depth {
                return Err(Refused::TooDeep(parts.limits.depth));
            }
            let name = match order.name {
                Some(name) if roster.has_name(&name) => return Err(Refused::NameTaken(name)),
                Some(name) => name,
                None => roster.next_name(&order.kind.name),
            };
            let mut id = AgentId::random(&*parts.entropy);
            while id == parts.main || roster.has_id(id) {
                id = AgentId::random(&*parts.entropy);
            }
            let (mut live, gone) = live(sender, waiter);
            // Whoever finds a free place has it from here on.
            permit = self.0.places.clone().try_acquire_owned().ok();
            let queued = roster.live().filter(|(_, it)| it.phase == Phase::Queued);
            let place = permit.is_none().then(|| queued.count() + 1);
            if permit.is_some() {
                live.phase = Phase::Running;
                live.waiting = Waiting::Model;
            }
            let task = Task {
                id,
                name: name.clone(),
                kind: order.kind.clone(),
                description: order.description.clone(),
                parent: order.parent,
                depth,
                model: order.model,
                max_turns: order.max_turns.or(order.kind.max_turns),
                transcript: parts.folder.transcript(id),
                runs: 1,
                spending: crate::Spending::default(),
                state: State::Live(Box::new(live)),
                unread: Vec::new(),
                cwd: None,
                seen: None,
            };
            let started = AgentStarted {
                name: name.clone(),
                agent_type: order.kind.name.clone(),
                parent: Some(order.parent),
                description: order.description,
                call: order.call,
                depth,
            };
            let answer = Started {
                id,
                name,
                transcript: task.transcript.clone(),
                place,
            };
            roster.add(task);
            (started, answer, gone)
        };
        self.emit(started.id, EventKind::AgentStarted(Box::new(task)));
        if let Some(place) = started.place {
            self.emit(started.id, EventKind::Waiting(Waiting::Queue(place)));
        }
        let task = Block::from(Origin::Agent, order.prompt);
        self.launch(started.id, Run::New(task), inbox, (permit, gone));
        Ok(started)
    }

    /// Lets a run of a worker take its course, to an end that is told.
    pub(crate) fn launch(
        &self,
        id: AgentId,
        run: Run,
        inbox: Inbox,
        (permit, gone): (Option<OwnedSemaphorePermit>, watch::Sender<bool>),
    ) {
        let crew = self.clone();
        self.0.tasks.spawn(async move {
            let attended = AssertUnwindSafe(worker::attend(&crew, id, run, inbox, permit));
            let ended = attended.catch_unwind().await;
            let ended = ended.unwrap_or_else(|_| worker::Ended::crashed());
            crew.finish(id, ended);
            // Nobody may be waiting for it.
            gone.send_replace(true);
        });
    }

    /// Continues a worker that has ended, with these messages.
    pub(crate) fn go_on(&self, id: AgentId, blocks: Vec<Block>) {
        let (sender, inbox) = inbox();
        let (mut live, gone) = live(sender, None);
        let (permit, unread) = {
            let mut roster = self.0.roster();
            let Some(task) = roster.get_mut(id) else {
                return;
            };
            if let Some(live) = task.live_mut() {
                // Somebody else was faster.
                match live.reads_mail() {
                    true => blocks.into_iter().for_each(|block| {
                        live.inbox.send(block);
                    }),
                    false => live.late.extend(blocks),
                }
                return;
            }
            let permit = self.0.places.clone().try_acquire_owned().ok();
            if permit.is_some() {
                live.phase = Phase::Running;
                live.waiting = Waiting::Model;
            }
            task.state = State::Live(Box::new(live));
            task.runs += 1;
            (permit, std::mem::take(&mut task.unread))
        };
        self.emit(id, EventKind::Continued);
        if permit.is_none() {
            self.show_queue();
        }
        let blocks = unread.into_iter().chain(blocks).collect();
        self.launch(id, Run::More(blocks), inbox, (permit, gone));
    }

    /// Stops a worker; answers when it is gone, and all that it started.
    pub async fn stop(&self, id: AgentId, why: End) -> Option<Stopped> {
        let mut gone = {
            let mut roster = self.0.roster();
            let task = roster.get_mut(id)?;
            match &mut task.state {
                State::Ended(end) => return Some(Stopped::Before(end.clone())),
                State::Live(live) => {
                    live.stopped.get_or_insert(why);
                    live.stop.cancel();
                    live.gone.clone()
                }
            }
        };
        // An error means that its sender is gone, and so is the worker.
        drop(gone.wait_for(|gone| *gone).await);
        Some(Stopped::Gone)
    }

    /// Stops all workers; answers when they are gone.
    pub async fn stop_all(&self, why: &End) {
        // Mail that came when a worker was about to end lets it go on: that run is stopped too.
        loop {
            let live: Vec<AgentId> = self.0.roster().live().map(|(task, _)| task.id).collect();
            if live.is_empty() {
                break;
            }
            let stops = live.into_iter().map(|id| self.stop(id, why.clone()));
            futures_util::future::join_all(stops).await;
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Whether anybody runs who could wake the session's own agent.
    pub fn is_busy(&self) -> bool {
        self.0.roster().live().next().is_some()
    }

    /// How many workers could begin at once.
    pub fn free_places(&self) -> usize {
        self.0.places.available_permits()
    }

    /// Takes back the wish to wait for a worker: its end will come by notification. The report if
    /// it was faster.
    pub fn move_to_background(
        &self,
        id: AgentId,
        mut waited: oneshot::Receiver<Report>,
    ) -> Option<Report> {
        {
            let mut roster = self.0.roster();
            if let Some(live) = roster.get_mut(id).and_then(Task::live_mut) {
                live.waiter = None;
            }
        }
        waited.try_recv().ok()
    }

    /// A worker by its id or name.
    pub fn find(&self, text: &str) -> Option<(AgentId, AgentName)> {
        let roster = self.0.roster();
        roster.find(text).map(|task| (task.id, task.name.clone()))
    }

    /// All workers there were, for lists.
    pub fn names(&self) -> Vec<String> {
        let roster = self.0.roster();
        let all = roster.all();
        all.map(|task| format!("{} ({})", task.name, task.id))
            .collect()
    }

    pub(crate) fn emit(&self, agent: AgentId, kind: EventKind) {
        self.0.events.emit(agent, kind);
    }

    /// Waits for something that others must do. Meanwhile an agent that has a place gives it up:
    /// with all places taken by those who wait, nobody could ever work.
    pub(crate) async fn apart<T>(&self, id: AgentId, wait: impl Future<Output = T>) -> T {
        let place = {
            let mut roster = self.0.roster();
            let live = roster.get_mut(id).and_then(Task::live_mut);
            live.and_then(|live| live.place.take())
        };
        let had_place = place.is_some();
        drop(place);
        let outcome = wait.await;
        if had_place && let Ok(place) = self.places().acquire_owned().await {
            let mut roster = self.0.roster();
            if let Some(live) = roster.get_mut(id).and_then(Task::live_mut) {
                live.place = Some(place);
            }
        }
        outcome
    }

    /// A place to run, waited for in order.
    pub(crate) fn places(&self) -> Arc<Semaphore> {
        self.0.places.clone()
    }

    /// Shows those who wait where they stand.
    pub(crate) fn show_queue(&self) {
        let queued: Vec<AgentId> = {
            let roster = self.0.roster();
            let queued = roster.live().filter(|(_, it)| it.phase == Phase::Queued);
            queued.map(|(task, _)| task.id).collect()
        };
        for (place, id) in queued.into_iter().enumerate() {
            self.emit(id, EventKind::Waiting(Waiting::Queue(place + 1)));
        }
    }
}

/// The state of a worker that is about to begin.
fn live(inbox: Sender, waiter: Option<oneshot::Sender<Report>>) -> (Live, watch::Sender<bool>) {
    let (gone, is_gone) = watch::channel(false);
    let now = Instant::now();
    let live = Live {
        inbox,
        stop: CancellationToken::new(),
        stopped: None,
        phase: Phase::Queued,
        place: None,
        waiter,
        late: Vec::new(),
        gone: is_gone,
        since: now,
        heard: now,
        waiting: Waiting::Queue(1),
        last_tool: None,
    };
    (live, gone)
}
