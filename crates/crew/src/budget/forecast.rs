//! What a worker will use: the mean of those that have ended in the session.

use super::purse::Amount;
use std::collections::BTreeMap;

/// Before any worker has ended, one is taken to use this part of a cap.
pub(crate) const DEFAULT_PART: u64 = 10;

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    total: Amount,
    count: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Forecast {
    by_kind: BTreeMap<String, Sum>,
    all: Sum,
    requests: Sum,
}

/// What is expected of one worker, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) amount: Amount,
    pub(crate) basis: Basis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    Kind(u64),
    All(u64),
    Default,
}

impl std::fmt::Display for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kind(count) => write!(f, "the mean of {count} of its type that ended"),
            Self::All(count) => write!(f, "the mean of {count} that ended"),
            Self::Default => write!(f, "none has ended yet: 1/{DEFAULT_PART} of the cap"),
        }
    }
}

impl Sum {
    fn add(&mut self, amount: Amount) {
        self.total = self.total.plus(amount);
        self.count += 1;
    }

    fn mean(self) -> Option<Amount> {
        (self.count > 0).then(|| self.total.part(self.count))
    }
}

impl Forecast {
    /// A run of a worker has come to this.
    pub(crate) fn learn(&mut self, kind: &str, amount: Amount) {
        self.by_kind.entry(kind.to_owned()).or_default().add(amount);
        self.all.add(amount);
    }

    pub(crate) fn learn_request(&mut self, amount: Amount) {
        self.requests.add(amount);
    }

    /// The mean request, for one of whom nothing is known.
    pub(crate) fn request(&self) -> Amount {
        self.requests.mean().unwrap_or_default()
    }

    /// What a worker of this type will use, with a cap of `most`.
    pub(crate) fn of(&self, kind: &str, most: Amount) -> Expected {
        let own = self.by_kind.get(kind).copied().unwrap_or_default();
        let known = own.mean().map(|mean| (mean, Basis::Kind(own.count)));
        let known = known.or_else(|| {
            let mean = self.all.mean()?;
            Some((mean, Basis::All(self.all.count)))
        });
        // Where there is no cap there is no part of it either.
        let part = Amount {
            micro: if most.micro == u64::MAX {
                0
            } else {
                most.micro / DEFAULT_PART
            },
            tokens: if most.tokens == u64::MAX {
                0
            } else {
                most.tokens / DEFAULT_PART
            },
        };
        let (amount, basis) = known.unwrap_or((part, Basis::Default));
        Expected { amount, basis }
    }
}
