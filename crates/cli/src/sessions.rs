//! `gaffer sessions`: which sessions there are, and looking through, naming and removing them.

use crate::args::Common;
use crate::args::sessions::{
    CleanArgs, DeleteArgs, ListArgs, RenameArgs, SearchArgs, SessionsArgs, SessionsCommand,
};
use crate::exit::{Exit, Usage};
use crate::house;
use crate::settings::Settings;
use crate::setup::{places, working_folder};
use crate::show::not_found;
use crate::system::{self, SystemClock, plain};
use crate::view::sessions as view;
use anyhow::Context;
use gaffer_protocol::Clock;
use gaffer_store::list::look;
use gaffer_store::search::Needle;
use gaffer_store::{About, Found, Home, Listed, State};
use std::io::{self, BufRead, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub(crate) fn sessions(args: SessionsArgs) -> anyhow::Result<Exit> {
    match args.command {
        None => list(&args.list),
        Some(SessionsCommand::List(args)) => list(&args),
        Some(SessionsCommand::Search(args)) => search(&args),
        Some(SessionsCommand::Rename(args)) => rename(&args),
        Some(SessionsCommand::Delete(args)) => delete(&args),
        Some(SessionsCommand::Clean(args)) => clean(&args),
    }
}

pub(crate) fn home() -> Result<Home, Usage> {
    let home = system::home().ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"));
    Ok(Home::new(home?))
}

/// The folder that is meant, also if it is gone: its sessions may still be there.
fn folder(cwd: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(gone) = cwd.filter(|cwd| cwd.is_absolute() && !cwd.exists()) {
        return Ok(gone.clone());
    }
    working_folder(&Common {
        cwd: cwd.cloned(),
        ..Common::default()
    })
}

pub(crate) fn find(home: &Home, cwd: &Path, wanted: &str) -> Result<Found, Usage> {
    let found = home.find_session(cwd, wanted);
    found.map_err(|why| not_found(Some(wanted), &why))
}

fn listed(args: &ListArgs) -> anyhow::Result<Vec<Listed>> {
    let home = home()?;
    Ok(match args.all {
        true => home.list(None),
        false => home.list(Some(&folder(args.cwd.as_ref())?)),
    })
}

fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    let all = listed(args)?;
    let text = match args.json {
        true => format!("{:#}\n", view::json(&all)),
        false if all.is_empty() && !args.all => {
            system::say("gaffer: there is no session of this folder; --all lists those of others");
            String::new()
        }
        false => view::text(&all, args.all),
    };
    print(&text)?;
    Ok(Exit::Done)
}

/// Prints, as long as somebody reads. Answers whether somebody does.
fn print(text: &str) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(why) => Err(why).context("cannot print"),
    }
}

fn search(args: &SearchArgs) -> anyhow::Result<Exit> {
    let needle = Needle::new(&args.text);
    let mut needle = needle.ok_or_else(|| Usage::new("search: there is nothing to look for"))?;
    needle.in_tools = args.tools;
    let all = listed(&args.list)?;
    let is_json = args.list.json;
    let shorts = view::Shorts::of(&all);
    let mut has_any = false;
    for it in &all {
        let about = it.about.as_ref();
        let titles = about.map(|about| [about.name.as_deref(), Some(about.title.as_str())]);
        let titles = titles.into_iter().flatten().flatten();
        let title = titles.filter_map(|text| needle.find(text)).next();
        let mut is_open = false;
        // The session's own line stands before its first place.
        let head = |is_open: &mut bool| match std::mem::replace(is_open, true) {
            true => String::new(),
            false => view::search_head(it, &shorts),
        };
        if let Some(line) = title {
            let text = match is_json {
                true => view::title_json(it, &line),
                false => head(&mut is_open),
            };
            has_any = true;
            if !print(&text)? {
                return Ok(Exit::Done);
            }
        }
        let (mut count, mut printed) = (0, Ok(true));
        let read = it.found.folder.search(&needle, &mut |hit| {
            has_any = true;
            count += 1;
            let text = match (is_json, count > args.max_count) {
                (true, true) => return ControlFlow::Break(()),
                (true, false) => view::hit_json(it, &hit),
                (false, true) => "  …\n".to_owned(),
                (false, false) => head(&mut is_open) + &view::hit_text(&hit),
            };
            printed = print(&text);
            match (&printed, count > args.max_count) {
                (Ok(true), false) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        if !printed? {
            return Ok(Exit::Done);
        }
        // Another process may have deleted it meanwhile.
        drop(read);
    }
    if !has_any && !is_json {
        system::say(&format!("gaffer: `{}` was not found", plain(&args.text)));
    }
    Ok(if has_any { Exit::Done } else { Exit::Failed })
}

fn rename(args: &RenameArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let cwd = folder(args.cwd.as_ref())?;
    let name = About::name_of(&args.name).map_err(|error| Usage::new(error.to_string()))?;
    let found = find(&home, &cwd, &args.session)?;
    let about = found.folder.about();
    let about = about.or_else(|| found.folder.recovered_about());
    let Some(about) = about else {
        let path = found.folder.path().display();
        let why = format!(
            "the session {} has no transcript that can be read: {path}",
            found.id
        );
        return Err(Usage::new(why).into());
    };
    if let Some(other) = taken(&home, &found, &name) {
        let why = format!("the session {other} is called so; choose another name");
        return Err(Usage::new(why).into());
    }
    let named = About {
        name: Some(name.clone()),
        ..about
    };
    let written = found.folder.set_about(&named);
    written.with_context(|| format!("cannot write in {}", found.folder.path().display()))?;
    print(&format!("{} is called {name}\n", found.id))?;
    Ok(Exit::Done)
}

/// Another session that a name would be mistaken for: one of the same folder with this name, or
/// one anywhere with this id.
fn taken(home: &Home, found: &Found, name: &str) -> Option<String> {
    let project = found.folder.path().parent();
    let clashes = |other: &&Listed| {
        let folder = &other.found.folder;
        let is_here = folder.path().parent() == project;
        folder.path() != found.folder.path()
            && (other.found.id.as_str() == name || is_here && other.name() == Some(name))
    };
    let all = home.list(None);
    let other = all.iter().find(clashes)?;
    Some(other.found.id.to_string())
}

fn delete(args: &DeleteArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let cwd = folder(args.cwd.as_ref())?;
    let mut all: Vec<Listed> = Vec::new();
    for wanted in &args.sessions {
        let found = find(&home, &cwd, wanted)?;
        let path = found.folder.path();
        if !all.iter().any(|it| it.found.folder.path() == path) {
            all.push(look(found));
        }
    }
    // All of them can go, or none goes.
    for it in &all {
        let id = &it.found.id;
        if let State::Running(owner) = &it.state {
            let why = format!("the session {id} is in use by process {}", owner.pid);
            return Err(Usage::new(why).into());
        }
        if let Some(why) = &it.kept {
            return Err(Usage::new(format!("the session {id} is kept: {why}")).into());
        }
    }
    if !args.yes && !is_confirmed(&all)? {
        return Ok(Exit::Failed);
    }
    for it in &all {
        let id = &it.found.id;
        let deleted = it.found.folder.delete();
        deleted.with_context(|| format!("the session {id} could not be deleted"))?;
        house::remove_beside(&it.found);
        print(&format!("deleted {id} ({})\n", view::size(it.size)))?;
    }
    Ok(Exit::Done)
}

fn is_confirmed(all: &[Listed]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !system::stderr_is_terminal() {
        let why = "nobody is there to ask: say --yes if they are to be deleted for good";
        return Err(Usage::new(why).into());
    }
    system::say(view::text(all, true).trim_end());
    let mut err = io::stderr().lock();
    write!(err, "Delete for good? [y/N] ").and_then(|()| err.flush())?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn clean(args: &CleanArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let cwd = std::env::current_dir().unwrap_or_else(|_| home.path().to_owned());
    let (settings, _) = Settings::load(&places(home.path(), &cwd, args.settings.clone()))?;
    let rules = house::rules(&settings);
    let now = SystemClock.now();
    let done = match args.dry_run {
        true => home.would_clean(&rules, now, None),
        false => home.clean(&rules, now, None, &|| true, &house::remove_beside),
    };
    print(&view::cleaned(&done))?;
    for (it, error) in &done.failed {
        system::say(&format!("gaffer: {} was not removed: {error}", it.found.id));
    }
    system::say(&view::cleaned_sum(&done, args.dry_run));
    Ok(match done.failed.is_empty() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}
