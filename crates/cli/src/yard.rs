//! The worktrees of a session's workers: made when one is to have one, ended with its run.

use gaffer_protocol::{Block, Origin, notification};
use gaffer_workspace::worktree::{Base, Fate, Git, New, State, Worktree, Worktrees};
use std::path::{Path, PathBuf};
use tokio::sync::OnceCell;

/// What a worker is told of its worktree.
const TOLD: &str = include_str!("../../../prompts/worktree.md");

/// Where worktrees come from. Git is asked when the first one is wanted: most sessions have none.
#[derive(Debug)]
pub(crate) struct Yard {
    project: PathBuf,
    base: Base,
    trees: OnceCell<Worktrees>,
}

impl Yard {
    pub(crate) fn new(project: &Path, base: Base) -> Self {
        Self {
            project: project.to_owned(),
            base,
            trees: OnceCell::new(),
        }
    }

    /// Whether the project is in a git repository.
    pub(crate) fn is_there(&self) -> bool {
        let mut folders = self.project.ancestors();
        folders.any(|folder| folder.join(".git").exists())
    }

    pub(crate) async fn trees(&self) -> Result<&Worktrees, String> {
        let open = || Worktrees::of(Git::default(), &self.project, self.base);
        let trees = self.trees.get_or_try_init(open).await;
        trees.map_err(|error| format!("no worktree: {error}"))
    }

    /// Makes a worker's worktree, or finds the one that it had before. One that was made is named.
    pub(crate) async fn enter(&self, new: &New<'_>) -> Result<Option<Worktree>, String> {
        let before = Worktree::find(new.place, new.name);
        if let Some(tree) = before.filter(Worktree::is_whole) {
            return match tree.path.is_dir() {
                true => {
                    self.trees().await?.take_stale_locks(&tree).await;
                    Ok(None)
                }
                // Another in its place would hide that its work is gone.
                false => Err(format!(
                    "its worktree {} is gone; its branch is {}",
                    tree.path.display(),
                    tree.branch
                )),
            };
        }
        let made = self.trees().await?.create(new).await;
        made.map(Some)
            .map_err(|error| format!("no worktree: {error}"))
    }

    /// Whether nothing was done in a worktree, so that it goes when its worker leaves.
    pub(crate) async fn is_untouched(&self, tree: &Worktree) -> bool {
        match self.trees().await {
            Ok(trees) => trees.state(tree).await == State::Untouched,
            Err(_) => false,
        }
    }

    /// Removes a worktree in which nothing was done, and names any other.
    pub(crate) async fn leave(&self, tree: &Worktree) -> Option<notification::Worktree> {
        let named = |path: &Path, branch: String| notification::Worktree {
            path: path.display().to_string(),
            branch,
        };
        let Ok(trees) = self.trees().await else {
            return Some(named(&tree.path, tree.branch.clone()));
        };
        match trees.finish(tree).await {
            Fate::Removed { .. } => None,
            Fate::Kept { path, branch, .. } => Some(named(&path, branch)),
        }
    }
}

/// What a worker is told before its task.
pub(crate) fn told(tree: &Worktree) -> Block {
    let mut text = format!(
        "{}\n\nworktree: {}\nbranch: {}\nit began from: {}",
        TOLD.trim_end(),
        tree.path.display(),
        tree.branch,
        tree.base
    );
    for note in &tree.notes {
        text.push('\n');
        text.push_str(note);
    }
    Block::from(Origin::Context, text)
}
