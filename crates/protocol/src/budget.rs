//! What is said about a budget: a cap that is near or reached, and the sum at the end.

use crate::terms::Budget;
use serde::{Deserialize, Serialize};

/// One of the limits of a budget.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    Usd,
    Tokens,
    Seconds,
    Workers,
}

impl Cap {
    pub const ALL: [Self; 4] = [Self::Usd, Self::Tokens, Self::Seconds, Self::Workers];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Usd => "usd",
            Self::Tokens => "tokens",
            Self::Seconds => "seconds",
            Self::Workers => "workers",
        }
    }

    /// So much of it, as people read it.
    pub fn amount(self, n: f64) -> String {
        match self {
            Self::Usd if n < 0.01 => format!("${n:.4}"),
            Self::Usd => format!("${n:.2}"),
            Self::Tokens => format!("{n:.0} tokens"),
            Self::Seconds => format!("{n:.0} s"),
            Self::Workers => format!("{n:.0} workers"),
        }
    }
}

/// How much of a cap is used.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CapUse {
    pub cap: Cap,
    pub used: f64,
    pub most: f64,
}

impl std::fmt::Display for CapUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cap, used, most } = *self;
        let percent = used / most * 100.0;
        let (used, most) = (cap.amount(used), cap.amount(most));
        write!(f, "{used} of {most} are used ({percent:.0} %)")
    }
}

/// News of a budget: of the session's where its own agent has it, else of that task's.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetNews {
    /// Four fifths of a cap are used.
    Near(CapUse),
    /// No request begins any more but one for each agent to wrap up.
    Reached(CapUse),
    /// What the session came to, once, at its end.
    Sum(BudgetSum),
}

/// A session's budget and what became of it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetSum {
    pub caps: Budget,
    pub spent: Used,
    /// The most that was reserved at once for workers that ran or waited.
    pub reserved_peak: Used,
    /// Orders that were not carried out for it.
    pub refused: u32,
    /// The cap that ended the session, if one did.
    pub ended_by: Option<Cap>,
}

/// An amount of everything that a budget limits.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    pub usd: f64,
    pub tokens: u64,
    pub seconds: f64,
    pub workers: u32,
}

impl Budget {
    /// The figure of a cap, where it is given.
    pub fn most(&self, cap: Cap) -> Option<f64> {
        match cap {
            Cap::Usd => self.usd,
            Cap::Tokens => self.tokens.map(|n| n as f64),
            Cap::Seconds => self.seconds.map(|n| n as f64),
            Cap::Workers => self.workers.map(f64::from),
        }
    }

    /// What is wrong with it, if anything is. A cap of nothing allows nothing and is a slip.
    pub fn problem(&self) -> Option<String> {
        let is_wrong = |cap: &Cap| {
            let most = self.most(*cap);
            most.is_some_and(|most| !most.is_finite() || most <= 0.0)
        };
        let cap = Cap::ALL.into_iter().find(is_wrong)?;
        Some(format!(
            "`{}` is a number above 0; leave it out for no limit",
            cap.as_str()
        ))
    }

    /// These caps, and the other's where one is not given.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            usd: self.usd.or(other.usd),
            tokens: self.tokens.or(other.tokens),
            seconds: self.seconds.or(other.seconds),
            workers: self.workers.or(other.workers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_numbers_above_nothing() {
        let usd = |usd| Budget {
            usd: Some(usd),
            ..Budget::default()
        };
        assert_eq!(usd(0.01).problem(), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(usd(bad).problem().unwrap().starts_with("`usd`"), "{bad}");
        }
        let none = Budget {
            tokens: Some(0),
            ..Budget::default()
        };
        assert!(none.problem().unwrap().starts_with("`tokens`"));
    }

    #[test]
    fn use_reads_as_people_write_it() {
        let near = CapUse {
            cap: Cap::Usd,
            used: 4.1,
            most: 5.0,
        };
        assert_eq!(near.to_string(), "$4.10 of $5.00 are used (82 %)");
    }
}
