//! Where a gate's record is: in memory, or in a file that is shared. A file that cannot be used is
//! given up for memory, once and for good: no request waits for a broken disk.

use super::record::{Ended, Record};
use super::shared::{Shared, SharedError};
use super::time::Ticks;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the file may be locked before it is given up.
const LONGEST_LOCK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Ground {
    Own(Box<Record>),
    /// To be shared in this folder, but not yet opened.
    Folder(PathBuf),
    Shared(Shared, PathBuf),
}

impl Ground {
    pub(super) fn own(limit: u32) -> Self {
        Self::Own(Box::new(Record::new(limit)))
    }
}

/// What one process knows of its gate.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) ground: Ground,
    pub(super) limit: u32,
    /// The places of this process. This is the truth; its row in a shared record follows.
    pub(super) under_way: u32,
    /// Requests that have ended, but not yet in the record.
    debts: Vec<Ended>,
    /// For the user, until it is said.
    pub(super) notice: Option<String>,
    time: Arc<dyn Ticks>,
    /// Since when the file has been locked by another process without a break.
    locked_since: Option<Instant>,
}

impl Local {
    pub(super) fn new(ground: Ground, limit: u32, time: Arc<dyn Ticks>) -> Self {
        Self {
            ground,
            limit: limit.max(1),
            under_way: 0,
            debts: Vec::new(),
            notice: None,
            time,
            locked_since: None,
        }
    }

    /// Changes the record: `work` is given it, this process's row and the time in microseconds.
    /// `None` if another process holds the lock right now.
    pub(super) fn change<T>(
        &mut self,
        work: impl FnOnce(&mut Record, usize, u64) -> T,
    ) -> Option<T> {
        if let Ground::Folder(folder) = &self.ground {
            let folder = folder.clone();
            self.join(&folder)?;
        }
        let time = self.time.clone();
        let now = || micros(&*time);
        let mut under_way = self.under_way;
        let mut work = Some(work);
        let debts = &mut self.debts;
        let mut run = |record: &mut Record, me: usize, now: u64| {
            for ended in debts.drain(..) {
                record.end(me, ended, now);
            }
            let done = work.take().map(|work| work(record, me, now));
            under_way = record.rows[me].under_way;
            done
        };
        let mut failed = None;
        let mut done = None;
        if let Ground::Shared(shared, folder) = &mut self.ground {
            match shared.update(self.under_way, now, &mut run) {
                Ok(found) => {
                    self.locked_since = None;
                    done = found;
                }
                Err((error, found)) => {
                    let (found, record) =
                        found.map_or((None, None), |(it, record)| (it, Some(record)));
                    done = found;
                    failed = Some((error, folder.clone(), record));
                }
            }
        }
        if let Ground::Own(record) = &mut self.ground {
            done = run(record, 0, now());
        }
        self.under_way = under_way;
        match failed {
            None => done,
            Some((error, folder, record)) => self.after(&error, &folder, record, done),
        }
    }

    /// Takes a place back. If the record is locked the place is owed, and paid with the next
    /// change, whatever it is for.
    pub(super) fn end(&mut self, ended: Ended) -> Option<()> {
        self.debts.push(ended);
        self.pay()
    }

    pub(super) fn pay(&mut self) -> Option<()> {
        self.change(|_, _, _| ())
    }

    fn join(&mut self, folder: &Path) -> Option<()> {
        let time = self.time.clone();
        match Shared::join(folder, self.limit, || micros(&*time)) {
            Ok(shared) => {
                self.ground = Ground::Shared(shared, folder.to_owned());
                Some(())
            }
            Err(error) => self.after(&error, folder, None, Some(())),
        }
    }

    /// What is to be done when the shared record could not be changed. `done` is what a change has
    /// given that could not be written.
    fn after<T>(
        &mut self,
        error: &SharedError,
        folder: &Path,
        record: Option<Box<Record>>,
        done: Option<T>,
    ) -> Option<T> {
        match error {
            SharedError::Busy => {
                let since = *self.locked_since.get_or_insert_with(Instant::now);
                if since.elapsed() < LONGEST_LOCK {
                    return None;
                }
            }
            // A new one is made at the next try.
            SharedError::Gone => {
                self.ground = Ground::Folder(folder.to_owned());
                return None;
            }
            _ => {}
        }
        let mut own = record.unwrap_or_else(|| Box::new(Record::new(self.limit)));
        own.rows = Record::new(self.limit).rows;
        own.rows[0].under_way = self.under_way;
        self.ground = Ground::Own(own);
        self.notice = Some(format!(
            "the limits of the provider are not shared with other gaffer processes: {}: {error}",
            folder.display()
        ));
        done
    }
}

fn micros(time: &dyn Ticks) -> u64 {
    u64::try_from(time.now().as_micros()).unwrap_or(u64::MAX / 4)
}
