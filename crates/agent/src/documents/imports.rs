//! What a document's text names as `@path`, and what of the text is for people alone.

/// A document's text as it is given to a model, and the paths that it names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Without comments of HTML that stand on lines of their own.
    pub(super) text: String,
    /// As they stand there, without the `@`.
    pub(super) imports: Vec<String>,
}

pub(super) fn scan(text: &str) -> Scanned {
    let mut scanned = Scanned::default();
    let mut code: Option<Marks> = None;
    let mut next = 0;
    // Where the comment ends that a line stands in.
    let mut hidden_until = 0;
    for line in text.split_inclusive('\n') {
        let start = next;
        next += line.len();
        if start < hidden_until {
            continue;
        }
        match (code, Marks::of(line)) {
            (Some(open), Some(marks)) if marks.closes(open) => code = None,
            (Some(_), _) => {}
            (None, Some(marks)) => code = Some(marks),
            (None, None) => {
                if let Some(length) = comment(&text[start..]) {
                    hidden_until = start + length;
                    continue;
                }
                scanned.imports.extend(imports(line));
            }
        }
        scanned.text.push_str(line);
    }
    scanned
}

/// A line of marks that opens or closes a block of code.
#[derive(Debug, Clone, Copy)]
struct Marks {
    mark: char,
    count: usize,
    /// Nothing but marks: only such a line closes.
    is_bare: bool,
}

impl Marks {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let count = line.chars().take_while(|c| *c == mark).count();
        let rest = &line[count..];
        // A span of code may stand at the start of a line too.
        let opens = count >= 3 && !(mark == '`' && rest.contains('`'));
        opens.then_some(Self {
            mark,
            count,
            is_bare: rest.is_empty(),
        })
    }

    fn closes(self, open: Self) -> bool {
        self.is_bare && self.mark == open.mark && self.count >= open.count
    }
}

/// How long a comment at the start of a text is, if nothing else stands on its lines.
fn comment(text: &str) -> Option<usize> {
    if !text.trim_start_matches(' ').starts_with("<!--") {
        return None;
    }
    let end = text.find("-->")? + "-->".len();
    let rest = &text[end..];
    let line = rest.split_inclusive('\n').next().unwrap_or_default();
    line.trim().is_empty().then_some(end + line.len())
}

/// The paths in a line, outside of spans of code.
fn imports(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            rest = &rest[span(rest)..];
        } else if c == '@' && before.is_whitespace() {
            let path = path(&rest[1..]);
            rest = &rest[1 + path.len()..];
            if !path.is_empty() {
                found.push(path.replace("\\ ", " "));
            }
        } else {
            rest = &rest[c.len_utf8()..];
        }
        before = c;
    }
    found
}

/// How long a span of code is, or the marks that open none.
fn span(text: &str) -> usize {
    let marks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let count = marks(text);
    let mut at = count;
    while let Some(next) = text[at..].find('`') {
        at += next;
        let closing = marks(&text[at..]);
        at += closing;
        if closing == count {
            return at;
        }
    }
    count
}

/// A path up to white space that is not written `\ `.
fn path(text: &str) -> &str {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let ends = c == '`' || c.is_whitespace() && !(c == ' ' && before == '\\');
        before = c;
        ends
    });
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_found_outside_of_code() {
        for (text, want) in [
            ("@a.md", vec!["a.md"]),
            ("see @a/b.md, and @~/c d", vec!["a/b.md,", "~/c"]),
            ("@a\\ b.md", vec!["a b.md"]),
            ("me@example.com (@a) @", vec![]),
            ("`@a` ``x ` @b`` @c `@d @e", vec!["c", "e"]),
            ("```\n@a\n```\n@b\n", vec!["b"]),
            ("~~~~ x\n@a\n~~~\n@b\n~~~~\n- @c", vec!["c"]),
            ("```x``` @a\n@b", vec!["a", "b"]),
            ("  ```\n@never closed", vec![]),
            ("<!-- @a\n@b -->\n@c", vec!["c"]),
        ] {
            assert_eq!(scan(text).imports, want, "{text}");
        }
    }

    #[test]
    fn comments_on_their_own_lines_are_for_people() {
        for (text, want) in [
            ("a\n<!-- x\ny -->\nb\n", "a\nb\n"),
            ("<!-- x -->", ""),
            ("a <!-- x -->\n", "a <!-- x -->\n"),
            ("<!-- x --> b\n", "<!-- x --> b\n"),
            ("<!-- open\nb\n", "<!-- open\nb\n"),
            ("```\n<!-- x -->\n```\n", "```\n<!-- x -->\n```\n"),
        ] {
            assert_eq!(scan(text).text, want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_the_scan(text in "[`~@<!\\-> \\\\a\né]{0,60}") {
            let scanned = scan(&text);
            prop_assert!(scanned.text.len() <= text.len());
        }
    }
}
