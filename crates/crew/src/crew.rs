//! The crew: starts workers, keeps count of them, stops them, and tells their ends.

use crate::budget::Purses;
use crate::course::Clockwork;
use crate::depend::Looking;
use crate::ends::Handed;
use crate::guardrails::Guardrails;
use crate::history::Traces;
use crate::lease::CrewTies;
use crate::outfit::Outfitter;
use crate::report::Report;
use crate::roster::{Roster, State, Task};
use gaffer_agent::{CompactionLimits, Sender};
use gaffer_model::Prices;
use gaffer_protocol::{
    AgentId, AgentName, Budget, Clock, End, Entropy, EventKind, EventSink, MailId, SessionId,
    Waiting,
};
use gaffer_store::{Book, SessionFolder};
use gaffer_tools::Floor;
use gaffer_tools::lease::Leases;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// So many in front of the queue see every step of it.
const NEAR: usize = 50;

/// A session's crew. Clones are the same crew.
#[derive(Debug, Clone)]
pub struct Crew(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub struct CrewParts {
    pub session: SessionId,
    pub folder: SessionFolder,
    pub book: Book,
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
    /// With less free space than this results are not kept whole.
    pub floor: Floor,
    pub guardrails: Guardrails,
}

#[derive(Debug, Clone, Copy)]
pub struct CrewLimits {
    /// So many workers run at once; more wait.
    pub workers: usize,
    /// How deep workers may start workers: at 1 only the session's own agent may.
    pub depth: u32,
    /// So much of one result is told.
    pub result: usize,
    /// So much of all results together, since the session's own agent was last compacted.
    pub results: usize,
    /// When the conversations of workers are compacted.
    pub compaction: CompactionLimits,
    /// What the session may use in all.
    pub budget: Budget,
}

impl Default for CrewLimits {
    fn default() -> Self {
        Self {
            workers: 16,
            depth: 1,
            result: 16 << 10,
            results: 120 << 10,
            compaction: CompactionLimits::default(),
            budget: Budget::default(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) parts: CrewParts,
    events: Arc<dyn EventSink>,
    roster: Mutex<Roster>,
    places: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// How much of the results has been told.
    pub(crate) told: Mutex<usize>,
    /// Ends that were given to who waited for them, and are not recorded yet.
    pub(crate) handed: Mutex<Vec<Handed>>,
    letters: AtomicU64,
    /// Changes whenever a task ends.
    pub(crate) ends: watch::Sender<u64>,
    looking: Mutex<Looking>,
    pub(crate) leases: Leases,
    pub(crate) purses: Mutex<Purses>,
    pub(crate) began: Instant,
    /// Ends what the session's own agent does right now.
    turn: Mutex<CancellationToken>,
    pub(crate) clockwork: Clockwork,
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
        let mut news = Vec::new();
        if let Some(shared) = self.crew.upgrade() {
            // What takes time is done before anybody waits for the roster, and for workers alone.
            let is_worker = shared.roster().has_id(agent);
            let rules = is_worker.then(|| shared.parts.guardrails.rules()).flatten();
            let traces = rules.and_then(|rules| Traces::of(&kind, rules.files()));
            shared.roster().see(agent, &kind, traces);
            shared.see_recorded(&kind);
            news = shared.charge(agent, &kind);
            if let EventKind::Answered { answer, .. } = &kind
                && agent == shared.parts.main
            {
                shared.parts.guardrails.plan.see(answer);
            }
        }
        self.inner.emit(agent, kind);
        for (owner, news) in news {
            self.inner.emit(owner, EventKind::Budget(Box::new(news)));
        }
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

    pub(crate) fn looking(&self) -> MutexGuard<'_, Looking> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next letter.
    pub(crate) fn next_letter(&self) -> MailId {
        MailId(self.letters.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Letters up to this one have been written before.
    pub(crate) fn count_letters_from(&self, last: u64) {
        self.letters.fetch_max(last, Ordering::Relaxed);
    }
}

impl Crew {
    pub fn new(parts: CrewParts) -> Self {
        Self(Arc::new_cyclic(|crew| {
            let inner = parts.events.clone();
            let events = Arc::new(Watched {
                crew: crew.clone(),
                inner,
            });
            let ties = Box::new(CrewTies(crew.clone()));
            Shared {
                leases: Leases::new(parts.guardrails.leases, events.clone(), ties),
                events,
                roster: Mutex::default(),
                places: Arc::new(Semaphore::new(parts.limits.workers.max(1))),
                tasks: TaskTracker::new(),
                told: Mutex::default(),
                handed: Mutex::default(),
                letters: AtomicU64::default(),
                ends: watch::Sender::new(0),
                looking: Mutex::default(),
                purses: Mutex::new(Purses::new(parts.main, parts.limits.budget)),
                began: Instant::now(),
                turn: Mutex::default(),
                clockwork: Clockwork::default(),
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
        self.0.roster().is_moving()
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
    ///
    /// Far behind, a place is shown now and then: in a queue of thousands everybody's place
    /// changes with every start.
    pub(crate) fn show_queue(&self) {
        let is_shown = |place: usize| place <= NEAR || place.is_multiple_of(NEAR);
        let queued: Vec<(usize, AgentId)> = {
            let roster = self.0.roster();
            let queued = (1..).zip(roster.queue());
            queued.filter(|(place, _)| is_shown(*place)).collect()
        };
        for (place, id) in queued {
            self.emit(id, EventKind::Waiting(Waiting::Queue(place)));
        }
    }
}
