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

/// Commands whose names are a few letters away from one that does not exist, the nearest first.
pub(crate) fn near(name: &str, further: &[SlashCommand]) -> Vec<String> {
    let known = commands().chain(further.iter().map(|it| it.name.as_str()));
    let most = 2.max(name.chars().count() / 3);
    let mut all: Vec<(usize, &str)> = known
        .map(|known| (distance(name, known), known))
        .filter(|(distance, known)| *distance <= most || known.starts_with(name))
        .collect();
    all.sort_unstable();
    let all = all.into_iter().take(2);
    all.map(|(_, known)| format!("/{known}")).collect()
}

/// How many letters must change to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, letter) in a.chars().flat_map(char::to_lowercase).enumerate() {
        let mut corner = std::mem::replace(&mut row[0], n + 1);
        for (m, other) in b.iter().enumerate() {
            let changed = corner + usize::from(letter != *other);
            corner = row[m + 1];
            row[m + 1] = changed.min(corner + 1).min(row[m] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_exist_has_near_ones() {
        assert_eq!(near("modle", &[]), ["/mode", "/model"]);
        assert_eq!(near("res", &[]), ["/resume"]);
        assert_eq!(near("zzzzzzz", &[]), [""; 0]);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

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
