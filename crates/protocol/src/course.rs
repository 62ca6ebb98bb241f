//! The course of a session: which phases its work went through, with whom, and what they took.

use crate::ids::AgentName;
use crate::terms::Phase;
use crate::usage::{Cost, Usage};
use serde::Serialize;
use std::time::Duration;

/// The phases of a session in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Course {
    pub stretches: Vec<Stretch>,
    /// Phases that never came.
    pub left_out: Vec<Phase>,
    /// Workers that changed something which no fresh worker has verified since.
    pub unchecked: Vec<AgentName>,
    /// Workers for whose result there is nothing but their word.
    pub unverified: Vec<AgentName>,
    /// What each phase took. The session's own agent has the synthesis.
    pub shares: Vec<Share>,
}

/// Neighbours of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stretch {
    pub phase: Phase,
    /// None for the synthesis.
    pub workers: Vec<AgentName>,
}

/// What one phase took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    pub phase: Phase,
    /// Agents that had a part in it.
    pub agents: u32,
    pub turns: u32,
    pub tool_uses: u32,
    pub usage: Usage,
    pub cost: Cost,
    /// Of agents, which work side by side.
    pub time: Duration,
}

impl Share {
    pub fn of(phase: Phase) -> Self {
        Self {
            phase,
            agents: 0,
            turns: 0,
            tool_uses: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            time: Duration::ZERO,
        }
    }
}

impl std::fmt::Display for Stretch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.phase)?;
        if self.workers.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.workers.iter().map(AgentName::as_str).collect();
        write!(f, " ({})", names.join(", "))
    }
}
