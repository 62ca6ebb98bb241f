//! The permission policy: the rules of all settings and of the command line, and the mode.

use crate::args::Common;
use crate::exit::Usage;
use crate::settings::Settings;
use crate::settings::layers::Level as FileLevel;
use crate::settings::merge::Merged;
use crate::system;
use gaffer_tools::permission::{Kind, Level, Mode, Policy, Rule, Ruled, Source};
use std::path::{Path, PathBuf};

/// What the session's own agent may do.
///
/// Where nobody can be asked and nobody has said anything, edits in the agent's folders are
/// accepted, as they are for workers: there would be nothing left to do otherwise.
pub(crate) fn policy(
    common: &Common,
    settings: &Settings,
    merged: &Merged,
    (cwd, is_headless): (&Path, bool),
) -> Result<Policy, Usage> {
    let named = common
        .permission_mode
        .as_ref()
        .map(|mode| (mode, "--permission-mode"));
    let set = settings.permissions.default_mode.as_ref();
    let named = named.or_else(|| Some((set?, "permissions.defaultMode")));
    let mode = match named {
        Some((text, from)) => text
            .parse()
            .map_err(|error| Usage::new(format!("{from}: {error}")))?,
        None if is_headless => Mode::AcceptEdits,
        None => Mode::Default,
    };
    check_mode(mode, common, merged)?;
    let home = system::variable("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let mut policy = Policy::new(mode, vec![cwd.to_owned()], home);
    let lists = &settings.permissions;
    policy.deny = from_settings(Kind::Deny, &lists.deny, merged, cwd)?;
    policy.ask = from_settings(Kind::Ask, &lists.ask, merged, cwd)?;
    policy.allow = from_settings(Kind::Allow, &lists.allow, merged, cwd)?;
    policy.deny.extend(from_line(
        Kind::Deny,
        &common.disallowed_tools,
        "--disallowed-tools",
        cwd,
    )?);
    policy.allow.extend(from_line(
        Kind::Allow,
        &common.allowed_tools,
        "--allowed-tools",
        cwd,
    )?);
    policy.headless = is_headless;
    Ok(policy)
}

/// Further folders that the settings open. A project can be anybody's: it opens none but itself.
pub(crate) fn further_folders(settings: &Settings, merged: &Merged, cwd: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let listed = settings.permissions.additional_directories.iter();
    for (n, folder) in listed.enumerate() {
        let shown = folder.display();
        let origin = merged.origin(&format!("permissions.additionalDirectories[{n}]"));
        let of_project = origin
            .is_some_and(|origin| matches!(origin.level, FileLevel::Project | FileLevel::Local));
        if of_project {
            system::say(&format!(
                "gaffer: settings: `{shown}` of additionalDirectories is left out: only your own settings and --add-dir open folders"
            ));
            continue;
        }
        let home = system::variable("HOME").map(PathBuf::from);
        let path = match (folder.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => cwd.join(folder),
        };
        match path.canonicalize() {
            Ok(path) if path.is_dir() => folders.push(path),
            _ => system::say(&format!(
                "gaffer: settings: `{shown}` of additionalDirectories is not a folder"
            )),
        }
    }
    folders
}

/// A project can be anybody's: it cannot switch off the questions about itself.
fn check_mode(mode: Mode, common: &Common, merged: &Merged) -> Result<(), Usage> {
    let origin = merged.origin("permissions.defaultMode");
    let of_project =
        origin.filter(|origin| matches!(origin.level, FileLevel::Project | FileLevel::Local));
    match of_project {
        Some(origin) if mode == Mode::BypassPermissions && common.permission_mode.is_none() => {
            let path = origin.path.display();
            Err(Usage::new(format!(
                "settings {path}: a project cannot set `bypassPermissions`; give --permission-mode yourself"
            )))
        }
        _ => Ok(()),
    }
}

/// A rule that cannot be read stops everything: it might be the one that forbids.
fn from_settings(
    kind: Kind,
    texts: &[String],
    merged: &Merged,
    cwd: &Path,
) -> Result<Vec<Ruled>, Usage> {
    let rule = |(n, text): (usize, &String)| {
        let origin = merged.origin(&format!("permissions.{kind}[{n}]"));
        let (level, folder, place) = match origin {
            Some(origin) => (
                level(origin.level),
                root(&origin.path, cwd),
                origin.path.display().to_string(),
            ),
            None => (Level::User, cwd.to_owned(), "settings".to_owned()),
        };
        let rule = Rule::parse_for(kind, text);
        let rule =
            rule.map_err(|error| Usage::new(format!("{place}, permissions.{kind}: {error}")))?;
        Ok(Ruled {
            rule,
            source: Source::new(level, folder),
        })
    };
    texts.iter().enumerate().map(rule).collect()
}

fn from_line(kind: Kind, texts: &[String], flag: &str, cwd: &Path) -> Result<Vec<Ruled>, Usage> {
    let mut rules = Vec::new();
    for text in texts {
        let parsed =
            Rule::parse_list(kind, text).map_err(|error| Usage::new(format!("{flag}: {error}")))?;
        let source = Source::new(Level::CommandLine, cwd);
        rules.extend(parsed.into_iter().map(|rule| Ruled {
            rule,
            source: source.clone(),
        }));
    }
    Ok(rules)
}

fn level(level: FileLevel) -> Level {
    match level {
        FileLevel::User => Level::User,
        FileLevel::Project => Level::Project,
        FileLevel::Local => Level::Local,
        FileLevel::Given => Level::CommandLine,
        FileLevel::Managed => Level::Managed,
    }
}

/// Where patterns with a leading `/` start: two folders above a project's file.
fn root(file: &Path, cwd: &Path) -> PathBuf {
    let root = file.parent().and_then(Path::parent).unwrap_or(cwd);
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}
