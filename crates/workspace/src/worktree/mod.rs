//! Worktrees: a checkout and a branch for one worker, beside the user's own.
//!
//! A worktree lies in its session's folder, `worktrees/{worker}`, and beside it, in
//! `worktrees/{worker}.json`, what gaffer knows of it: the worker can write the one, not the other.
//! Everything is done by the git program. Nothing here is ever forced: what could hold work of
//! anybody's is kept, and so is whatever could not be looked at.

mod create;
mod end;
mod git;
mod include;
mod integrate;
mod leftover;
mod lock;
mod merge;
mod name;
mod prune;
mod record;
mod stale;
mod state;
mod trace;
mod walk;

#[cfg(test)]
mod tests;

pub use create::New;
pub use end::{Allowance, Fate};
pub use git::{Git, GitError, HIDDEN};
pub use integrate::{
    Checked, Checks, Clash, Integrated, Integration, Into, Item, Outcome, Piece, Side,
};
pub use merge::Merged;
pub use prune::Pruned;
pub use record::{Included, Worktree};
pub use state::State;
pub use trace::Trace;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Branches of worktrees are below this; workers in worktrees may write there and nowhere else.
pub const BRANCHES: &str = "refs/heads/gaffer";

/// Why something could not be done with a worktree.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{} is in no git repository: worktrees need one", .0.display())]
    NoRepository(PathBuf),
    #[error("there is no commit yet: a worktree begins from one")]
    NoCommit,
    #[error(
        "this repository keeps its branches in one table (reftable), which cannot be shared with workers"
    )]
    Reftable,
    #[error("a branch `gaffer` is in the way of `{0}`: rename it")]
    InTheWay(String),
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    #[error("another process has held {} for minutes", .0.display())]
    Busy(PathBuf),
    #[error("{path}: {why}", path = .path.display())]
    Io { path: PathBuf, why: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{0}")]
    Refused(String),
}

/// What a worktree begins from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base {
    /// The commit that the user's checkout is at.
    #[default]
    Head,
    /// The default branch as the remote has it, or the local one where there is no remote.
    DefaultBranch,
}

/// The worktrees of one repository.
#[derive(Debug, Clone)]
pub struct Worktrees {
    git: Git,
    /// The checkout that the user works in.
    root: PathBuf,
    /// Where the project is in it.
    prefix: PathBuf,
    /// What all checkouts share: objects, branches, config, hooks.
    common: PathBuf,
    base: Base,
    turn: Arc<Mutex<()>>,
}

impl Worktrees {
    /// The repository that a project is in.
    pub async fn of(git: Git, project: &Path, base: Base) -> Result<Self, WorktreeError> {
        let none = || WorktreeError::NoRepository(project.to_owned());
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-common-dir",
            "--show-prefix",
        ];
        let said = git.run(project, &asked, b"").await?;
        if said.code != Some(0) {
            // What git says of a folder that belongs to somebody else is worth hearing.
            return Err(match said.err.contains("not a git repository") {
                true => none(),
                false => said.failed().into(),
            });
        }
        let mut lines = said.out.split(|byte| *byte == b'\n').map(path);
        let (Some(root), Some(common), Some(prefix)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(none());
        };
        let real = |path: PathBuf| {
            let real = path.canonicalize();
            real.map_err(|why| WorktreeError::Io { path, why })
        };
        Ok(Self {
            git,
            root: real(root)?,
            prefix,
            common: real(common)?,
            base,
            turn: Arc::default(),
        })
    }

    /// The user's checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a worktree is of this repository.
    pub fn has(&self, tree: &Worktree) -> bool {
        tree.common == self.common
    }

    /// The folder of git's that belongs to a checkout alone. It is found by what git wrote down
    /// there, not by what the checkout says of itself, which its worker could write.
    fn own(&self, path: &Path) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.common.join("worktrees")).ok()?;
        let link = path.join(".git");
        let mut folders = entries.flatten().map(|entry| entry.path());
        folders.find(|own| {
            let text = std::fs::read(own.join("gitdir"));
            text.is_ok_and(|text| self::path(text.trim_ascii_end()) == link)
        })
    }

    async fn hold(&self) -> Result<lock::Held<'_>, WorktreeError> {
        lock::hold(&self.common, &self.turn).await
    }

    /// The commit that a name stands for; none if there is no such name.
    async fn commit(&self, name: &str) -> Result<Option<String>, WorktreeError> {
        let name = format!("{name}^{{commit}}");
        let args = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ];
        let said = self.git.run(&self.root, &args, b"").await?;
        match said.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&said.out).trim().to_owned())),
            Some(1) => Ok(None),
            _ if said.err.contains("Needed a single revision") => Ok(None),
            _ => Err(said.failed().into()),
        }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
