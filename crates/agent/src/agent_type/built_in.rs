//! The agent types that are always there.

use super::{AgentType, Source, Tools};
use crate::prompt::{self, Prompt};
use gaffer_tools::permission::Mode;

/// What a type has that only looks.
const LOOKING: [&str; 8] = [
    "Bash",
    "Glob",
    "Grep",
    "Read",
    "Skill",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
];
const EDITING: [&str; 3] = ["Edit", "NotebookEdit", "Write"];

pub(super) fn all() -> [AgentType; 5] {
    [
        plain(
            "worker",
            "Any task: finds things out, changes files, runs commands. What is used where no type is named.",
        ),
        plain(
            "general-purpose",
            "Any task that takes several steps and need not be watched: wide searches, changes, commands.",
        ),
        looking(
            "explore",
            "Finds something out in the code and reports it. Changes nothing, and cannot be continued.",
            prompt::EXPLORE,
        ),
        looking(
            "plan",
            "Designs how a change is to be made, with its files and steps. Changes nothing, and cannot be continued.",
            prompt::PLAN,
        ),
        AgentType {
            prompt: prompt::VERIFIER.text.to_owned(),
            disallowed: EDITING.map(str::to_owned).to_vec(),
            ..plain(
                "verifier",
                "Finds out with fresh eyes whether work that somebody else did really works, and tries to show that it does not.",
            )
        },
    ]
}

fn plain(name: &str, description: &str) -> AgentType {
    AgentType {
        name: name.to_owned(),
        description: description.to_owned(),
        prompt: String::new(),
        tools: Tools::All,
        disallowed: Vec::new(),
        model: None,
        effort: None,
        permission_mode: None,
        max_turns: None,
        skills: Vec::new(),
        memory: None,
        background: false,
        is_one_shot: false,
        isolated: false,
        color: None,
        source: Source::BuiltIn,
    }
}

fn looking(name: &str, description: &str, prompt: Prompt) -> AgentType {
    AgentType {
        prompt: prompt.text.to_owned(),
        tools: Tools::Only(LOOKING.map(str::to_owned).to_vec()),
        // Bash could write; this mode lets it only read.
        permission_mode: Some(Mode::Plan),
        is_one_shot: true,
        ..plain(name, description)
    }
}
