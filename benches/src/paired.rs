//! Two ways of doing the same, measured in turn. What else runs on the machine then meets both, and
//! a pair that it met in the middle is one of many.

use crate::report::least_and_middle;
use std::time::{Duration, Instant};

/// On a slow or busy machine a bench must still end, with fewer pairs.
const LONGEST: Duration = Duration::from_secs(10);
const FEWEST: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Paired {
    pub(crate) ours: Vec<Duration>,
    pub(crate) theirs: Vec<Duration>,
}

impl Paired {
    /// Measures so many pairs, or fewer where they take long. Who comes first changes from pair to
    /// pair.
    pub(crate) fn measure(
        pairs: usize,
        mut ours: impl FnMut() -> anyhow::Result<Duration>,
        mut theirs: impl FnMut() -> anyhow::Result<Duration>,
    ) -> anyhow::Result<Self> {
        let mut all = Self::default();
        let began = Instant::now();
        for pair in 0..pairs {
            if pair >= FEWEST && began.elapsed() > LONGEST {
                break;
            }
            if pair % 2 == 0 {
                all.ours.push(ours()?);
                all.theirs.push(theirs()?);
            } else {
                all.theirs.push(theirs()?);
                all.ours.push(ours()?);
            }
        }
        Ok(all)
    }

    /// The middle one of the pairs' ratios.
    pub(crate) fn ratio(&self) -> f64 {
        let ratio =
            |(ours, theirs): (&Duration, &Duration)| ours.as_secs_f64() / theirs.as_secs_f64();
        let mut ratios: Vec<f64> = self.ours.iter().zip(&self.theirs).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The middle one of what ours took longer, in microseconds; less than nothing if it was
    /// quicker.
    pub(crate) fn difference(&self) -> i128 {
        let micros = |span: &Duration| span.as_micros().cast_signed();
        let pairs = self.ours.iter().zip(&self.theirs);
        let differences: Vec<i128> = pairs.map(|(a, b)| micros(a) - micros(b)).collect();
        least_and_middle(&differences).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_compared_with_each_other() {
        let ms = |numbers: [u64; 3]| numbers.map(Duration::from_millis).into();
        // The whole machine was slow at the second pair.
        let paired = Paired {
            ours: ms([2, 60, 4]),
            theirs: ms([1, 20, 4]),
        };
        assert!((paired.ratio() - 2.0).abs() < 1e-9);
        assert_eq!(paired.difference(), 1000);
    }

    #[test]
    fn the_order_within_pairs_changes() {
        let order = std::cell::RefCell::new(String::new());
        let note = |who: char| {
            order.borrow_mut().push(who);
            Ok(Duration::ZERO)
        };
        Paired::measure(3, || note('a'), || note('b')).unwrap();
        assert_eq!(*order.borrow(), "abbaab");
    }
}
