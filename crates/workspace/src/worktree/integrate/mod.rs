//! Integration: the branches of finished workers are merged one after another, each with its
//! checks, and the target moves once, at the end.
//!
//! Merges are made as objects and checked in a scratch worktree. Until the last step nothing that
//! anybody looks at has changed, so whoever is stopped or killed leaves the target as it was.

mod objects;
mod report;
mod scratch;
mod target;

pub use report::{Clash, Integrated, Item, Outcome, Side};
pub use target::Into;

use super::{Allowance, Fate, State, Trace, Worktree, WorktreeError, Worktrees, lock};
use futures_util::future::BoxFuture;
use gaffer_protocol::Timestamp;
use objects::{Merged, Tried};
use scratch::Scratch;
use std::path::{Path, PathBuf};
use target::Target;

/// What is kept of a failed check's output: its last lines.
const LAST_LINES: usize = 30;
const LAST_BYTES: usize = 4 << 10;

/// A finished worker's branch.
#[derive(Debug, Clone)]
pub struct Piece {
    pub tree: Worktree,
    /// The worker's name; empty if it is not known.
    pub name: String,
    /// The command that proves the task.
    pub done_when: Option<String>,
    /// The tasks that it depends on, by id.
    pub after: Vec<String>,
}

/// What is to be integrated.
#[derive(Debug, Clone)]
pub struct Integration {
    pub pieces: Vec<Piece>,
    pub into: Into,
    /// The project's own test command.
    pub test: Option<String>,
    /// Whether the target stays where it is.
    pub is_trial: bool,
    pub now: Timestamp,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub is_met: bool,
    pub output: String,
}

/// Who runs commands, and knows who is at work.
pub trait Checks: Send + Sync {
    /// Runs a command in a checkout.
    fn check<'a>(&'a self, command: &'a str, tree: &'a Worktree) -> BoxFuture<'a, Checked>;

    /// Whether a worktree that is merged and clean may go. It is about to, if so.
    fn lets_go<'a>(&'a self, tree: &'a Worktree) -> BoxFuture<'a, bool>;
}

/// How far an integration is.
struct Way<'a> {
    order: &'a Integration,
    checks: &'a dyn Checks,
    place: PathBuf,
    /// What is merged so far.
    at: String,
    merged: Vec<Merged>,
    scratch: Option<Scratch>,
}

impl Piece {
    pub(super) fn side(&self) -> Side {
        Side {
            task_id: self.tree.name.clone(),
            name: self.name.clone(),
            description: self.tree.task.clone(),
        }
    }
}

impl Worktrees {
    /// Integrates. Dropping the future stops it: the target stays, and the scratch worktree goes.
    pub async fn integrate(
        &self,
        order: &Integration,
        checks: &dyn Checks,
    ) -> Result<Integrated, WorktreeError> {
        let Some(_alone) = lock::alone(&self.common)? else {
            let why = "another integration is under way in this repository: wait for its end";
            return Err(WorktreeError::Refused(why.to_owned()));
        };
        let pieces = in_order(&order.pieces);
        let places: Vec<PathBuf> = pieces.iter().filter_map(|it| place(&it.tree)).collect();
        let Some(first) = places.first().cloned() else {
            let why = "name at least one task to integrate";
            return Err(WorktreeError::Refused(why.to_owned()));
        };
        self.clear_all(&places).await;
        let mut tips = Vec::new();
        for piece in &pieces {
            tips.push(self.ready(piece).await?);
        }
        let target = self.target(&order.into).await?;
        let mut way = Way {
            order,
            checks,
            place: first,
            at: target.start.clone(),
            merged: Vec::new(),
            scratch: None,
        };
        let mut items: Vec<Item> = Vec::new();
        for (piece, tip) in pieces.iter().zip(&tips) {
            let outcome = match missing(piece, &items) {
                Some(because) => Outcome::LeftOut { because },
                None => self.one(&mut way, piece, tip).await?,
            };
            items.push(Item {
                side: piece.side(),
                branch: piece.tree.branch.clone(),
                outcome,
                is_removed: false,
                kept: None,
            });
        }
        if let Some(scratch) = way.scratch.take() {
            self.discard(scratch).await;
        }
        let mut done = self.arrive(&target, &way, items).await;
        if done.refused.is_none() && !order.is_trial {
            let at = way.at.clone();
            for (item, piece) in done.items.iter_mut().zip(&pieces) {
                self.clean_up(item, &piece.tree, &at, checks).await;
            }
        }
        Ok(done)
    }

    /// The tip of a branch whose worker has finished.
    async fn ready(&self, piece: &Piece) -> Result<String, WorktreeError> {
        let tree = &piece.tree;
        if let State::Touched(traces) = self.state(tree).await {
            let is_open = |trace: &&Trace| {
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
            if let Some(trace) = traces.iter().find(is_open) {
                return Err(WorktreeError::Refused(format!(
                    "{} has work that is not committed: {trace}, in {}. Continue the worker and let it commit, or leave it out",
                    piece.side(),
                    tree.path.display()
                )));
            }
        }
        let gone = || {
            let side = piece.side();
            WorktreeError::Refused(format!(
                "{side}: there is no branch {} any more",
                tree.branch
            ))
        };
        self.commit(&tree.reference()).await?.ok_or_else(gone)
    }

    /// Merges one branch and checks what comes of it. If that is not good, all is as before.
    async fn one(
        &self,
        way: &mut Way<'_>,
        piece: &Piece,
        tip: &str,
    ) -> Result<Outcome, WorktreeError> {
        if self.count(&[tip, "--not", &way.at]).await? == 0 {
            return Ok(match tip == piece.tree.base {
                true => Outcome::Nothing,
                false => Outcome::Contained,
            });
        }
        let commit = match self.try_merge(&way.at, tip, piece).await? {
            Tried::Commit(commit) => commit,
            Tried::Conflict(conflict) => {
                let files = self.clashes(&conflict, piece, &way.merged).await;
                return Ok(Outcome::Conflict { files });
            }
        };
        let commands = [&piece.done_when, &way.order.test];
        for command in commands.into_iter().flatten() {
            let scratch = match way.scratch.take() {
                Some(scratch) => scratch,
                None => self.scratch(&way.place, &commit, way.order.now).await?,
            };
            let scratch = way.scratch.insert(scratch);
            self.bring(scratch, &commit).await?;
            let checked = way.checks.check(command, &scratch.tree).await;
            if !checked.is_met {
                return Ok(Outcome::CheckFailed {
                    command: command.clone(),
                    output: last(&checked.output),
                });
            }
        }
        way.merged.push(Merged {
            side: piece.side(),
            files: self.changed(&way.at, &commit).await?,
        });
        way.at.clone_from(&commit);
        Ok(Outcome::Merged { commit })
    }

    /// The last step: the target is moved, or stays.
    async fn arrive(&self, target: &Target, way: &Way<'_>, items: Vec<Item>) -> Integrated {
        let mut done = Integrated {
            into: target.branch.clone(),
            before: target.start.clone(),
            after: None,
            refused: None,
            is_trial: way.order.is_trial,
            test: way.order.test.clone(),
            items,
        };
        if way.at == target.start || done.is_trial {
            return done;
        }
        match self.move_to(target, &way.at).await {
            Ok(branch) => {
                done.into = Some(branch);
                done.after = Some(way.at.clone());
            }
            Err(error) => done.refused = Some(error.to_string()),
        }
        done
    }

    /// Removes the worktree of a branch that is in the target, if nothing would be lost with it.
    async fn clean_up(&self, item: &mut Item, tree: &Worktree, at: &str, checks: &dyn Checks) {
        if !item.outcome.is_in() {
            return;
        }
        let allowed = Allowance::default();
        let tip = self.commit(&tree.reference()).await;
        let is_in = match tip {
            Ok(Some(tip)) => matches!(self.count(&[&tip, "--not", at]).await, Ok(0)),
            _ => false,
        };
        let state = allowed.judge(self.state(tree).await);
        if let State::Touched(_) = state {
            item.kept = Some(state.to_string());
            return;
        }
        if !is_in || !checks.lets_go(tree).await {
            item.kept = Some("its worker has gone on".to_owned());
            return;
        }
        match self.remove(tree, allowed).await {
            Ok(Fate::Removed { .. }) => item.is_removed = true,
            Ok(Fate::Kept { because, .. }) => {
                item.kept = Some(State::Touched(because).to_string());
            }
            Err(error) => item.kept = Some(error.to_string()),
        }
    }
}

fn place(tree: &Worktree) -> Option<PathBuf> {
    tree.path.parent().map(Path::to_owned)
}

/// Those that others depend on first; otherwise as they were given, and each once.
fn in_order(given: &[Piece]) -> Vec<Piece> {
    let mut left: Vec<&Piece> = Vec::new();
    for piece in given {
        if !left.iter().any(|one| one.tree.name == piece.tree.name) {
            left.push(piece);
        }
    }
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let is_free = |piece: &&Piece| {
            let mut others = left.iter().filter(|one| one.tree.name != piece.tree.name);
            !others.any(|one| piece.after.contains(&one.tree.name))
        };
        // Tasks that wait for each other cannot be started, so there always is one.
        let next = left.iter().position(is_free).unwrap_or(0);
        ordered.push(left.remove(next).clone());
    }
    ordered
}

/// What a piece depends on that this integration has not merged.
fn missing(piece: &Piece, items: &[Item]) -> Option<String> {
    let mut needed = items
        .iter()
        .filter(|item| piece.after.contains(&item.side.task_id));
    let lacking = needed.find(|item| !item.outcome.is_in())?;
    let (side, word) = (&lacking.side, lacking.outcome.word());
    Some(format!("it depends on {side}, which {word}"))
}

/// The last lines of an output.
fn last(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let mut from = lines.len().saturating_sub(LAST_LINES);
    let size = |from: usize| lines[from..].iter().map(|it| it.len()).sum::<usize>();
    while size(from) > LAST_BYTES && from + 1 < lines.len() {
        from += 1;
    }
    let text = lines[from..].join("\n");
    let tail: Vec<char> = text.chars().rev().take(LAST_BYTES).collect();
    let text: String = tail.into_iter().rev().collect();
    match from {
        0 => text,
        from => format!("[… {from} lines before …]\n{text}"),
    }
}
