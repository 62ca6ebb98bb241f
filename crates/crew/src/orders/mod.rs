//! Order quality: what is wrong with an order before it is sent, by rules that are data.

mod data;
mod kind;
mod names;
mod phrase;
mod rules;
mod tokens;

#[cfg(test)]
mod corpus_tests;

pub use data::RuleError;
pub(crate) use names::{FileNames, is_same, symbols};
pub use phrase::BadPhrase;
pub use rules::Rules;
pub(crate) use rules::Tone;

use serde::{Deserialize, Serialize};

/// How much a guardrail does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Off,
    /// An event, and advice in the tool's answer.
    #[default]
    Warn,
    /// What is wrong is not carried out.
    Enforce,
}

/// What an order asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderKind {
    Research,
    Implementation,
    Verification,
}

/// An order that is to be judged.
#[derive(Debug, Clone, Copy)]
pub struct OrderText<'a> {
    pub text: &'a str,
    /// Whether its reader knows what was said before.
    pub is_continuation: bool,
    /// Where it is known from elsewhere than its words.
    pub kind: Option<OrderKind>,
}

impl<'a> OrderText<'a> {
    pub fn fresh(text: &'a str) -> Self {
        Self {
            text,
            is_continuation: false,
            kind: None,
        }
    }

    pub fn continuation(text: &'a str) -> Self {
        Self {
            is_continuation: true,
            ..Self::fresh(text)
        }
    }
}

/// One thing that is wrong with an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: String,
    /// The words that it is about; empty where something is missing.
    pub excerpt: String,
    /// What to do instead.
    pub advice: String,
    /// Whether an order is refused for it, where orders are.
    pub refuses: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// None where the words do not say it.
    pub kind: Option<OrderKind>,
    pub findings: Vec<Finding>,
    /// 100 where nothing was found.
    pub score: u8,
}
