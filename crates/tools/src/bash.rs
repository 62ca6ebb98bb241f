//! Bash: a shell command in the working folder.

use crate::context::Context;
use crate::tool::{Access, Output, Run};
use gaffer_workspace::process::{self, Bounds, How, Plan};
use schemars::JsonSchema;
use serde::Deserialize;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

const DEFAULT_TIME: Duration = Duration::from_secs(120);
const LONGEST_TIME: Duration = Duration::from_secs(600);
/// What is kept of the output at each of its ends.
const KEEP: usize = 15_000;

/// Runs a shell command in the working folder and returns what it prints. Standard input is
/// closed, so nothing can be asked. Output beyond 30,000 bytes is left out in the middle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command.
    pub command: String,
    /// How long it may take, in milliseconds: 120000 if not given, at most 600000.
    pub timeout: Option<u64>,
    /// What it does, in a few words, for those who watch.
    pub description: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct Bash;

impl Run for Bash {
    const NAME: &'static str = "Bash";
    const ACCESS: Access = Access::Writes;
    type Input = BashInput;

    async fn run(&self, input: BashInput, context: &Context) -> Output {
        if input.command.contains('\0') {
            return Output::error("The command holds a NUL byte, which no command can.");
        }
        let time = input.timeout.map_or(DEFAULT_TIME, Duration::from_millis);
        let time = time.min(LONGEST_TIME);
        let mut plan = Plan::new(shell(), context.cwd.get()).args(["-c", &input.command]);
        plan.hidden = context.hidden.to_vec();
        let finished = match process::run(&plan, Bounds { time, keep: KEEP }).await {
            Ok(finished) => finished,
            Err(why) => return Output::error(format!("The command could not be started: {why}.")),
        };
        let text = finished.output.text();
        let text = text.trim_end();
        let shown = if text.is_empty() { "[no output]" } else { text };
        match finished.how {
            How::Exited(status) if status.success() => Output::text(shown),
            How::Exited(status) => {
                let end = match (status.code(), status.signal()) {
                    (Some(code), _) => format!("exit code {code}"),
                    (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
                };
                Output::error(format!("{shown}\n[{end}]"))
            }
            How::TimedOut => {
                let seconds = time.as_secs_f32();
                Output::error(format!(
                    "{shown}\n[ended after its time limit of {seconds} s]"
                ))
            }
        }
    }
}

/// Bash where there is one; the commands that models write seldom need more than sh.
fn shell() -> &'static str {
    const BASH: &str = "/bin/bash";
    if std::path::Path::new(BASH).exists() {
        BASH
    } else {
        "sh"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gaffer_protocol::ResultPart;

    async fn bash(command: &str, timeout: Option<u64>) -> (String, bool) {
        let temp = tempfile::tempdir().unwrap();
        let context = Context::in_folder(temp.path(), temp.path());
        let input = BashInput {
            command: command.into(),
            timeout,
            description: None,
        };
        let output = Bash.run(input, &context).await;
        let ResultPart::Text(text) = &output.parts[0] else {
            panic!()
        };
        (text.clone(), output.is_error)
    }

    #[tokio::test]
    async fn what_a_command_says_and_how_it_ends() {
        assert_eq!(bash("echo hi", None).await, ("hi".into(), false));
        assert_eq!(bash("true", None).await, ("[no output]".into(), false));
        assert_eq!(
            bash("echo no; exit 2", None).await,
            ("no\n[exit code 2]".into(), true)
        );
        assert_eq!(
            bash("kill -9 $$", None).await,
            ("[no output]\n[ended by signal 9]".into(), true)
        );
        let (text, is_error) = bash("echo a; sleep 30", Some(100)).await;
        assert!(is_error && text.contains("time limit of 0.1 s"), "{text}");
        assert!(bash("a\0b", None).await.1);
    }
}
