//! One at a time: what changes git's list of worktrees and branches, across tasks and processes.

use super::WorktreeError;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// In the folder that all checkouts share, so that all processes find the same one.
const FILE: &str = "gaffer.lock";

/// Each holder needs milliseconds; after this, somebody hangs.
const LONGEST: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);

/// The right to change the list. The kernel takes it back with the process.
#[derive(Debug)]
pub(super) struct Held<'a> {
    _file: File,
    _turn: MutexGuard<'a, ()>,
}

/// Waits for the right: first among the tasks of this process, in order, then among processes.
pub(super) async fn hold<'a>(
    common: &Path,
    turn: &'a Mutex<()>,
) -> Result<Held<'a>, WorktreeError> {
    let turn = turn.lock().await;
    let path = common.join(FILE);
    let cannot = |why| WorktreeError::Io {
        path: path.clone(),
        why,
    };
    let file = open(&path).map_err(cannot)?;
    let deadline = Instant::now() + LONGEST;
    loop {
        match file.try_lock() {
            Ok(()) => {
                return Ok(Held {
                    _file: file,
                    _turn: turn,
                });
            }
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(TryLockError::WouldBlock) => return Err(WorktreeError::Busy(path)),
            Err(TryLockError::Error(why)) => return Err(cannot(why)),
        }
    }
}

/// The file that whoever integrates holds until the end.
const ALONE: &str = "gaffer-integrate.lock";

/// The right to integrate, which one at a time has in a repository. None if somebody else has it.
pub(super) fn alone(common: &Path) -> Result<Option<File>, WorktreeError> {
    let path = common.join(ALONE);
    let cannot = |why| WorktreeError::Io {
        path: path.clone(),
        why,
    };
    let file = open(&path).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(why)) => Err(cannot(why)),
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}
