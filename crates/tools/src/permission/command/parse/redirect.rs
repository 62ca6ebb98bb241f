//! Redirections and here-documents.

use super::super::word::{Flow, Part, Redirect, Word};
use super::Parser;

/// A here-document whose text is still to come.
pub(super) struct Heredoc {
    end: String,
    /// Its text is taken as it is.
    literal: bool,
    /// Tabs before its lines do not count.
    tabs: bool,
}

impl<'a> Parser<'a> {
    /// One redirection, at its operator.
    pub(super) fn redirect(&mut self, part: &mut Part) {
        const OPERATORS: [(&str, Option<Flow>); 11] = [
            ("&>>", Some(Flow::Writes)),
            ("&>", Some(Flow::Writes)),
            ("<<<", None),
            ("<<", None),
            ("<&", None),
            (">&", None),
            ("<>", Some(Flow::Writes)),
            (">>", Some(Flow::Writes)),
            (">|", Some(Flow::Writes)),
            ("<", Some(Flow::Reads)),
            (">", Some(Flow::Writes)),
        ];
        let rest = self.rest();
        if rest.starts_with("<(") || rest.starts_with(">(") {
            self.muddle("it uses process substitution");
            self.at += 2;
            return self.nested();
        }
        let found = OPERATORS
            .iter()
            .find(|(operator, _)| rest.starts_with(operator));
        let Some(&(operator, flow)) = found else {
            self.at += 1;
            return self.muddle("a redirection is odd");
        };
        self.at += operator.len();
        if operator == "<<" {
            return self.heredoc();
        }
        self.blanks();
        let target = self.word();
        if target.raw.is_empty() {
            return self.muddle("a redirection has no target");
        }
        let flow = match flow {
            Some(flow) => flow,
            None if operator == "<<<" => return self.here.push(target.text),
            None if is_descriptor(&target.raw) => return,
            // `>&-name` closes, and then `name` is a word of its own.
            None if operator == ">&" && target.is_plain() && !target.quoted => {
                if target
                    .raw
                    .starts_with(|c: char| c == '-' || c.is_ascii_digit())
                {
                    self.muddle("a redirection is odd");
                }
                Flow::Writes
            }
            None => return self.muddle("a redirection is odd"),
        };
        part.redirects.push(Redirect { flow, target });
    }

    /// `<<word` or `<<-word`, after the first two characters.
    fn heredoc(&mut self) {
        let tabs = self.peek() == Some(b'-');
        self.at += usize::from(tabs);
        self.blanks();
        let word = self.word();
        if word.raw.is_empty() || word.expands || word.text.contains('\n') {
            self.muddle("the end of a here-document is odd");
        }
        self.heredocs.push(Heredoc {
            end: word.text,
            literal: word.quoted,
            tabs,
        });
    }

    /// A line's end, and the here-documents that begin after it.
    pub(super) fn newline(&mut self) {
        self.at += 1;
        for heredoc in std::mem::take(&mut self.heredocs) {
            let body = self.body(&heredoc);
            if !heredoc.literal {
                // A line that goes on on the next could hide the end from us, or from the shell.
                if body.contains("\\\n") {
                    self.muddle("a line of a here-document is continued");
                }
                let mut inner = Parser::new(body, self.depth);
                inner.deeper(|inner| {
                    let mut word = Word::default();
                    while inner.peek().is_some() {
                        inner.quoted_char(&mut word);
                    }
                });
                self.adopt(inner.finish());
            }
            self.here.push(body.to_owned());
        }
    }

    /// The lines of a here-document; ends after the line that ends it.
    fn body(&mut self, heredoc: &Heredoc) -> &'a str {
        let start = self.at;
        loop {
            let rest = self.rest();
            let length = rest.find('\n').unwrap_or(rest.len());
            let line_start = self.at;
            self.at = (self.at + length + 1).min(self.text.len());
            let line = match heredoc.tabs {
                true => rest[..length].trim_start_matches('\t'),
                false => &rest[..length],
            };
            if line == heredoc.end {
                return &self.text[start..line_start];
            }
            if length == rest.len() {
                self.muddle("a here-document does not end");
                return &self.text[start..];
            }
        }
    }
}

/// `1`, `-` or `1-`.
fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    number.bytes().all(|byte| byte.is_ascii_digit())
}
