//! Where skills are found, and which of two with one name counts.

use super::file::{self, Front};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folders that hold skills, the first before the later ones.
const HOLDERS: [&str; 3] = [".gaffer/skills", ".claude/skills", ".agents/skills"];
/// A folder of this name is another program's own.
const RESERVED: &str = "synced";
/// More entries of one folder are not looked at.
const MOST_ENTRIES: usize = 1000;

/// A skill that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    pub name: String,
    /// What it is for, and when, in the words of its file.
    pub about: String,
    pub front: Front,
    pub folder: PathBuf,
}

impl Skill {
    /// Whether a model may use it by itself.
    pub fn is_for_models(&self) -> bool {
        !self.front.disable_model_invocation
    }

    /// Whether people may call it by name.
    pub fn is_for_people(&self) -> bool {
        self.front.user_invocable != Some(false)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.join(file::NAME)
    }
}

/// All skills by name, and the files that could not be read, each with the reason.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    pub(super) all: BTreeMap<String, Skill>,
    pub problems: Vec<String>,
}

impl Skills {
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.all.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.all.values()
    }
}

/// The folders to look in, those that win first: the user's own, then the project's, from the
/// working folder up to the root of its repository. Outside of a repository only the working
/// folder counts.
pub fn folders(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut levels: Vec<&Path> = home.into_iter().collect();
    let is_root = |folder: &&Path| folder.join(".git").exists();
    let depth = cwd.ancestors().position(|folder| is_root(&folder));
    levels.extend(cwd.ancestors().take(depth.unwrap_or(0) + 1));
    let mut folders: Vec<PathBuf> = Vec::new();
    for level in levels {
        for folder in HOLDERS.map(|holder| level.join(holder)) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    folders
}

/// Reads all skills in these folders. Of two with one name the first counts.
pub fn find(folders: &[PathBuf]) -> Skills {
    let mut found = Skills::default();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = entries.take(MOST_ENTRIES).map(|e| e.path()).collect();
        entries.sort();
        for entry in entries {
            let is_reserved = entry.file_name().is_some_and(|name| name == RESERVED);
            let path = entry.join(file::NAME);
            // Whatever has no such file is no skill.
            if is_reserved || path.symlink_metadata().is_err() {
                continue;
            }
            match read(&entry, &path) {
                Ok(skill) => {
                    found.all.entry(skill.name.clone()).or_insert(skill);
                }
                Err(why) => found.problems.push(format!("{}: {why}", path.display())),
            }
        }
    }
    found
}

fn read(folder: &Path, path: &Path) -> Result<Skill, String> {
    let (front, body) = file::read(path)?;
    let name = file::name(&front, folder)?;
    let about = [&front.description, &front.when_to_use]
        .into_iter()
        .flatten();
    let about: Vec<&str> = about.flat_map(|text| text.split_whitespace()).collect();
    let mut about = about.join(" ");
    if about.is_empty() {
        // Some files leave it to their first line.
        let mut lines = body.lines().map(|line| line.trim_start_matches(['#', ' ']));
        about = lines
            .find(|line| !line.is_empty())
            .unwrap_or_default()
            .to_owned();
    }
    if about.is_empty() {
        return Err("it has no description".to_owned());
    }
    Ok(Skill {
        name,
        about,
        front,
        folder: folder.to_owned(),
    })
}
