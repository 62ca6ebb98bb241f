//! `gaffer worktree integrate`: the same integration as the coordinator's, for people.

use crate::args::Common;
use crate::args::integrate::IntegrateArgs;
use crate::exit::{Exit, Usage};
use crate::integrate::Bench;
use crate::limits::Limits;
use crate::settings::Settings;
use crate::setup::{places, working_folder};
use crate::signals::Signals;
use crate::system::{self, SystemClock, plain};
use crate::worktree::{Yard, print};
use anyhow::Context as _;
use gaffer_protocol::{AgentId, Clock};
use gaffer_store::Found;
use gaffer_store::book::Contents;
use gaffer_store::session::slug;
use gaffer_workspace::scratchpad::{Caps, Place, Scratchpad};
use gaffer_workspace::worktree::{Integrated, Integration, Into, Piece, Worktree};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) async fn integrate(args: &IntegrateArgs) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let yard = Yard::open(&args.repository).await?;
    let home = system::home();
    let home = home.ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"))?;
    let common = Common {
        cwd: args.repository.cwd.clone(),
        ..Common::default()
    };
    let cwd = working_folder(&common)?;
    let (settings, _) = Settings::load(&places(&home, &cwd, args.settings.clone()))?;
    let limits = Limits::choose(&common, &settings.sandbox)?;
    let books = Books::of(&yard);
    let named = args.tasks.iter().map(|name| books.find(&yard, name));
    let named: Vec<(Worktree, Found)> = named.collect::<Result<_, Usage>>()?;
    let pieces: anyhow::Result<Vec<Piece>> = named.iter().map(|it| books.piece(it)).collect();
    let integration = Integration {
        pieces: pieces?,
        into: Into::parse(&args.into),
        test: args.test.clone().or(settings.integrate.test),
        is_trial: args.dry_run,
        now: SystemClock.now(),
    };
    let (_, first) = named.first().context("name at least one task")?;
    let pad = pad(first, &cwd)?;
    let is_idle = |tree: &Worktree| {
        let found = yard.all.iter().find(|(one, _)| one.path == tree.path);
        found.is_some_and(|(_, found)| found.folder.owner().is_none())
    };
    let seconds = settings.integrate.timeout_seconds;
    let bench = Bench::new(&limits, (&first.folder, &pad), seconds, is_idle);
    let done = tokio::select! {
        done = yard.trees.integrate(&integration, &bench) => done?,
        () = signals.arrived() => {
            drop(yard.trees.clear_stale(&yard.places).await);
            system::say("gaffer: stopped; nothing was moved");
            return Ok(Exit::Interrupted);
        }
    };
    show(&done, args.json)?;
    Ok(match done.is_whole() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn show(done: &Integrated, is_json: bool) -> anyhow::Result<()> {
    match is_json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(done)?)),
        false => print(&plain(&done.to_string())),
    }
}

fn pad(found: &Found, cwd: &std::path::Path) -> anyhow::Result<Scratchpad> {
    let project = found.folder.path().parent().and_then(|it| it.file_name());
    let project = project.and_then(|name| name.to_str()).map(str::to_owned);
    let place = Place {
        temp: &std::env::temp_dir(),
        uid: rustix::process::getuid().as_raw(),
        folder: &project.unwrap_or_else(|| slug(cwd)),
        session: found.id.as_str(),
    };
    let pad = Scratchpad::open(place, Arc::new(SystemClock), Caps::default());
    Ok(pad.map_err(|error| Usage::new(error.to_string()))?)
}

/// What the sessions' books say of the tasks that left worktrees.
struct Books(HashMap<PathBuf, Contents>);

impl Books {
    fn of(yard: &Yard) -> Self {
        let mut books = HashMap::new();
        for (_, found) in &yard.all {
            let path = found.folder.path().to_owned();
            // A book that cannot be read leaves what the worktree's own record says.
            let read = || found.folder.book().read().unwrap_or_default();
            books.entry(path).or_insert_with(read);
        }
        Self(books)
    }

    /// By the worker's name, if it is one worktree's alone; else as all commands name worktrees.
    fn find(&self, yard: &Yard, name: &str) -> Result<(Worktree, Found), Usage> {
        let is_it = |(tree, found): &&(Worktree, Found)| {
            let entered = self.entered(tree, found);
            entered.is_some_and(|it| it.task.name.to_string() == name)
        };
        let named: Vec<&(Worktree, Found)> = yard.all.iter().filter(is_it).collect();
        match named[..] {
            [one] => Ok(one.clone()),
            _ => yard.find(name).cloned(),
        }
    }

    fn entered(&self, tree: &Worktree, found: &Found) -> Option<&gaffer_store::book::Entered> {
        let id = AgentId::parse(&tree.name).ok()?;
        let tasks = &self.0.get(found.folder.path())?.tasks;
        tasks.iter().find(|entered| entered.task.id == id)
    }

    fn piece(&self, (tree, found): &(Worktree, Found)) -> anyhow::Result<Piece> {
        let entered = self.entered(tree, found);
        if let Some(owner) = found.folder.owner()
            && entered.is_none_or(|it| it.end.is_none())
        {
            anyhow::bail!(
                "{} still works, in process {}: wait for its end, or leave it out",
                tree.name,
                owner.pid
            );
        }
        let task = entered.map(|it| &it.task);
        Ok(Piece {
            tree: tree.clone(),
            name: task.map_or_else(String::new, |task| task.name.to_string()),
            done_when: task.and_then(|task| task.terms.done_when.clone()),
            after: task.map_or_else(Vec::new, |task| {
                task.depends_on.iter().map(AgentId::to_string).collect()
            }),
        })
    }
}
