//! What commands are made of: words, redirections, simple commands and their forms for matching.

use super::wrap::{base_name, levels};

/// One word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// As it was written.
    pub(crate) raw: String,
    /// Without its quotes; what the shell puts in later stands as it was written.
    pub(crate) text: String,
    /// Holds a variable or a substitution.
    pub(crate) expands: bool,
    /// Holds `*`, `?` or `[` outside quotes.
    pub(crate) globs: bool,
    /// Becomes several words, as `{a,b}` does.
    pub(crate) braces: bool,
    pub(crate) quoted: bool,
}

impl Word {
    /// Known to be this text and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        !self.expands && !self.braces && (!self.globs || self.raw == "[")
    }

    /// Known not to become an option, whatever it becomes.
    pub(crate) fn is_operand(&self) -> bool {
        let may_start_so =
            self.text.starts_with('-') || self.globs && self.text.starts_with(['*', '?', '[']);
        !self.expands && !self.braces && !may_start_so
    }

    /// The name in `name=value` and `name+=value`.
    pub(crate) fn assigned(&self) -> Option<&str> {
        let (name, _) = self.raw.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_name(name).then_some(name)
    }
}

/// A word that is there but not known, such as an argument that comes from standard input.
pub(crate) fn unknown_word() -> Word {
    Word {
        raw: "…".to_owned(),
        text: "…".to_owned(),
        expands: true,
        ..Word::default()
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Where a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Reads,
    Writes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) flow: Flow,
    pub(crate) target: Word,
}

/// One simple command. It may have no words: then it assigns, or stands for the redirections of
/// a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) assignments: Vec<Word>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

/// The words that a wrapper runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level<'a> {
    pub(crate) words: &'a [Word],
    /// Further arguments come from standard input.
    pub(crate) more: bool,
}

impl Part {
    pub(crate) fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirects.is_empty()
    }

    /// The command as written, without redirections.
    pub(crate) fn text(&self) -> String {
        join(self.assignments.iter().chain(&self.words))
    }

    /// Whether every assignment before the command changes nothing that matters.
    pub(crate) fn has_safe_assignments(&self) -> bool {
        let mut names = self.assignments.iter().map(Word::assigned);
        names.all(|name| name.is_some_and(is_safe_variable))
    }

    /// The command itself and what it runs where it is a wrapper that changes nothing.
    pub(crate) fn levels(&self) -> Vec<Level<'_>> {
        levels(&self.words, true)
    }

    /// What is run in the end.
    pub(crate) fn innermost(&self) -> Level<'_> {
        self.levels().pop().unwrap_or(Level {
            words: &self.words,
            more: false,
        })
    }

    /// What is run in the end, seen through wrappers of every kind: for what must not be missed.
    pub(crate) fn deepest(&self) -> Level<'_> {
        levels(&self.words, false).pop().unwrap_or(Level {
            words: &self.words,
            more: false,
        })
    }

    /// The texts that allow rules are held against.
    pub(crate) fn offered(&self) -> Vec<String> {
        let mut texts = vec![self.text()];
        if self.has_safe_assignments() {
            texts.extend(self.levels().iter().map(|level| {
                let unknown = level.more.then(unknown_word);
                join(level.words.iter().chain(&unknown))
            }));
        }
        texts
    }

    /// Adds the texts that deny and ask rules are held against.
    pub(super) fn watch(&self, texts: &mut Vec<String>) {
        texts.push(self.text());
        for level in levels(&self.words, false) {
            let Some((name, rest)) = level.words.split_first() else {
                continue;
            };
            texts.push(join(level.words));
            let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
            for name in [name.text.as_str(), base_name(&name.text)] {
                texts.push([&[name], rest.as_slice()].concat().join(" "));
            }
        }
    }

    /// Why it is not certain what this runs.
    pub(super) fn unclear(&self) -> Option<&'static str> {
        let levels = self.levels();
        if levels.len() > super::wrap::MOST_LEVELS {
            return Some("it holds too many commands that run others");
        }
        for name in levels.iter().filter_map(|level| level.words.first()) {
            if !name.is_plain() {
                return Some("the name of a command is known only when it runs");
            }
            if matches!(name.text.as_str(), "eval" | "exec") {
                return Some("it uses eval or exec");
            }
            if SHELL_WORDS.contains(&name.raw.as_str()) {
                return Some("a word of the shell stands where a command does");
            }
        }
        let is_socket = |text: &str| text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
        let mut targets = self.redirects.iter().map(|redirect| &redirect.target.text);
        if targets.any(|target| is_socket(target)) {
            return Some("it opens a network connection by redirection");
        }
        None
    }
}

/// Words that mean something else where a command begins. One that is left there was not read as
/// what it may be.
const SHELL_WORDS: [&str; 18] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "if",
    "then", "until", "while", "{", "}",
];

fn join<'a>(words: impl IntoIterator<Item = &'a Word>) -> String {
    let words: Vec<&str> = words.into_iter().map(|word| word.raw.as_str()).collect();
    words.join(" ")
}

/// Variables that may be set before an allowed command: they change how things are shown or how
/// much is said, not what is run.
fn is_safe_variable(name: &str) -> bool {
    const SAFE: [&str; 20] = [
        "CARGO_TERM_COLOR",
        "CI",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "DEBUG",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LINES",
        "NODE_ENV",
        "NO_COLOR",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "RUST_TEST_THREADS",
        "TERM",
        "TZ",
        "VERBOSE",
    ];
    SAFE.contains(&name) || name.starts_with("LC_")
}

/// Whether a variable of the shell's own matters to no program. Capitals are for programs, and
/// so are proxies.
pub(crate) fn is_private_variable(name: &str) -> bool {
    let is_small = !name.is_empty() && !name.contains(|c: char| c.is_ascii_uppercase());
    is_name(name) && is_small && !name.ends_with("_proxy") || is_safe_variable(name)
}
