//! An agent type's file: frontmatter that says what it is, and its prompt.

use super::{AgentType, Scope, Source, Tools};
use gaffer_tools::front::{self, Words};
use gaffer_tools::permission::Mode;
use serde::Deserialize;
use std::path::Path;

/// A sub-agent with its parent's conversation is asked for by this name.
const RESERVED: &str = "fork";

const COLORS: [&str; 8] = [
    "blue", "cyan", "green", "orange", "pink", "purple", "red", "yellow",
];

/// What the frontmatter says. What is not known here is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Front {
    name: Option<String>,
    description: Option<String>,
    tools: Option<Words>,
    disallowed_tools: Option<Words>,
    model: Option<String>,
    effort: Option<String>,
    permission_mode: Option<String>,
    max_turns: Option<u32>,
    skills: Option<Words>,
    memory: Option<String>,
    background: Option<bool>,
    isolation: Option<String>,
    color: Option<String>,
}

/// A type, and what in its file was left out with the reason.
pub(super) type Read = (AgentType, Vec<String>);

/// Reads the text of a file. None is for documentation: a file that gives no name.
pub(super) fn read(text: &str, path: &Path) -> Result<Option<Read>, String> {
    if !text.starts_with("---\n") {
        return Ok(None);
    }
    let (front, body) = front::split(text)?;
    let front: Front = front::parse(front)?;
    let Some(name) = plain(front.name) else {
        return Ok(None);
    };
    front::check_name(&name)?;
    if name.starts_with('-') {
        return Err(format!("`{name}` begins with a hyphen"));
    }
    if name == RESERVED {
        return Err(format!("the name `{name}` has a meaning of its own"));
    }
    if front.max_turns == Some(0) {
        return Err("maxTurns is 0".to_owned());
    }
    let mut problems = Vec::new();
    let mut tools_of = |key: &str, words: &Words| whole_tools(key, words, &mut problems);
    let tools = front.tools.map(|words| tools_of("tools", &words));
    let disallowed = front.disallowed_tools;
    let disallowed = disallowed.map(|words| tools_of("disallowedTools", &words));
    let agent_type = AgentType {
        description: plain(front.description).ok_or("it has no description")?,
        prompt: body.trim().to_owned(),
        tools: match tools {
            Some(list) if !list.iter().any(|tool| tool == "*") => Tools::Only(list),
            _ => Tools::All,
        },
        disallowed: disallowed.unwrap_or_default(),
        model: plain(front.model).filter(|model| model != "inherit"),
        effort: plain(front.effort),
        permission_mode: mode(front.permission_mode)?,
        max_turns: front.max_turns,
        skills: front.skills.map(|words| words.items()).unwrap_or_default(),
        memory: plain(front.memory).map(|text| scope(&text)).transpose()?,
        background: front.background == Some(true),
        is_one_shot: false,
        isolated: plain(front.isolation).is_some_and(|text| text == "worktree"),
        color: plain(front.color).filter(|color| COLORS.contains(&color.as_str())),
        source: Source::File(path.to_owned()),
        name,
    };
    Ok(Some((agent_type, problems)))
}

/// A text on one line, if there is any.
fn plain(text: Option<String>) -> Option<String> {
    let text = text?;
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The tools of a list. `Bash(git *)` names less than a tool, which only rules of the user can:
/// given, it would be more than was asked for, so it is not; taken away, it is taken whole.
fn whole_tools(key: &str, words: &Words, problems: &mut Vec<String>) -> Vec<String> {
    let mut tools = Vec::new();
    for item in words.items() {
        let name = item.split('(').next().unwrap_or_default();
        // Workers start no others, so whom they might start does not matter.
        let is_agent = matches!(name, "Agent" | "Task");
        if name.len() == item.len() || is_agent {
            tools.push(name.to_owned());
            continue;
        }
        let shown: String = item.chars().take(64).collect();
        let (outcome, is_kept) = match key {
            "tools" => ("it is left out", false),
            _ => ("all of it is taken away", true),
        };
        problems.push(format!(
            "`{shown}` in {key}: only whole tools can be named there; {outcome}"
        ));
        if is_kept {
            tools.push(name.to_owned());
        }
    }
    tools
}

fn mode(text: Option<String>) -> Result<Option<Mode>, String> {
    match plain(text).as_deref() {
        // Elsewhere it means that a model judges each call. Workers here need no such mode: they
        // work by themselves within the policy.
        None | Some("auto") => Ok(None),
        Some(text) => {
            let mode = text.parse::<Mode>();
            mode.map(Some).map_err(|error| error.to_string())
        }
    }
}

fn scope(text: &str) -> Result<Scope, String> {
    match text {
        "user" => Ok(Scope::User),
        "project" => Ok(Scope::Project),
        "local" => Ok(Scope::Local),
        _ => Err("memory is user, project or local".to_owned()),
    }
}
