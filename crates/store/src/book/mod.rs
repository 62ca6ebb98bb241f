//! A session's book: who is in the crew, the mail, and which calls took effect. `crew.db` in the
//! session's folder, in SQLite's write-ahead mode: several processes may open it.
//!
//! Steps that wait at the same time are written as one transaction and share one sync, so a
//! hundred ends at once cost little more than one. Nothing is opened before the first step: a
//! session without a crew has no book.

mod aside;
mod files;
mod schema;
mod step;
#[cfg(test)]
mod tests;

pub use step::{Change, Contents, Entered, Letter, Step, Task};

use crate::session::SessionFolder;
use rusqlite::{Connection, TransactionBehavior};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

const FILE: &str = "crew.db";
/// So large a book may become: 1 GiB in pages of 4 KiB. Beyond it nothing begins any more.
const MOST_PAGES: u32 = 1 << 18;
/// No book is smaller, in bytes.
const SMALLEST: u64 = 512;

/// Why the book could not be written or read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {what} {}: {why}", path.display())]
pub struct BookError {
    what: &'static str,
    path: PathBuf,
    why: Arc<rusqlite::Error>,
}

impl BookError {
    /// Whether it says that the file is not what it should be. All else may pass.
    fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode as Code;
        match &*self.why {
            rusqlite::Error::SqliteFailure(error, _) => match error.code {
                Code::DatabaseCorrupt | Code::NotADatabase | Code::Unknown => true,
                // A file that is shorter than it says.
                Code::SystemIoFailure => {
                    error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ
                }
                _ => false,
            },
            rusqlite::Error::SqlInputError { .. }
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => true,
            _ => false,
        }
    }
}

/// Clones are the same book.
#[derive(Debug, Clone)]
pub struct Book(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    most_pages: u32,
    queue: Mutex<Queue>,
    connection: Mutex<Option<Connection>>,
    /// Whether the file itself, and its name in the folder, are on the disk.
    is_grounded: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_writing: bool,
}

#[derive(Debug)]
struct Waiting {
    step: Step,
    done: oneshot::Sender<Result<(), BookError>>,
}

impl SessionFolder {
    pub fn book(&self) -> Book {
        Book::at(self.path().join(FILE))
    }
}

impl Book {
    fn at(path: PathBuf) -> Self {
        Self::at_most(path, MOST_PAGES)
    }

    fn at_most(path: PathBuf, most_pages: u32) -> Self {
        Self(Arc::new(Inner {
            path,
            most_pages,
            queue: Mutex::default(),
            connection: Mutex::default(),
            is_grounded: AtomicBool::new(false),
        }))
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Writes a step. When this answers, the step survives the death of this process; a synced one
    /// is on the disk. Dropping the future does not take the step back.
    pub async fn write(&self, step: Step) -> Result<(), BookError> {
        if step.changes.is_empty() {
            return Ok(());
        }
        let (done, is_done) = oneshot::channel();
        let begins = {
            let mut queue = self.0.queue();
            queue.waiting.push(Waiting { step, done });
            !std::mem::replace(&mut queue.is_writing, true)
        };
        if begins {
            let inner = self.0.clone();
            // Its outcome reaches everybody who waits by their own channel.
            drop(tokio::task::spawn_blocking(move || inner.drain()));
        }
        let lost = || Err(self.0.error("write", rusqlite::Error::InvalidQuery));
        is_done.await.unwrap_or_else(|_| lost())
    }

    /// All that the book says; nothing if there is none yet.
    pub fn read(&self) -> Result<Contents, BookError> {
        if !self.0.path.exists() {
            return Ok(Contents::default());
        }
        let mut connection = self.0.connection();
        let read = |connection: &mut Option<Connection>| Contents::read(self.0.opened(connection)?);
        read(&mut connection).map_err(|why| self.0.error("read", why))
    }

    /// The same for whoever goes on with the session. A book that is damaged is kept beside
    /// (`….damaged-1`), and a new one begins with what could be read. The transcripts say the rest.
    pub fn take_up(&self) -> Result<Contents, BookError> {
        if !self.0.path.exists() {
            return Ok(Contents::default());
        }
        let size = self.0.path.metadata().map_or(0, |it| it.len());
        // SQLite would take a file without a whole page for a new one, and begin it.
        let is_stub = (1..SMALLEST).contains(&size);
        let read = (!is_stub).then(|| self.read());
        let (mut contents, why) = match read.transpose() {
            Ok(None) => (Contents::default(), "it is cut off".to_owned()),
            Ok(Some(contents)) => match self.0.check() {
                None if contents.damaged.is_empty() => return Ok(contents),
                None => (contents, "a part of it makes no sense".to_owned()),
                Some(why) => (contents, why),
            },
            Err(error) if error.is_damage() => (Contents::default(), error.why.to_string()),
            Err(error) => return Err(error),
        };
        // What has it open must not write into what is put aside.
        *self.0.connection() = None;
        let kept = aside::put(&self.0.path);
        let kept = kept.map_err(|why| self.0.error("put aside", odd(why)))?;
        self.0.commit([&contents.as_step()].into_iter())?;
        let word = format!("{why}; the original is {}", kept.display());
        contents.damaged.push(word);
        Ok(contents)
    }

    /// Writes a copy of the book as it is now, also while its owner writes.
    pub fn copy_to(&self, other: &Self) -> Result<(), BookError> {
        if !self.0.path.exists() {
            return Ok(());
        }
        let mut connection = self.0.connection();
        let copy = |connection: &mut Option<Connection>| {
            let target = other.0.path.display().to_string();
            self.0
                .opened(connection)?
                .execute("VACUUM INTO ?1", [target])
        };
        let copied = copy(&mut connection).map(drop);
        copied.map_err(|why| self.0.error("copy", why))
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, what: &'static str, why: rusqlite::Error) -> BookError {
        BookError {
            what,
            path: self.path.clone(),
            why: Arc::new(why),
        }
    }

    /// Writes whatever waits, and what comes meanwhile, until nothing is left.
    fn drain(&self) {
        loop {
            let waiting = {
                let mut queue = self.queue();
                if queue.waiting.is_empty() {
                    queue.is_writing = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            self.write_all(waiting);
        }
    }

    fn write_all(&self, waiting: Vec<Waiting>) {
        let outcome = self.commit(waiting.iter().map(|it| &it.step));
        // Together they failed; maybe one of them is at fault. Each for itself then.
        let is_alone = waiting.len() == 1;
        for Waiting { step, done } in waiting {
            let outcome = match &outcome {
                Ok(()) => Ok(()),
                Err(_) if !is_alone => self.commit([&step].into_iter()),
                Err(why) => Err(why.clone()),
            };
            // Whoever waited may have gone; the step is written all the same.
            drop(done.send(outcome));
        }
    }

    fn commit<'a>(&self, steps: impl Iterator<Item = &'a Step> + Clone) -> Result<(), BookError> {
        let mut connection = self.connection();
        let commit = |connection: &mut Option<Connection>| {
            let connection = self.opened(connection)?;
            let is_synced = steps.clone().any(|step| step.is_synced);
            let files: Vec<&File> = steps.clone().flat_map(|step| &step.files).collect();
            files::sync(&files).map_err(odd)?;
            let level = if is_synced { "FULL" } else { "NORMAL" };
            connection.pragma_update(None, "synchronous", level)?;
            if is_synced && !self.is_grounded.load(Ordering::Relaxed) {
                self.ground(connection)?;
                self.is_grounded.store(true, Ordering::Relaxed);
            }
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for change in steps.flat_map(|step| &step.changes) {
                change.apply(&transaction)?;
            }
            transaction.commit()
        };
        commit(&mut connection).map_err(|why| self.error("write", why))
    }

    /// What is wrong with the file, if anything is.
    fn check(&self) -> Option<String> {
        let mut connection = self.connection();
        let check = |connection: &mut Option<Connection>| {
            let opened = self.opened(connection)?;
            opened.query_row("PRAGMA integrity_check(1)", [], |row| {
                row.get::<_, String>(0)
            })
        };
        match check(&mut connection) {
            Ok(answer) if answer == "ok" => None,
            Ok(answer) => Some(answer.replace('\n', " ")),
            Err(why) => Some(why.to_string()),
        }
    }

    /// A log whose book is not on the disk would be worth nothing after a loss of power.
    ///
    /// SQLite syncs the file: a handle of ours would take all of SQLite's locks along when it is
    /// closed, and another process could remove the log that is being written.
    fn ground(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        let Some(folder) = self.path.parent() else {
            return Ok(());
        };
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(odd)
    }

    fn opened<'a>(
        &self,
        connection: &'a mut Option<Connection>,
    ) -> rusqlite::Result<&'a mut Connection> {
        match connection {
            Some(open) => Ok(open),
            None => {
                // Nobody else's business, whatever the folder allows. One that exists is not
                // touched: closing it would take SQLite's locks along.
                let file = OpenOptions::new()
                    .append(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&self.path);
                match file.map(drop) {
                    Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(odd(why)),
                    Ok(()) | Err(_) => {}
                }
                let mut fresh = Connection::open(&self.path)?;
                schema::prepare(&mut fresh, self.most_pages)?;
                Ok(connection.insert(fresh))
            }
        }
    }
}

fn odd(why: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(why.into())
}
