//! Commands that begin with a slash: which there are, and what becomes of each.

use gaffer_protocol::{AgentId, Command};

/// A command that can be written behind a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    pub name: String,
    /// What it does, in a few words.
    pub what: String,
}

/// Those that are always there.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("agents", "the crew: open, interrupt or stop a worker"),
    ("clear", "empty the screen; nothing is forgotten"),
    (
        "compact",
        "shorten the conversation: /compact [what to keep]",
    ),
    ("cost", "what the session has used, and its budget"),
    ("help", "keys and commands"),
    ("mode", "the permission mode: /mode [name]"),
    ("model", "the model: /model [name]"),
    ("permissions", "what is allowed without a question"),
    ("quit", "leave"),
    ("resume", "go on with an earlier session"),
    ("timeline", "who worked when"),
    ("worktrees", "the worktrees that workers left"),
];

/// The names of those that are always there.
pub fn commands<'a>() -> impl Iterator<Item = &'a str> {
    COMMANDS.iter().map(|(name, _)| *name)
}

/// What was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Help,
    Agents,
    Cost,
    Timeline,
    Clear,
    Quit,
    Do(Command),
    Unknown(String),
}

/// Reads a command; none if the text is meant for an agent.
pub(crate) fn read(text: &str, to: Option<AgentId>, further: &[SlashCommand]) -> Option<Wish> {
    let rest = text.strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A path is no command.
    if name.is_empty() || name.contains('/') || text.starts_with("/ ") {
        return None;
    }
    let args = args.trim().to_owned();
    let slash = || Command::Slash {
        name: name.to_owned(),
        args: args.clone(),
    };
    let wish = match name {
        "help" => Wish::Help,
        "agents" => Wish::Agents,
        "cost" => Wish::Cost,
        "timeline" => Wish::Timeline,
        "clear" => Wish::Clear,
        "quit" | "exit" => Wish::Quit,
        "model" if !args.is_empty() => Wish::Do(Command::SetModel { model: args }),
        "mode" if !args.is_empty() => Wish::Do(Command::SetMode { mode: args }),
        "compact" => Wish::Do(Command::Compact {
            agent: to,
            wish: Some(args).filter(|wish| !wish.is_empty()),
        }),
        "model" | "mode" | "permissions" | "resume" | "worktrees" => Wish::Do(slash()),
        name if further.iter().any(|command| command.name == name) => Wish::Do(slash()),
        name => Wish::Unknown(name.to_owned()),
    };
    Some(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_paths_and_from_each_other() {
        assert_eq!(read("fix /etc", None, &[]), None);
        assert_eq!(read("/etc/hosts is wrong", None, &[]), None);
        assert_eq!(read("/cost", None, &[]), Some(Wish::Cost));
        let model = Command::SetModel {
            model: "small".to_owned(),
        };
        assert_eq!(read("/model small", None, &[]), Some(Wish::Do(model)));
        assert_eq!(
            read("/nope", None, &[]),
            Some(Wish::Unknown("nope".to_owned()))
        );
        let skill = SlashCommand {
            name: "nope".to_owned(),
            what: String::new(),
        };
        assert!(matches!(
            read("/nope x", None, &[skill]),
            Some(Wish::Do(Command::Slash { .. }))
        ));
    }
}
