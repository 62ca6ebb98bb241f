//! A record that all processes of the machine share: a file, changed under a lock that is held for
//! microseconds.
//!
//! Each process also holds the lock of a file of its own for as long as it lives. The kernel lets
//! go of it however the process ends, so who is gone is known for certain, whatever became of its
//! process number, and its places can be given to others.

use super::bytes;
use super::record::{ROWS, Record, Row};
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Tries for the lock before somebody else gets the processor for longer.
const TRIES: u32 = 100;
/// How often is looked who is still there, at most.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// What a gate that nobody has used for so long has learnt is forgotten, in microseconds.
const FORGOTTEN: u64 = 5 * 60 * 1_000_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("another process does not let go of it")]
    Busy,
    #[error("more than {ROWS} processes use it")]
    Crowded,
    #[error("it was deleted")]
    Gone,
}

/// Why a change failed, and what it was if only its writing did.
pub(crate) type Failed<T> = (SharedError, Option<(T, Box<Record>)>);

#[derive(Debug)]
pub(crate) struct Shared {
    folder: PathBuf,
    state: File,
    /// Which row is this process's.
    pub(crate) me: usize,
    limit: u32,
    /// Locked until this process is gone.
    _member: File,
    probed: Option<Instant>,
}

impl Shared {
    /// Joins those who share the gate in this folder, which is made if it is not there.
    pub(crate) fn join(
        folder: &Path,
        limit: u32,
        now: impl Fn() -> u64,
    ) -> Result<Self, SharedError> {
        make_folder(folder)?;
        let state = open(&folder.join("state"), true)?;
        let held = Held::new(&state)?;
        let (me, member) = claim(folder)?;
        let now = now();
        let mut record = held.read(limit, now)?;
        record.rows[me] = Row::default();
        clear_gone(folder, me, &mut record);
        let is_alone = record.rows.iter().all(|row| row.limit == 0);
        if is_alone && now.saturating_sub(record.stamp) > FORGOTTEN {
            let closed_until = record.closed_until;
            record = Record::new(limit);
            record.closed_until = closed_until;
        }
        record.rows[me].limit = limit;
        record.fit_limit();
        record.follow(now);
        held.write(&record)?;
        drop(held);
        Ok(Self {
            folder: folder.to_owned(),
            state,
            me,
            limit,
            _member: member,
            probed: None,
        })
    }

    /// Puts a handle in the place of the file's, for tests.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, state: File) {
        self.state = state;
    }

    /// Changes the record: `work` is given it, this process's row and the time. If the change
    /// cannot be written, it stands in what is returned beside the error.
    pub(crate) fn update<T>(
        &mut self,
        under_way: u32,
        now: impl Fn() -> u64,
        work: impl FnOnce(&mut Record, usize, u64) -> T,
    ) -> Result<T, Failed<T>> {
        let held = Held::new(&self.state).map_err(|error| (error, None))?;
        // Under the lock, so that times in the file never run ahead of it.
        let now = now();
        let mut record = held.read(self.limit, now).map_err(|error| (error, None))?;
        let row = &mut record.rows[self.me];
        if row.limit != self.limit {
            // The record is a new one; the lock says that the row is still ours.
            *row = Row::default();
            row.limit = self.limit;
            record.fit_limit();
        }
        record.rows[self.me].under_way = under_way;
        record.follow(now);
        let is_full = record.under_way() >= record.width;
        if is_full && self.probed.is_none_or(|at| at.elapsed() >= PROBE_EVERY) {
            self.probed = Some(Instant::now());
            clear_gone(&self.folder, self.me, &mut record);
            record.fit_limit();
        }
        let done = work(&mut record, self.me, now);
        match held.write(&record) {
            Ok(()) => Ok(done),
            Err(error) => Err((error, Some((done, Box::new(record))))),
        }
    }
}

/// The record's file, locked.
struct Held<'a>(&'a File);

impl<'a> Held<'a> {
    fn new(file: &'a File) -> Result<Self, SharedError> {
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(SharedError::Busy)
    }

    /// What cannot be a record is one that begins anew.
    fn read(&self, limit: u32, now: u64) -> Result<Record, SharedError> {
        // Whoever comes now would make another file, and there would be two gates.
        if self.0.metadata()?.nlink() == 0 {
            return Err(SharedError::Gone);
        }
        let mut buffer = [0; bytes::LENGTH];
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = bytes::read(&buffer[..filled]).and_then(|record| {
            let mut moved = record.clone();
            moved.follow(now);
            moved.is_sound(now).then_some(record)
        });
        Ok(found.unwrap_or_else(|| Record::new(limit)))
    }

    fn write(&self, record: &Record) -> Result<(), SharedError> {
        Ok(self.0.write_all_at(&bytes::write(record), 0)?)
    }
}

impl Drop for Held<'_> {
    /// Let go of by name: a process that is just being started may still hold a copy of the
    /// handle, and closing ours would not be enough.
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    for folder in [Some(folder), folder.parent()].into_iter().flatten() {
        if folder.metadata()?.mode() & 0o077 != 0 {
            std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// A plain file and nothing else: opening a pipe would hang, a link would lead elsewhere.
fn open(path: &Path, create: bool) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    Ok(file)
}

fn member(folder: &Path, row: usize) -> PathBuf {
    folder.join(row.to_string())
}

/// The first row whose lock is free. Only who holds the record's lock looks for one.
fn claim(folder: &Path) -> Result<(usize, File), SharedError> {
    for row in 0..ROWS {
        let file = open(&member(folder, row), true)?;
        match file.try_lock() {
            Ok(()) => return Ok((row, file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Err(SharedError::Crowded)
}

/// Takes back the places of processes that are gone.
fn clear_gone(folder: &Path, me: usize, record: &mut Record) {
    for at in (0..ROWS).filter(|at| *at != me) {
        if record.rows[at] != Row::default() && is_gone(folder, at) {
            record.rows[at] = Row::default();
        }
    }
}

fn is_gone(folder: &Path, row: usize) -> bool {
    match open(&member(folder, row), false) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(file) => {
            let is_free = file.try_lock().is_ok();
            if is_free {
                drop(file.unlock());
            }
            is_free
        }
    }
}
