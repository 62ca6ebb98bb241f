//! The end of a worktree: it is removed if nothing in it could be missed, and kept otherwise.
//!
//! Nothing is forced. Git itself removes the checkout, after a look of its own; the branch goes
//! only while it is at the very commit that was looked at.

use super::{GitError, State, Trace, Worktree, WorktreeError, Worktrees};
use std::path::PathBuf;

/// What became of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is gone. The branch is named if it is still there.
    Removed { branch: Option<String> },
    /// It is where it was.
    Kept {
        path: PathBuf,
        /// The branch that its work is on: its own, unless its worker went elsewhere.
        branch: String,
        because: Vec<Trace>,
    },
}

/// What somebody says may go, who asks for a worktree to be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Files that git ignores, such as build output.
    pub ignored: bool,
    /// The branch stays, so that its commits need not be in another one.
    pub keep_branch: bool,
}

impl Allowance {
    /// What is left of a state once this is allowed.
    pub(super) fn judge(self, state: State) -> State {
        let State::Touched(mut traces) = state else {
            return state;
        };
        traces.retain(|trace| match trace {
            Trace::Ignored(_) => !self.ignored,
            Trace::Commits { alone, .. } => *alone > 0 && !self.keep_branch,
            _ => true,
        });
        match traces.is_empty() {
            true => State::Untouched,
            false => State::Touched(traces),
        }
    }
}

impl Worktrees {
    /// The end of a worker's time in its worktree: untouched, it is removed with its branch. This
    /// never fails; what goes wrong is a reason to keep it.
    pub async fn finish(&self, tree: &Worktree) -> Fate {
        let because = match self.state(tree).await {
            State::Touched(traces) => traces,
            State::Untouched | State::Gone => {
                // Looked at again when nobody else cleans up: somebody may have been at it.
                match self.remove_if(tree, false, |state| state).await {
                    Ok(Ok(branch)) => return Fate::Removed { branch },
                    Ok(Err(traces)) => traces,
                    Err(error) => vec![Trace::Unclear(error.to_string())],
                }
            }
        };
        if tree.path.symlink_metadata().is_err() {
            // Somebody else removed it meanwhile; there is nothing to name.
            let branch = Some(tree.branch.clone());
            return Fate::Removed { branch };
        }
        self.release(tree).await;
        Fate::Kept {
            path: tree.path.clone(),
            branch: self.branch_of(tree),
            because,
        }
    }

    /// Removes a worktree for somebody who asks for it. Refuses with what speaks against it.
    pub async fn remove(&self, tree: &Worktree, allowed: Allowance) -> Result<Fate, WorktreeError> {
        let done = self
            .remove_if(tree, allowed.keep_branch, |state| allowed.judge(state))
            .await?;
        Ok(match done {
            Ok(branch) => Fate::Removed { branch },
            Err(because) => Fate::Kept {
                path: tree.path.clone(),
                branch: self.branch_of(tree),
                because,
            },
        })
    }

    /// Removes a worktree if `judge` finds nothing in what there is. Gives the branch, if it stays.
    async fn remove_if(
        &self,
        tree: &Worktree,
        keep_branch: bool,
        judge: impl Fn(State) -> State,
    ) -> Result<Result<Option<String>, Vec<Trace>>, WorktreeError> {
        let _held = self.hold().await?;
        match judge(self.state(tree).await) {
            State::Touched(traces) => return Ok(Err(traces)),
            State::Gone => {
                return match self.forget_gone(tree).await? {
                    None => Ok(Ok(self.remaining(tree).await)),
                    Some(why) => Ok(Err(vec![why])),
                };
            }
            State::Untouched => {}
        }
        let tip = self.commit(&tree.reference()).await?;
        let may_go = !keep_branch && self.has_others(tree, tip.as_deref()).await?;
        // Copies that the worker left as they came. Git would take those that it ignores for
        // nothing, and would refuse for the others.
        for file in &tree.included {
            drop(std::fs::remove_file(tree.path.join(&file.path)));
        }
        self.forget_entry(&tree.path).await?;
        let mut stays = tip.as_ref().map(|_| tree.branch.clone());
        if let Some(tip) = tip.filter(|_| may_go) {
            // A branch that went on in this moment stays.
            if self.delete_branch(tree, &tip).await.is_ok() {
                stays = None;
            }
        }
        tree.forget();
        Ok(Ok(stays))
    }

    /// Deletes the branch, if it is at this commit. A worker can make its branch stand for another
    /// one: that one is not followed to.
    pub(super) async fn delete_branch(&self, tree: &Worktree, tip: &str) -> Result<(), GitError> {
        let reference = tree.reference();
        let args = ["update-ref", "--no-deref", "-d", &reference, tip];
        self.git.surely(&self.root, &args).await.map(drop)
    }

    /// Whether all of a branch is in others as well, or is where it began.
    pub(super) async fn has_others(
        &self,
        tree: &Worktree,
        tip: Option<&str>,
    ) -> Result<bool, WorktreeError> {
        let Some(tip) = tip else { return Ok(false) };
        if tip == tree.base {
            return Ok(true);
        }
        let besides = format!("--exclude={}", tree.branch);
        let others = ["--not", &besides, "--branches", "--tags", "--remotes"];
        let alone = [&[tip][..], &others[..]].concat();
        Ok(self.count(&alone).await? == 0)
    }

    async fn remaining(&self, tree: &Worktree) -> Option<String> {
        match self.commit(&tree.reference()).await {
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => Some(tree.branch.clone()),
        }
    }

    /// Gives up the lock that kept others from removing it while its worker was in it: from now on
    /// git may, for its user.
    async fn release(&self, tree: &Worktree) {
        let Some(own) = self.own(&tree.path) else {
            return;
        };
        let reason = std::fs::read_to_string(own.join("locked")).unwrap_or_default();
        if reason.starts_with(super::create::REASON) {
            drop(std::fs::remove_file(own.join("locked")));
        }
    }

    fn branch_of(&self, tree: &Worktree) -> String {
        let head = self.own(&tree.path).and_then(|own| Self::head(&own).ok());
        let branch = head
            .as_deref()
            .and_then(|head| head.strip_prefix("refs/heads/"));
        branch.unwrap_or(&tree.branch).to_owned()
    }
}
