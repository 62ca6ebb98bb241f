//! The reader of shell commands. It never gives up: what it cannot follow makes the script
//! unclear, and it reads on, so that deny rules see as many commands as can be found.
//!
//! One pass, one place in the text; only backquotes and here-documents are read twice. Everything
//! that can nest goes through [`Parser::deeper`], which bounds the depth.

mod quote;
mod redirect;

use super::word::{Part, Word, is_private_variable};
use redirect::Heredoc;

/// How deep commands may stand in commands.
const DEEPEST: usize = 24;

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    parts: Vec<Part>,
    unclear: Option<&'static str>,
    /// Here-documents whose text begins on the next line.
    heredocs: Vec<Heredoc>,
    /// The texts of here-documents and here-strings.
    here: Vec<String>,
}

/// What was read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) parts: Vec<Part>,
    pub(super) unclear: Option<&'static str>,
    pub(super) here: Vec<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            parts: Vec::new(),
            unclear: None,
            heredocs: Vec::new(),
            here: Vec::new(),
        }
    }

    /// Reads the whole text.
    pub(super) fn run(mut self) -> Read {
        self.deeper(|parser| parser.list(false));
        if !self.heredocs.is_empty() {
            self.muddle("a here-document does not begin");
        }
        self.finish()
    }

    fn finish(self) -> Read {
        Read {
            parts: self.parts,
            unclear: self.unclear,
            here: self.here,
        }
    }

    /// Takes over what was read in a part of the text.
    fn adopt(&mut self, read: Read) {
        self.parts.extend(read.parts);
        self.here.extend(read.here);
        if let Some(why) = read.unclear {
            self.muddle(why);
        }
    }

    /// Notes why the text is unclear; the first reason stays.
    fn muddle(&mut self, why: &'static str) {
        self.unclear.get_or_insert(why);
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self)) {
        if self.depth >= DEEPEST {
            self.muddle("commands stand too deep in commands");
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        read(self);
        self.depth -= 1;
    }

    fn peek(&self) -> Option<u8> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + by).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character, whole.
    fn take(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Commands until the end, or until the parenthesis that closes them.
    fn list(&mut self, closes: bool) {
        loop {
            self.blanks();
            match self.peek() {
                None if closes => return self.muddle("a parenthesis is not closed"),
                None => return,
                Some(b'\n') => self.newline(),
                Some(b')') => {
                    self.at += 1;
                    if closes {
                        return;
                    }
                    self.muddle("a parenthesis closes nothing");
                }
                Some(b'&') if self.ahead(1) == Some(b'>') => self.command(),
                Some(b';') if matches!(self.ahead(1), Some(b';' | b'&')) => {
                    self.muddle("it uses case");
                    self.at += 2;
                }
                Some(b';' | b'&' | b'|') => self.at += 1,
                Some(_) => self.command(),
            }
        }
    }

    /// Commands in parentheses, after the opening one. What they begin ends with them.
    fn nested(&mut self) {
        let waiting = std::mem::take(&mut self.heredocs);
        let start = self.at;
        self.deeper(|parser| parser.list(true));
        if !self.heredocs.is_empty() {
            self.muddle("a here-document begins in parentheses and does not end there");
        }
        self.heredocs = waiting;
        self.crossed(start);
    }

    /// Shells disagree where a here-document begins if its line ends inside something.
    fn crossed(&mut self, start: usize) {
        let inside = self.text.get(start..self.at).unwrap_or_default();
        if !self.heredocs.is_empty() && inside.contains('\n') {
            self.muddle("a here-document waits while a line ends inside something else");
        }
    }

    /// Space, continued lines and comments.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.ahead(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += end;
                }
                _ => return,
            }
        }
    }

    /// One simple command, or a group with its redirections.
    fn command(&mut self) {
        let mut part = Part::default();
        let mut grouped = false;
        let mut redirected = false;
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'&') if self.ahead(1) != Some(b'>') => break,
                Some(b'(') => {
                    if grouped || redirected || !part.is_empty() {
                        self.muddle("a parenthesis stands inside a command");
                    } else if self.ahead(1) == Some(b'(') {
                        self.muddle("it computes");
                    }
                    self.at += 1;
                    self.nested();
                    grouped = true;
                }
                Some(b'&' | b'<' | b'>') => {
                    self.redirect(&mut part);
                    redirected = true;
                }
                Some(b'0'..=b'9') if self.is_descriptor() => {
                    while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                        self.at += 1;
                    }
                    self.redirect(&mut part);
                    redirected = true;
                }
                Some(_) => self.command_word(&mut part, &mut grouped, redirected),
            }
        }
        if !part.is_empty() {
            self.parts.push(part);
        }
    }

    /// Whether the number here is that of a file descriptor.
    fn is_descriptor(&self) -> bool {
        let after = self.rest().trim_start_matches(|c: char| c.is_ascii_digit());
        after.starts_with(['<', '>'])
    }

    fn command_word(&mut self, part: &mut Part, grouped: &mut bool, redirected: bool) {
        let word = self.word();
        // After a redirection the shell's own words are ordinary ones.
        if part.is_empty() && !redirected && self.is_keyword(&word, grouped) {
            return;
        }
        if *grouped {
            self.muddle("words follow a group");
        }
        let is_descriptor = word.raw.starts_with('{') && word.raw.ends_with('}');
        if is_descriptor && matches!(self.peek(), Some(b'<' | b'>')) {
            self.muddle("a redirection names a variable");
        }
        if part.words.is_empty() && word.assigned().is_some() {
            part.assignments.push(word);
        } else {
            part.words.push(word);
        }
    }

    /// Words of the shell's own language: those before a command are passed over, those that end
    /// a group are noted, and those that change how the rest is read make it unclear.
    fn is_keyword(&mut self, word: &Word, grouped: &mut bool) -> bool {
        match word.raw.as_str() {
            "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!" | "{" => true,
            "fi" | "done" | "esac" | "}" => {
                *grouped = true;
                true
            }
            "for" => {
                self.for_head();
                true
            }
            "case" | "select" | "function" | "coproc" | "[[" | "]]" => {
                self.muddle("it uses case, select, function, coproc or [[");
                false
            }
            _ => false,
        }
    }

    /// `for name in words`, after `for`. It runs nothing, but what stands in its words may.
    fn for_head(&mut self) {
        self.blanks();
        let name = self.word();
        if !is_private_variable(&name.raw) {
            self.muddle("a loop sets a variable that programs may read");
        }
        self.blanks();
        let rest = self.rest();
        if !rest.starts_with("in") || !rest[2..].starts_with([' ', '\t', '\n', ';']) {
            return;
        }
        self.at += 2;
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => return,
                Some(b'(' | b'<' | b'>') => {
                    self.muddle("a loop's words are odd");
                    self.at += 1;
                }
                Some(_) => drop(self.word()),
            }
        }
    }
}
