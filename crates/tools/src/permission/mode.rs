//! Permission modes: what happens to a call that no rule speaks of.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How much is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Asks before anything is written or run.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// Edits inside the roots need no question.
    AcceptEdits,
    /// Nothing is written.
    Plan,
    /// Never asks: what would be asked is denied.
    DontAsk,
    /// Only rules are asked.
    BypassPermissions,
}

impl Mode {
    pub const ALL: [Self; 5] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::DontAsk,
        Self::BypassPermissions,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    /// What is left of a mode below an agent whose own mode is `above`. A stricter mode above
    /// holds below; `bypassPermissions` needs it above as well, and is otherwise what any worker
    /// has.
    pub(super) fn below(self, above: Self) -> Self {
        match (above, self) {
            (Self::Plan, _) | (Self::DontAsk, Self::Plan) => Self::Plan,
            (Self::DontAsk, _) => Self::DontAsk,
            (Self::Default | Self::AcceptEdits, Self::BypassPermissions) => Self::AcceptEdits,
            (_, own) => own,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mode that nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no permission mode `{0}`: there are default, acceptEdits, plan, dontAsk and bypassPermissions"
)]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        if text == "manual" {
            return Ok(Self::Default);
        }
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_spelled_as_users_spell_them() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, format!("\"{mode}\""));
            assert_eq!(serde_json::from_str::<Mode>(&json).unwrap(), mode);
        }
        assert_eq!("manual".parse(), Ok(Mode::Default));
        assert_eq!(
            serde_json::from_str::<Mode>("\"manual\"").unwrap(),
            Mode::Default
        );
        let error = "Plan".parse::<Mode>().unwrap_err().to_string();
        assert!(error.contains("`Plan`") && error.contains("dontAsk"));
    }

    #[test]
    fn a_mode_below_never_asks_less_than_the_one_above_lets_it() {
        use Mode::*;
        for own in Mode::ALL {
            assert_eq!(own.below(Plan), Plan);
            assert_eq!(own.below(BypassPermissions), own);
            assert_ne!(own.below(Default), BypassPermissions);
            assert_ne!(own.below(AcceptEdits), BypassPermissions);
            assert!(matches!(own.below(DontAsk), DontAsk | Plan));
        }
        assert_eq!(AcceptEdits.below(Default), AcceptEdits);
        assert_eq!(Default.below(AcceptEdits), Default);
    }
}
