//! A floor under the free space of a disk: below it, files that could be left out are not written.

use gaffer_protocol::{Clock, Timestamp};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// So long a figure counts, in milliseconds. Even a fast disk is not filled by much more in it
/// than the floor leaves room for.
const FRESH: u64 = 2_000;

/// Where the figure comes from.
type Gauge = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

/// Clones are the same one.
#[derive(Clone, Default)]
pub struct Floor(Option<Arc<Inner>>);

struct Inner {
    path: PathBuf,
    least: u64,
    gauge: Box<Gauge>,
    clock: Arc<dyn Clock>,
    last: Mutex<Option<(Timestamp, u64)>>,
}

/// There is less free than there should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "only {} MB are free on the disk of {}, less than the {} MB of `minFreeSpace`",
    .free / 1_000_000, .path.display(), .least / 1_000_000
)]
pub struct Low {
    pub path: PathBuf,
    pub free: u64,
    pub least: u64,
}

impl Floor {
    /// Under the disk that a folder is on, or will be on once it is made. No bytes are no floor.
    pub fn new(path: &Path, least: u64, clock: Arc<dyn Clock>) -> Self {
        Self::with(path, least, clock, Box::new(free))
    }

    /// The same with a figure from elsewhere.
    pub fn with(path: &Path, least: u64, clock: Arc<dyn Clock>, gauge: Box<Gauge>) -> Self {
        Self((least > 0).then(|| {
            Arc::new(Inner {
                path: path.to_owned(),
                least,
                gauge,
                clock,
                last: Mutex::default(),
            })
        }))
    }

    /// Whether there is room. A disk that does not say how full it is has some.
    pub fn check(&self) -> Result<(), Low> {
        let Some(inner) = &self.0 else {
            return Ok(());
        };
        match inner.free() {
            Some(free) if free < inner.least => Err(Low {
                path: inner.path.clone(),
                free,
                least: inner.least,
            }),
            _ => Ok(()),
        }
    }
}

impl Inner {
    fn free(&self) -> Option<u64> {
        let now = self.clock.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |at: Timestamp| at <= now && now.0 - at.0 < FRESH;
        if let Some((_, free)) = last.filter(|(at, _)| is_fresh(*at)) {
            return Some(free);
        }
        let free = (self.gauge)(&self.path).ok()?;
        *last = Some((now, free));
        Some(free)
    }
}

/// What the user may still write on the disk of a folder.
fn free(path: &Path) -> io::Result<u64> {
    let there = path.ancestors().find(|folder| folder.exists());
    let stat = rustix::fs::statvfs(there.unwrap_or(path))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

impl fmt::Debug for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.0.as_ref().map(|inner| inner.least);
        f.debug_tuple("Floor").field(&least).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    struct Now(AtomicU64);

    impl Clock for Now {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn a_full_disk_is_noticed_and_so_is_one_with_room_again() {
        let now = Arc::new(Now::default());
        let room = Arc::new(AtomicU64::new(600_000_000));
        let gauge = room.clone();
        let gauge = move |_: &Path| Ok(gauge.load(Ordering::Relaxed));
        let floor = Floor::with(Path::new("/x"), 500_000_000, now.clone(), Box::new(gauge));
        assert_eq!(floor.check(), Ok(()));
        room.store(20_000_000, Ordering::Relaxed);
        assert_eq!(floor.check(), Ok(()), "asked a moment ago");
        now.0.store(FRESH, Ordering::Relaxed);
        let low = floor.check().unwrap_err();
        assert_eq!(
            low.to_string(),
            "only 20 MB are free on the disk of /x, less than the 500 MB of `minFreeSpace`"
        );
        room.store(600_000_000, Ordering::Relaxed);
        now.0.store(2 * FRESH, Ordering::Relaxed);
        assert_eq!(floor.check(), Ok(()));
    }

    #[test]
    fn without_a_floor_or_a_figure_there_is_room() {
        let now = Arc::new(Now::default());
        let broken = |_: &Path| Err(io::Error::other("no figure"));
        let floor = Floor::with(Path::new("/x"), 5, now.clone(), Box::new(broken));
        assert_eq!(floor.check(), Ok(()));
        assert_eq!(Floor::default().check(), Ok(()));
        let temp = tempfile::tempdir().unwrap();
        let later = temp.path().join("not/yet/there");
        assert_eq!(Floor::new(&later, 0, now.clone()).check(), Ok(()));
        let all = Floor::new(&later, u64::MAX, now).check().unwrap_err();
        assert!(all.free > 0, "the disk of the folder above it");
    }
}
