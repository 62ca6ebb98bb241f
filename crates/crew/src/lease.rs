//! Files that workers hold: how a worker comes by those of its order before it begins, and for
//! whom agents wait beside them.

use crate::crew::{Crew, Shared};
use crate::roster::{Progress, Task};
use gaffer_protocol::{AgentId, AgentName, End, EventKind, Waiting};
use gaffer_tools::lease::{Lease, Leases, Member, Scope, Tenure, Ties};
use std::path::Path;
use std::sync::Weak;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// The crew as leases see it.
#[derive(Debug)]
pub(crate) struct CrewTies(pub(crate) Weak<Shared>);

impl Ties for CrewTies {
    fn waits_for(&self, agent: AgentId) -> Vec<(AgentId, AgentName)> {
        let Some(shared) = self.0.upgrade() else {
            return Vec::new();
        };
        let roster = shared.roster();
        let mut others = Vec::new();
        let held = roster.get(agent).filter(|task| {
            let live = task.live();
            live.is_some_and(|live| live.progress == Progress::Held)
        });
        let first = held.into_iter().flat_map(|task| &task.depends_on);
        let first = first.filter_map(|id| roster.get(*id));
        others.extend(first.filter(|task| task.live().is_some()));
        let below = roster.live().filter(|(task, live)| {
            let waiter = live.waiter.as_ref();
            task.parent == agent && waiter.is_some_and(|waiter| !waiter.is_closed())
        });
        others.extend(below.map(|(task, _)| task));
        let pair = |task: &Task| (task.id, task.name.clone());
        others.into_iter().map(pair).collect()
    }
}

/// A worker that is about to begin.
#[derive(Debug)]
pub(crate) struct Entrant {
    member: Member,
    /// The globs that bind it: of its own order first, then of those above it.
    bounds: Vec<Vec<String>>,
    /// Whether the first are its own.
    has_files: bool,
}

impl Entrant {
    /// The files that it has for itself, in the folder where it works.
    fn scope(&self, folder: &Path) -> Option<Scope> {
        let own = self.bounds.first().filter(|_| self.has_files)?;
        Some(Scope::new(own, folder))
    }

    /// What its tools need to know.
    pub(crate) fn lease(&self, tenure: &Tenure, folder: &Path, isolated: bool) -> Lease {
        // In a checkout of its own nobody could have been in the way.
        if let Some(scope) = self.scope(folder).filter(|_| isolated) {
            tenure.set_scope(scope);
        }
        let bounds = self.bounds.iter().map(|globs| Scope::new(globs, folder));
        tenure.lease(bounds.collect())
    }
}

impl Crew {
    pub fn leases(&self) -> &Leases {
        &self.0.leases
    }

    /// Lets the session's own agent take part. What it has written it holds until it rests.
    pub fn main_lease(&self) -> Lease {
        self.0.leases.enlist(Member {
            id: self.0.parts.main,
            name: AgentName::main(),
            task: String::new(),
            above: Vec::new(),
            scope: None,
        })
    }

    pub(crate) fn entrant(&self, id: AgentId) -> Option<Entrant> {
        let roster = self.0.roster();
        let task = roster.get(id)?;
        let mut above = Vec::new();
        let mut bounds = Vec::new();
        let mut at = Some(task);
        while let Some(task) = at {
            if !task.terms.files.is_empty() {
                bounds.push(task.terms.files.clone());
            }
            above.push(task.parent);
            at = roster.get(task.parent);
        }
        Some(Entrant {
            has_files: !task.terms.files.is_empty(),
            member: Member {
                id,
                name: task.name.clone(),
                task: task.description.clone(),
                above,
                scope: None,
            },
            bounds,
        })
    }

    /// Takes the files of an order when nobody else has any of them. Whoever waits for them gives
    /// its place to others meanwhile. The place that comes back is the one to run in.
    pub(crate) async fn take_files(
        &self,
        entrant: &Entrant,
        folder: Option<&Path>,
        place: OwnedSemaphorePermit,
        stop: &CancellationToken,
    ) -> Result<(OwnedSemaphorePermit, Tenure), End> {
        let (id, leases) = (entrant.member.id, self.leases());
        let mut member = entrant.member.clone();
        member.scope = folder.and_then(|folder| entrant.scope(folder));
        let mut changes = leases.changes();
        let mut place = Some(place);
        let mut waits = None;
        let mut shown = Vec::new();
        loop {
            changes.mark_unchanged();
            let blocked = match place.take() {
                Some(place) => match leases.join(member.clone()) {
                    Ok(tenure) => return Ok((place, tenure)),
                    Err(blocked) => Some(blocked),
                },
                None => leases.blocked(&member),
            };
            let Some(blocked) = blocked else {
                drop(waits.take());
                shown.clear();
                place = Some(self.next_place(id, stop).await?);
                continue;
            };
            if let Some(circle) = blocked.circle {
                let why = format!("its files are held by one that waits for it: {circle}");
                return Err(End::NoProgress(why));
            }
            if shown != blocked.names {
                drop(waits.take());
                waits = Some(leases.waiting(id, &blocked.names));
                let waiting = Waiting::Lease(blocked.names.clone());
                self.step_aside(id, &waiting);
                self.emit(id, EventKind::Waiting(waiting));
                shown = blocked.names;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(End::Interrupted),
                // The sender lives as long as the crew.
                _ = changes.changed() => {}
            }
        }
    }

    /// Stands in the queue again.
    async fn next_place(
        &self,
        id: AgentId,
        stop: &CancellationToken,
    ) -> Result<OwnedSemaphorePermit, End> {
        {
            let mut roster = self.0.roster();
            if let Some(live) = roster.get_mut(id).and_then(Task::live_mut) {
                live.progress = Progress::Queued;
                roster.line_up(id);
            }
        }
        self.show_queue();
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(End::Interrupted),
            place = self.places().acquire_owned() => place.map_err(|_| End::Interrupted),
        }
    }

    /// Lets others go first: it waits for files, and not for a place.
    fn step_aside(&self, id: AgentId, waiting: &Waiting) {
        {
            let mut roster = self.0.roster();
            roster.leave_queue(id);
            if let Some(live) = roster.get_mut(id).and_then(Task::live_mut) {
                live.progress = Progress::Barred;
                live.waiting = waiting.clone();
            }
        }
        self.show_queue();
    }
}
