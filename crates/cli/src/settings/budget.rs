//! The settings' caps on what a session may use.

use crate::args::budget::seconds;
use gaffer_protocol::Budget;
use serde::{Deserialize, Deserializer};

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct BudgetSettings {
    pub(crate) usd: Option<f64>,
    pub(crate) tokens: Option<u64>,
    /// As `20m`, or a number of seconds.
    pub(crate) wall: Option<Wall>,
    /// So many may be started in all.
    pub(crate) workers: Option<u32>,
}

impl From<BudgetSettings> for Budget {
    fn from(set: BudgetSettings) -> Self {
        Self {
            usd: set.usd,
            tokens: set.tokens,
            seconds: set.wall.map(|wall| wall.0),
            workers: set.workers,
        }
    }
}

/// So many seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wall(u64);

impl<'de> Deserialize<'de> for Wall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a time such as `20m` or a number of seconds"
        )]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(seconds) => Ok(Self(seconds)),
            Either::Text(text) => {
                let wrong = |why| serde::de::Error::custom(format!("`{text}` is no {why}"));
                seconds(&text).map(Self).map_err(wrong)
            }
        }
    }
}
