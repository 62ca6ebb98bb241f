//! Leases: the right to write a file. Whoever writes a file first has it until its run ends; others
//! wait for it or are told who has it, and nobody waits in a circle.

mod scope;
mod table;
#[cfg(test)]
mod tests;
mod watch;

pub use scope::Scope;
pub use table::Member;
pub(crate) use watch::Watch;

use crate::context::Context;
use crate::file::{aside, locate};
use gaffer_protocol::event::Advice;
use gaffer_protocol::{AgentId, AgentName, EventKind, EventSink, Waiting};
use gaffer_workspace::fence::Stamp;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use table::{Holder, Table};
use tokio::sync::watch as channel;
use tokio::time::{Instant, sleep_until};

/// How leases are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseLimits {
    /// Otherwise everything goes through, and is only spoken of.
    pub is_enforced: bool,
    /// So long somebody waits for a file.
    pub wait: Duration,
}

impl Default for LeaseLimits {
    fn default() -> Self {
        Self {
            is_enforced: true,
            wait: Duration::from_secs(20),
        }
    }
}

/// For whom agents wait beside files: for tasks that must complete first, for workers of their own.
pub trait Ties: Send + Sync + std::fmt::Debug {
    fn waits_for(&self, agent: AgentId) -> Vec<(AgentId, AgentName)>;
}

/// The leases of a session. Clones are the same.
#[derive(Debug, Clone)]
pub struct Leases(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: LeaseLimits,
    events: Arc<dyn EventSink>,
    ties: Box<dyn Ties>,
    table: Mutex<Table>,
    /// Changes whenever somebody who waits should look again.
    changes: channel::Sender<u64>,
}

/// Who keeps a worker from beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub names: Vec<AgentName>,
    /// Waiting for them would never end: the way back to the worker.
    pub circle: Option<String>,
}

impl Leases {
    pub fn new(limits: LeaseLimits, events: Arc<dyn EventSink>, ties: Box<dyn Ties>) -> Self {
        Self(Arc::new(Shared {
            limits,
            events,
            ties,
            table: Mutex::default(),
            changes: channel::Sender::new(0),
        }))
    }

    /// Lets an agent take part that is there as long as the session.
    pub fn enlist(&self, member: Member) -> Lease {
        let id = member.id;
        self.table().join(member);
        Lease {
            leases: self.clone(),
            id,
            bounds: Arc::new([]),
        }
    }

    /// Lets an agent take part, with the files of its order, unless somebody else has some of them.
    pub fn join(&self, member: Member) -> Result<Tenure, Blocked> {
        let id = member.id;
        let blockers = {
            let mut table = self.table();
            let blockers = self.in_the_way(&table, &member);
            if self.0.limits.is_enforced && !blockers.is_empty() {
                return Err(self.blocked_by(&table, &member, blockers));
            }
            table.join(member);
            blockers
        };
        for blocker in blockers {
            let text = format!("its files and those of {} overlap", blocker.shown());
            self.tell(id, "held-file", "", text, false);
        }
        Ok(Tenure {
            leases: self.clone(),
            id,
        })
    }

    /// Who is in the way of an agent that has not begun.
    pub fn blocked(&self, member: &Member) -> Option<Blocked> {
        let table = self.table();
        let blockers = self.in_the_way(&table, member);
        (!blockers.is_empty()).then(|| self.blocked_by(&table, member, blockers))
    }

    /// Who has files of an agent that has not begun. One above that waits for it hands them on.
    fn in_the_way(&self, table: &Table, member: &Member) -> Vec<Member> {
        let ties = |id| self.0.ties.waits_for(id);
        let hands_on = |other: &Member| {
            let to = std::slice::from_ref(other);
            member.above.contains(&other.id) && table.circle(member, to, &ties).is_some()
        };
        let mut blockers = table.blockers(member);
        blockers.retain(|other| !hands_on(other));
        blockers
    }

    fn blocked_by(&self, table: &Table, member: &Member, blockers: Vec<Member>) -> Blocked {
        let ties = |id| self.0.ties.waits_for(id);
        Blocked {
            circle: table.circle(member, &blockers, &ties),
            names: blockers.into_iter().map(|it| it.name).collect(),
        }
    }

    /// Takes note that a worker waits for others to let go of its files, until this is dropped.
    pub fn waiting(&self, id: AgentId, names: &[AgentName]) -> impl Drop + use<> {
        let mut table = self.table();
        let others = names.iter().filter_map(|name| table.find(name)).collect();
        table.wait(id, others);
        drop(table);
        // One that waits already may have become a part of a circle.
        self.look_again();
        Waits {
            leases: self.clone(),
            id,
        }
    }

    /// Resolves when something may have changed for those who wait. Made before they look.
    pub fn changes(&self) -> channel::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Somebody began to wait for somebody, or no longer does.
    pub fn look_again(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// Lets go of what an agent has written; it stays a part of all this.
    pub fn release(&self, id: AgentId) {
        self.table().release(id);
        self.look_again();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, id: AgentId, rule: &str, excerpt: &str, text: String, is_refusal: bool) {
        let advice = Advice {
            guardrail: "leases",
            rule: rule.to_owned(),
            excerpt: excerpt.to_owned(),
            text,
            score: None,
            is_refusal,
        };
        self.0.events.emit(id, EventKind::Advice(Box::new(advice)));
    }
}

/// An agent's time as one that may hold files. However it ends, all of them are free then.
#[derive(Debug)]
pub struct Tenure {
    leases: Leases,
    id: AgentId,
}

impl Tenure {
    /// Gives it files that nobody else can reach.
    pub fn set_scope(&self, scope: Scope) {
        self.leases.table().set_scope(self.id, Some(scope));
    }

    /// What its tools need: it writes only what all of these cover.
    pub fn lease(&self, bounds: Vec<Scope>) -> Lease {
        Lease {
            leases: self.leases.clone(),
            id: self.id,
            bounds: bounds.into(),
        }
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        self.leases.table().leave(self.id);
        self.leases.look_again();
    }
}

/// One agent's part in the leases, for its tools.
#[derive(Debug, Clone)]
pub struct Lease {
    leases: Leases,
    id: AgentId,
    bounds: Arc<[Scope]>,
}

/// Somebody who waits, until this is dropped.
struct Waits {
    leases: Leases,
    id: AgentId,
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.leases.table().stop_waiting(self.id);
    }
}

/// A file that an agent's tool may write, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claimed {
    lease: Lease,
    path: PathBuf,
    note: String,
}

impl Claimed {
    /// What is to be said behind the result.
    pub(crate) fn note(&self) -> &str {
        &self.note
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let known = stamp(&self.path);
        let mut table = self.lease.leases.table();
        if let Some(held) = table.held.get_mut(&self.path)
            && held.by == self.lease.id
        {
            held.known = known;
            held.is_written = false;
        }
    }
}

/// Takes a file for an agent that is about to write it, or waits for it. An error says who has it,
/// and what to do. What cannot be found is left for the tool to speak of.
pub(crate) async fn claim(context: &Context, path: &str) -> Result<Option<Claimed>, String> {
    let Some(lease) = context.lease.clone() else {
        return Ok(None);
    };
    let name = path.to_owned();
    let leases = lease.leases.clone();
    let found = aside(context, move |context| {
        let path = locate(context, &name)?.path();
        let aliases = aliases(&path, &leases);
        let known = stamp(&path);
        Ok((path, aliases, known))
    });
    let Ok((real, aliases, known)) = found.await else {
        return Ok(None);
    };
    if is_own(context, &real) {
        return Ok(None);
    }
    let mut note = lease.check_bounds(path, &real)?;
    let (file, own) = ((path, &aliases[..]), real.clone());
    note.push_str(&lease.obtain(file, own, known).await?);
    Ok(Some(Claimed {
        lease,
        path: real,
        note,
    }))
}

/// The scratchpad has its own order, and nobody else writes to an agent's folder for temporary
/// files.
fn is_own(context: &Context, path: &Path) -> bool {
    let pad = context.scratchpad.as_ref().map(|pen| pen.pad().path());
    pad.is_some_and(|pad| path.starts_with(pad)) || path.starts_with(&context.temp)
}

impl Lease {
    fn check_bounds(&self, path: &str, real: &Path) -> Result<String, String> {
        let Some(bound) = self.bounds.iter().find(|it| !it.covers(real)) else {
            return Ok(String::new());
        };
        let is_refusal = self.leases.0.limits.is_enforced;
        let why = format!(
            "it is outside the files of this task, {}: report it if it has to change",
            bound.shown()
        );
        self.tell("outside-files", path, why.clone(), is_refusal);
        match is_refusal {
            true => Err(why),
            false => Ok(advice("outside-files", &why)),
        }
    }

    fn tell(&self, rule: &str, excerpt: &str, text: String, is_refusal: bool) {
        self.leases.tell(self.id, rule, excerpt, text, is_refusal);
    }

    /// Takes a file as soon as nobody else has it.
    async fn obtain(
        &self,
        (path, aliases): (&str, &[PathBuf]),
        real: PathBuf,
        known: Option<Stamp>,
    ) -> Result<String, String> {
        let leases = &self.leases;
        let limits = leases.0.limits;
        let mut changes = leases.changes();
        let until = Instant::now() + limits.wait;
        let mut waits = None;
        let mut shown: Option<AgentName> = None;
        loop {
            changes.mark_unchanged();
            let found = self.look(&real, aliases, known);
            let (holder, circle) = match found {
                None => break,
                Some(found) => found,
            };
            if !limits.is_enforced {
                let text = self.held(&holder, None);
                self.tell("held-file", path, text.clone(), false);
                return Ok(advice("held-file", &text));
            }
            if let Some(circle) = circle {
                let text = format!(
                    "it is held by {}, and waiting for it would never end: {circle}. Report what you need of it, or work on something else",
                    holder.member.shown()
                );
                self.tell("wait-circle", path, text.clone(), true);
                self.show_work(waits.is_some());
                return Err(text);
            }
            waits.get_or_insert_with(|| Waits {
                leases: leases.clone(),
                id: self.id,
            });
            if shown.as_ref() != Some(&holder.member.name) {
                let waiting = Waiting::Lease(vec![holder.member.name.clone()]);
                leases.0.events.emit(self.id, EventKind::Waiting(waiting));
                shown = Some(holder.member.name.clone());
            }
            tokio::select! {
                biased;
                // The sender lives as long as the leases.
                _ = changes.changed() => {}
                () = sleep_until(until) => {
                    let text = self.held(&holder, Some(limits.wait));
                    self.tell("held-file", path, text.clone(), true);
                    self.show_work(true);
                    return Err(text);
                }
            }
        }
        self.show_work(waits.is_some());
        Ok(String::new())
    }

    /// Takes a file, or says who has it, and whether waiting for them could ever end.
    fn look(
        &self,
        real: &Path,
        aliases: &[PathBuf],
        known: Option<Stamp>,
    ) -> Option<(Holder, Option<String>)> {
        let leases = &self.leases;
        let mut table = leases.table();
        let all = || {
            let aliases = aliases.iter().map(PathBuf::as_path);
            [real].into_iter().chain(aliases)
        };
        let Some(holder) = all().find_map(|name| table.holder(name, self.id)) else {
            table.take(real.to_owned(), self.id, known);
            return None;
        };
        if !leases.0.limits.is_enforced {
            return Some((holder, None));
        }
        let own = table.member(self.id).cloned();
        let to = [holder.member.clone()];
        let ties = |id| leases.0.ties.waits_for(id);
        let is_above = own
            .as_ref()
            .is_some_and(|own| own.above.contains(&to[0].id));
        let circle = own.and_then(|own| table.circle(&own, &to, &ties));
        if circle.is_some() && is_above {
            // One above that waits for this agent's end writes nothing meanwhile: the file is
            // what it gave it to work on.
            table.hand_on(all(), holder.member.id, self.id);
            table.take(real.to_owned(), self.id, known);
            return None;
        }
        if circle.is_none() {
            table.wait(self.id, vec![holder.member.id]);
        }
        Some((holder, circle))
    }

    fn held(&self, holder: &Holder, waited: Option<Duration>) -> String {
        let who = holder.member.shown();
        let name = &holder.member.name;
        let since = holder.since.elapsed().as_secs();
        let how = match &holder.globs {
            Some(globs) => format!(", whose order names {globs}"),
            None => String::new(),
        };
        let waited = waited.map_or(String::new(), |it| {
            format!("; it was waited for {} s", it.as_secs())
        });
        format!(
            "{who}{how} has held it for {since} s and does so until its run ends{waited}. Work on something else first, ask {name} with SendMessage if you can, or report that you need it"
        )
    }

    /// After a wait the agent is at its tools again.
    fn show_work(&self, has_waited: bool) {
        if has_waited {
            let waiting = EventKind::Waiting(Waiting::Tools(Vec::new()));
            self.leases.0.events.emit(self.id, waiting);
        }
    }
}

fn advice(rule: &str, text: &str) -> String {
    format!("\nAdvice: {rule}: {text}.")
}

/// A file as the file system describes it; none where there is no file.
fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::symlink_metadata(path).ok()?;
    Some(stamp_of(&about))
}

fn stamp_of(about: &std::fs::Metadata) -> Stamp {
    let fraction = |nanoseconds: i64| u64::try_from(nanoseconds).unwrap_or(0);
    Stamp {
        inode: about.ino(),
        size: about.len(),
        modified: (about.mtime(), fraction(about.mtime_nsec())),
        changed: (about.ctime(), fraction(about.ctime_nsec())),
    }
}

/// Other names of the same file that somebody holds: hard links.
fn aliases(path: &Path, leases: &Leases) -> Vec<PathBuf> {
    let same = |about: &std::fs::Metadata| (about.dev(), about.ino());
    let about = std::fs::symlink_metadata(path).ok();
    let Some(own) = about.filter(|about| about.is_file() && about.nlink() > 1) else {
        return Vec::new();
    };
    let mut held: Vec<PathBuf> = leases.table().held.keys().cloned().collect();
    held.retain(|other| {
        let other = std::fs::symlink_metadata(other);
        other.is_ok_and(|other| same(&other) == same(&own))
    });
    held
}
