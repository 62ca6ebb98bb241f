//! Hooks that are commands: how they are started and what their end is.

use super::config::{CommandHook, Shell};
use super::outcome::{Reply, Text};
use super::run::Surroundings;
use gaffer_workspace::process::{self, How, Limits, Plan, Talked};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// A reply may hold a whole file as a call's new input, but is not without end.
pub(super) const LARGEST_REPLY: usize = 4 << 20;
/// Of standard error so much is kept at each end: it is a reason to read.
const KEEP_ERRORS: usize = 64 << 10;
const PROJECT_NAMES: [&str; 2] = ["CLAUDE_PROJECT_DIR", "GAFFER_PROJECT_DIR"];

/// Runs a command with the event on its standard input. All that it starts ends with it.
pub(super) async fn run(
    hook: &CommandHook,
    surroundings: &Surroundings,
    cwd: &Path,
    input: &str,
    time: Duration,
) -> Reply {
    let plan = plan(hook, surroundings, cwd);
    let limits = Limits {
        time,
        stdout: LARGEST_REPLY / 2,
        stderr: KEEP_ERRORS,
    };
    match process::talk(&plan, input.as_bytes(), limits).await {
        Ok(talked) => reply(hook, &talked, time),
        Err(why) => Reply::NotStarted(format!("{why} (in {})", cwd.display())),
    }
}

fn plan(hook: &CommandHook, surroundings: &Surroundings, cwd: &Path) -> Plan {
    let project = surroundings.project.to_string_lossy();
    let mut plan = match &hook.args {
        Some(args) => {
            let filled = |text: &str| {
                let fill =
                    |text: String, name: &&str| text.replace(&format!("${{{name}}}"), &project);
                PROJECT_NAMES.iter().fold(text.to_owned(), fill)
            };
            let args: Vec<String> = args.iter().map(|arg| filled(arg)).collect();
            Plan::new(filled(&hook.command), cwd).args(args)
        }
        None => {
            let shell = match hook.shell {
                Some(Shell::Bash) => "bash",
                None => "sh",
            };
            // The shell fills in the folder from its environment. Were it written into the
            // command, a folder's name could become a part of the program.
            Plan::new(shell, cwd).args(["-c", &hook.command])
        }
    };
    plan.hidden = surroundings.hidden.clone();
    plan.env = PROJECT_NAMES
        .iter()
        .map(|name| ((*name).to_owned(), project.to_string()))
        .collect();
    plan
}

fn reply(hook: &CommandHook, talked: &Talked, time: Duration) -> Reply {
    let How::Exited(status) = talked.how else {
        return Reply::TimedOut(time);
    };
    let stderr = talked.stderr.text();
    match status.code() {
        // So a shell says that it found no program, or none that it may start.
        Some(code @ (126 | 127)) if hook.args.is_none() => {
            let why = stderr.trim().lines().next_back().unwrap_or_default();
            let why: String = why.chars().take(300).collect();
            Reply::NotStarted(format!("exit code {code}: {why}"))
        }
        Some(code) => Reply::Exited {
            code,
            stdout: Text {
                text: talked.stdout.text(),
                is_whole: talked.stdout.is_whole(),
            },
            stderr,
        },
        None => Reply::Failed(signal(status)),
    }
}

fn signal(status: ExitStatus) -> String {
    format!(
        "was ended by signal {}",
        status.signal().unwrap_or_default()
    )
}
