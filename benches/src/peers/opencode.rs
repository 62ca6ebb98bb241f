//! opencode: Anthropic Messages, by a file of settings that a variable names.

use super::{KEY, PROMPT, Peer, Setting, settings};
use serde_json::json;
use std::process::Command;

pub(super) const PEER: Peer = Peer {
    program: "opencode",
    prepare,
};

fn prepare(opencode: &mut Command, setting: &Setting<'_>) -> anyhow::Result<()> {
    let base = format!("http://{}/v1", setting.server);
    let text = json!({
        "autoupdate": false,
        "share": "disabled",
        "provider": {"anthropic": {
            "options": {"baseURL": base, "apiKey": KEY},
            "models": {"bench": {"name": "bench"}},
        }},
    });
    let file = settings(setting.home, "opencode.json", &text.to_string())?;
    opencode
        .args(["run", "--model", "anthropic/bench", PROMPT])
        .env("OPENCODE_CONFIG", file)
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    Ok(())
}
