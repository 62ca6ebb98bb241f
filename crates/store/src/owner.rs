//! Who owns a session: one process, for as long as it holds the lock on `owner.json`.
//!
//! The kernel lets go of the lock when the process is gone, however it went, so a dead owner's
//! session is simply free. Only a process that it was about to start can have the lock a moment
//! longer, until it is the program that it is to be. What stands in the file is for people: who has
//! it, and since when.

use crate::session::SessionFolder;
use gaffer_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

const FILE: &str = "owner.json";

/// The right to change a session. Given back by its drop.
#[derive(Debug)]
pub struct Ownership {
    file: File,
}

/// The process that has a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    pub since: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// By whom, as far as the file says it.
    #[error("the session is in use by {}", owner(.0.as_ref()))]
    Owned(Option<Owner>),
    #[error("cannot lock the session: {0}")]
    Io(#[from] io::Error),
}

fn owner(owner: Option<&Owner>) -> String {
    match owner {
        Some(owner) => format!("process {}, since {}", owner.pid, owner.since),
        None => "another process".to_owned(),
    }
}

/// Locks a session's file. Whoever only looks has it for a moment, so a few tries are made; more
/// where its owner is dead, since nobody can have it for long then.
fn lock(file: &mut File) -> Result<(), TryLockError> {
    const TRIES: u32 = 5;
    const TRIES_AFTER_DEATH: u32 = 400;
    const PAUSE: Duration = Duration::from_millis(5);
    for tries in 1..TRIES_AFTER_DEATH {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            other => return other,
        }
        if tries >= TRIES && !written_owner(file).is_some_and(|owner| owner.is_dead()) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    file.try_lock()
}

/// Who has a session, as the file says it. Whoever has it may be writing it right now.
fn written_owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

impl Owner {
    /// Whether its process is gone for certain.
    fn is_dead(&self) -> bool {
        let processes = Path::new("/proc");
        processes.join("self").exists() && !processes.join(self.pid.to_string()).exists()
    }
}

impl SessionFolder {
    /// Makes this process the session's owner, unless another one is.
    pub fn own(&self, since: Timestamp) -> Result<Ownership, OwnerError> {
        let Ownership { mut file } = self.hold()?;
        let owner = Owner {
            pid: std::process::id(),
            since,
        };
        let mut text = serde_json::to_vec(&owner).map_err(io::Error::from)?;
        text.push(b'\n');
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)?;
        Ok(Ownership { file })
    }

    /// The same without taking down by whom, for a session that is about to be gone: a file that is
    /// written anew is flushed when it is closed, which a thousand deletions would wait for.
    pub(crate) fn hold(&self) -> Result<Ownership, OwnerError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path().join(FILE))?;
        match lock(&mut file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OwnerError::Owned(written_owner(&mut file)));
            }
            Err(TryLockError::Error(why)) => return Err(why.into()),
        }
        Ok(Ownership { file })
    }

    /// Who has the session right now. For this it is locked for a moment.
    pub fn owner(&self) -> Option<Owner> {
        let mut file = File::open(self.path().join(FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) => return None,
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a dead owner was about to start may hold the lock a little longer.
    #[test]
    fn the_session_of_a_dead_owner_is_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let folder = SessionFolder::at(temp.path().to_owned());
        drop(folder.own(Timestamp(1)).unwrap());
        let path = folder.path().join(FILE);
        let dead = Owner {
            // No process has so high a number.
            pid: u32::MAX,
            since: Timestamp(1),
        };
        std::fs::write(&path, serde_json::to_vec(&dead).unwrap()).unwrap();
        let left = File::open(&path).unwrap();
        left.try_lock().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(200));
                drop(left);
            });
            drop(folder.own(Timestamp(2)).unwrap());
        });
    }

    #[test]
    fn a_session_has_one_owner_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let folder = SessionFolder::at(temp.path().to_owned());
        assert_eq!(folder.owner(), None);
        let owned = folder.own(Timestamp(1_000)).unwrap();
        let here = Owner {
            pid: std::process::id(),
            since: Timestamp(1_000),
        };
        assert_eq!(folder.owner(), Some(here.clone()));
        let Err(OwnerError::Owned(Some(by))) = folder.own(Timestamp(2)) else {
            panic!("owned twice");
        };
        assert_eq!(by, here);
        drop(owned);
        assert_eq!(folder.owner(), None);
        // Somebody looks at this very moment.
        let looked = File::open(folder.path().join(FILE)).unwrap();
        looked.try_lock_shared().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(2));
                drop(looked);
            });
            drop(folder.own(Timestamp(4)).unwrap());
        });
        drop(folder.own(Timestamp(3)).unwrap());
    }
}
