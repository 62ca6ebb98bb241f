//! Forgetting worktrees whose folders are gone: what git and gaffer still note of them.

use super::{Trace, Worktree, WorktreeError, Worktrees};

/// What was forgotten, and what was not.
#[derive(Debug, Default)]
pub struct Pruned {
    /// The worktree, and its branch if that stays.
    pub forgotten: Vec<(Worktree, Option<String>)>,
    pub kept: Vec<(Worktree, Trace)>,
}

impl Worktrees {
    /// Forgets those of these worktrees that are gone. Others of the repository, which git's own
    /// `worktree prune` would look at too, are none of our business.
    pub async fn prune(&self, trees: &[Worktree]) -> Result<Pruned, WorktreeError> {
        let mut pruned = Pruned::default();
        for tree in trees.iter().filter(|tree| self.has(tree)) {
            let _held = self.hold().await?;
            match tree.path.symlink_metadata() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                _ => continue,
            }
            match self.forget_gone(tree).await {
                Ok(None) => {
                    let branch = self.commit(&tree.reference()).await;
                    let stays = !matches!(branch, Ok(None));
                    let branch = stays.then(|| tree.branch.clone());
                    pruned.forgotten.push((tree.clone(), branch));
                }
                Ok(Some(why)) => pruned.kept.push((tree.clone(), why)),
                Err(error) => {
                    let why = Trace::Unclear(error.to_string());
                    pruned.kept.push((tree.clone(), why));
                }
            }
        }
        Ok(pruned)
    }

    /// Forgets a worktree whose folder is gone, unless git's notes of it are the only way to
    /// something. For whoever holds the lock.
    pub(super) async fn forget_gone(
        &self,
        tree: &Worktree,
    ) -> Result<Option<Trace>, WorktreeError> {
        let tip = self.commit(&tree.reference()).await?;
        if let Some(own) = self.own(&tree.path) {
            if let Err(why) = self.genuine_own(tree, &own) {
                return Ok(Some(Trace::Unclear(why)));
            }
            if self.stands_for_another(tree).await? {
                return Ok(Some(Trace::Elsewhere(tree.branch.clone())));
            }
            if let Some(trace) = Self::under_way(&own).into_iter().next() {
                return Ok(Some(trace));
            }
            match self.left_behind(tree, &own).await? {
                0 => {}
                count => return Ok(Some(Trace::LeftBehind(count))),
            }
            // What was added and not committed is in the index alone.
            let git = self.git.at(&own, &own);
            let args = ["diff-index", "--cached", "--name-only", "-z", "HEAD", "--"];
            let has_index = own.join("index").exists();
            let staged = match has_index {
                true => git.ask(&own, &args).await?,
                false => Vec::new(),
            };
            if !staged.is_empty() {
                let count = staged.iter().filter(|byte| **byte == 0).count();
                return Ok(Some(Trace::Changed(count)));
            }
            self.forget_entry(&tree.path).await?;
        }
        if let Some(tip) = tip.filter(|tip| *tip == tree.base) {
            // One that went on in this moment stays.
            drop(self.delete_branch(tree, &tip).await);
        }
        tree.forget();
        Ok(None)
    }
}
