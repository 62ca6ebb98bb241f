//! The gate's time: one that all processes of the machine share, or a runtime's own.

use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// A clock that does not jump when somebody sets the time. What it counts from does not matter,
/// if it is the same for all who share a gate.
pub trait Ticks: Send + Sync + fmt::Debug {
    fn now(&self) -> Duration;
}

/// Since the machine started, sleep included: a pause that a provider asked for goes by while a
/// laptop is closed.
#[derive(Debug, Clone, Copy, Default)]
pub struct SinceBoot;

impl Ticks for SinceBoot {
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }
}

/// The runtime's time, which tests can let pass.
#[derive(Debug, Clone, Copy)]
pub struct SinceStart(Instant);

impl SinceStart {
    /// Counts from a moment, the same for all gates that share a file.
    pub fn new(start: Instant) -> Self {
        Self(start)
    }
}

impl Ticks for SinceStart {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
