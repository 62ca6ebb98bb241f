//! Where agent types are found, and which of two with one name counts.

use super::{AgentType, built_in, file};
use crate::places::{Places, Reach};
use gaffer_protocol::tags::escape;
use gaffer_tools::front;
use gaffer_workspace::fence::{FenceError, Fenced};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folders that hold agent types, the first before the later ones.
const HOLDERS: [&str; 3] = [".gaffer/agents", ".claude/agents", ".agents/agents"];
/// More entries of one such folder are not looked at, nor deeper ones.
const MOST_ENTRIES: usize = 1000;
const DEEPEST: usize = 4;
/// What the list of types says of one, and of all.
const LONGEST_DESCRIPTION: usize = 1024;
const LARGEST_LIST: usize = 16 << 10;

/// All agent types by name, and the files that could not be read as one, each with the reason.
#[derive(Debug, Clone)]
pub struct AgentTypes {
    /// Shared: everybody of a type has it for as long as the session lasts.
    pub(super) all: BTreeMap<String, Arc<AgentType>>,
    pub problems: Vec<String>,
}

/// Why there is no worker of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoType {
    #[error("there is no agent type `{name}`: there are {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("the agent type `{name}` is denied by the rule `{rule}`")]
    Denied { name: String, rule: String },
}

impl AgentTypes {
    /// Those that are always there.
    pub fn built_in() -> Self {
        let all = built_in::all().map(|it| (it.name.clone(), Arc::new(it)));
        Self {
            all: BTreeMap::from(all),
            problems: Vec::new(),
        }
    }

    /// Reads all that there are. Of two with one name the nearer to the working folder counts, then
    /// the user's, then the one that is built in.
    pub fn find(places: &Places) -> Self {
        let project = Reach::project(places);
        let user = Reach::user();
        let mut levels: Vec<(&Path, &Reach)> = Vec::new();
        let nearest_first = places.folders.iter().rev().map(PathBuf::as_path);
        let home = places.home.as_deref();
        levels.extend(
            nearest_first
                .filter(|folder| Some(*folder) != home)
                .map(|folder| (folder, &project)),
        );
        levels.extend(home.map(|home| (home, &user)));
        let mut found = Found::default();
        for (level, reach) in levels {
            for holder in HOLDERS {
                let mut room = MOST_ENTRIES;
                found.folder(&level.join(holder), reach, DEEPEST, &mut room);
            }
        }
        let mut types = Self::built_in();
        let found_types = found.all.into_iter();
        types
            .all
            .extend(found_types.map(|(name, it)| (name, Arc::new(it))));
        types.problems = found.problems;
        types
    }

    pub fn get(&self, name: &str) -> Option<&AgentType> {
        self.all.get(name).map(Arc::as_ref)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = &AgentType> {
        self.all.values().map(Arc::as_ref)
    }

    /// The type of a name as a model gives it. Names have no capitals, so `Explore` is `explore`.
    pub fn choose(&self, name: &str) -> Result<&Arc<AgentType>, NoType> {
        let plain = name.trim().to_ascii_lowercase();
        self.all.get(&plain).ok_or_else(|| NoType::Unknown {
            name: name.chars().take(64).collect(),
            known: self.all.keys().cloned().collect(),
        })
    }

    /// A line for each type, for whoever chooses among them; it can stand in a tag. Descriptions
    /// that have no room are left out, names never.
    pub fn describe(&self) -> String {
        let names: usize = self.all.keys().map(|name| name.len() + 3).sum();
        let mut room = LARGEST_LIST.saturating_sub(names);
        let mut lines = Vec::new();
        for agent_type in self.iter() {
            let cut = agent_type.description.char_indices();
            let description = match cut.map(|(at, _)| at).nth(LONGEST_DESCRIPTION) {
                Some(end) => format!("{}…", &agent_type.description[..end]),
                None => agent_type.description.clone(),
            };
            let description = format!(": {}", escape(&description));
            let mut line = format!("- {}", agent_type.name);
            if description.len() <= room {
                room -= description.len();
                line.push_str(&description);
            }
            lines.push(line);
        }
        lines.join("\n")
    }
}

/// What was read so far.
#[derive(Default)]
struct Found {
    all: BTreeMap<String, AgentType>,
    problems: Vec<String>,
}

impl Found {
    /// Reads the files of a folder and of those below it.
    fn folder(&mut self, path: &Path, reach: &Reach, depth: usize, room: &mut usize) {
        let entries = reach.locate(path).and_then(|folder| folder.entries());
        let mut names = match entries {
            Ok(names) => names,
            Err(FenceError::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return;
            }
            Err(error) => return self.problem(path, &error.to_string()),
        };
        names.sort();
        for name in names {
            let path = path.join(name);
            if *room == 0 {
                return;
            }
            *room -= 1;
            let found = reach.locate(&path).and_then(|it| Ok((it.metadata()?, it)));
            match found {
                Ok((it, _)) if it.is_dir() && depth > 0 => {
                    self.folder(&path, reach, depth - 1, room);
                }
                Ok((it, _)) if it.is_dir() => {}
                _ if path.extension().is_none_or(|it| it != "md") => {}
                Ok((_, fenced)) => self.file(&path, &fenced),
                Err(error) => self.problem(&path, &error.to_string()),
            }
        }
    }

    fn file(&mut self, path: &Path, fenced: &Fenced) {
        let text = fenced.open().map_err(|error| error.to_string());
        let read = text
            .and_then(front::text)
            .and_then(|text| file::read(&text, path));
        match read {
            Ok(Some((agent_type, problems))) => {
                for why in problems {
                    self.problem(path, &why);
                }
                let name = agent_type.name.clone();
                self.all.entry(name).or_insert(agent_type);
            }
            Ok(None) => {}
            Err(why) => self.problem(path, &why),
        }
    }

    fn problem(&mut self, path: &Path, why: &str) {
        self.problems.push(format!("{}: {why}", path.display()));
    }
}
