//! Tools, called as an agent calls them: by name and JSON, on one thread that hands to others what
//! blocks.

use anyhow::{Context, bail};
use gaffer_protocol::ResultPart;
use gaffer_protocol::message::ToolInput;
use gaffer_tools::{Context as ToolContext, Tool};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Caller {
    runtime: tokio::runtime::Runtime,
    pub(crate) context: ToolContext,
}

impl Caller {
    /// An agent in a folder. `own` is where it may keep its own files; `warden` is the binary that
    /// plays this role for commands.
    pub(crate) fn new(folder: &Path, own: &Path, warden: &Path) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            runtime,
            context: ToolContext::in_folder(folder, own, own, warden),
        })
    }

    /// What a call answers, and how long it took. A call that failed would look quick, so it ends
    /// the bench.
    pub(crate) fn call(
        &self,
        tool: &dyn Tool,
        input: &Value,
    ) -> anyhow::Result<(String, Duration)> {
        let input = ToolInput::from_text(&input.to_string());
        let began = Instant::now();
        let output = self.runtime.block_on(tool.call(&input, &self.context));
        let took = began.elapsed();
        let name = &tool.spec().name;
        let part = output.parts.into_iter().next();
        let Some(ResultPart::Text(text)) = part else {
            bail!("{name} answered without a text")
        };
        if output.is_error {
            return Err(anyhow::anyhow!(text)).with_context(|| format!("{name} failed"));
        }
        Ok((text, took))
    }
}
