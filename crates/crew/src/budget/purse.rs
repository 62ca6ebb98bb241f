//! A purse: the caps of one budget, and what was used of them by all who share it.

use gaffer_protocol::{Budget, Cap, CapUse, Cost, Usage, Used};
use std::collections::BTreeSet;
use std::time::Duration;

/// From this part of a cap on it counts as near.
const NEAR: f64 = 0.8;

/// Money in millionths of a dollar, and tokens of every kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) micro: u64,
    pub(crate) tokens: u64,
}

impl Amount {
    pub(crate) const MOST: Self = Self {
        micro: u64::MAX,
        tokens: u64::MAX,
    };

    pub(crate) fn of(usage: Usage, cost: Cost) -> Self {
        let micro = match cost {
            Cost::MicroUsd(micro) => micro,
            Cost::Unknown => 0,
        };
        Self {
            micro,
            tokens: usage.total(),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            micro: self.micro.saturating_add(other.micro),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            micro: self.micro.saturating_sub(other.micro),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            micro: self.micro.min(other.micro),
            tokens: self.tokens.min(other.tokens),
        }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            micro: self.micro.max(other.micro),
            tokens: self.tokens.max(other.tokens),
        }
    }

    pub(crate) fn part(self, of: u64) -> Self {
        Self {
            micro: self.micro / of.max(1),
            tokens: self.tokens / of.max(1),
        }
    }

    /// The figure that a cap is about.
    pub(crate) fn figure(self, cap: Cap) -> f64 {
        match cap {
            Cap::Usd => self.micro as f64 / 1e6,
            Cap::Tokens => self.tokens as f64,
            Cap::Seconds | Cap::Workers => 0.0,
        }
    }

    pub(crate) fn used(self) -> Used {
        Used {
            usd: self.figure(Cap::Usd),
            tokens: self.tokens,
            ..Used::default()
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Purse {
    pub(crate) caps: Budget,
    pub(crate) spent: Amount,
    pub(crate) workers: u32,
    /// How long anybody worked on it, up to the last moment that nobody did.
    pub(crate) ran: Duration,
    since: Option<Duration>,
    runners: u32,
    near: BTreeSet<Cap>,
    /// The cap that was reached. It stays so: what is freed later is for last turns.
    pub(crate) closed: Option<Cap>,
}

impl Purse {
    pub(crate) fn new(caps: Budget) -> Self {
        Self {
            caps,
            ..Self::default()
        }
    }

    /// Money and tokens that it holds in all; without a cap, without end.
    pub(crate) fn most(&self) -> Amount {
        Amount {
            micro: self.caps.usd.map_or(u64::MAX, |usd| (usd * 1e6) as u64),
            tokens: self.caps.tokens.unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn left(&self) -> Amount {
        self.most().minus(self.spent)
    }

    /// The cap that so much more would break.
    pub(crate) fn breaks(&self, more: Amount) -> Option<Cap> {
        let (most, sum) = (self.most(), self.spent.plus(more));
        match () {
            () if self.caps.usd.is_some() && sum.micro > most.micro => Some(Cap::Usd),
            () if self.caps.tokens.is_some() && sum.tokens > most.tokens => Some(Cap::Tokens),
            () => None,
        }
    }

    /// The cap that nothing is left of.
    pub(crate) fn is_empty(&self, at: Duration) -> Option<Cap> {
        let left = self.left();
        match () {
            () if left.micro == 0 => Some(Cap::Usd),
            () if left.tokens == 0 => Some(Cap::Tokens),
            () if self.time_left(at) == Some(Duration::ZERO) => Some(Cap::Seconds),
            () => None,
        }
    }

    pub(crate) fn time(&self, at: Duration) -> Duration {
        let now = self.since.map(|since| at.saturating_sub(since));
        self.ran.saturating_add(now.unwrap_or_default())
    }

    pub(crate) fn time_left(&self, at: Duration) -> Option<Duration> {
        let most = Duration::from_secs(self.caps.seconds?);
        Some(most.saturating_sub(self.time(at)))
    }

    /// Somebody works on it from now on.
    pub(crate) fn join(&mut self, at: Duration) {
        self.runners += 1;
        self.since.get_or_insert(at);
    }

    pub(crate) fn leave(&mut self, at: Duration) {
        self.runners = self.runners.saturating_sub(1);
        if self.runners == 0 {
            self.ran = self.time(at);
            self.since = None;
        }
    }

    pub(crate) fn how_much(&self, cap: Cap, at: Duration) -> CapUse {
        let used = match cap {
            Cap::Usd | Cap::Tokens => self.spent.figure(cap),
            Cap::Seconds => self.time(at).as_secs_f64(),
            Cap::Workers => f64::from(self.workers),
        };
        CapUse {
            cap,
            used,
            most: self.caps.most(cap).unwrap_or(f64::INFINITY),
        }
    }

    /// Caps that have come near since this was last asked.
    pub(crate) fn newly_near(&mut self, at: Duration) -> Vec<CapUse> {
        let all = Cap::ALL.map(|cap| self.how_much(cap, at));
        let near = all
            .into_iter()
            .filter(|it| it.most.is_finite() && it.used >= it.most * NEAR);
        near.filter(|it| self.near.insert(it.cap)).collect()
    }

    pub(crate) fn used(&self, at: Duration) -> Used {
        Used {
            seconds: self.time(at).as_secs_f64(),
            workers: self.workers,
            ..self.spent.used()
        }
    }
}
