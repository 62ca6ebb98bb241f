//! Who has spent what: by agent, type, phase and model. It adds up to what the provider reported.

use crate::crew::Crew;
use crate::roster::{Spending, Task};
use gaffer_protocol::{AgentId, AgentName, Cost, Phase, Usage};
use std::time::Duration;

/// What one agent has spent with one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub agent: AgentId,
    pub name: AgentName,
    pub agent_type: String,
    pub phase: Phase,
    pub model: String,
    pub usage: Usage,
    pub cost: Cost,
}

/// What the workers of a session came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    pub started: u32,
    pub completed: u32,
    pub failed: u32,
    pub killed_by_coordinator: u32,
    pub killed_by_user: u32,
    pub continued: u32,
    pub tool_uses: u32,
    pub turns: u32,
    /// Of all workers together; they overlap.
    pub time: Duration,
    /// Orders that were judged, and how good they were on average, of 100.
    pub judged: u32,
    pub mean_score: Option<u32>,
}

impl Crew {
    /// How good the orders of each worker were, the one it was started with first.
    pub fn order_scores(&self) -> Vec<(AgentId, AgentName, Vec<u8>)> {
        let roster = self.0.roster();
        let scores = |task: &Task| (task.id, task.name.clone(), task.scores.clone());
        roster.all().map(scores).collect()
    }

    /// What workers have spent. The session's own agent keeps its own account.
    pub fn ledger(&self) -> Vec<Row> {
        let roster = self.0.roster();
        roster.all().flat_map(rows).collect()
    }

    /// What the session's own agent has spent, as it was seen.
    pub fn own_spending(&self) -> Spending {
        self.0.roster().main.clone()
    }

    pub fn statistics(&self) -> Statistics {
        use crate::roster::State;
        use gaffer_protocol::{End, Status};
        let roster = self.0.roster();
        let mut all = Statistics::default();
        let mut scores = 0;
        for task in roster.all() {
            all.started += 1;
            all.continued += task.runs - 1;
            all.tool_uses += task.spending.tool_uses;
            all.turns += task.spending.turns;
            all.time += task.spending.time;
            all.judged += task.scores.len() as u32;
            scores += task.scores.iter().map(|it| u32::from(*it)).sum::<u32>();
            let State::Ended(end) = &task.state else {
                continue;
            };
            match (end.status(), end) {
                (Status::Completed, _) => all.completed += 1,
                (Status::Killed, End::StoppedByUser) => all.killed_by_user += 1,
                (Status::Killed, _) => all.killed_by_coordinator += 1,
                (Status::Failed, _) => all.failed += 1,
            }
        }
        all.mean_score = scores.checked_div(all.judged);
        all
    }
}

fn rows(task: &Task) -> Vec<Row> {
    let row = |(model, (usage, cost)): (&String, &(Usage, Cost))| Row {
        agent: task.id,
        name: task.name.clone(),
        agent_type: task.kind.name.clone(),
        phase: task.phase(),
        model: model.clone(),
        usage: *usage,
        cost: *cost,
    };
    task.spending.by_model.iter().map(row).collect()
}
