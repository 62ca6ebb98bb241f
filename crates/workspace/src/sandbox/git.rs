//! Where git keeps its things, for a folder in a checkout.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The checkout that a folder is in.
pub(super) struct Checkout {
    /// The folder with `.git` in it.
    pub(super) root: PathBuf,
    /// The checkout's own folder of git's: HEAD, index, and what else only it has.
    pub(super) own: PathBuf,
    /// What all checkouts of the repository share: objects, branches, config, hooks.
    pub(super) common: PathBuf,
}

impl Checkout {
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let root = folder
            .ancestors()
            .find(|above| above.join(".git").exists())?;
        let dot_git = root.join(".git");
        let own = if dot_git.is_dir() {
            dot_git
        } else {
            let text = std::fs::read_to_string(&dot_git).ok()?;
            root.join(text.strip_prefix("gitdir: ")?.trim_end())
        };
        let own = own.canonicalize().ok()?;
        let common = match std::fs::read_to_string(own.join("commondir")) {
            Ok(common) => own.join(common.trim_end()).canonicalize().ok()?,
            Err(_) => own.clone(),
        };
        Some(Self {
            root: root.to_owned(),
            own,
            common,
        })
    }

    /// Whether another checkout has the objects and branches, and this one only borrows them.
    pub(super) fn is_linked(&self) -> bool {
        self.own != self.common
    }
}

/// What a commit writes, for a folder in a checkout.
///
/// A plain checkout's folder of git's is written as a whole. A linked worktree has a folder of its
/// own in it, and shares objects and branches; it gets its own folder, the objects, and the
/// branches below `branches`, such as `refs/heads/gaffer`.
pub fn git_paths(folder: &Path, branches: &OsStr) -> Vec<PathBuf> {
    match Checkout::of(folder) {
        None => Vec::new(),
        Some(checkout) if !checkout.is_linked() => vec![checkout.own],
        Some(Checkout { own, common, .. }) => vec![
            own,
            common.join("objects"),
            common.join(branches),
            common.join("logs").join(branches),
        ],
    }
}
