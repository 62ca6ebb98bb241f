//! Integrating for a crew: where the checks run, and what the coordinator is told.

use crate::limits::{Limits, Occupant};
use crate::system::SystemEntropy;
use crate::workshop::Workshop;
use futures_util::future::BoxFuture;
use gaffer_crew::{Branch, Crew, Integration as Order};
use gaffer_protocol::event::Integrated;
use gaffer_protocol::{AgentId, AgentName};
use gaffer_store::SessionFolder;
use gaffer_tools::Context;
use gaffer_tools::hook::{AgentHooks, Moment};
use gaffer_tools::permission::Role;
use gaffer_tools::proof::prove;
use gaffer_workspace::scratchpad::Scratchpad;
use gaffer_workspace::worktree::{Checked, Checks, Integration, Into, Piece, Worktree};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So long a check may take where the settings say nothing.
const TIME: u64 = 600;

/// Where checks run: the scratch worktree, under all that binds a worker that works apart.
pub(crate) struct Bench<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) folder: &'a SessionFolder,
    pub(crate) pad: &'a Scratchpad,
    pub(crate) readable: Vec<&'a Path>,
    pub(crate) hooks: Option<AgentHooks>,
    pub(crate) time: Duration,
    /// Whether nobody works in a worktree.
    pub(crate) is_idle: Box<dyn Fn(&Worktree) -> bool + Send + Sync + 'a>,
    /// For its temporary files, which go with it.
    id: AgentId,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        limits: &'a Limits,
        (folder, pad): (&'a SessionFolder, &'a Scratchpad),
        seconds: Option<u64>,
        is_idle: impl Fn(&Worktree) -> bool + Send + Sync + 'a,
    ) -> Self {
        Self {
            limits,
            folder,
            pad,
            readable: Vec::new(),
            hooks: None,
            time: Duration::from_secs(seconds.unwrap_or(TIME)),
            is_idle: Box::new(is_idle),
            id: AgentId::random(&SystemEntropy),
        }
    }

    fn context(&self, tree: &Worktree) -> anyhow::Result<Context> {
        let name = AgentName::main();
        let mut context = self.limits.workplace(&Occupant {
            id: self.id,
            name: &name,
            cwd: &tree.folder(),
            readable: self.readable.clone(),
            writable: Vec::new(),
            folder: self.folder,
            pad: self.pad,
            role: Some(Role::default()),
            worktree: Some(tree),
        })?;
        context.spill.clone_from(&context.temp);
        context.hooks.clone_from(&self.hooks);
        Ok(context)
    }
}

impl Checks for Bench<'_> {
    fn check<'a>(&'a self, command: &'a str, tree: &'a Worktree) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let context = match self.context(tree) {
                Ok(context) => context,
                Err(error) => {
                    return Checked {
                        is_met: false,
                        output: format!("It could not be run: {error:#}"),
                    };
                }
            };
            let proof = prove(command, &tree.folder(), self.time, &context).await;
            Checked {
                is_met: proof.is_met,
                output: proof.output,
            }
        })
    }

    fn lets_go<'a>(&'a self, tree: &'a Worktree) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            if !(self.is_idle)(tree) {
                return false;
            }
            if let Some(hooks) = &self.hooks {
                let worktree_path = tree.path.clone();
                let moment = Moment::WorktreeRemove { worktree_path };
                hooks.at(self.folder.path().to_owned(), moment).await;
            }
            // A hook takes its time.
            (self.is_idle)(tree)
        })
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let temp: PathBuf = self.folder.path().join(format!("{}.tmp", self.id));
        drop(std::fs::remove_dir_all(temp));
    }
}

/// Integrates for the coordinator.
pub(crate) async fn for_crew(
    workshop: &Workshop,
    crew: &Crew,
    order: &Order,
    context: &Context,
) -> Result<(String, Integrated), String> {
    let into = Into::parse(order.into.trim());
    may_move(&into, workshop.limits.permission_mode())?;
    let place = workshop.folder.worktrees();
    let pieces = order.branches.iter().map(|branch| piece(branch, &place));
    let pieces: Result<Vec<Piece>, String> = pieces.collect();
    let integration = Integration {
        pieces: pieces?,
        into,
        test: workshop.integrate.test.clone(),
        is_trial: false,
        now: workshop.clock.now(),
    };
    let is_idle = |tree: &Worktree| match AgentId::parse(&tree.name) {
        Ok(id) => crew.is_ended(id),
        Err(_) => false,
    };
    let rooms = (&workshop.folder, &workshop.pad);
    let seconds = workshop.integrate.timeout_seconds;
    let mut bench = Bench::new(&workshop.limits, rooms, seconds, is_idle);
    bench.readable = workshop.gear.readable().collect();
    bench.hooks.clone_from(&context.hooks);
    let trees = workshop.yard.trees().await?;
    let done = trees.integrate(&integration, &bench).await;
    let done = done.map_err(|error| error.to_string())?;
    let integrated = Integrated {
        into: done.into.clone(),
        before: done.before.clone(),
        after: done.after.clone(),
        merged: done.merged(),
        left_out: done.left_out(),
        summary: done.headline(),
    };
    Ok((done.to_string(), integrated))
}

/// A coordinator moves no branch of the user's, but for the current one, and that only where files
/// may be changed unasked.
fn may_move(into: &Into, mode: &str) -> Result<(), String> {
    match into {
        _ if into.is_own() => Ok(()),
        Into::Current if matches!(mode, "acceptEdits" | "bypassPermissions") => Ok(()),
        Into::Current => Err(format!(
            "the permission mode is {mode}, so the user's own branch stays: integrate into `new`, and tell the user which branch to merge"
        )),
        _ => Err("`into` is `new`, `current`, or a branch that Integrate made before".to_owned()),
    }
}

fn piece(branch: &Branch, place: &Path) -> Result<Piece, String> {
    let id = branch.id.to_string();
    let Some(tree) = Worktree::find(place, &id) else {
        return Err(format!(
            "{} ({id}) has no worktree any more: nothing was done in it, or it was integrated before; leave it out",
            branch.name
        ));
    };
    Ok(Piece {
        tree,
        name: branch.name.to_string(),
        done_when: branch.done_when.clone(),
        after: branch.depends_on.iter().map(AgentId::to_string).collect(),
    })
}
