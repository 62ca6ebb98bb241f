//! What each worker is doing, for people and for the coordinator.

use crate::crew::{Crew, Shared};
use crate::roster::Progress;
use gaffer_agent::{Compaction, Memo};
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, AgentName, Block, Origin, Phase, Waiting};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// One worker that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerState {
    pub id: AgentId,
    pub name: AgentName,
    pub agent_type: String,
    /// What its task is for.
    pub phase: Phase,
    pub description: String,
    pub waiting: Waiting,
    pub is_leaving: bool,
    /// Whether it holds one of the places. One that waits for a worker of its own does not.
    pub has_place: bool,
    pub turns: u32,
    pub tool_uses: u32,
    pub tokens: u64,
    pub last_tool: Option<String>,
    pub running: Duration,
    /// Since it last did anything that can be seen.
    pub idle: Duration,
}

impl Crew {
    pub fn workers(&self) -> Vec<WorkerState> {
        let roster = self.0.roster();
        let places: HashMap<AgentId, usize> = roster.queue().zip(1..).collect();
        let state = |(task, live): (&crate::roster::Task, &crate::roster::Live)| WorkerState {
            id: task.id,
            name: task.name.clone(),
            agent_type: task.kind.name.clone(),
            phase: task.phase(),
            description: task.description.clone(),
            waiting: match (live.progress, places.get(&task.id)) {
                (Progress::Queued, Some(place)) => Waiting::Queue(*place),
                _ => live.waiting.clone(),
            },
            is_leaving: live.progress == Progress::Leaving,
            has_place: live.place.is_some(),
            turns: task.spending.turns,
            tool_uses: task.spending.tool_uses,
            tokens: task.spending.usage().total(),
            last_tool: live.last_tool.clone(),
            running: live.since.elapsed(),
            idle: live.heard.elapsed(),
        };
        roster.live().map(state).collect()
    }

    /// The state of all workers, to stand beside a message of the user's. None where nobody runs.
    pub fn state_block(&self) -> Option<Block> {
        let text = listed(&self.workers())?;
        Some(Block::from(Origin::Context, text))
    }

    /// When an agent's conversation is compacted, and what of the crew must outlive that.
    pub fn compaction(&self, agent: AgentId) -> Compaction {
        let crew = Arc::downgrade(&self.0);
        Compaction {
            limits: self.parts().limits.compaction,
            memo: Some(Arc::new(Below { crew, agent })),
        }
    }
}

fn listed(workers: &[WorkerState]) -> Option<String> {
    if workers.is_empty() {
        return None;
    }
    let mut text = "<workers>\n".to_owned();
    for worker in workers {
        text.push_str(&worker.line());
        text.push('\n');
    }
    text.push_str("</workers>");
    Some(text)
}

/// The workers that an agent has started.
#[derive(Debug)]
struct Below {
    crew: Weak<Shared>,
    agent: AgentId,
}

impl Memo for Below {
    fn open_tasks(&self) -> Option<String> {
        let crew = Crew(self.crew.upgrade()?);
        let mut workers = crew.workers();
        let own: HashSet<AgentId> = {
            let roster = crew.0.roster();
            let own = roster.all().filter(|task| task.parent == self.agent);
            own.map(|task| task.id).collect()
        };
        workers.retain(|worker| own.contains(&worker.id));
        listed(&workers)
    }

    fn compacted(&self) {
        let crew = self.crew.upgrade().map(Crew);
        // Others than the session's own agent share its account of what was told.
        if let Some(crew) = crew.filter(|crew| crew.parts().main == self.agent) {
            crew.forget_told();
        }
    }
}

impl WorkerState {
    fn line(&self) -> String {
        let (id, name, kind, phase) = (self.id, &self.name, &self.agent_type, self.phase);
        let description = escape(&self.description);
        let doing = match &self.waiting {
            _ if self.is_leaving => "about to end".to_owned(),
            Waiting::Queue(place) => format!("waiting for a place, number {place} in the queue"),
            Waiting::Dependencies(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!("waiting for {} to complete", names.join(", "))
            }
            Waiting::Lease(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!("waiting for files that {} has", names.join(", "))
            }
            Waiting::Gate => "waiting for the provider".to_owned(),
            Waiting::Model => "thinking".to_owned(),
            Waiting::Tools(_) => "using tools".to_owned(),
            Waiting::User => "waiting for the user's permission".to_owned(),
            Waiting::Mail => "waiting for mail".to_owned(),
        };
        let last = self.last_tool.as_deref().unwrap_or("none yet");
        format!(
            "{name} ({id}, {kind}, {phase}, \"{description}\"): {doing}; {} turns, {} tool uses, {} tokens, last tool {last}; running for {} s, idle for {} s",
            self.turns,
            self.tool_uses,
            self.tokens,
            self.running.as_secs(),
            self.idle.as_secs(),
        )
    }
}
