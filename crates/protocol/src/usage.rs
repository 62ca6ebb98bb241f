//! What an answer cost: tokens as the provider counted them, and money where the price is known.

use serde::{Deserialize, Serialize};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Tokens of one or more answers. The four kinds do not overlap: all input is
/// `input + cache_read + cache_write`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from nor written to the provider's cache.
    pub input: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Everything the model wrote, reasoning included.
    pub output: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    pub fn total(self) -> u64 {
        self.all_input().saturating_add(self.output)
    }

    pub fn all_input(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

impl Add for Usage {
    type Output = Self;
    /// Saturates: a provider's figures are not ours to trust.
    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

/// Money in millionths of a dollar. `Unknown` once any part of it has no price.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    MicroUsd(u64),
    Unknown,
}

impl Default for Cost {
    fn default() -> Self {
        Self::MicroUsd(0)
    }
}

impl Cost {
    pub fn usd(self) -> Option<f64> {
        match self {
            Self::MicroUsd(micro) => Some(micro as f64 / 1e6),
            Self::Unknown => None,
        }
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::MicroUsd(a), Self::MicroUsd(b)) => Self::MicroUsd(a.saturating_add(b)),
            _ => Self::Unknown,
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.usd() {
            Some(usd) if usd < 0.995 => write!(f, "${usd:.3}"),
            Some(usd) => write!(f, "${usd:.2}"),
            None => f.write_str("cost unknown"),
        }
    }
}
