//! Time and randomness for tests, and a sink that keeps events.

use gaffer_protocol::{AgentId, Clock, Entropy, EventKind, EventSink, Timestamp};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that stands still.
#[derive(Debug)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The same numbers for the same seed.
#[derive(Debug)]
pub struct Seeded(AtomicU64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Entropy for Seeded {
    /// SplitMix64.
    fn next(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Keeps every event.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Vec<EventKind>>);

impl Kept {
    pub fn events(&self) -> Vec<EventKind> {
        self.0.lock().unwrap().clone()
    }
}

impl EventSink for Kept {
    fn emit(&self, _: AgentId, kind: EventKind) {
        self.0.lock().unwrap().push(kind);
    }
}
