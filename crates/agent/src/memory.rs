//! Memory: notes that an agent type keeps for itself from task to task.
//!
//! Each type has a folder of its own, by its scope: in the user's home, in the project, or in the
//! project for this user alone. No part of the way there may be a link: whoever can write in a
//! project could otherwise choose what the type reads and where it may write.

use crate::agent_type::{AgentType, Scope};
use crate::documents::attribute;
use crate::places::Places;
use crate::prompt;
use gaffer_protocol::tags::escape;
use gaffer_protocol::{Block, Origin};
use gaffer_tools::front;
use gaffer_tools::permission::{Kind, Level, Rule, Ruled, Source};
use gaffer_workspace::fence::{Access, Fence, FenceError, Fenced};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const FILE: &str = "MEMORY.md";
/// What of it is given to the type at its start.
const MOST_LINES: usize = 200;
const MOST_BYTES: usize = 25 << 10;

/// The memory of one type.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The home folder or the project's root.
    base: Fenced,
    scope: Scope,
    /// Below the base.
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("{0}")]
    Name(String),
    #[error("there is no home folder for its memory")]
    NoHome,
    #[error("its memory {path} cannot be used: {why}")]
    Refused { path: String, why: FenceError },
}

impl Memory {
    /// The memory of a type, if it keeps any.
    pub fn of(agent_type: &AgentType, places: &Places) -> Result<Option<Self>, MemoryError> {
        let Some(scope) = agent_type.memory else {
            return Ok(None);
        };
        // The name becomes a part of the path.
        front::check_name(&agent_type.name).map_err(MemoryError::Name)?;
        let (base, holder) = match scope {
            Scope::User => (places.home.as_deref(), "agent-memory"),
            Scope::Project => (Some(places.root.as_path()), "agent-memory"),
            Scope::Local => (Some(places.root.as_path()), "agent-memory-local"),
        };
        let base = base.ok_or(MemoryError::NoHome)?;
        let fence = Fence::new([(base, Access::Write)]);
        let located = fence.locate(base, ".");
        let base = located.map_err(|why| refused(base, why))?;
        let folder = Path::new(".gaffer").join(holder).join(&agent_type.name);
        Ok(Some(Self {
            base,
            scope,
            folder,
        }))
    }

    /// The one folder that the type may write in because it has a memory.
    pub fn folder(&self) -> PathBuf {
        self.base.path().join(&self.folder)
    }

    /// Makes the folder, if it is not there, and answers with it: for the type's fence, its
    /// sandbox and the roots of its policy.
    pub fn prepare(&self) -> Result<PathBuf, MemoryError> {
        let mut below = PathBuf::new();
        for part in &self.folder {
            below.push(part);
            let is_shared = match self.scope {
                Scope::User => false,
                Scope::Project => true,
                Scope::Local => part == ".gaffer",
            };
            let mode = if is_shared { 0o755 } else { 0o700 };
            let made = self.at(&below).and_then(|it| it.create_folder(mode));
            made.map_err(|why| self.refused(&below, why))?;
        }
        if self.scope == Scope::Local {
            self.keep_out_of_git()?;
        }
        Ok(self.folder())
    }

    /// The rule that lets the type write in its folder where its mode would ask. None for a
    /// folder whose name no rule can spell.
    pub fn rule(&self) -> Option<Ruled> {
        let folder = self.folder();
        let mut pattern = String::new();
        for c in folder.to_str()?.chars() {
            if "*?[]{}\\!#".contains(c) {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        let rule = Rule::parse_for(Kind::Allow, &format!("Edit(/{pattern}/**)")).ok()?;
        let source = Source::new(Level::Role, folder);
        Some(Ruled { rule, source })
    }

    /// What one user's agents noted is not for the repository.
    fn keep_out_of_git(&self) -> Result<(), MemoryError> {
        let below = self.folder.with_file_name(".gitignore");
        let file = self.at(&below).map_err(|why| self.refused(&below, why))?;
        if file.exists() {
            return Ok(());
        }
        let written = file.replace(b"*\n", None);
        written.map_err(|why| self.refused(&below, why))
    }

    /// What the type is told at its start. It changes from task to task, so it stands behind the
    /// prefix.
    pub fn block(&self) -> Result<Block, MemoryError> {
        let below = self.folder.join(FILE);
        let read = self.at(&below).and_then(|file| read(&file));
        let (text, is_cut) = read.map_err(|why| self.refused(&below, why))?;
        let text = match text.trim_end() {
            "" => "(nothing yet)".to_owned(),
            text => escape(text).into_owned(),
        };
        let intro = prompt::MEMORY.text.trim_end();
        let folder = attribute(&self.folder().display().to_string());
        let cut = match is_cut {
            true => "\n[cut here: the rest of MEMORY.md is not shown]",
            false => "",
        };
        let text = format!("{intro}\n\n<memory path=\"{folder}\">\n{text}{cut}\n</memory>");
        Ok(Block::from(Origin::Context, text))
    }

    fn at(&self, below: &Path) -> Result<Fenced, FenceError> {
        let odd = FenceError::Odd("is no plain path");
        self.base.join(below).ok_or(odd)
    }

    fn refused(&self, below: &Path, why: FenceError) -> MemoryError {
        refused(&self.base.path().join(below), why)
    }
}

fn refused(path: &Path, why: FenceError) -> MemoryError {
    let why = match why {
        // Nothing was located here, so this is the only way in which a path can change.
        FenceError::Changed { .. } => FenceError::Odd("leads through a link"),
        why => why,
    };
    let path = path.display().to_string();
    MemoryError::Refused { path, why }
}

/// The beginning of the notes, and whether there is more.
fn read(file: &Fenced) -> Result<(String, bool), FenceError> {
    let file = match file.open() {
        Err(FenceError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            return Ok((String::new(), false));
        }
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(FenceError::Odd("is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let is_long = bytes.len() > MOST_BYTES;
    bytes.truncate(MOST_BYTES);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if is_long {
        // Half a line could say something else than the whole.
        let end = text.rfind('\n').unwrap_or(text.len());
        text.truncate(end);
    }
    let line_ends = text.match_indices('\n').map(|(at, _)| at);
    let end = line_ends.skip(MOST_LINES - 1).find(|at| {
        let rest = &text[*at..];
        !rest.trim().is_empty()
    });
    let is_cut = is_long || end.is_some();
    if let Some(end) = end {
        text.truncate(end);
    }
    Ok((text, is_cut))
}

#[cfg(test)]
mod tests;
