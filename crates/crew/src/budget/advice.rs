//! What is said about orders that cost much together: many in one message, or many that say the
//! same.

use super::Purses;
use super::admit::Applicant;
use super::purse::Amount;
use gaffer_protocol::{AgentId, Cap};
use std::collections::{BTreeMap, BTreeSet};

/// So many orders in one message are worth a look at what they cost together.
const SEVERAL: usize = 3;
/// A larger part of what is left than one of so many is much.
const LARGE_PART: f64 = 4.0;
/// So many orders that say nearly the same could be one.
const SAME: usize = 5;
/// Of the words of two orders this part is in both, if they say nearly the same.
const ALIKE: f64 = 0.8;

/// The orders of each agent's last message.
#[derive(Debug, Default)]
pub(super) struct FanOut {
    by_agent: BTreeMap<AgentId, Message>,
}

#[derive(Debug, Default)]
struct Message {
    expected: Amount,
    orders: Vec<BTreeSet<String>>,
    is_large_told: bool,
    is_same_told: bool,
}

impl FanOut {
    /// The next orders of this agent are of another message.
    pub(super) fn answered(&mut self, id: AgentId) {
        self.by_agent.remove(&id);
    }
}

impl Purses {
    /// One line about an order with those that stood beside it, where one is due.
    pub(super) fn weigh(&mut self, applicant: &Applicant<'_>, expected: Amount) -> Option<String> {
        let purse = self.purse(self.main)?;
        if purse.caps.usd.is_none() && purse.caps.tokens.is_none() {
            return None;
        }
        let (caps, left) = (purse.caps, purse.left());
        let basis = self.forecast.of(applicant.kind, purse.most()).basis;
        let message = self.fan_out.by_agent.entry(applicant.parent).or_default();
        message.expected = message.expected.plus(expected);
        let words = applicant.prompt.split_whitespace();
        let words: BTreeSet<String> = words.map(str::to_lowercase).collect();
        let same = message
            .orders
            .iter()
            .filter(|other| is_alike(&words, other));
        let same = same.count() + 1;
        message.orders.push(words);
        if same >= SAME && !message.is_same_told {
            message.is_same_told = true;
            return Some(format!(
                "{same} orders of this message say nearly the same; one worker with the whole list reads the material once and costs less"
            ));
        }
        let is_large = |cap: &Cap| {
            let (sum, left) = (message.expected.figure(*cap), left.figure(*cap));
            caps.most(*cap).is_some() && sum * LARGE_PART > left
        };
        let large = [Cap::Usd, Cap::Tokens].into_iter().find(is_large);
        let count = message.orders.len();
        let cap = large.filter(|_| count >= SEVERAL && !message.is_large_told)?;
        message.is_large_told = true;
        Some(format!(
            "the {count} workers of this message are forecast to use {} of the {} that is left ({basis}); start with the few whose results decide what the others must do",
            cap.amount(message.expected.figure(cap)),
            cap.amount(left.figure(cap)),
        ))
    }
}

fn is_alike(a: &BTreeSet<String>, b: &BTreeSet<String>) -> bool {
    let both = a.intersection(b).count() as f64;
    let all = a.union(b).count() as f64;
    all > 0.0 && both / all >= ALIKE
}
