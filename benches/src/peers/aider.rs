//! aider: Chat Completions, by variables.

use super::{KEY, PROMPT, Peer, Setting};
use std::process::Command;

pub(super) const PEER: Peer = Peer {
    program: "aider",
    prepare,
};

fn prepare(aider: &mut Command, setting: &Setting<'_>) -> anyhow::Result<()> {
    aider
        .args(["--model", "openai/bench", "--message", PROMPT])
        .args(["--no-git", "--yes-always", "--no-check-update"])
        .args(["--no-show-model-warnings", "--analytics-disable"])
        .env("OPENAI_API_BASE", format!("http://{}/v1", setting.server))
        .env("OPENAI_API_KEY", KEY);
    Ok(())
}
