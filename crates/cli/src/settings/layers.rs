//! Which settings files there are, at which level, and what each level may say.

use crate::exit::Usage;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where a value comes from. Later levels go over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    User,
    /// Of the project, for everybody who works in it.
    Project,
    /// Of the project, for this user alone.
    Local,
    /// The file of `--settings`.
    Given,
    /// Of the organisation; nothing goes over it.
    Managed,
}

impl Level {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Given => "--settings",
            Self::Managed => "managed",
        }
    }
}

/// One file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) level: Level,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// A file of another tool's, of which only the parts that gaffer shares with it are read.
    pub(crate) is_foreign: bool,
}

/// The folders that settings are looked for in.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Gaffer's own folder.
    pub(crate) home: PathBuf,
    /// The user's home.
    pub(crate) user: Option<PathBuf>,
    /// The root of the project.
    pub(crate) project: Option<PathBuf>,
    /// Where an organisation puts its files.
    pub(crate) system: PathBuf,
    pub(crate) given: Option<PathBuf>,
}

/// What a shared file of another tool means to gaffer.
pub(crate) const SHARED: [&str; 5] = [
    "permissions",
    "hooks",
    "disableAllHooks",
    "autoCompactEnabled",
    "autoCompactWindow",
];

/// What a project may not say, because a project can be anybody's: where keys and questions are
/// sent, what holds its own commands back, how long the user's sessions are kept, and what they may cost.
pub(crate) const USER_ONLY: [&str; 9] = [
    "providers",
    "sandbox",
    "web",
    "disableAllHooks",
    "onHookTimeout",
    "cleanupPeriodDays",
    "sessions",
    "minFreeSpace",
    "budget",
];

/// Reads all files there are, lowest level first. At each level the first file that exists is
/// read: gaffer's own, else the one that the user already has.
pub(crate) fn read(places: &Places) -> Result<Vec<Layer>, Usage> {
    let at = |folder: &Option<PathBuf>, name: &str| folder.as_ref().map(|folder| folder.join(name));
    let candidates = [
        (
            Level::User,
            Some(places.home.join("settings.json")),
            at(&places.user, ".claude/settings.json"),
        ),
        (
            Level::Project,
            at(&places.project, ".gaffer/settings.json"),
            at(&places.project, ".claude/settings.json"),
        ),
        (
            Level::Local,
            at(&places.project, ".gaffer/settings.local.json"),
            at(&places.project, ".claude/settings.local.json"),
        ),
        (
            Level::Managed,
            Some(places.system.join("gaffer/managed-settings.json")),
            Some(places.system.join("claude-code/managed-settings.json")),
        ),
    ];
    let mut layers = Vec::new();
    for (level, own, foreign) in candidates {
        for (path, is_foreign) in [(own, false), (foreign, true)] {
            let Some(path) = path.filter(|path| path.is_file()) else {
                continue;
            };
            layers.push(Layer {
                level,
                text: text(&path)?,
                path,
                is_foreign,
            });
            break;
        }
    }
    if let Some(path) = &places.given {
        layers.push(Layer {
            level: Level::Given,
            text: text(path)?,
            path: path.clone(),
            is_foreign: false,
        });
    }
    layers.sort_by_key(|layer| layer.level);
    Ok(layers)
}

fn text(path: &Path) -> Result<String, Usage> {
    let shown = path.display();
    std::fs::read_to_string(path)
        .map_err(|error| Usage::new(format!("cannot read the settings {shown}: {error}")))
}

impl Layer {
    /// What of the file counts, and what was left out for its level.
    pub(crate) fn value(&self) -> Result<(Value, Vec<String>), Usage> {
        let mut value: Value =
            serde_json::from_str(&self.text).map_err(|error| self.wrong(&error))?;
        let mut refused = Vec::new();
        if let Some(members) = value.as_object_mut() {
            if self.is_foreign {
                members.retain(|key, _| SHARED.contains(&key.as_str()));
            }
            if matches!(self.level, Level::Project | Level::Local) {
                for key in USER_ONLY {
                    if members.shift_remove(key).is_some() {
                        refused.push(key.to_owned());
                    }
                }
            }
        }
        Ok((value, refused))
    }

    /// An error with its file, its line and what was expected.
    pub(crate) fn wrong(&self, error: &serde_json::Error) -> Usage {
        let (path, line, column) = (self.path.display(), error.line(), error.column());
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        Usage::new(format!(
            "settings {path}, line {line}, column {column}: {what}"
        ))
    }
}
