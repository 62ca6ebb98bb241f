//! Prompts: text files under version control, known by their hash.

use sha2::{Digest, Sha256};

/// What a single agent with all the tools is told.
pub const AGENT: Prompt = Prompt {
    name: "agent",
    text: include_str!("../../../prompts/agent.md"),
};

/// What the model is told that answers questions about pages of the web.
pub const WEB_FETCH: Prompt = Prompt {
    name: "web-fetch",
    text: include_str!("../../../prompts/web-fetch.md"),
};

#[derive(Debug, Clone, Copy)]
pub struct Prompt {
    pub name: &'static str,
    pub text: &'static str,
}

impl Prompt {
    /// Written into every session, so that it is known later what an agent had been told.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
