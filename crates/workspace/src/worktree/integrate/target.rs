//! The branch that is integrated into: where it is, and the one step that moves it.

use super::super::{WorktreeError, Worktrees};
use super::report::short;
use std::time::Duration;

/// New branches are called by this and the commit that they were made at.
const NEW: &str = "gaffer/integrated-";

/// How often another git's lock on the user's index is waited for.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// What is integrated into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Into {
    /// A new branch from the commit that the user's checkout is at.
    New,
    /// The branch of the user's checkout.
    Current,
    /// A branch by its name; it is made if there is none.
    Branch(String),
}

impl Into {
    /// What a person wrote.
    pub fn parse(text: &str) -> Self {
        match text {
            "new" => Self::New,
            "current" => Self::Current,
            name => Self::Branch(name.to_owned()),
        }
    }

    /// Whether it is one that gaffer makes, and no branch of the user's.
    pub fn is_own(&self) -> bool {
        match self {
            Self::New => true,
            Self::Current => false,
            Self::Branch(name) => name.starts_with(NEW),
        }
    }
}

/// A target as it was found.
#[derive(Debug)]
pub(super) struct Target {
    /// None for a new one, whose name follows from what it will be at.
    pub(super) branch: Option<String>,
    pub(super) start: String,
    how: How,
}

#[derive(Debug)]
enum How {
    /// No checkout has it; the commit that it is at, if it is there.
    Reference(Option<String>),
    /// The user's checkout has it.
    Checkout,
}

impl Worktrees {
    pub(super) async fn target(&self, into: &Into) -> Result<Target, WorktreeError> {
        let head = async || self.commit("HEAD").await?.ok_or(WorktreeError::NoCommit);
        match into {
            Into::New => Ok(Target {
                branch: None,
                start: head().await?,
                how: How::Reference(None),
            }),
            Into::Current => {
                let branch = self.current_branch().await?;
                Ok(Target {
                    start: self.clean_head().await?,
                    branch: Some(branch),
                    how: How::Checkout,
                })
            }
            Into::Branch(name) => {
                if self.current_branch().await.ok().as_ref() == Some(name) {
                    return Box::pin(self.target(&Into::Current)).await;
                }
                let args = ["check-ref-format", "--branch", name];
                let said = self.git.run(&self.root, &args, b"").await?;
                if said.code != Some(0) || name.starts_with('-') {
                    let why = format!("`{name}` cannot be a branch's name");
                    return Err(WorktreeError::Refused(why));
                }
                self.in_no_checkout(name).await?;
                let at = self.commit(&format!("refs/heads/{name}")).await?;
                Ok(Target {
                    branch: Some(name.clone()),
                    start: match &at {
                        Some(commit) => commit.clone(),
                        None => head().await?,
                    },
                    how: How::Reference(at),
                })
            }
        }
    }

    /// A branch that is moved below a checkout would make all of it look changed.
    async fn in_no_checkout(&self, name: &str) -> Result<(), WorktreeError> {
        let args = ["worktree", "list", "--porcelain", "-z"];
        let out = self.git.ask(&self.root, &args).await?;
        let wanted = format!("branch refs/heads/{name}");
        let mut lines = out.split(|byte| *byte == 0);
        match lines.any(|line| line == wanted.as_bytes()) {
            false => Ok(()),
            true => Err(WorktreeError::Refused(format!(
                "{name} is checked out in another worktree: choose another branch, or go there and integrate into `current`"
            ))),
        }
    }

    /// Moves the target in one step, if it is where it was found. Its name.
    pub(super) async fn move_to(
        &self,
        target: &Target,
        commit: &str,
    ) -> Result<String, WorktreeError> {
        let _held = self.hold().await?;
        match &target.how {
            How::Reference(old) => {
                let new = || format!("{NEW}{}", short(commit));
                let branch = target.branch.clone().unwrap_or_else(new);
                self.in_no_checkout(&branch).await?;
                // What git takes for "there is none": as long as its digests are here.
                let none = "0".repeat(commit.len());
                let reference = format!("refs/heads/{branch}");
                let old = old.as_deref().unwrap_or(&none);
                let words = ["update-ref", "--no-deref", "--create-reflog"];
                let more = ["-m", "gaffer: integrate", &reference, commit, old];
                let args = [&words[..], &more[..]].concat();
                let moved = self.git.surely(&self.root, &args).await;
                moved.map_err(|error| moved_meanwhile(&branch, &error.to_string()))?;
                Ok(branch)
            }
            How::Checkout => self.move_checkout(target, commit).await,
        }
    }

    async fn move_checkout(&self, target: &Target, commit: &str) -> Result<String, WorktreeError> {
        let branch = target.branch.clone().unwrap_or_default();
        let is_there = self.clean_head().await? == target.start;
        if !is_there || self.current_branch().await? != branch {
            return Err(moved_meanwhile(&branch, "HEAD is at another commit"));
        }
        let args = ["merge", "--ff-only", "--no-overwrite-ignore", "-q", commit];
        let mut tried = 1;
        let failure = loop {
            let said = self.git.through(&self.root, &args).await?;
            if said.code == Some(0) {
                return Ok(branch);
            }
            let failure = said.failed();
            if !failure.is_lock() || tried == TRIES {
                break failure;
            }
            tried += 1;
            tokio::time::sleep(PAUSE).await;
        };
        Err(WorktreeError::Refused(failure.to_string()))
    }
}

fn moved_meanwhile(branch: &str, why: &str) -> WorktreeError {
    WorktreeError::Refused(format!(
        "{branch} was moved by somebody else meanwhile ({why}); integrate again"
    ))
}
