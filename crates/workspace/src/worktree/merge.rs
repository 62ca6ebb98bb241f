//! What a worktree's work is, as a difference, and how it comes into the user's branch.

use super::{State, Trace, Worktree, WorktreeError, Worktrees};
use std::ffi::OsStr;

/// What a merge did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The branch is in the user's; so many commits came with it.
    Done { into: String, commits: usize },
    /// There was nothing that the user's branch does not have.
    Nothing,
    /// These files conflict. Nothing was changed.
    Conflicts(Vec<String>),
}

impl Worktrees {
    /// All that differs from the beginning: committed, changed and new files, but not ignored ones.
    pub async fn diff(&self, tree: &Worktree) -> Result<Vec<u8>, WorktreeError> {
        let own = self.genuine(tree).map_err(WorktreeError::Refused)?;
        // New files are noted in a copy of the index, so that the worker's own stays as it is.
        let name = format!("{}.{}.index", tree.name, std::process::id());
        let copy = tree.path.with_file_name(name);
        let failed = |why| WorktreeError::Io {
            path: copy.clone(),
            why,
        };
        std::fs::copy(own.join("index"), &copy).map_err(failed)?;
        let name = copy.to_str().unwrap_or_default();
        let git = self.git.at(&own, &tree.path).with_index(name);
        let add = ["add", "--intent-to-add", "--", "."];
        let args = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"];
        let more = ["--ignore-submodules=dirty", &tree.base, "--"];
        let args = [&args[..], &more[..]].concat();
        let said = match git.ask(&tree.path, &add).await {
            Ok(_) => git.ask(&tree.path, &args).await,
            Err(error) => Err(error),
        };
        for path in [copy.clone(), copy.with_extension("index.lock")] {
            drop(std::fs::remove_file(path));
        }
        Ok(said?)
    }

    /// Merges a worktree's branch into the branch of the user's checkout. It is tried on the side
    /// first: a conflict changes nothing.
    pub async fn merge(&self, tree: &Worktree) -> Result<Merged, WorktreeError> {
        let refused = |why: String| Err(WorktreeError::Refused(why));
        if let State::Touched(traces) = self.state(tree).await {
            let open = |trace: &&Trace| {
                matches!(
                    trace,
                    Trace::Changed(_)
                        | Trace::Untracked(_)
                        | Trace::UnderWay(_)
                        | Trace::Elsewhere(_)
                        | Trace::Overlooked(_)
                        | Trace::Unclear(_)
                )
            };
            if let Some(trace) = traces.iter().find(open) {
                return refused(format!(
                    "{} is not finished: {trace}. Commit it there first",
                    tree.path.display()
                ));
            }
        }
        let _held = self.hold().await?;
        let Some(tip) = self.commit(&tree.reference()).await? else {
            return refused(format!("there is no branch {} any more", tree.branch));
        };
        let before = self.clean_head().await?;
        let into = self.current_branch().await?;
        let commits = self.count(&[&tip, "--not", &before]).await?;
        if commits == 0 {
            return Ok(Merged::Nothing);
        }
        if let Some(files) = self.conflicts(&before, &tip).await? {
            return Ok(Merged::Conflicts(files));
        }
        let message = format!("Merge branch '{}'", tree.branch);
        let args = ["merge", "--no-edit", "-m", &message, &tip];
        let said = self.git.for_user().run(&self.root, &args, b"").await;
        let failure = match said {
            Ok(said) if said.code == Some(0) => return Ok(Merged::Done { into, commits }),
            Ok(said) => said.failed(),
            Err(error) => error,
        };
        self.back_to(&before, failure.into()).await
    }

    /// A merge that a hook or the disk stopped half-way is taken back. The checkout was clean, so
    /// there is nothing else in it to lose.
    async fn back_to(&self, before: &str, why: WorktreeError) -> Result<Merged, WorktreeError> {
        if self.commit("MERGE_HEAD").await?.is_some() {
            let args = ["merge", "--abort"];
            self.git.patiently(&self.root, &args).await?;
        }
        let now = self.commit("HEAD").await?;
        match now.as_deref() == Some(before) {
            true => Err(WorktreeError::Refused(format!("nothing was merged: {why}"))),
            false => Err(why),
        }
    }

    /// The commit of the user's checkout, if nothing in it would be in the way.
    pub(super) async fn clean_head(&self) -> Result<String, WorktreeError> {
        let args = ["status", "--porcelain=v2", "-z", "--untracked-files=no"];
        let status = self.git.ask(&self.root, &args).await?;
        if !status.is_empty() {
            return Err(WorktreeError::Refused(format!(
                "{} has changes that are not committed: commit or stash them first",
                self.root.display()
            )));
        }
        for name in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"] {
            if self.commit(name).await?.is_some() {
                return Err(WorktreeError::Refused(format!(
                    "{} has something under way ({name}): end it first",
                    self.root.display()
                )));
            }
        }
        self.commit("HEAD").await?.ok_or(WorktreeError::NoCommit)
    }

    pub(super) async fn current_branch(&self) -> Result<String, WorktreeError> {
        let args = ["symbolic-ref", "--quiet", "--short", "HEAD"];
        let said = self.git.run(&self.root, &args, b"").await?;
        match said.code {
            Some(0) => Ok(String::from_utf8_lossy(&said.out).trim().to_owned()),
            _ => Err(WorktreeError::Refused(format!(
                "{} is on no branch: switch to the one to merge into",
                self.root.display()
            ))),
        }
    }

    /// The files that would conflict, by a merge that only makes objects.
    async fn conflicts(
        &self,
        one: &str,
        other: &str,
    ) -> Result<Option<Vec<String>>, WorktreeError> {
        let args = [
            "merge-tree",
            "--write-tree",
            "--name-only",
            "-z",
            one,
            other,
        ];
        let args = args.map(OsStr::new);
        let said = self.git.run(&self.root, &args, b"").await?;
        match said.code {
            Some(0) => Ok(None),
            Some(1) => {
                let parts = said.out.split(|byte| *byte == 0).skip(1);
                let files = parts.take_while(|part| !part.is_empty());
                let name = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
                Ok(Some(files.map(name).collect()))
            }
            _ => Err(said.failed().into()),
        }
    }
}
