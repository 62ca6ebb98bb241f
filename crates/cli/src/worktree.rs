//! `gaffer worktree`: what workers left in worktrees, for people.

use crate::args::{Common, RepositoryArgs, WorktreeArgs, WorktreeCommand};
use crate::exit::{Exit, Usage};
use crate::setup::working_folder;
use crate::system::{self, SystemClock, plain};
use crate::worktree_integrate::integrate;
use anyhow::Context;
use gaffer_protocol::{Clock, Timestamp};
use gaffer_store::{Found, Home};
use gaffer_workspace::worktree::{
    Allowance, Base, Fate, Git, Merged, Trace, Worktree, WorktreeError, Worktrees,
};
use std::io::Write;
use std::path::PathBuf;

/// A repository and what workers left in it.
pub(crate) struct Yard {
    pub(crate) trees: Worktrees,
    pub(crate) all: Vec<(Worktree, Found)>,
    /// Where worktrees are, of all sessions.
    pub(crate) places: Vec<PathBuf>,
}

pub(crate) fn worktree(command: &WorktreeCommand) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        match command {
            WorktreeCommand::List(args) => list(&Yard::open(args).await?).await,
            WorktreeCommand::Diff(args) => diff(args).await,
            WorktreeCommand::Merge(args) => merge(args).await,
            WorktreeCommand::Integrate(args) => integrate(args).await,
            WorktreeCommand::Remove {
                which,
                ignored,
                keep_branch,
            } => {
                let allowed = Allowance {
                    ignored: *ignored,
                    keep_branch: *keep_branch,
                };
                remove(which, allowed).await
            }
            WorktreeCommand::Prune(args) => prune(&Yard::open(args).await?).await,
        }
    })
}

impl Yard {
    pub(crate) async fn open(args: &RepositoryArgs) -> anyhow::Result<Self> {
        let home = system::home();
        let home = home.ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"))?;
        let cwd = working_folder(&Common {
            cwd: args.cwd.clone(),
            ..Common::default()
        })?;
        let trees = match Worktrees::of(Git::default(), &cwd, Base::Head).await {
            Err(error @ WorktreeError::NoRepository(_)) => {
                return Err(Usage::new(error.to_string()).into());
            }
            found => found?,
        };
        // A repository may have been worked on from several of its folders.
        let sessions = Home::new(home).all_sessions();
        let places = sessions.iter().map(|found| found.folder.worktrees());
        let places: Vec<PathBuf> = places.collect();
        let mut all: Vec<(Worktree, Found)> = sessions
            .into_iter()
            .flat_map(|found| {
                let trees = Worktree::all(&found.folder.worktrees());
                trees.into_iter().map(move |tree| (tree, found.clone()))
            })
            .filter(|(tree, _)| trees.has(tree))
            .collect();
        all.sort_by_key(|(tree, _)| tree.made);
        Ok(Self { trees, all, places })
    }

    /// The one that a name means.
    pub(crate) fn find(&self, name: &str) -> Result<&(Worktree, Found), Usage> {
        let is_it = |tree: &Worktree| {
            let end = tree.branch.rsplit('/').next();
            tree.name == name || tree.branch == name || end == Some(name)
        };
        let whole: Vec<_> = self.all.iter().filter(|(tree, _)| is_it(tree)).collect();
        let fitting = match whole.is_empty() {
            true => {
                let begins = |tree: &Worktree| !name.is_empty() && tree.name.starts_with(name);
                self.all.iter().filter(|(tree, _)| begins(tree)).collect()
            }
            false => whole,
        };
        let names = |of: &mut dyn Iterator<Item = &(Worktree, Found)>| {
            let names: Vec<&str> = of.map(|(tree, _)| tree.name.as_str()).collect();
            names.join(", ")
        };
        match fitting[..] {
            [one] => Ok(one),
            [] if self.all.is_empty() => {
                Err(Usage::new("this repository has no worktrees of workers"))
            }
            [] => Err(Usage::new(format!(
                "there is no worktree `{}`; there are: {}",
                plain(name),
                names(&mut self.all.iter())
            ))),
            _ => Err(Usage::new(format!(
                "several worktrees are meant by `{}`: {}",
                plain(name),
                names(&mut fitting.iter().copied())
            ))),
        }
    }
}

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).context("cannot print")
}

async fn list(yard: &Yard) -> anyhow::Result<Exit> {
    print(&listed(yard).await)?;
    Ok(Exit::Done)
}

/// All of them, for people.
pub(crate) async fn listed(yard: &Yard) -> String {
    let now = SystemClock.now();
    if yard.all.is_empty() {
        return "No worktrees of workers.\n".to_owned();
    }
    let mut text = String::new();
    for (tree, found) in &yard.all {
        let state = yard.trees.state(tree).await;
        let owner = found.folder.owner();
        let running = match owner {
            Some(owner) => format!(", its session runs (process {})", owner.pid),
            None => String::new(),
        };
        text.push_str(&plain(&format!(
            "{}  {}\n  task    {}\n  made    {} ago{running}\n  folder  {}\n  state   {state}\n",
            tree.name,
            tree.branch,
            tree.task,
            age(now, tree.made),
            tree.path.display(),
        )));
    }
    text
}

async fn diff(args: &WorktreeArgs) -> anyhow::Result<Exit> {
    let yard = Yard::open(&args.repository).await?;
    let (tree, _) = yard.find(&args.name)?;
    let bytes = yard.trees.diff(tree).await?;
    match system::stdout_is_terminal() {
        // What a worker wrote is not for a terminal to obey.
        true => print(&plain(&String::from_utf8_lossy(&bytes)))?,
        false => print_bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

async fn merge(args: &WorktreeArgs) -> anyhow::Result<Exit> {
    let yard = Yard::open(&args.repository).await?;
    let (tree, _) = yard.find(&args.name)?;
    match yard.trees.merge(tree).await? {
        Merged::Done { into, commits } => {
            let commits = match commits {
                1 => "1 commit".to_owned(),
                count => format!("{count} commits"),
            };
            print(&plain(&format!(
                "Merged {} into {into}: {commits}. `gaffer worktree remove {}` removes the worktree.\n",
                tree.branch, tree.name
            )))?;
            Ok(Exit::Done)
        }
        Merged::Nothing => {
            print(&plain(&format!("{} has nothing new.\n", tree.branch)))?;
            Ok(Exit::Done)
        }
        Merged::Conflicts(files) => {
            let files = plain(&files.join(", "));
            system::say(&format!(
                "gaffer: nothing was merged: these files conflict: {files}. `git merge {}` merges by hand",
                tree.branch
            ));
            Ok(Exit::Failed)
        }
    }
}

async fn remove(args: &WorktreeArgs, allowed: Allowance) -> anyhow::Result<Exit> {
    let yard = Yard::open(&args.repository).await?;
    let (tree, found) = yard.find(&args.name)?;
    if let Some(owner) = found.folder.owner() {
        system::say(&format!(
            "gaffer: {} stays: its session runs in process {}, and its worker may be in it",
            tree.name, owner.pid
        ));
        return Ok(Exit::Failed);
    }
    match yard.trees.remove(tree, allowed).await? {
        Fate::Removed { branch: None } => {
            print(&format!("Removed {} and its branch.\n", tree.name))?;
            Ok(Exit::Done)
        }
        Fate::Removed {
            branch: Some(branch),
        } => {
            print(&plain(&format!(
                "Removed {}; its branch {branch} stays.\n",
                tree.name
            )))?;
            Ok(Exit::Done)
        }
        Fate::Kept { because, path, .. } => {
            let said: Vec<String> = because.iter().map(Trace::to_string).collect();
            system::say(&plain(&format!(
                "gaffer: {} stays: {}. {}Its folder is {}",
                tree.name,
                said.join("; "),
                advice(&because, tree),
                path.display()
            )));
            Ok(Exit::Failed)
        }
    }
}

/// What would let it go, where one word does.
fn advice(because: &[Trace], tree: &Worktree) -> String {
    match because {
        [Trace::Ignored(_)] => "With --ignored they go too. ".to_owned(),
        [Trace::Commits { .. }] => format!(
            "`gaffer worktree merge {}` merges them; with --keep-branch they stay on the branch. ",
            tree.name
        ),
        _ => String::new(),
    }
}

async fn prune(yard: &Yard) -> anyhow::Result<Exit> {
    let idle = yard.all.iter();
    let idle = idle.filter(|(_, found)| found.folder.owner().is_none());
    let trees: Vec<Worktree> = idle.map(|(tree, _)| tree.clone()).collect();
    let pruned = yard.trees.prune(&trees).await?;
    for (tree, branch) in &pruned.forgotten {
        let branch = match branch {
            Some(branch) => format!("; its branch {branch} stays"),
            None => String::new(),
        };
        print(&plain(&format!("Forgot {}{branch}.\n", tree.name)))?;
    }
    for (tree, why) in &pruned.kept {
        let line = format!("gaffer: {} is gone, but not forgotten: {why}", tree.name);
        system::say(&plain(&line));
    }
    let scratch = yard.trees.clear_stale(&yard.places).await?.unwrap_or(0);
    if scratch > 0 {
        print("Removed what an integration that was cut short had left.\n")?;
    }
    if pruned.forgotten.is_empty() && pruned.kept.is_empty() && scratch == 0 {
        print("Nothing to forget.\n")?;
    }
    Ok(match pruned.kept.is_empty() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// How long ago something was, in one unit.
fn age(now: Timestamp, then: Timestamp) -> String {
    let minutes = now.0.saturating_sub(then.0) / 60_000;
    match minutes {
        0..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let age = |minutes: u64| age(Timestamp(minutes * 60_000 + 5), Timestamp(0));
        assert_eq!(age(5), "5 min");
        assert_eq!(age(121), "2 h");
        assert_eq!(age(3 * 1440), "3 days");
        assert_eq!(super::age(Timestamp(0), Timestamp(9)), "0 min");
    }
}
