//! What a gate knows, and how places are given by it: pure, without a clock, a file or a runtime.
//! One process holds it in memory; several share it as bytes in a file (see `bytes.rs`).

use super::pace::{Pace, SECOND};
use std::time::Duration;

/// So many widths' worth of successes take the gate from closed to fully open again.
const STEPS_TO_FULL: u32 = 16;
/// So many processes can share a gate.
pub(crate) const ROWS: usize = 64;
/// A process that has waited but not asked for so long is passed over.
const FRESH: u64 = SECOND / 2;
/// How much wider than the learnt rate needs the gate stays, so that the rate is what limits.
const ROOM: f64 = 1.25;
/// No pause is believed to be longer; a provider that says so is asked again.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) limit: u32,
    pub(crate) width: u32,
    /// The most requests under way since the last halving: what is halved, if it is less than
    /// the width. A gate that is far too wide would not feel the first halvings otherwise.
    pub(crate) peak: u32,
    /// Successes since the width last changed.
    pub(crate) successes: u32,
    /// Counts the halvings: a request that began before the last one does not halve again.
    pub(crate) epoch: u64,
    pub(crate) closed_until: u64,
    /// When the record was last written.
    pub(crate) stamp: u64,
    /// Seconds that a good answer takes, on average.
    pub(crate) service: f64,
    /// The last ticket that was given to somebody who waits.
    pub(crate) tickets: u64,
    pub(crate) pace: Pace,
    pub(crate) rows: [Row; ROWS],
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Row {
    /// Of its own settings; 0 if the row is nobody's.
    pub(crate) limit: u32,
    pub(crate) under_way: u32,
    /// Where it stands among those that wait; 0 if it does not.
    pub(crate) ticket: u64,
    /// When it last asked in vain.
    pub(crate) seen: u64,
}

/// Why a provider wanted less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// Requests come too fast: 429.
    TooFast,
    /// The provider has too much to do: 529.
    Overloaded,
}

/// How a request ended, as far as the gate cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Good,
    Pressed(Pressure, Option<Duration>),
    Other,
}

/// A request that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) epoch: u64,
    pub(crate) began: u64,
}

impl Record {
    pub(crate) fn new(limit: u32) -> Self {
        let limit = limit.max(1);
        Self {
            limit,
            width: limit,
            peak: 0,
            successes: 0,
            epoch: 0,
            closed_until: 0,
            stamp: 0,
            service: 0.0,
            tickets: 0,
            pace: Pace::default(),
            rows: [Row::default(); ROWS],
        }
    }

    pub(crate) fn under_way(&self) -> u32 {
        let each = self.rows.iter().map(|row| row.under_way);
        each.fold(0, u32::saturating_add)
    }

    /// The strictest setting of those who are there counts for all.
    pub(crate) fn fit_limit(&mut self) {
        let limits = self.rows.iter().map(|row| row.limit);
        let Some(limit) = limits.filter(|limit| *limit > 0).min() else {
            return;
        };
        let was_open = self.width == self.limit;
        self.limit = limit;
        self.width = if was_open {
            limit
        } else {
            self.width.min(limit)
        };
    }

    /// A place and when its request may start, or none.
    pub(crate) fn ask(&mut self, me: usize, now: u64) -> Option<u64> {
        let total = self.under_way();
        let free = self.width.saturating_sub(total);
        if free == 0 || !self.is_turn_of(me, free, now) {
            if self.rows[me].ticket == 0 {
                self.tickets += 1;
                self.rows[me].ticket = self.tickets;
            }
            self.rows[me].seen = now;
            return None;
        }
        self.rows[me].ticket = 0;
        self.rows[me].under_way += 1;
        self.peak = self.peak.max(total + 1);
        Some(self.pace.reserve(now.max(self.closed_until)))
    }

    /// Each process has its share of the width. What others do not use can be had beyond it, but
    /// not past those who have waited longer.
    fn is_turn_of(&self, me: usize, free: u32, now: u64) -> bool {
        let waits = |row: &Row| row.ticket > 0 && now.saturating_sub(row.seen) < FRESH;
        let others = || {
            let all = self.rows.iter().enumerate();
            all.filter(move |(at, _)| *at != me).map(|(_, row)| row)
        };
        let busy = others().filter(|row| row.under_way > 0 || waits(row));
        let share = self.width / (1 + busy.count() as u32);
        let mine = match self.rows[me].ticket {
            0 => u64::MAX,
            ticket => ticket,
        };
        let ahead = others().filter(|row| waits(row) && row.ticket < mine);
        self.rows[me].under_way < share || free as usize > ahead.count()
    }

    /// Whether others than this process have requests under way or wait for a place.
    pub(crate) fn has_others(&self, me: usize) -> bool {
        let mut rows = self.rows.iter().enumerate();
        rows.any(|(at, row)| at != me && (row.under_way > 0 || row.ticket > 0))
    }

    /// Takes the account of a request that has ended, and its place back.
    pub(crate) fn end(&mut self, me: usize, ended: Ended, now: u64) {
        self.rows[me].under_way = self.rows[me].under_way.saturating_sub(1);
        match ended.outcome {
            Outcome::Other => {}
            Outcome::Good => {
                let took = now.saturating_sub(ended.began) as f64 / SECOND as f64;
                let share = if self.service == 0.0 { 1.0 } else { 0.05 };
                self.service += (took.min(1e6) - self.service) * share;
                self.pace.succeeded(now);
                self.grow();
            }
            Outcome::Pressed(pressure, wait) => {
                let pause = wait.unwrap_or_default().min(LONGEST_PAUSE).as_micros() as u64;
                if ended.epoch == self.epoch {
                    self.epoch += 1;
                    if pressure == Pressure::TooFast {
                        self.pace.refused(now, pause, self.under_way());
                    }
                    self.halve(pressure);
                }
                self.closed_until = self.closed_until.max(now + pause);
            }
        }
    }

    fn grow(&mut self) {
        if self.width < self.limit {
            self.successes += 1;
            if self.successes >= self.width {
                self.successes = 0;
                let step = self.limit.div_ceil(STEPS_TO_FULL);
                self.width = self.limit.min(self.width + step);
            }
        }
    }

    fn halve(&mut self, pressure: Pressure) {
        let width = self.width.min(self.peak.max(1)) / 2;
        // Where the rate is known it is the rate that helps; a gate so narrow that the rate is
        // not reached would only waste it.
        let needed = match (pressure, self.pace.rate()) {
            (Pressure::TooFast, Some(rate)) => (rate * self.service * ROOM).ceil().min(1e6) as u32,
            _ => 1,
        };
        self.width = width.max(needed.min(self.width)).max(1);
        self.successes = 0;
        self.peak = self.under_way();
    }

    /// Times of a clock that has since begun anew (the machine was started again) or went back
    /// are moved to where they mean the same.
    pub(crate) fn follow(&mut self, now: u64) {
        let back = self.stamp.saturating_sub(now);
        if back > 0 {
            let moved = |time: u64| time.saturating_sub(back);
            self.closed_until = moved(self.closed_until);
            self.pace.next = moved(self.pace.next);
            self.pace.since = moved(self.pace.since);
            self.pace.window = moved(self.pace.window);
            for row in &mut self.rows {
                row.seen = moved(row.seen);
            }
        }
        self.stamp = now;
    }

    /// Whether all of it can be true at this time. Who can write the file could also write
    /// something that holds everybody up for ever.
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        let longest = LONGEST_PAUSE.as_micros() as u64 + 60 * 60 * SECOND;
        let width = 1 <= self.width && self.width <= self.limit && self.limit < 1 << 24;
        let counts = self.tickets < 1 << 60 && self.epoch < 1 << 60 && self.successes < 1 << 24;
        let rows = self
            .rows
            .iter()
            .all(|row| row.under_way < 1 << 24 && row.ticket <= self.tickets && row.seen <= now);
        let service = (0.0..=1e6).contains(&self.service);
        let times = self.closed_until <= now + longest;
        width && counts && rows && service && times && self.pace.is_sound(now, longest)
    }
}
