//! The scratch worktree: a checkout of gaffer's own in which checks run. Nobody works in it, so it
//! goes in every case; one that a killed process left goes with the next integration.

use super::super::create::{REASON, folder, own_config};
use super::super::{Worktree, WorktreeError, Worktrees, include, lock};
use gaffer_protocol::Timestamp;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Its name, in the session's folder and in git's list, begins so.
const NAME: &str = "gaffer-scratch-";
/// What gaffer knows of it is in a file of this ending beside it, which checks cannot write.
const RECORD: &str = "scratch";

/// What a command that was just ended may still be writing is waited for so often.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Removed when it goes out of scope, however that happens.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) tree: Worktree,
    is_gone: bool,
}

impl Worktrees {
    /// Makes a scratch worktree, without files yet.
    pub(super) async fn scratch(
        &self,
        place: &Path,
        commit: &str,
        now: Timestamp,
    ) -> Result<Scratch, WorktreeError> {
        let place = folder(place)?;
        let name = format!("{NAME}{}-{}", std::process::id(), now.0);
        let mut scratch = Scratch {
            tree: Worktree {
                path: place.join(&name),
                name,
                task: String::new(),
                session: String::new(),
                branch: String::new(),
                base: commit.to_owned(),
                made: now,
                prefix: self.prefix.clone(),
                included: Vec::new(),
                notes: Vec::new(),
                root: self.root.clone(),
                common: self.common.clone(),
                config: None,
                is_whole: false,
            },
            is_gone: false,
        };
        write(&scratch.tree)?;
        let held = self.hold().await?;
        let reason = format!("{REASON}a scratch worktree");
        let words = ["worktree", "add", "--no-checkout", "--detach", "--lock"].map(OsStr::new);
        let more = ["--reason", &reason, "--"].map(OsStr::new);
        let at = [scratch.tree.path.as_os_str(), OsStr::new(commit)];
        let args = [&words[..], &more[..], &at[..]].concat();
        self.git.patiently(&self.root, &args).await?;
        drop(held);
        let own = self.own(&scratch.tree.path).ok_or_else(unknown)?;
        scratch.tree.config = Some(own_config(&own)?);
        scratch.tree.is_whole = true;
        self.bring(&scratch, commit).await?;
        include::copy(&self.git, &self.root, &scratch.tree.path).await?;
        Ok(scratch)
    }

    /// Brings the scratch worktree to a commit, whatever a check has left there. What git ignores
    /// stays, so that not all is built anew each time.
    pub(super) async fn bring(&self, scratch: &Scratch, commit: &str) -> Result<(), WorktreeError> {
        let path = &scratch.tree.path;
        let own = self.genuine(&scratch.tree).map_err(|why| {
            WorktreeError::Refused(format!(
                "a check has meddled with the scratch worktree: {why}"
            ))
        })?;
        let git = self.git.at(&own, path);
        let head = ["update-ref", "--no-deref", "HEAD", commit];
        git.patiently(path, &head).await?;
        let reset = ["read-tree", "--reset", "-u", commit];
        git.patiently(path, &reset).await?;
        git.patiently(path, &["clean", "-ffdq"]).await?;
        Ok(())
    }

    /// Removes the scratch worktree, and waits for it.
    pub(super) async fn discard(&self, mut scratch: Scratch) {
        scratch.is_gone = true;
        let tree = scratch.tree.clone();
        drop(tokio::task::spawn_blocking(move || clear(&tree)).await);
    }

    /// Removes what killed processes left. `None` where an integration is under way, whose scratch
    /// worktree is not stale.
    pub async fn clear_stale(&self, places: &[PathBuf]) -> Result<Option<usize>, WorktreeError> {
        let Some(_alone) = lock::alone(&self.common)? else {
            return Ok(None);
        };
        Ok(Some(self.clear_all(places).await))
    }

    /// The same for whoever has the integration's lock.
    pub(super) async fn clear_all(&self, places: &[PathBuf]) -> usize {
        let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
        for place in places {
            paths.extend(recorded(place));
        }
        paths.extend(self.listed());
        for path in &paths {
            // Its making ended with the first words about it.
            let is_empty = record(path).metadata().is_ok_and(|it| it.len() == 0);
            if is_empty && path.symlink_metadata().is_err() {
                drop(std::fs::remove_file(record(path)));
            }
        }
        let stale: Vec<Worktree> = paths.iter().filter_map(|path| self.stale(path)).collect();
        let count = stale.len();
        let clear = move || stale.iter().for_each(clear);
        drop(tokio::task::spawn_blocking(clear).await);
        count
    }

    /// Those that git's list has. A check can write its own entry, but cannot name one.
    fn listed(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.common.join("worktrees"));
        let entries = entries.into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME));
        let path = |own: PathBuf| {
            let text = std::fs::read(own.join("gitdir")).ok()?;
            let path = super::super::path(text.trim_ascii_end());
            Some(path.parent()?.to_owned())
        };
        ours.filter_map(|entry| path(entry.path())).collect()
    }

    /// The scratch worktree at a path, if gaffer's own record says that there is one.
    fn stale(&self, path: &Path) -> Option<Worktree> {
        let bytes = std::fs::read(record(path)).ok()?;
        let tree: Worktree = serde_json::from_slice(&bytes).ok()?;
        let name = path.file_name()?.to_str()?;
        let is_it = tree.path == path && tree.name == name && name.starts_with(NAME);
        (is_it && self.has(&tree)).then_some(tree)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        let tree = self.tree.clone();
        match tokio::runtime::Handle::try_current() {
            // Files may be many, and whoever is stopped has others beside it.
            Ok(runtime) => drop(runtime.spawn_blocking(move || clear(&tree))),
            Err(_) => clear(&tree),
        }
    }
}

/// Removes the folder, git's entry and the record, in this order: what is cut short is found again.
fn clear(tree: &Worktree) {
    let entry = tree.common.join("worktrees").join(&tree.name);
    for folder in [&tree.path, &entry] {
        for _ in 0..TRIES {
            match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(PAUSE),
                _ => break,
            }
        }
        if folder.symlink_metadata().is_ok() {
            return;
        }
    }
    drop(std::fs::remove_file(record(&tree.path)));
    // The last one takes the folder with it; one that is not empty stays.
    if let Some(place) = tree.path.parent() {
        drop(std::fs::remove_dir(place));
    }
}

fn record(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".");
    name.push(RECORD);
    name.into()
}

fn write(tree: &Worktree) -> Result<(), WorktreeError> {
    let path = record(&tree.path);
    let bytes = serde_json::to_vec(tree).map_err(io::Error::from);
    let written = bytes.and_then(|bytes| std::fs::write(&path, bytes));
    written.map_err(|why| WorktreeError::Io { path, why })
}

/// The scratch worktrees that a place has records of.
fn recorded(place: &Path) -> Vec<PathBuf> {
    let Ok(place) = place.canonicalize() else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let records = paths.filter(|path| path.extension() == Some(OsStr::new(RECORD)));
    records.map(|path| path.with_extension("")).collect()
}

fn unknown() -> WorktreeError {
    WorktreeError::Refused("git does not know the scratch worktree".to_owned())
}
