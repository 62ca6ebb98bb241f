//! Which tasks can be integrated: ended, with a worktree of their own.

use crate::crew::Crew;
#[cfg(feature = "coordinator")]
use crate::roster::{State, Task};
use gaffer_protocol::{AgentId, AgentName};

/// The branches of ended workers that are to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    pub branches: Vec<Branch>,
    /// `new`, `current` or a branch that was made so before.
    pub into: String,
}

/// What one worker did on its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub id: AgentId,
    pub name: AgentName,
    /// The command that proves it.
    pub done_when: Option<String>,
    pub depends_on: Vec<AgentId>,
}

impl Crew {
    /// The branches of tasks, by their ids or names. An error says which one has none to give.
    #[cfg(feature = "coordinator")]
    pub(crate) fn branches(&self, wanted: &[String]) -> Result<Vec<Branch>, String> {
        let names = self.names();
        let roster = self.0.roster();
        let branch = |text: &String| {
            let Some(task) = roster.find(text) else {
                let shown: String = text.chars().take(100).collect();
                return Err(match names.is_empty() {
                    true => format!("There is no task `{shown}`: no worker was started yet."),
                    false => format!(
                        "There is no task `{shown}`. There are {}.",
                        names.join(", ")
                    ),
                });
            };
            branch(task)
        };
        wanted.iter().map(branch).collect()
    }

    /// Whether a task has ended. One that nobody knows has.
    pub fn is_ended(&self, id: AgentId) -> bool {
        let roster = self.0.roster();
        roster.get(id).is_none_or(|task| task.live().is_none())
    }
}

#[cfg(feature = "coordinator")]
fn branch(task: &Task) -> Result<Branch, String> {
    let who = format!("{} ({})", task.name, task.id);
    if let State::Live(_) = task.state {
        return Err(format!(
            "{who} still works: wait for its end, or integrate the others without it."
        ));
    }
    if !task.terms.isolated {
        return Err(format!(
            "{who} had no worktree: it worked in the user's own checkout, and there is nothing to integrate."
        ));
    }
    Ok(Branch {
        id: task.id,
        name: task.name.clone(),
        done_when: task.terms.done_when.clone(),
        depends_on: task.depends_on.clone(),
    })
}
