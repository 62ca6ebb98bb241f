//! Locks of a git that was killed: they would keep a worktree's next git from doing anything.

use super::{Worktree, Worktrees};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

/// Whoever was ended a moment ago is gone after a few of these.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

impl Worktrees {
    /// Takes away the locks that are left in what belongs to a worktree alone: its own folder of
    /// git's, and its branch. It is called before a worker begins there. Whoever else is at work
    /// in it may hold them for good reason; then they stay.
    pub async fn take_stale_locks(&self, tree: &Worktree) {
        let Some(own) = self.own(&tree.path) else {
            return;
        };
        let branch = self.common.join(tree.reference() + ".lock");
        for _ in 0..TRIES {
            let locks = locks(&own, &branch);
            if locks.is_empty() {
                return;
            }
            if !is_somebody_in(&tree.path) {
                for lock in locks {
                    drop(std::fs::remove_file(lock));
                }
                return;
            }
            sleep(PAUSE).await;
        }
    }
}

fn locks(own: &Path, branch: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(own).into_iter().flatten().flatten();
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|it| it == "lock");
    let paths = entries.map(|entry| entry.path()).filter(is_lock);
    paths
        .chain(branch.exists().then(|| branch.to_owned()))
        .collect()
}

/// Whether any process works in a folder. Git goes to the worktree that it works on, however it
/// is called. A process that does not let us look is no worker's. Where no process can be seen,
/// somebody may well be there.
fn is_somebody_in(folder: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let processes = processes.flatten();
    let mut places = processes.filter_map(|entry| entry.path().join("cwd").read_link().ok());
    places.any(|place| place.starts_with(folder))
}
