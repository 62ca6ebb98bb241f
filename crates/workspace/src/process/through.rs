//! A process that nobody ends: for what must not be cut short once it has begun.

use super::Plan;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Runs a process to its end and gives what it printed. This blocks, and whatever becomes of the
/// caller, the process goes on: it has a group of its own, and nothing ends it.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that starts processes"
)]
pub fn through(plan: &Plan) -> io::Result<Output> {
    let mut command = Command::new(&plan.program);
    command
        .args(&plan.args)
        .current_dir(&plan.cwd)
        .process_group(0)
        .stdin(Stdio::null());
    for name in &plan.hidden {
        command.env_remove(name);
    }
    command.envs(plan.env.iter().map(|(name, value)| (name, value)));
    command.output()
}
