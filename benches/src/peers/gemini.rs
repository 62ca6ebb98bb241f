//! Gemini CLI: Google's own wire, by variables, with a file that says which key is meant.

use super::{KEY, PROMPT, Peer, Setting, settings};
use serde_json::json;
use std::process::Command;

pub(super) const PEER: Peer = Peer {
    program: "gemini",
    prepare,
};

fn prepare(gemini: &mut Command, setting: &Setting<'_>) -> anyhow::Result<()> {
    let text = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true},
    });
    settings(setting.home, ".gemini/settings.json", &text.to_string())?;
    gemini
        .args(["-p", PROMPT, "-m", "gemini-2.5-pro"])
        .env(
            "GOOGLE_GEMINI_BASE_URL",
            format!("http://{}", setting.server),
        )
        .env("GEMINI_API_KEY", KEY);
    Ok(())
}
