//! Words: quotes, escapes, variables and substitutions.

use super::super::word::Word;
use super::Parser;

impl Parser<'_> {
    /// One word. Stands at its first character, which is none that ends a word, or at its end.
    pub(super) fn word(&mut self) -> Word {
        let start = self.at;
        let mut word = Word::default();
        let mut open_braces = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' => self.escape(&mut word),
                b'\'' => self.single(&mut word),
                b'"' => self.double(&mut word),
                b'`' => self.backquote(&mut word),
                b'$' => self.dollar(&mut word, false),
                _ => {
                    match byte {
                        b'*' | b'?' | b'[' => word.globs = true,
                        b'{' => open_braces += 1,
                        b',' if open_braces > 0 => word.braces = true,
                        b'.' if open_braces > 0 && self.ahead(1) == Some(b'.') => {
                            word.braces = true;
                        }
                        _ => {}
                    }
                    word.text.extend(self.take());
                }
            }
        }
        let raw = self.text.get(start..self.at).unwrap_or_default();
        word.raw = raw.replace("\\\n", "");
        // A number may be that of a descriptor once its lines are joined.
        if word.raw.len() < raw.len() && matches!(self.peek(), Some(b'<' | b'>')) {
            self.muddle("a line is continued before a redirection");
        }
        word
    }

    fn escape(&mut self, word: &mut Word) {
        self.at += 1;
        match self.take() {
            Some('\n') => {}
            Some(c) => {
                word.quoted = true;
                word.text.push(c);
            }
            None => self.muddle("it ends in a backslash"),
        }
    }

    fn single(&mut self, word: &mut Word) {
        let start = self.at;
        self.at += 1;
        word.quoted = true;
        let rest = self.rest();
        match rest.find('\'') {
            Some(end) => {
                word.text.push_str(&rest[..end]);
                self.at += end + 1;
            }
            None => {
                self.muddle("a quote is not closed");
                word.text.push_str(rest);
                self.at = self.text.len();
            }
        }
        self.crossed(start);
    }

    fn double(&mut self, word: &mut Word) {
        let start = self.at;
        self.at += 1;
        word.quoted = true;
        loop {
            match self.peek() {
                None => {
                    self.muddle("a quote is not closed");
                    break;
                }
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(_) => self.quoted_char(word),
            }
        }
        self.crossed(start);
    }

    /// One character, or what stands for some, where only `\`, `$` and backquotes are special.
    pub(super) fn quoted_char(&mut self, word: &mut Word) {
        match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                match self.take() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                    Some(c) => word.text.extend(['\\', c]),
                    None => self.muddle("it ends in a backslash"),
                }
            }
            Some(b'$') => self.dollar(word, true),
            Some(b'`') => self.backquote(word),
            _ => word.text.extend(self.take()),
        }
    }

    /// `` `commands` ``: the text between, read as commands of its own.
    fn backquote(&mut self, word: &mut Word) {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => {
                    self.muddle("a backquote is not closed");
                    break;
                }
                Some(b'`') => break,
                Some(b'\\') => {
                    // What is escaped here depends on the quotes around it.
                    self.muddle("a backslash stands in backquotes");
                    self.at += 1;
                    self.take();
                }
                Some(_) => drop(self.take()),
            }
        }
        let inside = self.text.get(start + 1..self.at).unwrap_or_default();
        self.at = (self.at + 1).min(self.text.len());
        self.adopt(Parser::new(inside, self.depth).run());
        self.put_raw(word, start);
        self.crossed(start);
    }

    /// What a dollar sign begins.
    pub(super) fn dollar(&mut self, word: &mut Word, in_quotes: bool) {
        let start = self.at;
        match self.ahead(1) {
            Some(b'(') if self.ahead(2) == Some(b'(') => match sum(self.rest()) {
                Some(length) => self.at += length,
                None => {
                    self.muddle("it computes with names");
                    self.at += 2;
                    self.nested();
                }
            },
            Some(b'(') => {
                self.at += 2;
                self.substitution();
            }
            Some(b'{') => match parameter(self.rest()) {
                Some(length) => self.at += length,
                None => self.odd_parameter(),
            },
            Some(b'\'' | b'"') if !in_quotes => {
                self.muddle("it uses $'…' or $\"…\"");
                self.at += 1;
                return;
            }
            Some(b'[') => {
                self.muddle("it computes");
                self.at += 1;
            }
            // The shell joins the lines first, and then may find a variable or a command here.
            Some(b'\\') if self.ahead(2) == Some(b'\n') => {
                self.muddle("a line is continued after a dollar sign");
                self.at += 1;
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let after = self.rest()[1..].trim_start_matches(name);
                self.at = self.text.len() - after.len();
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.at += 2,
            _ => {
                self.at += 1;
                word.text.push('$');
                return;
            }
        }
        self.put_raw(word, start);
    }

    /// Commands in `$(…)`. Bash writes them anew before it runs them, and where a here-document
    /// stands among several it loses the signs between them (seen in 5.2).
    fn substitution(&mut self) {
        let (parts, here) = (self.parts.len(), self.here.len());
        self.nested();
        if self.here.len() > here && self.parts.len() > parts + 1 {
            self.muddle("a here-document stands among commands in a substitution");
        }
    }

    /// `${…}` that is more than a name with a plain word: what it would run is looked for.
    fn odd_parameter(&mut self) {
        self.muddle("it uses ${…} in a way that may run something");
        self.at += 2;
        self.deeper(|parser| {
            let mut inside = Word::default();
            loop {
                match parser.peek() {
                    None => return,
                    Some(b'}') => {
                        parser.at += 1;
                        return;
                    }
                    Some(b'\'') => parser.single(&mut inside),
                    Some(b'"') => parser.double(&mut inside),
                    Some(_) => parser.quoted_char(&mut inside),
                }
            }
        });
    }

    /// What the shell puts in later stands in the word as it was written.
    fn put_raw(&self, word: &mut Word, start: usize) {
        word.expands = true;
        word.text
            .push_str(self.text.get(start..self.at).unwrap_or_default());
    }
}

/// The length of `$((…))` with numbers alone. A name might hold `a[$(command)]`, which runs.
fn sum(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => {
                // Both parentheses close together, or this is no sum.
                return (text.as_bytes().get(at - 1) == Some(&b')')).then_some(at + 1);
            }
            b')' => depth -= 1,
            b'0'..=b'9' | b'+' | b'-' | b'*' | b'/' | b'%' | b' ' => {}
            _ => return None,
        }
    }
    None
}

/// The length of `${name}`, of `${#name}`, and of a name with an operator and a plain word.
fn parameter(text: &str) -> Option<usize> {
    let body = text.strip_prefix("${")?;
    let body = body.strip_prefix('#').unwrap_or(body);
    let after = body.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let after = if after.len() == body.len() {
        body.strip_prefix(['@', '*', '?', '-', '$'])?
    } else {
        after
    };
    let after = match after.strip_prefix('[') {
        Some(index) => {
            let after = match index.strip_prefix(['@', '*']) {
                Some(after) => after,
                None => index.trim_start_matches(|c: char| c.is_ascii_digit()),
            };
            after.strip_prefix(']')?
        }
        None => after,
    };
    let plain = |c: char| c.is_alphanumeric() || "_-+.,/:%#^ *?".contains(c);
    let rest = after.trim_start_matches(plain);
    let operator = &after[..after.len() - rest.len()];
    // `=` sets the variable, `@` may run it as a prompt, and names after `:` are computed with.
    let is_slice = operator
        .strip_prefix(':')
        .is_some_and(|slice| !slice.starts_with(['-', '+', '?']));
    let is_number = operator.bytes().all(|byte| b"0123456789:".contains(&byte));
    if !rest.starts_with('}') || is_slice && !is_number {
        return None;
    }
    Some(text.len() - rest.len() + 1)
}
