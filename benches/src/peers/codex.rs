//! Codex: OpenAI Responses, by a provider of its own on the command line.

use super::{KEY, PROMPT, Peer, Setting};
use std::process::Command;

pub(super) const PEER: Peer = Peer {
    program: "codex",
    prepare,
};

fn prepare(codex: &mut Command, setting: &Setting<'_>) -> anyhow::Result<()> {
    let own = setting.home.join(".codex");
    std::fs::create_dir_all(&own)?;
    let provider = [
        "model_provider=\"bench\"".to_owned(),
        "model_providers.bench.name=\"bench\"".to_owned(),
        format!(
            "model_providers.bench.base_url=\"http://{}/v1\"",
            setting.server
        ),
        "model_providers.bench.wire_api=\"responses\"".to_owned(),
        "model_providers.bench.env_key=\"BENCH_KEY\"".to_owned(),
    ];
    codex.args(["exec", "--skip-git-repo-check", "-m", "bench"]);
    for setting in &provider {
        codex.args(["-c", setting]);
    }
    codex
        .arg(PROMPT)
        .env("CODEX_HOME", own)
        .env("BENCH_KEY", KEY);
    Ok(())
}
