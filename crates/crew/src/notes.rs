//! What the crew wants to know again of a task that has ended, as the book keeps it.

use crate::history::History;
use crate::phases::Stint;
use crate::roster::{Spending, Task};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notes {
    /// Where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<PathBuf>,
    #[serde(default)]
    pub(crate) spending: Spending,
    #[serde(default)]
    pub(crate) history: History,
    /// Of its orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scores: Vec<u8>,
    /// Its runs, as the course of the session sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stints: Vec<Stint>,
}

impl Notes {
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            cwd: task.cwd.clone(),
            spending: task.spending.clone(),
            history: task.history.clone(),
            scores: task.scores.clone(),
            stints: task.stints.clone(),
        }
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What cannot be understood is as good as nothing.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}
