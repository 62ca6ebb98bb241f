//! Proof: a command that gaffer runs by itself to see whether a task is done.

use crate::admit::admit;
use crate::bash::{Bash, run_to_end};
use crate::context::{Context, Cwd, Shell};
use crate::tool::{Run, erase};
use gaffer_protocol::ToolUse;
use gaffer_protocol::message::ToolInput;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub is_met: bool,
    /// What it printed, cut, and how it ended.
    pub output: String,
}

/// Runs a command for an agent under all that binds the agent's own: its policy, its hooks, its
/// sandbox. The shell is a fresh one in the given folder, so nothing that the agent set up for
/// itself can make it succeed.
pub async fn prove(command: &str, folder: &Path, time: Duration, context: &Context) -> Proof {
    let mut fresh = context.clone();
    fresh.shell = Shell::default();
    fresh.cwd = Cwd::new(folder.to_owned());
    let input = json!({"command": command});
    let call = ToolUse {
        id: "proof".to_owned(),
        name: Bash::NAME.to_owned(),
        input: ToolInput::from_text(&input.to_string()),
    };
    let (is_met, output) = match admit(&*erase(Bash), &call, &fresh).await {
        // A hook may look at it, but what proves the work is what was agreed on.
        Ok(_) => run_to_end(command, time, &fresh).await,
        Err(refused) => (false, refused.output.to_text()),
    };
    Proof { is_met, output }
}
