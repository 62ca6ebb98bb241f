//! Shell commands, taken apart as far as decisions about them need.

mod inner;
mod parse;
mod word;
mod wrap;

use parse::Parser;
pub(super) use word::{Flow, Level, Part, Word, is_name, is_private_variable};
pub(super) use wrap::{base_name, system_name};

/// How deep commands in strings of commands are followed.
const DEEPEST_STRING: usize = 3;

/// A whole command line.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// As it was given, without space around it.
    pub(super) text: String,
    /// The simple commands in it, those in substitutions before the one that they stand in.
    pub(super) parts: Vec<Part>,
    /// Why it is not certain that these are all commands that would run. Such a script is never
    /// allowed by what is known of its parts.
    pub(super) unclear: Option<&'static str>,
    /// The texts of here-documents and here-strings.
    here: Vec<String>,
}

impl Script {
    pub(super) fn parse(text: &str) -> Self {
        // Not of the trimmed text: an odd space at its end belongs to the last word for a shell.
        let is_hidden = text.chars().any(is_odd);
        let text = text.trim();
        let read = Parser::new(text, 0).run();
        let unclear = match is_hidden {
            true => Some("it holds characters that cannot be seen"),
            false => read.unclear,
        };
        Self {
            text: text.to_owned(),
            unclear: unclear.or_else(|| read.parts.iter().find_map(Part::unclear)),
            parts: read.parts,
            here: read.here,
        }
    }

    /// Everything that deny and ask rules are held against: the whole text, each part in all its
    /// forms, and what programs like `sh -c` would run.
    pub(super) fn watched(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.watch(DEEPEST_STRING, &mut texts);
        texts
    }

    fn watch(&self, deeper: usize, texts: &mut Vec<String>) {
        texts.push(self.text.clone());
        let mut strings = Vec::new();
        for part in &self.parts {
            part.watch(texts);
            strings.extend(inner::strings(part));
        }
        if self.parts.iter().any(inner::is_shell) {
            strings.extend(self.here.iter().cloned());
        }
        for string in strings.iter().filter(|_| deeper > 0) {
            Self::parse(string).watch(deeper - 1, texts);
        }
        if self.unclear.is_some() {
            texts.extend(fragments(&self.text));
        }
    }
}

/// Characters that a terminal does not show, or shows as something else.
fn is_odd(c: char) -> bool {
    let is_plain = matches!(c, '\n' | '\t' | ' ');
    let is_hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !is_plain && (c.is_control() || c.is_whitespace()) || is_hidden
}

/// A text that was not understood, cut wherever a command could begin.
fn fragments(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| ";&|\n(){}$`'\"<>=".contains(c))
        .map(|fragment| fragment.trim_start_matches('-'))
        .map(|fragment| fragment.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|fragment| !fragment.is_empty())
}

#[cfg(test)]
mod tests;
