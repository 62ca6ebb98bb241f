//! Prompts: text files under version control, known by their hash.

use sha2::{Digest, Sha256};

macro_rules! prompt {
    ($name:literal) => {
        Prompt {
            name: $name,
            text: include_str!(concat!("../../../prompts/", $name, ".md")),
        }
    };
}

/// What a single agent with all the tools is told.
pub const AGENT: Prompt = prompt!("agent");

/// What the agent is told that can only manage.
pub const COORDINATOR: Prompt = prompt!("coordinator");

/// What every worker is told, before the text of its type.
pub const WORKER: Prompt = prompt!("worker");

/// The text of the type that finds things out.
pub const EXPLORE: Prompt = prompt!("explore");

/// The text of the type that designs a change.
pub const PLAN: Prompt = prompt!("plan");

/// The text of the type that tries to show that something does not work.
pub const VERIFIER: Prompt = prompt!("verifier");

/// What stands before project documents.
pub const DOCUMENTS: Prompt = prompt!("documents");

/// What stands before an agent type's memory.
pub const MEMORY: Prompt = prompt!("memory");

/// What asks an agent's own model for a summary of the conversation.
pub const COMPACT: Prompt = prompt!("compact");

/// What stands before the user's wishes for that summary.
pub const COMPACT_WISH: Prompt = prompt!("compact-wish");

/// What stands at the start of a conversation that was compacted.
pub const COMPACTED: Prompt = prompt!("compacted");

/// What the model is told that answers questions about pages of the web.
pub const WEB_FETCH: Prompt = prompt!("web-fetch");

/// What the model is told that searches with its provider's own tool.
pub const WEB_SEARCH: Prompt = Prompt {
    name: "web-search",
    text: include_str!("../../../prompts/web-search.md"),
};

#[derive(Debug, Clone, Copy)]
pub struct Prompt {
    pub name: &'static str,
    pub text: &'static str,
}

impl Prompt {
    /// Written into every session, so that it is known later what an agent had been told.
    pub fn hash(&self) -> String {
        hash(self.text)
    }
}

/// The hash of what an agent is told.
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests;
