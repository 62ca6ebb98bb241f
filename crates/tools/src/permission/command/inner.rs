//! Commands in strings: what `sh -c`, `eval`, `find -exec` and the like would run.

use super::word::{Part, Word};
use super::wrap::{base_name, levels};

const SHELLS: [&str; 8] = ["ash", "bash", "dash", "fish", "ksh", "sh", "su", "zsh"];

/// The scripts that a part hands to something that runs them. Deny and ask rules look into them;
/// nothing is ever allowed because of what they say.
pub(super) fn strings(part: &Part) -> Vec<String> {
    let mut strings = Vec::new();
    for level in levels(&part.words, false) {
        let Some((name, rest)) = level.words.split_first() else {
            continue;
        };
        match base_name(&name.text) {
            shell if SHELLS.contains(&shell) => {
                strings.extend(after(rest, |option| is_short(option, 'c')));
            }
            "eval" => strings.push(texts(rest)),
            "trap" | "watch" | "parallel" => {
                strings.extend(rest.iter().map(|word| word.text.clone()));
            }
            "env" => strings.extend(after(rest, |option| is_short(option, 'S'))),
            "find" => strings.extend(find_commands(rest)),
            "ssh" => strings.extend(rest.last().map(|word| word.text.clone())),
            _ => {}
        }
    }
    strings
}

/// Whether a part runs a shell, which may be given its script on standard input.
pub(super) fn is_shell(part: &Part) -> bool {
    let mut levels = levels(&part.words, false).into_iter();
    levels.any(|level| {
        level
            .words
            .first()
            .is_some_and(|name| SHELLS.contains(&base_name(&name.text)))
    })
}

fn is_short(option: &str, letter: char) -> bool {
    option
        .strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// The first word that is no option after an option of some kind.
fn after(words: &[Word], is_it: impl Fn(&str) -> bool) -> Option<String> {
    let place = words.iter().position(|word| is_it(&word.text))?;
    let mut rest = words.get(place + 1..)?.iter();
    rest.find(|word| !word.text.starts_with('-'))
        .map(|word| word.text.clone())
}

fn find_commands(words: &[Word]) -> Vec<String> {
    let mut commands = Vec::new();
    let mut rest = words;
    let runs = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    while let Some(place) = rest.iter().position(runs) {
        rest = rest.get(place + 1..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|word| matches!(word.text.as_str(), ";" | "+"));
        let (command, after) = rest.split_at(end.unwrap_or(rest.len()));
        let command: Vec<&str> = command.iter().map(|word| word.raw.as_str()).collect();
        commands.push(command.join(" "));
        rest = after;
    }
    commands
}

fn texts(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}
