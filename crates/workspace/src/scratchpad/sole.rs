//! Opening a file of the scratchpad that has no second name elsewhere.
//!
//! A hard link would bring in a file from outside. That a file has one name is no proof: it may
//! have had two when it was opened, and ours may be the one that was removed since. But whatever
//! gives or takes a name is written down in the file's time of change. If that time is before the
//! opening, the number of names is what it was then.

use crate::fence::{FenceError, Fenced, Stamp};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// File systems tell times apart by the ticks of the kernel's clock, which has 100 to 1000 of them
/// in a second.
pub(super) const TICK: Duration = Duration::from_millis(3);
/// So many ticks are waited for a file to be left alone.
pub(super) const TICKS: usize = 8;

#[derive(Debug)]
pub(super) enum Opened {
    /// One name, or no regular file.
    Sole {
        file: File,
        stamp: Stamp,
    },
    HardLink {
        size: u64,
    },
    /// It was changed just now: nothing is certain.
    Fresh,
}

/// Tells the file system's time.
#[derive(Debug)]
pub(super) struct Probe(File);

impl Probe {
    /// By a file of ours in the same file system.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        file.try_clone().map(Self)
    }

    /// What is changed from now on bears no earlier time.
    pub(super) fn now(&self) -> io::Result<(i64, u64)> {
        let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let times = Timestamps {
            last_access: at(UTIME_OMIT),
            last_modification: at(UTIME_NOW),
        };
        rustix::fs::futimens(&self.0, &times)?;
        let stat = rustix::fs::fstat(&self.0)?;
        Ok((stat.st_mtime, stat.st_mtime_nsec))
    }

    pub(super) fn open(&self, fenced: &Fenced) -> Result<Opened, FenceError> {
        let before = self.now()?;
        let file = fenced.open()?;
        let metadata = file.metadata()?;
        let nanoseconds = |of: i64| u64::try_from(of).unwrap_or(0);
        let stamp = Stamp {
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), nanoseconds(metadata.mtime_nsec())),
            changed: (metadata.ctime(), nanoseconds(metadata.ctime_nsec())),
        };
        if !metadata.is_file() {
            return Ok(Opened::Sole { file, stamp });
        }
        if metadata.nlink() > 1 {
            return Ok(Opened::HardLink { size: stamp.size });
        }
        // A time that is still to come is left from a clock that was set back.
        let is_to_come = stamp.changed.0 > before.0 + 1;
        match stamp.changed < before || is_to_come {
            true => Ok(Opened::Sole { file, stamp }),
            false => Ok(Opened::Fresh),
        }
    }
}
