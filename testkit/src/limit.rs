//! A limit of requests a second, as providers have it: a bucket that fills at a steady rate.

use gaffer_model::script::{Fault, RateLimited, Span};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Limit {
    rate: f64,
    burst: f64,
    retry_after: Option<Duration>,
    left: f64,
    at: Instant,
    seen: Vec<(Instant, bool)>,
}

impl Limit {
    pub fn new(rate: f64, burst: f64, retry_after: Option<Duration>) -> Self {
        Self {
            rate,
            burst,
            retry_after,
            left: burst,
            at: Instant::now(),
            seen: Vec::new(),
        }
    }

    /// Lets a request pass, or says how it is refused.
    pub(crate) fn take(&mut self) -> Option<Fault> {
        let now = Instant::now();
        let filled = (now - self.at).as_secs_f64() * self.rate;
        (self.left, self.at) = (self.burst.min(self.left + filled), now);
        let passes = self.left >= 1.0;
        self.seen.push((now, passes));
        if passes {
            self.left -= 1.0;
            return None;
        }
        let retry_after = self.retry_after.map(Span);
        Some(Fault::RateLimited(RateLimited { retry_after }))
    }

    pub(crate) fn seen(&self) -> &[(Instant, bool)] {
        &self.seen
    }
}
