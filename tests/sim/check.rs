//! What must hold of any crew when its run is over: who ended and was told, who began when, what
//! was spent, and, in `files`, what became of everything that was written.

mod files;

use crate::crew_world::{World, told};
use crate::sim::diary::{Call, Diary, Entry, calls};
use crate::sim::mind::DEAREST;
use gaffer_protocol::{
    AgentId, Block, BudgetNews, End, EventKind, Message, Notification, Origin, Status,
};
use gaffer_store::{Fold, book};
use std::collections::{BTreeMap, BTreeSet};

/// What a run left.
struct Past<'a> {
    world: &'a World,
    entries: Vec<Entry>,
    calls: Vec<Call>,
    tasks: BTreeMap<AgentId, book::Task>,
    folds: BTreeMap<AgentId, Fold>,
    /// What the one who leads did not come to read.
    unread: Vec<Block>,
}

pub(crate) fn all(world: &mut World, diary: &Diary) {
    let unread = world.agent.take_unread();
    let entries = diary.all();
    let contents = world.folder.book().read().unwrap();
    let tasks: BTreeMap<AgentId, book::Task> = contents
        .tasks
        .into_iter()
        .map(|entered| (entered.task.id, entered.task))
        .collect();
    let read = |id: &AgentId| {
        let fold = Fold::read(&world.folder.transcript(*id));
        (*id, fold.unwrap_or_default())
    };
    let folds = tasks.keys().chain([&world.main]).map(read).collect();
    let past = Past {
        calls: calls(&entries),
        world,
        entries,
        tasks,
        folds,
        unread,
    };
    past.check_ends();
    past.check_told();
    past.check_dependents();
    past.check_budgets();
    past.check_rest();
    files::check(&past);
}

impl Past<'_> {
    fn events(&self) -> impl Iterator<Item = (usize, AgentId, &EventKind)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(at, entry)| match entry {
            Entry::Event(agent, kind) => Some((at, *agent, kind)),
            Entry::Request(_) => None,
        })
    }

    fn requests(&self) -> impl Iterator<Item = (usize, AgentId)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(at, entry)| match entry {
            Entry::Request(agent) => Some((at, *agent)),
            Entry::Event(..) => None,
        })
    }

    /// Those above an agent, the nearest first.
    fn above(&self, id: AgentId) -> Vec<AgentId> {
        let mut above = Vec::new();
        let mut at = id;
        while let Some(task) = self.tasks.get(&at) {
            at = task.parent;
            above.push(at);
        }
        above
    }

    /// Every run that began has ended, once, and no bug ended it.
    fn check_ends(&self) {
        let mut open: BTreeMap<AgentId, i64> = BTreeMap::new();
        for (_, id, kind) in self.events() {
            match kind {
                EventKind::AgentStarted(_) | EventKind::Continued => {
                    let open = open.entry(id).or_default();
                    *open += 1;
                    assert_eq!(*open, 1, "{id} began twice");
                }
                EventKind::AgentEnded(ended) => {
                    let open = open.entry(id).or_default();
                    *open -= 1;
                    assert_eq!(*open, 0, "{id} ended twice: {:?}", ended.end);
                    assert!(!matches!(ended.end, End::Crashed(_)), "{:?}", ended.end);
                }
                _ => {}
            }
        }
        assert!(open.values().all(|open| *open == 0), "{open:?}");
        assert_eq!(open.len(), self.tasks.len());
    }

    /// Every end is told once, to the one above or to one further above.
    fn check_told(&self) {
        let mut ends: BTreeMap<AgentId, usize> = BTreeMap::new();
        for (_, id, kind) in self.events() {
            if matches!(kind, EventKind::AgentEnded(_)) {
                *ends.entry(id).or_default() += 1;
            }
        }
        let mut heard: BTreeMap<AgentId, Vec<AgentId>> = BTreeMap::new();
        for (reader, fold) in &self.folds {
            let told = told(&fold.messages).into_iter().filter_map(|it| it.task);
            for task in told.chain(waited(&fold.messages)) {
                heard.entry(task).or_default().push(*reader);
            }
        }
        for task in self.unread.iter().filter_map(news).filter_map(|it| it.task) {
            heard.entry(task).or_default().push(self.world.main);
        }
        for (task, readers) in &heard {
            let above = self.above(*task);
            assert!(readers.iter().all(|it| above.contains(it)), "{task}");
        }
        let heard: BTreeMap<AgentId, usize> =
            heard.into_iter().map(|(id, by)| (id, by.len())).collect();
        assert_eq!(ends, heard, "ends, and those that were told");
    }

    /// Nobody begins before what it depends on has completed.
    fn check_dependents(&self) {
        let mut completed: BTreeSet<AgentId> = BTreeSet::new();
        let mut begun: BTreeSet<AgentId> = BTreeSet::new();
        let mut is_continued: BTreeSet<AgentId> = BTreeSet::new();
        for entry in &self.entries {
            match entry {
                Entry::Event(id, EventKind::AgentEnded(ended))
                    if ended.end.status() == Status::Completed =>
                {
                    completed.insert(*id);
                }
                Entry::Event(id, EventKind::Continued) => {
                    is_continued.insert(*id);
                }
                // Whoever continues one that never began lets it begin as it is.
                Entry::Request(id) if begun.insert(*id) && !is_continued.contains(id) => {
                    let task = self.tasks.get(id);
                    let first = task.into_iter().flat_map(|task| &task.depends_on);
                    for other in first {
                        assert!(completed.contains(other), "{id} began before {other}");
                    }
                }
                _ => {}
            }
        }
    }

    /// What was used stays under each cap, but for what was under way and the last turns.
    fn check_budgets(&self) {
        let mut owners: Vec<(AgentId, Option<u64>)> = self
            .tasks
            .values()
            .map(|task| (task.id, task.terms.budget.tokens))
            .collect();
        let caps = self.world.crew.parts().limits.budget;
        owners.push((self.world.main, caps.tokens));
        for (owner, cap) in owners {
            let is_below = |id: AgentId| id == owner || self.above(id).contains(&owner);
            let spent: u64 = self
                .events()
                .filter(|(_, id, _)| is_below(*id))
                .map(|(_, _, kind)| match kind {
                    EventKind::Answered { answer, .. } => answer.usage.total(),
                    _ => 0,
                })
                .sum();
            if owner == self.world.main
                && let Some(sum) = self.world.crew.budget_sum()
            {
                assert_eq!(sum.spent.tokens, spent);
            }
            let reached = self.events().find_map(|(at, id, kind)| match kind {
                EventKind::Budget(news) if id == owner => {
                    matches!(**news, BudgetNews::Reached(_)).then_some(at)
                }
                _ => None,
            });
            let Some(at) = reached else {
                assert!(
                    cap.is_none_or(|cap| spent <= cap),
                    "{owner}: {spent} of {cap:?}"
                );
                continue;
            };
            let mut last_turns: BTreeMap<AgentId, u32> = BTreeMap::new();
            for (_, id) in self.requests().filter(|it| it.0 > at && is_below(it.1)) {
                let count = last_turns.entry(id).or_default();
                *count += 1;
                assert!(*count <= 1, "{id} asked on beyond the budget of {owner}");
            }
            let begun: BTreeSet<AgentId> = self
                .requests()
                .filter(|it| it.0 < at && is_below(it.1))
                .map(|it| it.1)
                .collect();
            let under_way = begun.iter().filter(|id| self.is_asking(**id, at)).count();
            let more = DEAREST * (under_way + last_turns.len()) as u64;
            assert!(
                cap.is_none_or(|cap| spent <= cap + more),
                "{owner}: {spent} of {cap:?}, {more} more at most"
            );
        }
    }

    fn is_asking(&self, id: AgentId, at: usize) -> bool {
        let before = self.entries[..at].iter().rev();
        let mut own = before.filter_map(|entry| match entry {
            Entry::Request(agent) if *agent == id => Some(true),
            Entry::Event(agent, EventKind::Answered { .. } | EventKind::AgentEnded(_))
                if *agent == id =>
            {
                Some(false)
            }
            _ => None,
        });
        own.next() == Some(true)
    }

    /// Nobody is left, and nobody has left anything behind that others would wait for.
    fn check_rest(&self) {
        let crew = &self.world.crew;
        assert_eq!(crew.workers(), []);
        assert_eq!(crew.free_places(), crew.parts().limits.workers);
    }
}

fn news(block: &Block) -> Option<Notification> {
    match block {
        Block::Text(text) if text.origin == Some(Origin::TaskNotification) => {
            Some(Notification::parse(&text.text).unwrap())
        }
        _ => None,
    }
}

/// The ends that an agent heard as results of calls that waited for them.
fn waited(messages: &[Message]) -> Vec<AgentId> {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let end = |block: &Block| match block {
        Block::ToolResult(result) if result.mail.is_some() => {
            let text = result.text();
            let (text, _) = text.rsplit_once(": SendMessage continues it]").unwrap();
            let (_, id) = text.rsplit_once(", ").unwrap();
            Some(AgentId::parse(id).unwrap())
        }
        _ => None,
    };
    blocks.filter_map(end).collect()
}
