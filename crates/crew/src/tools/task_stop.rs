//! TaskStop: ends a worker and everything that it started.

use crate::crew::{Crew, Stopped};
use gaffer_protocol::End;
use gaffer_tools::{Access, Context, Output, Run};
use schemars::JsonSchema;
use serde::Deserialize;

/// Stops a worker, with all processes that it started. What it learned is kept: SendMessage
/// continues it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStopInput {
    /// The worker's id or name.
    pub task_id: String,
}

#[derive(Debug)]
pub(super) struct TaskStop(pub(super) Crew);

impl Run for TaskStop {
    const NAME: &'static str = "TaskStop";
    const ACCESS: Access = Access::Writes;
    type Input = TaskStopInput;

    async fn run(&self, input: TaskStopInput, _: &Context) -> Output {
        let Some((id, name)) = self.0.find(&input.task_id) else {
            let there = self.0.names();
            let shown: String = input.task_id.chars().take(100).collect();
            return Output::error(match there.is_empty() {
                true => format!("There is no task `{shown}`: no worker was started yet."),
                false => format!(
                    "There is no task `{shown}`. There are {}.",
                    there.join(", ")
                ),
            });
        };
        match self.0.stop(id, End::StoppedByCoordinator).await {
            Some(Stopped::Gone) => Output::text(format!(
                "{name} ({id}) is stopped, and so is all that it started."
            )),
            Some(Stopped::Before(end)) => {
                Output::error(format!("{name} ({id}) had ended already: {end}."))
            }
            None => Output::error(format!("There is no task {id}.")),
        }
    }
}
