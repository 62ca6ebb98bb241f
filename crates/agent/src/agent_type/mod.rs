//! Agent types: what a worker is told beside its task, and which tools it has.

mod built_in;
mod file;
mod find;

pub use find::{AgentTypes, NoType};

use crate::documents::Documents;
use crate::prompt;
use gaffer_tools::permission::Mode;
use std::path::PathBuf;

/// Tools that no worker has, whatever its type says: only who manages has them. A team adds
/// SendMessage for its members by itself.
pub const NEVER: [&str; 6] = [
    "Agent",
    "Integrate",
    "SendMessage",
    "TaskStop",
    "TeamCreate",
    "TeamDelete",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentType {
    /// Small letters, digits and hyphens.
    pub name: String,
    /// What it is for, for whoever chooses among types.
    pub description: String,
    /// Its own text, which stands behind what every worker is told. May be empty.
    pub prompt: String,
    pub tools: Tools,
    /// Taken away first, whatever `tools` says.
    pub disallowed: Vec<String>,
    /// None for the model that workers have anyway.
    pub model: Option<String>,
    pub effort: Option<String>,
    /// None for the mode that workers have anyway.
    pub permission_mode: Option<Mode>,
    pub max_turns: Option<u32>,
    /// Skills that are read to it at its start.
    pub skills: Vec<String>,
    pub memory: Option<Scope>,
    /// Never waited for, also where sub-agents otherwise are.
    pub background: bool,
    /// It cannot be continued after its end.
    pub is_one_shot: bool,
    /// It works in a worktree of its own.
    pub isolated: bool,
    pub color: Option<String>,
    pub source: Source,
}

/// Which tools a type asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tools {
    All,
    /// Names, and patterns of MCP tools: `mcp__server`, `mcp__server__*`, `mcp__*`.
    Only(Vec<String>),
}

/// Who shares a type's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's in all projects.
    User,
    /// Everybody's in this project: it can be committed.
    Project,
    /// The user's in this project.
    Local,
}

/// Where a type comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    BuiltIn,
    File(PathBuf),
}

impl AgentType {
    /// Stands for a type that there was once: nothing more can be done with its workers, because
    /// nobody knows what they may do.
    pub fn gone(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            prompt: String::new(),
            tools: Tools::Only(Vec::new()),
            disallowed: Vec::new(),
            model: None,
            effort: None,
            permission_mode: None,
            max_turns: None,
            skills: Vec::new(),
            memory: None,
            background: false,
            is_one_shot: true,
            isolated: false,
            color: None,
            source: Source::BuiltIn,
        }
    }

    /// Whether a worker of this type has a tool, where there is such a tool.
    pub fn keeps(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|pattern| covers(pattern, tool));
        let is_asked_for = match &self.tools {
            Tools::All => true,
            Tools::Only(list) => named(list),
        };
        is_asked_for && !named(&self.disallowed) && !NEVER.contains(&tool)
    }

    /// The system text of a worker of this type: the same bytes for all of them.
    pub fn system(&self, documents: &Documents) -> String {
        let documents = documents.text();
        let parts = [prompt::WORKER.text, &documents, &self.prompt];
        let parts = parts.map(str::trim_end);
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n") + "\n"
    }

    /// The hash of its prompt with the text that all workers get.
    pub fn hash(&self) -> String {
        prompt::hash(&self.system(&Documents::default()))
    }
}

/// Whether an entry of a list of tools stands for a tool.
fn covers(pattern: &str, tool: &str) -> bool {
    if pattern == "*" || pattern == tool {
        return true;
    }
    if !pattern.starts_with("mcp__") {
        return false;
    }
    match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        // A server stands for all of its tools.
        None => tool
            .strip_prefix(pattern)
            .is_some_and(|rest| rest.starts_with("__")),
    }
}

#[cfg(test)]
mod tests;
