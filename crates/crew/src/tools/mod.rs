//! The tools that manage a crew. They are all that a coordinator has, beside the scratchpad.

pub mod agent;
#[cfg(feature = "coordinator")]
pub mod integrate;
pub mod send_message;
pub mod task_stop;

use crate::crew::Crew;
use gaffer_protocol::AgentId;
use gaffer_tools::{Tool, erase, erase_without};
use std::sync::Arc;

/// Whether its workers may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    #[cfg(feature = "coordinator")]
    /// A coordinator's: workers always run in the background.
    Coordinator,
    /// Those of an agent that also works itself: it waits for a worker, unless it says otherwise.
    Normal,
}

/// The tools with which an agent starts, continues and stops workers.
pub fn tools(crew: &Crew, caller: AgentId, manner: Manner) -> Vec<Arc<dyn Tool>> {
    let types = crew.parts().outfitter.types().describe();
    let starter = agent::Starter {
        crew: crew.clone(),
        caller,
    };
    // Where there can be no worktrees, nobody is tempted to ask for one.
    let without: &[&str] = match crew.parts().outfitter.has_worktrees() {
        true => &[],
        false => &["isolation"],
    };
    let described = |about: &str| format!("{}\n\nTypes:\n{types}", about.trim_end());
    let starts = match manner {
        #[cfg(feature = "coordinator")]
        // A coordinator hears of the types when it begins: they are not the same everywhere, and
        // its prefix is.
        Manner::Coordinator => erase_without(
            agent::CoordinatorAgent(starter),
            agent::COORDINATOR_ABOUT.trim_end().to_owned(),
            without,
        ),
        Manner::Normal => erase_without(
            agent::NormalAgent(starter),
            described(agent::NORMAL_ABOUT),
            without,
        ),
    };
    let all = vec![
        starts,
        erase(send_message::SendMessage {
            crew: crew.clone(),
            caller,
        }),
        erase(task_stop::TaskStop(crew.clone())),
    ];
    #[cfg(feature = "coordinator")]
    let all = match manner == Manner::Coordinator && crew.parts().outfitter.has_worktrees() {
        true => [all, vec![integrate::tool(crew.clone(), caller)]].concat(),
        false => all,
    };
    all
}
