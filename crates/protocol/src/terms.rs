//! What an order demands beyond its words: how the work is bound, and what counts as done.

use serde::{Deserialize, Serialize};

/// The terms of one task. They never change while it lives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// It works in a worktree of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// The part of the work that it belongs to, where the order says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether the phase was told from what the order says and for whom it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_inferred: bool,
    /// Globs below the project's root; it writes nothing else. None where nothing was said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The command that proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_when: Option<String>,
    /// The JSON schema that its result has to meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<serde_json::Value>,
    /// What it, and all that it starts, may use.
    #[serde(skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
}

impl Terms {
    /// Whether something beside the worker's word shows that it is done.
    pub fn has_proof(&self) -> bool {
        self.done_when.is_some() || self.result_schema.is_some()
    }
}

/// A part of the work. They may come again in any order; some orders are worth a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Research,
    /// The coordinator's own: no worker has it.
    Synthesis,
    Implementation,
    Verification,
}

impl Phase {
    pub const ALL: [Self; 4] = [
        Self::Research,
        Self::Synthesis,
        Self::Implementation,
        Self::Verification,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::Synthesis => "synthesis",
            Self::Implementation => "implementation",
            Self::Verification => "verification",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much may be used, for a session or for one task with all below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Workers that may be started in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
}

impl Budget {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
