//! The pace: how fast requests may start, once a provider has said that they come too fast.
//!
//! The number of requests at once says little about how many a second there are, so a rate that
//! a provider limits is learnt here. Until the first refusal nothing is held back. After one, the
//! rate lies below the one that was refused, comes back to just under it quickly, stays there
//! long, and then tries more: a cubic curve over the requests sent, so that it fits ten requests a
//! minute and a thousand a second alike.

/// Microseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000;
/// Successes are counted by windows of this length for the first guess.
const WINDOW: u64 = 5 * SECOND;
/// With fewer requests than this nothing is known about the rate.
const FEWEST: u32 = 5;
/// Good answers between two refusals that both take from the rate.
const FEWEST_PASSED: u32 = 3;
/// A start that comes late by up to this much does not delay those behind it: timers are coarse.
const SLACK: u64 = 10_000;
/// Where the curve is flat, in parts of the refused rate.
const FLAT: f64 = 0.98;
/// How far the curve begins below that.
const DEPTH: f64 = 0.07;
/// So many requests reach the flat part.
const SHORTEST: f64 = 100.0;
/// The same after the first refusal, when the rate is hardly known: a guess that is far too low
/// is soon left behind, and one that is too high is refused again.
const SHORTEST_OF_GUESS: f64 = 10.0;
/// The flat part is reached only after so many times what a pause costs in requests: whoever is
/// sent away for long tries more seldom.
const WORTH: f64 = 24.0;
/// The same after a refusal that came soon after a pause: the rate is not yet known well.
const WORTH_SOON: f64 = 12.0;
/// At so many lengths of the curve the limit is gone.
const GONE: f64 = 8.0;
/// No refusal takes more of the rate than to this part.
const DEEPEST_CUT: f64 = 0.8;
/// Requests a second that are always tried.
const SLOWEST: f64 = 1.0 / 60.0;
/// A refusal that comes soon after a pause takes at least to this part: pauses cost more.
const CUT_AFTER_PAUSE: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Pace {
    /// Requests a second that were too many; 0 while nothing is known.
    pub(crate) ceiling: f64,
    /// Requests since the last refusal that had to wait for their start.
    pub(crate) sent: f64,
    /// So many of them reach the flat part of the curve.
    pub(crate) length: f64,
    /// What was sent between earlier refusals, each time halved. It keeps one unlucky refusal
    /// from looking like a rate that is far too high.
    pub(crate) memory: f64,
    /// Since when requests have been sent without a refusal.
    pub(crate) since: u64,
    /// The next start.
    pub(crate) next: u64,
    pub(crate) window: u64,
    pub(crate) before: u32,
    pub(crate) count: u32,
    /// Good answers since the last refusal. They may be of requests before it: answers take long.
    pub(crate) passed: u32,
}

impl Pace {
    /// Requests a second, if they are held back at all.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.ceiling > 0.0).then(|| {
            let x = (self.sent / self.length).min(GONE) - 1.0;
            self.ceiling * FLAT * (1.0 + DEPTH * x * x * x)
        })
    }

    /// When the next request may start, not before `at`.
    pub(crate) fn reserve(&mut self, at: u64) -> u64 {
        let Some(rate) = self.rate() else {
            return at;
        };
        let earliest = at.saturating_sub(SLACK);
        // Only who is held back tries the limit: what an idle time did not send proves nothing.
        if self.next > earliest {
            self.sent += 1.0;
        }
        let start = self.next.max(earliest);
        self.next = start + (SECOND as f64 / rate) as u64;
        if self.sent > GONE * self.length.max(SHORTEST) {
            *self = Self::default();
        }
        start.max(at)
    }

    pub(crate) fn succeeded(&mut self, now: u64) {
        self.passed = self.passed.saturating_add(1);
        let passed = now.saturating_sub(self.window);
        if passed >= 2 * WINDOW {
            (self.window, self.before, self.count) = (now, 0, 0);
        } else if passed >= WINDOW {
            (self.before, self.count) = (self.count, 0);
            self.window += WINDOW;
        }
        self.count = self.count.saturating_add(1);
    }

    /// The provider refused a request that started after the last refusal, and asked for a pause.
    /// So many more are under way.
    pub(crate) fn refused(&mut self, now: u64, pause: u64, under_way: u32) {
        match self.rate() {
            None => {
                let guess = self.guess(now, under_way);
                // What is not counted in a pause is not slow.
                self.window += pause;
                let Some(guess) = guess else {
                    return;
                };
                (self.ceiling, self.length) = (guess, SHORTEST_OF_GUESS);
            }
            // A provider that lets hardly anything pass says nothing about the rate, and requests
            // that were on their way at the last refusal say the same once more.
            Some(_) if self.passed < FEWEST_PASSED => return,
            Some(rate) => {
                let is_soon = now.saturating_sub(self.since) < 10 * pause;
                self.ceiling = (rate * self.cut(is_soon)).max(SLOWEST);
                let worth = if is_soon { WORTH_SOON } else { WORTH };
                let cost = worth * self.ceiling * pause as f64 / SECOND as f64;
                // Where refusals came in a row the rate may have been cut too deep.
                let least = self.memory.clamp(SHORTEST_OF_GUESS, SHORTEST);
                self.length = cost.clamp(least, SHORTEST * 1000.0);
            }
        }
        (self.sent, self.passed) = (0.0, 0);
        self.since = now + pause;
        // Starts that are promised already stay where they are, so nothing goes between them.
        let interval = (SECOND as f64 / self.ceiling) as u64;
        self.next = self.next.max(now + pause + interval);
    }

    /// What passed lately, and what may pass yet: too high a guess is put right in moments, too
    /// low a one takes long. A second is the least: at first a provider lets a burst through.
    fn guess(&self, now: u64, under_way: u32) -> Option<f64> {
        let passed = now.saturating_sub(self.window);
        let (count, span) = match passed {
            0..WINDOW if self.before > 0 => (self.before + self.count, passed + WINDOW),
            0..WINDOW => (self.count, passed),
            _ => (self.count, passed.min(2 * WINDOW)),
        };
        let seconds = span.max(SECOND) as f64 / SECOND as f64;
        let all = count + under_way;
        (count > 0 && all >= FEWEST).then(|| f64::from(all) / seconds)
    }

    /// If of n + 1 requests the last is the first that is too much, the rate was too high by one
    /// part in n + 1.
    fn cut(&mut self, is_soon: bool) -> f64 {
        self.memory = self.memory / 2.0 + self.sent;
        let cut = (1.0 - 1.0 / (self.memory + 1.0)).max(DEEPEST_CUT);
        if is_soon {
            cut.min(CUT_AFTER_PAUSE)
        } else {
            cut
        }
    }

    /// Whether all of it can be true at this time.
    pub(crate) fn is_sound(&self, now: u64, longest: u64) -> bool {
        let counts = [self.sent, self.length, self.memory, self.ceiling];
        let sound = counts.iter().all(|it| (0.0..1e9).contains(it));
        let begun =
            self.ceiling == 0.0 || (self.ceiling > 1e-6 && self.length >= SHORTEST_OF_GUESS);
        let times = self.next <= now + longest
            && self.window <= now + longest
            && self.since <= now + longest;
        sound && begun && times && self.count < 1 << 30 && self.before < 1 << 30
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(rate: u32) -> Pace {
        let mut pace = Pace::default();
        for n in 0..u64::from(rate) * 5 {
            pace.succeeded(10 * SECOND + n * SECOND / u64::from(rate));
        }
        pace.refused(15 * SECOND, 0, 0);
        pace
    }

    #[test]
    fn nothing_is_held_back_before_the_first_refusal() {
        let mut pace = Pace::default();
        for now in 0..10_000 {
            assert_eq!(pace.reserve(now), now);
            pace.succeeded(now);
        }
        assert_eq!(pace.rate(), None);
    }

    #[test]
    fn a_refusal_with_hardly_a_success_teaches_no_rate() {
        let mut pace = Pace::default();
        pace.succeeded(5);
        pace.refused(6, 0, 0);
        assert_eq!(pace.rate(), None);
    }

    #[test]
    fn the_first_guess_is_what_passed() {
        for rate in [2, 100, 3000] {
            let got = refused_at(rate).ceiling / f64::from(rate);
            assert!((0.9..1.1).contains(&got), "{rate}: {got}");
        }
    }

    #[test]
    fn the_rate_stays_long_below_what_was_refused_and_then_tries_more() {
        let mut pace = refused_at(100);
        (pace.memory, pace.passed) = (300.0, FEWEST_PASSED);
        pace.refused(15 * SECOND, 0, 0);
        let ceiling = pace.ceiling;
        let mut below = 0;
        let mut now = 15 * SECOND;
        while pace.rate().unwrap() < ceiling {
            now = pace.reserve(now);
            below += 1;
        }
        assert!((120..250).contains(&below), "{below}");
        let seconds = (now - 15 * SECOND) as f64 / SECOND as f64;
        assert!(f64::from(below) / seconds > 0.95 * ceiling);
    }

    #[test]
    fn a_limit_that_is_gone_is_forgotten() {
        let mut pace = refused_at(10);
        let mut now = 15 * SECOND;
        for _ in 0..2000 {
            now = pace.reserve(now);
        }
        assert_eq!(pace.rate(), None);
    }

    #[test]
    fn one_unlucky_refusal_costs_little_and_a_row_of_them_much() {
        let mut pace = refused_at(100);
        let mut now = 16 * SECOND;
        for _ in 0..20 {
            now = pace.reserve(now);
        }
        let before = pace.rate().unwrap();
        let refuse = |pace: &mut Pace| {
            pace.passed = FEWEST_PASSED;
            pace.refused(now, 0, 0);
        };
        refuse(&mut pace);
        refuse(&mut pace);
        assert!(pace.ceiling > 0.75 * before, "{}", pace.ceiling);
        for _ in 0..20 {
            refuse(&mut pace);
        }
        assert!(pace.ceiling < 0.1 * before, "{}", pace.ceiling);
        let low = pace.ceiling;
        for _ in 0..20 {
            pace.refused(now, 0, 0);
        }
        assert_eq!(pace.ceiling, low, "a wall says nothing about the rate");
    }

    #[test]
    fn requests_that_are_not_held_back_prove_nothing() {
        let mut pace = refused_at(100);
        let rate = pace.rate();
        for n in 0..1000 {
            let now = (20 + n) * SECOND;
            assert_eq!(pace.reserve(now), now);
        }
        assert_eq!(pace.rate(), rate);
    }
}
