//! The gate: how many requests may be under way with one provider and key, and how fast.
//!
//! It starts open to its limit. When the provider says that it is too much (429, 529) the width
//! is halved, once for all requests that were under way together, and grows back with success.
//! A wait that the provider asks for stops everybody. Who came first goes first.
//!
//! Inside one process those who wait stand in line, and only the first asks: `record.rs` says
//! what is answered, `pace.rs` how fast, and `shared.rs` lets all processes ask the same record.

mod bytes;
mod ground;
mod pace;
mod record;
mod shared;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod sim_tests;
#[cfg(test)]
mod tests;
mod time;

pub use record::Pressure;
pub use time::{SinceBoot, SinceStart, Ticks};

use ground::{Ground, Local};
use record::{Ended, Outcome};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

/// How soon is asked again for a place that another process may give back, and how much later at
/// most.
const SOONEST: Duration = Duration::from_millis(4);
const LATEST: Duration = Duration::from_millis(25);
/// The same while no other process has anything under way; what this one gives back is known at
/// once.
const ALONE: Duration = Duration::from_millis(200);
/// The file of the record is locked by another process for microseconds.
const LOCKED: Duration = Duration::from_millis(1);
/// No sleep is longer, so that a machine that was suspended meanwhile does not sleep on.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Held by the first of those who wait.
    turn: Semaphore,
    /// So many requests this process can have under way, whatever the provider allows.
    own: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// A place of this process was given back, or the gate is wider.
    freed: Notify,
    local: Mutex<Local>,
}

/// What the gate looks like now, for showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateView {
    pub limit: u32,
    pub width: u32,
    /// In all processes that share the gate.
    pub under_way: u32,
    /// In this process.
    pub waiting: usize,
    /// How fast requests start, in requests a minute, if they are held back.
    pub pace: Option<u32>,
}

enum Asked {
    /// A place, and how long until its request may start.
    Place(Place, Duration),
    /// None is free; ask again after that long, or when one is given back.
    Full(Option<Duration>),
    Locked,
}

impl Gate {
    /// A gate of this process alone.
    pub fn new(limit: u32) -> Self {
        let time = SinceStart::new(Instant::now());
        Self::with(
            Local::new(Ground::own(limit), limit, Arc::new(time)),
            usize::MAX,
        )
    }

    /// A gate that all processes share who name this folder. It is opened with the first request;
    /// if that does not work the gate is this process's own, and `notice` says why. `most` is what
    /// this process can have under way, and no concern of the others.
    pub fn shared(folder: PathBuf, limit: u32, most: usize, time: Arc<dyn Ticks>) -> Self {
        Self::with(Local::new(Ground::Folder(folder), limit, time), most)
    }

    fn with(local: Local, most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            inner: Arc::new(Inner {
                turn: Semaphore::new(1),
                own: Arc::new(Semaphore::new(most)),
                waiting: AtomicUsize::new(0),
                freed: Notify::new(),
                local: Mutex::new(local),
            }),
        }
    }

    /// Waits for a place, in order of arrival, and then until its request may start. `on_wait` is
    /// called once if there is anything to wait for.
    pub async fn enter(&self, mut on_wait: impl FnMut()) -> Place {
        let mut told = None;
        let mut tell = || {
            if told.is_none() {
                told = Some(Waiting::new(&self.inner));
                on_wait();
            }
        };
        // Before the turn, so that who cannot start a request is in nobody's way.
        let own = match self.inner.own.clone().try_acquire_owned() {
            Ok(own) => Some(own),
            Err(_) => {
                tell();
                // It is never closed.
                self.inner.own.clone().acquire_owned().await.ok()
            }
        };
        let _turn = match self.inner.turn.try_acquire() {
            Ok(turn) => Some(turn),
            Err(_) => {
                tell();
                // It is never closed.
                self.inner.turn.acquire().await.ok()
            }
        };
        let mut again = SOONEST;
        let (mut place, mut wait) = loop {
            match self.ask() {
                Asked::Place(place, wait) => break (place, wait),
                Asked::Full(None) => {
                    tell();
                    self.inner.freed.notified().await;
                }
                Asked::Full(Some(latest)) => {
                    tell();
                    drop(timeout(again.min(latest), self.inner.freed.notified()).await);
                    again = (again * 2).min(latest);
                }
                Asked::Locked => sleep(LOCKED).await,
            }
        };
        while !wait.is_zero() {
            tell();
            sleep(wait.min(LONGEST_SLEEP)).await;
            wait = self.start(&mut place);
        }
        place.own = own;
        place
    }

    fn ask(&self) -> Asked {
        let mut local = self.lock();
        let is_shared = !matches!(local.ground, Ground::Own(_));
        let asked = local.change(|record, me, now| match record.ask(me, now) {
            Some(start) => Ok((start, record.epoch, now)),
            None => Err(record.has_others(me)),
        });
        drop(local);
        match asked {
            None => Asked::Locked,
            Some(Err(_)) if !is_shared => Asked::Full(None),
            Some(Err(true)) => Asked::Full(Some(LATEST)),
            Some(Err(false)) => Asked::Full(Some(ALONE)),
            Some(Ok((start, epoch, now))) => {
                let place = Place {
                    gate: self.clone(),
                    own: None,
                    ended: Ended {
                        outcome: Outcome::Other,
                        epoch,
                        began: start,
                    },
                };
                Asked::Place(place, Duration::from_micros(start.saturating_sub(now)))
            }
        }
    }

    /// Whether the request may start now, or else how much later: much may have happened since its
    /// start was set.
    fn start(&self, place: &mut Place) -> Duration {
        let set = place.ended.began;
        let changed = self.lock().change(|record, _, now| {
            (
                record.closed_until.max(set).saturating_sub(now),
                record.epoch,
                now,
            )
        });
        let Some((wait, epoch, now)) = changed else {
            return LOCKED;
        };
        (place.ended.epoch, place.ended.began) = (epoch, now.max(set));
        Duration::from_micros(wait)
    }

    pub fn view(&self) -> GateView {
        let mut local = self.lock();
        let limit = local.limit;
        let view = local.change(|record, _, _| GateView {
            limit: record.limit,
            width: record.width,
            under_way: record.under_way(),
            waiting: 0,
            pace: record.pace.rate().map(|rate| (rate * 60.0).ceil() as u32),
        });
        let unknown = GateView {
            limit,
            width: limit,
            under_way: local.under_way,
            waiting: 0,
            pace: None,
        };
        GateView {
            waiting: self.inner.waiting.load(Ordering::Relaxed),
            ..view.unwrap_or(unknown)
        }
    }

    /// Why the gate is not shared although it should be; said once.
    pub fn notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    fn lock(&self) -> MutexGuard<'_, Local> {
        let local = self.inner.local.lock();
        local.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts somebody who waits, until the wait is over or given up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.waiting.fetch_add(1, Ordering::Relaxed);
        Self(&inner.waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place in the gate. Giving it up, however that happens, lets the next one in.
#[derive(Debug)]
pub struct Place {
    gate: Gate,
    own: Option<OwnedSemaphorePermit>,
    ended: Ended,
}

impl Place {
    /// The request went well: the gate widens a little.
    pub fn succeeded(mut self) {
        self.ended.outcome = Outcome::Good;
    }

    /// The provider said that it is too much, and maybe for how long.
    pub fn pressed(mut self, pressure: Pressure, retry_after: Option<Duration>) {
        self.ended.outcome = Outcome::Pressed(pressure, retry_after);
    }
}

impl Drop for Place {
    /// Nothing may wait here: a lock that is not free at once is waited for on a thread. That is
    /// for a process that was stopped in the wrong microsecond, and ends when the file is given up
    /// for it.
    fn drop(&mut self) {
        let gate = self.gate.clone();
        let paid = gate.lock().end(self.ended);
        if paid.is_some() {
            gate.inner.freed.notify_one();
            return;
        }
        let again = move || {
            while gate.lock().pay().is_none() {
                std::thread::sleep(LOCKED);
            }
            gate.inner.freed.notify_one();
        };
        drop(std::thread::Builder::new().spawn(again));
    }
}
