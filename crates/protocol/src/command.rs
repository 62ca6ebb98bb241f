//! What a person at any surface wants done: pure data, carried out by whoever runs the session.

use crate::event::Permission;
use crate::ids::AgentId;
use serde::{Deserialize, Serialize};

/// One wish of the user's. Where an agent may be left out, the session's own is meant. A command
/// is never answered: what came of it is seen in the event stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum Command {
    /// A message to an agent. One that has ended goes on with it.
    Say {
        to: Option<AgentId>,
        text: String,
    },
    /// Breaks off what one agent is doing; it rests. All others go on.
    Interrupt {
        agent: Option<AgentId>,
    },
    /// Ends a worker now.
    Stop {
        agent: AgentId,
    },
    /// The answer to the question with this number.
    Answer {
        number: u64,
        permission: Permission,
    },
    SetModel {
        model: String,
    },
    /// The permission mode.
    SetMode {
        mode: String,
    },
    /// Compacts an agent's conversation; the wish is what its summary should heed.
    Compact {
        agent: Option<AgentId>,
        wish: Option<String>,
    },
    /// Anything else that was written as `/name args`: what comes of it is told by a notice, or is
    /// work for an agent.
    Slash {
        name: String,
        args: String,
    },
    Quit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_sent_from_elsewhere() {
        let commands = [
            Command::Say {
                to: None,
                text: "go on".to_owned(),
            },
            Command::Answer {
                number: 3,
                permission: Permission::Deny {
                    message: "not there".to_owned(),
                },
            },
            Command::Quit,
        ];
        for command in commands {
            let text = serde_json::to_string(&command).expect("a command is JSON");
            let back: Command = serde_json::from_str(&text).expect("and is read again");
            assert_eq!(back, command);
        }
    }
}
