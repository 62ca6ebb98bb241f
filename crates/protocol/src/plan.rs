//! A plan: what the coordinator wants done and by whom, before any of it is.

use crate::terms::Phase;
use serde::Serialize;
use serde_json::Value;

/// The orders of one message, with what was said to them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// What the coordinator wrote.
    pub text: String,
    pub orders: Vec<Planned>,
    pub state: PlanState,
}

/// One order of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned {
    pub phase: Phase,
    /// The call's input, as it was given.
    pub order: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanState {
    /// Somebody has to say yes or no.
    Waiting,
    Approved,
    Refused,
}

impl PlanState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Refused => "refused",
        }
    }
}

/// The members of an order that are shown in one line each, as they are called there.
const SHOWN: [&str; 8] = [
    "subagent_type",
    "name",
    "isolation",
    "files",
    "depends_on",
    "done_when",
    "result_schema",
    "budget",
];

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.text.trim();
        if !text.is_empty() {
            writeln!(f, "{text}\n")?;
        }
        for (n, planned) in self.orders.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            let order = &planned.order;
            let about = order["description"].as_str().unwrap_or("(no description)");
            writeln!(f, "{}. {about} ({})", n + 1, planned.phase)?;
            for name in SHOWN {
                match &order[name] {
                    Value::Null => {}
                    Value::String(text) => writeln!(f, "   {name}: {text}")?,
                    other => writeln!(f, "   {name}: {other}")?,
                }
            }
            let prompt = order["prompt"].as_str().unwrap_or_default();
            for line in prompt.lines() {
                writeln!(f, "   > {line}")?;
            }
        }
        Ok(())
    }
}
