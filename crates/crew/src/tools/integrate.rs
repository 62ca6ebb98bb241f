//! Integrate: merges the branches of finished workers, with their checks.

use crate::crew::Crew;
use crate::integrate::Integration;
use gaffer_protocol::{AgentId, EventKind};
use gaffer_tools::{Access, Context, Output, Run, Tool, erase_as};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

const ABOUT: &str = include_str!("../../../../prompts/tools/integrate.md");
/// After this nothing is moved any more. Each check has a limit of its own.
const LONGEST: Duration = Duration::from_secs(60 * 60);
const MOST: usize = 200;

/// Merges the branches of finished workers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrateInput {
    /// Ids or names of ended tasks that worked in worktrees.
    pub task_ids: Vec<String>,
    /// `new` (the default): a new branch from where the user is. `current`: the user's own branch,
    /// only if the user asked for that. Or a branch that Integrate made before.
    pub into: Option<String>,
}

#[derive(Debug)]
struct Integrate {
    crew: Crew,
    caller: AgentId,
}

pub(super) fn tool(crew: Crew, caller: AgentId) -> Arc<dyn Tool> {
    erase_as(Integrate { crew, caller }, ABOUT.trim_end().to_owned())
}

impl Run for Integrate {
    const NAME: &'static str = "Integrate";
    const ACCESS: Access = Access::Writes;
    type Input = IntegrateInput;

    async fn run(&self, input: IntegrateInput, context: &Context) -> Output {
        if input.task_ids.is_empty() || input.task_ids.len() > MOST {
            return Output::error(format!("Name 1 to {MOST} tasks in `task_ids`."));
        }
        let branches = match self.crew.branches(&input.task_ids) {
            Ok(branches) => branches,
            Err(why) => return Output::error(why),
        };
        let order = Integration {
            branches,
            into: input.into.unwrap_or_else(|| "new".to_owned()),
        };
        let outfitter = &self.crew.parts().outfitter;
        let done = outfitter.integrate(&self.crew, &order, context);
        match tokio::time::timeout(LONGEST, done).await {
            Ok(Ok((report, integrated))) => {
                let event = EventKind::Integrated(Box::new(integrated));
                self.crew.emit(self.caller, event);
                Output::text(report)
            }
            Ok(Err(why)) => Output::error(format!("Nothing was integrated: {why}.")),
            Err(_) => Output::error(format!(
                "Nothing was integrated: it took longer than {} minutes. Integrate fewer tasks at once.",
                LONGEST.as_secs() / 60
            )),
        }
    }
}
