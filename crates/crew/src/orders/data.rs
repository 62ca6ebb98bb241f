//! Rules as they are written: the form of the data, and what must hold of each rule by itself.

use super::OrderKind;
use super::phrase::BadPhrase;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const LEAST_EXAMPLES: usize = 3;
const LONGEST_ADVICE: usize = 300;

/// Why rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0}")]
    Toml(String),
    #[error("the rule `{rule}`: {why}")]
    Phrase { rule: String, why: BadPhrase },
    #[error("the rule `{rule}` {why}")]
    Wrong { rule: String, why: String },
    #[error("the rule `{rule}` does not find its own example `{text}`")]
    Misses { rule: String, text: String },
    #[error("the rule `{rule}` finds `{text}`, which it says it lets pass")]
    Finds { rule: String, text: String },
    #[error("`off` names `{0}`, and there is no such rule")]
    Unknown(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BuiltIn {
    pub(super) lists: BTreeMap<String, Vec<String>>,
    pub(super) files: Files,
    /// What is said about continuing a worker or starting a fresh one.
    pub(super) advice: BTreeMap<String, String>,
    pub(super) rule: Vec<RuleData>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Files {
    pub(super) extensions: BTreeSet<String>,
    pub(super) whole: BTreeSet<String>,
    pub(super) folders: BTreeSet<String>,
    pub(super) never: BTreeSet<String>,
}

/// What a project's own file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Own {
    pub(super) off: Vec<String>,
    pub(super) rule: Vec<RuleData>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleData {
    pub(super) id: String,
    /// What it is about, for readers of the file.
    pub(super) about: String,
    /// None for any order, also for those of which the kind is not known.
    #[serde(default)]
    pub(super) kinds: Vec<OrderKind>,
    #[serde(default)]
    pub(super) when: When,
    #[serde(default)]
    pub(super) phrases: Vec<String>,
    /// Where one of these stands as well, nothing is wrong.
    #[serde(default)]
    pub(super) unless: Vec<String>,
    /// What it finds missing, where it looks for that instead of phrases.
    pub(super) lacks: Option<Lack>,
    /// So much of the score it costs.
    pub(super) weight: u8,
    /// Whether orders are refused for it, where orders are refused.
    #[serde(default)]
    pub(super) refuses: bool,
    pub(super) advice: String,
    pub(super) matches: Vec<String>,
    pub(super) passes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum When {
    #[default]
    Always,
    /// For who knows nothing yet.
    Fresh,
    /// For who is continued.
    Continuation,
}

/// What an order may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Lack {
    Path,
    /// A word on what done looks like.
    Completion,
    Purpose,
}

impl RuleData {
    pub(super) fn wrong(&self, why: &str) -> RuleError {
        RuleError::Wrong {
            rule: self.id.chars().take(60).collect(),
            why: why.to_owned(),
        }
    }

    pub(super) fn check(&self) -> Result<(), RuleError> {
        let is_id = |it: char| matches!(it, 'a'..='z' | '0'..='9' | '-');
        if self.id.is_empty() || !self.id.chars().all(is_id) {
            return Err(self.wrong("has an id of other characters than a-z, 0-9 and -"));
        }
        if self.about.trim().is_empty() {
            return Err(self.wrong("does not say what it is about"));
        }
        if self.phrases.is_empty() == self.lacks.is_none() {
            return Err(self.wrong("needs either `phrases` or `lacks`"));
        }
        if !(1..=100).contains(&self.weight) {
            return Err(self.wrong("has a weight that is not 1 to 100"));
        }
        if self.advice.trim().is_empty()
            || self.advice.contains('\n')
            || self.advice.len() > LONGEST_ADVICE
        {
            return Err(self.wrong("needs advice of one line, 300 bytes at most"));
        }
        if self.matches.len() < LEAST_EXAMPLES || self.passes.len() < LEAST_EXAMPLES {
            return Err(self.wrong("needs three examples each in `matches` and `passes`"));
        }
        Ok(())
    }
}
