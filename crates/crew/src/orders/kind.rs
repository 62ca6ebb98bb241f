//! What kind of order it is, by its words. Where they do not say it, it stays unknown.

use super::OrderKind;
use super::phrase::{Hits, Phrases};

/// The lists that tell kinds apart.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KindLists {
    research: usize,
    implementation: usize,
    verification: usize,
    unchanged: usize,
}

impl KindLists {
    /// None where the data lacks one of them.
    pub(super) fn of(phrases: &Phrases) -> Option<Self> {
        Some(Self {
            research: phrases.list("research")?,
            implementation: phrases.list("implementation")?,
            verification: phrases.list("verification")?,
            unchanged: phrases.list("unchanged")?,
        })
    }

    pub(super) fn infer(self, hits: &Hits) -> Option<OrderKind> {
        let first = |list| hits.of(list).map(|(at, _)| at);
        let research = first(self.research);
        let verification = first(self.verification);
        let is_verification =
            verification.is_some_and(|at| research.is_none_or(|other| at <= other));
        if first(self.unchanged).is_some() {
            return Some(match is_verification {
                true => OrderKind::Verification,
                false => OrderKind::Research,
            });
        }
        match first(self.implementation) {
            // Who is to verify and to mend stays one who verifies: a rule speaks of that.
            Some(at) if is_verification && verification.is_some_and(|other| other < at) => {
                Some(OrderKind::Verification)
            }
            // To read first is a part of most work.
            Some(_) => Some(OrderKind::Implementation),
            None if is_verification => Some(OrderKind::Verification),
            None => research.map(|_| OrderKind::Research),
        }
    }
}
