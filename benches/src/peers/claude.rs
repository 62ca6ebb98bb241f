//! Claude Code: Anthropic Messages, by variables.

use super::{KEY, PROMPT, Peer, Setting};
use crate::events;
use std::process::Command;

pub(super) const PEER: Peer = Peer {
    program: "claude",
    prepare,
};

fn prepare(claude: &mut Command, setting: &Setting<'_>) -> anyhow::Result<()> {
    claude
        .args(["-p", PROMPT, "--model", events::MODEL])
        .env("ANTHROPIC_BASE_URL", format!("http://{}", setting.server))
        .env("ANTHROPIC_API_KEY", KEY)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1");
    Ok(())
}
