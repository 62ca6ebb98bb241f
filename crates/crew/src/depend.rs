//! Tasks that begin when others have completed: who is meant, no circles, the wait, and what
//! becomes of those that wait in vain.

use crate::crew::Crew;
use crate::roster::{Progress, Roster, State, Task};
use crate::start::Refused;
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, AgentName, Block, End, EventKind, Origin, Role, Status, Waiting};
use gaffer_store::Fold;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// So long is waited for a name that belongs to another order of the same message.
const SAME_MESSAGE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
/// So much of each result is handed on.
const MOST_RESULT: usize = 16 << 10;

/// Orders that look for what they depend on, by name.
pub(crate) type Looking = BTreeMap<String, Look>;

#[derive(Debug)]
pub(crate) struct Look {
    wanted: Vec<String>,
    /// The circle that it is a part of, once somebody has found it.
    circle: Option<String>,
}

/// How a task stands to what it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All have completed.
    Met,
    /// For these.
    Waits(Vec<AgentName>),
}

impl Roster {
    pub(crate) fn standing(&self, depends_on: &[AgentId]) -> Standing {
        let is_open = |task: &&Task| match &task.state {
            State::Live(_) => true,
            State::Ended(end) => end.status() != Status::Completed,
        };
        let open = depends_on.iter().filter_map(|id| self.get(*id));
        let open: Vec<AgentName> = open.filter(is_open).map(|task| task.name.clone()).collect();
        match open.is_empty() {
            true => Standing::Met,
            false => Standing::Waits(open),
        }
    }

    /// Those that wait for others of whom nobody works any more, and for whom they wait.
    fn stuck(&self) -> Vec<(AgentId, Vec<AgentName>)> {
        let held = self
            .live()
            .filter(|(_, live)| live.progress == Progress::Held);
        let held: Vec<&Task> = held.map(|(task, _)| task).collect();
        let mut moving: BTreeSet<AgentId> = self
            .live()
            .filter(|(_, live)| live.progress != Progress::Held)
            .map(|(task, _)| task.id)
            .collect();
        loop {
            let before = moving.len();
            for task in &held {
                let is_met = self.standing(&task.depends_on) == Standing::Met;
                if is_met || task.depends_on.iter().any(|id| moving.contains(id)) {
                    moving.insert(task.id);
                }
            }
            if moving.len() == before {
                break;
            }
        }
        let stuck = held.into_iter().filter(|task| !moving.contains(&task.id));
        let why = |task: &Task| match self.standing(&task.depends_on) {
            Standing::Waits(names) => (task.id, names),
            Standing::Met => (task.id, Vec::new()),
        };
        stuck.map(why).collect()
    }

    /// Whether anybody works, or will without further ado.
    pub(crate) fn is_moving(&self) -> bool {
        let held = self
            .live()
            .filter(|(_, live)| live.progress == Progress::Held);
        match held.count() {
            0 => self.live().next().is_some(),
            held => self.live().count() > held || self.stuck().len() < held,
        }
    }

    /// Who waits for this task and no other work, as people read it.
    pub(crate) fn held_by(&self, id: AgentId) -> Vec<String> {
        let waits = self.live().filter(|(task, live)| {
            live.progress == Progress::Held && task.depends_on.contains(&id)
        });
        let line = |task: &Task| format!("{} ({}, \"{}\")", task.name, task.id, task.description);
        waits.map(|(task, _)| line(task)).collect()
    }
}

impl Crew {
    /// The tasks that an order depends on, by their ids or names. Those of the same message may
    /// not have begun yet.
    pub(crate) async fn dependencies(
        &self,
        name: Option<&AgentName>,
        wanted: &[String],
    ) -> Result<Vec<AgentId>, Refused> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let own = name.map(ToString::to_string);
        let _looking = own.as_ref().map(|name| self.look_for(name, wanted));
        let patience = tokio::time::Instant::now() + SAME_MESSAGE;
        loop {
            let missing = match self.find_all(wanted) {
                Ok(found) => return Ok(found),
                Err(missing) => missing,
            };
            if let Some(circle) = own.as_ref().and_then(|name| self.circle(name)) {
                return Err(Refused::Circle(circle));
            }
            if tokio::time::Instant::now() >= patience {
                return Err(Refused::NoSuchTask(missing, self.names()));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn find_all(&self, wanted: &[String]) -> Result<Vec<AgentId>, String> {
        let roster = self.0.roster();
        let find = |text: &String| {
            let task = roster.find(text).ok_or_else(|| text.trim().to_owned())?;
            Ok(task.id)
        };
        let found: Result<BTreeSet<AgentId>, String> = wanted.iter().map(find).collect();
        Ok(found?.into_iter().collect())
    }

    fn look_for(&self, name: &str, wanted: &[String]) -> impl Drop {
        let look = Look {
            wanted: wanted.iter().map(|text| text.trim().to_owned()).collect(),
            circle: None,
        };
        self.0.looking().insert(name.to_owned(), look);
        Looked {
            crew: self.clone(),
            name: name.to_owned(),
        }
    }

    /// The way from an order back to itself, over orders that look for each other. All of them
    /// hear of it, whoever finds it first.
    fn circle(&self, name: &str) -> Option<String> {
        let mut looking = self.0.looking();
        if let Some(found) = looking.get(name).and_then(|look| look.circle.clone()) {
            return Some(found);
        }
        let way = way_back(&looking, name)?;
        let circle = way.join(" → ");
        for part in &way {
            if let Some(look) = looking.get_mut(part) {
                look.circle = Some(circle.clone());
            }
        }
        Some(circle)
    }

    /// Waits until all that a task depends on has completed. False if it was stopped before.
    pub(crate) async fn wait_for_others(&self, id: AgentId, stop: &CancellationToken) -> bool {
        let mut ends = self.0.ends.subscribe();
        let mut shown = None;
        loop {
            let standing = {
                let mut roster = self.0.roster();
                let depends_on = roster.get(id).map(|task| task.depends_on.clone());
                let standing = roster.standing(&depends_on.unwrap_or_default());
                if let (Standing::Met, Some(live)) =
                    (&standing, roster.get_mut(id).and_then(Task::live_mut))
                {
                    live.progress = Progress::Queued;
                    roster.line_up(id);
                }
                standing
            };
            match standing {
                Standing::Met => return true,
                Standing::Waits(names) if shown.as_ref() != Some(&names) => {
                    let waiting = Waiting::Dependencies(names.clone());
                    self.emit(id, EventKind::Waiting(waiting));
                    shown = Some(names);
                }
                Standing::Waits(_) => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                // The sender lives as long as the crew.
                _ = ends.changed() => {}
            }
        }
    }

    /// Ends those that wait in vain. Whether there were any.
    pub(crate) async fn end_stuck(&self) -> bool {
        let stuck = self.0.roster().stuck();
        let ends = stuck.iter().map(|(id, names)| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let why = format!("it needs {}", names.join(", "));
            self.stop(*id, End::DependencyFailed(why))
        });
        futures_util::future::join_all(ends).await;
        !stuck.is_empty()
    }

    /// The last words of the tasks that this one depends on, if the order asked for them.
    pub(crate) async fn results_for(&self, id: AgentId) -> Vec<Block> {
        let wanted: Vec<(AgentName, std::path::PathBuf)> = {
            let roster = self.0.roster();
            let task = roster.get(id).filter(|task| task.includes_results);
            let ids = task.map(|task| task.depends_on.clone()).unwrap_or_default();
            let tasks = ids.iter().filter_map(|id| roster.get(*id));
            tasks
                .map(|task| (task.name.clone(), task.transcript.clone()))
                .collect()
        };
        let mut blocks = Vec::new();
        for (name, path) in wanted {
            let read = tokio::task::spawn_blocking(move || Fold::read(&path));
            let fold = read.await.ok().and_then(Result::ok).unwrap_or_default();
            let words = last_words(&fold);
            let words = escape(cut(&words));
            let text = format!("<result of=\"{name}\">\n{words}\n</result>");
            blocks.push(Block::from(Origin::Agent, text));
        }
        blocks
    }
}

fn way_back(looking: &Looking, name: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![name.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        let next = way.last().and_then(|at| looking.get(at));
        for to in next.into_iter().flat_map(|look| &look.wanted) {
            let longer = [&way[..], std::slice::from_ref(to)].concat();
            if to == name {
                return Some(longer);
            }
            if seen.insert(to.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

/// An order that has found what it depends on, or has given up.
struct Looked {
    crew: Crew,
    name: String,
}

impl Drop for Looked {
    fn drop(&mut self) {
        self.crew.0.looking().remove(&self.name);
    }
}

/// The text of the last answer that had any.
pub(crate) fn last_words(fold: &Fold) -> String {
    let answers = fold.messages.iter().rev();
    let answers = answers.filter(|message| message.role == Role::Assistant);
    let text = |blocks: &[Block]| {
        let texts = blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<String>()
    };
    let mut texts = answers.map(|message| text(&message.blocks));
    let found = texts.find(|text| !text.trim().is_empty());
    found.unwrap_or_default().trim().to_owned()
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(MOST_RESULT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
