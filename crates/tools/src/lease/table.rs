//! Who holds which file, who waits for whom, and which commands run: plain state, without any
//! waiting.

use super::scope::Scope;
use gaffer_protocol::{AgentId, AgentName};
use gaffer_workspace::fence::Stamp;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio::time::Instant;

/// An agent that may hold files.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: AgentId,
    pub name: AgentName,
    /// What it works on, in a few words.
    pub task: String,
    /// The agents above it: what they hold by their orders, it may write.
    pub above: Vec<AgentId>,
    /// The files of its order: its own from its start on.
    pub scope: Option<Scope>,
}

impl Member {
    /// As people read it.
    pub(super) fn shown(&self) -> String {
        match self.task.as_str() {
            "" => format!("{} ({})", self.name, self.id),
            task => format!("{} ({}, \"{task}\")", self.name, self.id),
        }
    }
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) by: AgentId,
    pub(super) since: Instant,
    /// As its holder's tools left it.
    pub(super) known: Option<Stamp>,
    /// Whether a tool of its holder is at it.
    pub(super) is_written: bool,
}

/// A shell command of a member.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub(super) agent: AgentId,
    pub(super) name: AgentName,
    pub(super) line: String,
    pub(super) began: SystemTime,
    pub(super) ended: Option<SystemTime>,
}

impl Command {
    pub(super) fn ran_after(&self, time: SystemTime) -> bool {
        self.ended.is_none_or(|ended| ended >= time)
    }
}

/// Who is in the way.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) member: Member,
    pub(super) since: Instant,
    /// The globs by which it has the file, where it has not written it yet.
    pub(super) globs: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    members: HashMap<AgentId, (Member, Instant)>,
    pub(super) held: HashMap<PathBuf, Held>,
    /// Those that wait for files, and for whom.
    waits: HashMap<AgentId, Vec<AgentId>>,
    commands: BTreeMap<u64, Command>,
    last_command: u64,
}

impl Table {
    pub(super) fn join(&mut self, member: Member) {
        let id = member.id;
        self.members.insert(id, (member, Instant::now()));
    }

    pub(super) fn member(&self, id: AgentId) -> Option<&Member> {
        self.members.get(&id).map(|(member, _)| member)
    }

    pub(super) fn find(&self, name: &AgentName) -> Option<AgentId> {
        let mut members = self.members.values();
        members.find_map(|(it, _)| (it.name == *name).then_some(it.id))
    }

    pub(super) fn set_scope(&mut self, id: AgentId, scope: Option<Scope>) {
        if let Some((member, _)) = self.members.get_mut(&id) {
            member.scope = scope;
        }
    }

    /// Lets go of all that an agent holds.
    pub(super) fn release(&mut self, id: AgentId) {
        self.held.retain(|_, held| held.by != id);
    }

    /// The same for one that is gone.
    pub(super) fn leave(&mut self, id: AgentId) {
        self.release(id);
        self.members.remove(&id);
        self.waits.remove(&id);
        let now = SystemTime::now();
        let own = self.commands.values_mut().filter(|it| it.agent == id);
        own.for_each(|it| {
            it.ended.get_or_insert(now);
        });
        self.forget_commands();
    }

    /// Who else has a file: by writing it, or by its order.
    pub(super) fn holder(&self, path: &Path, asking: AgentId) -> Option<Holder> {
        if let Some(held) = self.held.get(path)
            && held.by != asking
        {
            let member = self.member(held.by)?.clone();
            let since = held.since;
            return Some(Holder {
                member,
                since,
                globs: None,
            });
        }
        let above = self.member(asking).map_or(&[][..], |it| &it.above);
        let mut others = self.members.values();
        others.find_map(|(member, since)| {
            let is_other = member.id != asking && !above.contains(&member.id);
            let scope = member.scope.as_ref()?;
            (is_other && scope.covers(path)).then(|| Holder {
                member: member.clone(),
                since: *since,
                globs: Some(scope.shown()),
            })
        })
    }

    /// Takes a file that nobody else has.
    pub(super) fn take(&mut self, path: PathBuf, id: AgentId, known: Option<Stamp>) {
        let held = self.held.entry(path).or_insert(Held {
            by: id,
            since: Instant::now(),
            known,
            is_written: false,
        });
        held.is_written = true;
    }

    /// Gives files of one agent to another.
    pub(super) fn hand_on<'a>(
        &mut self,
        names: impl Iterator<Item = &'a Path>,
        from: AgentId,
        to: AgentId,
    ) {
        for name in names {
            if let Some(held) = self.held.get_mut(name)
                && held.by == from
            {
                held.by = to;
            }
        }
    }

    /// Those who keep a worker with these files from beginning.
    pub(super) fn blockers(&self, newcomer: &Member) -> Vec<Member> {
        let Some(scope) = &newcomer.scope else {
            return Vec::new();
        };
        let mut ids: Vec<AgentId> = Vec::new();
        for (member, _) in self.members.values() {
            let is_other = member.id != newcomer.id && !newcomer.above.contains(&member.id);
            if is_other && member.scope.as_ref().is_some_and(|it| it.meets(scope)) {
                ids.push(member.id);
            }
        }
        for (path, held) in &self.held {
            if held.by != newcomer.id && scope.covers(path) {
                ids.push(held.by);
            }
        }
        ids.sort();
        ids.dedup();
        ids.iter()
            .filter_map(|id| self.member(*id).cloned())
            .collect()
    }

    /// The way from an agent that is about to wait back to itself, by the names on it.
    pub(super) fn circle(
        &self,
        from: &Member,
        to: &[Member],
        ties: &dyn Fn(AgentId) -> Vec<(AgentId, AgentName)>,
    ) -> Option<String> {
        let mut ways: Vec<(AgentId, Vec<AgentName>)> = to
            .iter()
            .map(|it| (it.id, vec![from.name.clone(), it.name.clone()]))
            .collect();
        let mut seen = HashSet::new();
        while let Some((at, way)) = ways.pop() {
            if at == from.id {
                let names: Vec<String> = way.iter().map(ToString::to_string).collect();
                return Some(names.join(" → "));
            }
            if !seen.insert(at) {
                continue;
            }
            let files = self.waits.get(&at).into_iter().flatten();
            let files = files.filter_map(|id| Some((*id, self.member(*id)?.name.clone())));
            for (next, name) in files.chain(ties(at)) {
                let longer = way.iter().cloned().chain([name]).collect();
                ways.push((next, longer));
            }
        }
        None
    }

    pub(super) fn wait(&mut self, id: AgentId, others: Vec<AgentId>) {
        self.waits.insert(id, others);
    }

    pub(super) fn stop_waiting(&mut self, id: AgentId) {
        self.waits.remove(&id);
    }

    pub(super) fn begin_command(&mut self, id: AgentId, line: &str) -> Option<u64> {
        let name = self.member(id)?.name.clone();
        self.last_command += 1;
        let command = Command {
            agent: id,
            name,
            line: line.to_owned(),
            began: SystemTime::now(),
            ended: None,
        };
        self.commands.insert(self.last_command, command);
        Some(self.last_command)
    }

    pub(super) fn end_command(&mut self, number: u64) {
        if let Some(command) = self.commands.get_mut(&number) {
            command.ended = Some(SystemTime::now());
        }
        self.forget_commands();
    }

    /// Commands that ran at some time since a command began.
    pub(super) fn ran_with(&self, number: u64) -> Vec<Command> {
        let Some(one) = self.commands.get(&number) else {
            return Vec::new();
        };
        let all = self.commands.values();
        all.filter(|it| it.ran_after(one.began)).cloned().collect()
    }

    /// Only those are kept that a running one can still meet.
    fn forget_commands(&mut self) {
        let running = self.commands.values().filter(|it| it.ended.is_none());
        let oldest = running.map(|it| it.began).min();
        self.commands
            .retain(|_, it| oldest.is_some_and(|oldest| it.ran_after(oldest)));
    }

    /// The files that others hold: who, and as what.
    pub(super) fn held_by_others(&self, id: AgentId) -> Vec<(PathBuf, AgentId, Option<Stamp>)> {
        let others = self.held.iter().filter(|(_, held)| held.by != id);
        others
            .map(|(path, held)| (path.clone(), held.by, held.known))
            .collect()
    }
}
