//! What gaffer knows of a worktree, in a file beside it that its worker cannot write.

use super::{BRANCHES, WorktreeError};
use crate::sandbox::git_paths;
use gaffer_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A worktree as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The worker's id.
    pub name: String,
    /// What the worker was given to do, in a few words.
    pub task: String,
    pub session: String,
    pub path: PathBuf,
    /// Such as `gaffer/3f2b8a10/fix-the-parser-ffee`.
    pub branch: String,
    /// The commit that it began from.
    pub base: String,
    pub made: Timestamp,
    /// Where the project is in the checkout; empty if it is the whole.
    #[serde(default)]
    pub prefix: PathBuf,
    /// Files that git ignores and that were copied from the user's checkout.
    #[serde(default)]
    pub included: Vec<Included>,
    /// What its worker is to know: what is not there as it is in the user's checkout.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The checkout that it was made from, and what all of them share.
    pub(super) root: PathBuf,
    pub(super) common: PathBuf,
    /// The digest of the checkout's own git config, which nobody has a reason to change.
    #[serde(default)]
    pub(super) config: Option<String>,
    /// Whether its files are all there; not so where its making was cut short.
    #[serde(default)]
    pub(super) is_whole: bool,
}

/// A file that was copied into a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Included {
    /// Below the worktree.
    pub path: PathBuf,
    pub(super) digest: String,
}

impl Worktree {
    /// The folder that its worker begins in: the project's, if the commit has it.
    pub fn folder(&self) -> PathBuf {
        let folder = self.path.join(&self.prefix);
        match folder.is_dir() && !self.prefix.as_os_str().is_empty() {
            true => folder,
            false => self.path.clone(),
        }
    }

    /// Whether its making came to its end.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// All that its worker may write: the worktree, git's objects, its own folder of git's, and
    /// the branches below `gaffer/` with their logs. Nothing of the user's checkout is among them,
    /// nor what could lead git elsewhere: that is for the sandbox to hold.
    pub fn writable(&self) -> Vec<PathBuf> {
        let mut write = vec![self.path.clone()];
        write.extend(git_paths(&self.path, OsStr::new(BRANCHES)));
        write
    }

    /// Whether writing below a folder could change the user's checkouts or what they share.
    pub fn is_threatened_by(&self, folder: &Path) -> bool {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        // The main checkout is where the shared folder is.
        let main = self.common.parent().unwrap_or(&self.common);
        let mut places = [main, &self.root].into_iter();
        places.any(|place| folder.starts_with(place) || place.starts_with(&folder))
    }

    /// The branch by its whole name.
    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// The worktree of a worker, if it has one.
    pub fn find(place: &Path, name: &str) -> Option<Self> {
        let place = &place.canonicalize().ok()?;
        let bytes = std::fs::read(record(place, name)).ok()?;
        let tree: Self = serde_json::from_slice(&bytes).ok()?;
        // A session's folder may have been moved or copied: then it is not this one's.
        (tree.path == place.join(name)).then_some(tree)
    }

    /// All worktrees in a session's folder of worktrees, by name.
    pub fn all(place: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(".json")?.to_owned())
        });
        let mut all: Vec<Self> = names.filter_map(|name| Self::find(place, &name)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    pub(super) fn write(&self) -> Result<(), WorktreeError> {
        let path = self.record();
        let failed = |why| WorktreeError::Io {
            path: path.clone(),
            why,
        };
        let bytes = serde_json::to_vec_pretty(self).map_err(|why| failed(why.into()))?;
        // Whole or not at all, so that a reader never finds half of it.
        let new = path.with_extension("json.new");
        std::fs::write(&new, bytes).map_err(failed)?;
        std::fs::rename(&new, &path).map_err(failed)
    }

    /// Forgets it. That it is forgotten already is no error.
    pub(super) fn forget(&self) {
        drop(std::fs::remove_file(self.record()));
        // The last one takes the folder with it; one that is not empty stays.
        if let Some(place) = self.path.parent() {
            drop(std::fs::remove_dir(place));
        }
    }

    fn record(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".json");
        name.into()
    }
}

fn record(place: &Path, name: &str) -> PathBuf {
    place.join(format!("{name}.json"))
}
