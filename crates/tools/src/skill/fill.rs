//! A skill's text with what its placeholders stand for.

use std::path::Path;

/// What a text is filled with.
#[derive(Debug)]
pub(super) struct Filling<'a> {
    pub(super) args: &'a str,
    /// The names of the arguments, in their order.
    pub(super) names: &'a [String],
    pub(super) folder: &'a Path,
    pub(super) project: &'a Path,
    pub(super) session: &'a str,
}

/// Fills a text in one pass: what stands in an argument is never taken for a placeholder. A
/// number or name without an argument stays as it is written. Arguments that the text has no
/// place for follow at its end.
pub(super) fn fill(body: &str, filling: &Filling<'_>) -> String {
    let words = words(filling.args);
    let mut out = String::with_capacity(body.len());
    let mut takes_args = false;
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match placeholder(rest, filling, &words) {
            Some(found) => {
                takes_args |= found.is_args;
                out.push_str(&found.value);
                rest = &rest[found.length..];
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    let args = filling.args.trim();
    if !takes_args && !args.is_empty() {
        out.truncate(out.trim_end().len());
        out.push_str("\n\nArguments: ");
        out.push_str(args);
    }
    out
}

struct Found {
    length: usize,
    value: String,
    is_args: bool,
}

/// What the placeholder at the beginning of a text stands for.
fn placeholder(text: &str, filling: &Filling<'_>, words: &[String]) -> Option<Found> {
    let plain = [
        ("${CLAUDE_SKILL_DIR}", filling.folder.display().to_string()),
        (
            "${CLAUDE_PROJECT_DIR}",
            filling.project.display().to_string(),
        ),
        ("${CLAUDE_SESSION_ID}", filling.session.to_owned()),
    ];
    for (written, value) in plain {
        if text.starts_with(written) {
            return Some(Found {
                length: written.len(),
                value,
                is_args: false,
            });
        }
    }
    let word = |length: usize, place: usize| {
        Some(Found {
            length,
            value: words.get(place)?.clone(),
            is_args: true,
        })
    };
    let after = &text[1..];
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let number = digits(after);
    if number > 0 {
        return word(1 + number, after[..number].parse().ok()?);
    }
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    if let Some(rest) = after.strip_prefix("ARGUMENTS") {
        if let Some(index) = rest.strip_prefix('[')
            && index[digits(index)..].starts_with(']')
        {
            let end = digits(index);
            return word("$ARGUMENTS[]".len() + end, index[..end].parse().ok()?);
        }
        if !rest.starts_with(is_letter) {
            return Some(Found {
                length: "$ARGUMENTS".len(),
                value: filling.args.trim().to_owned(),
                is_args: true,
            });
        }
    }
    // The longest name that fits: `$file-name` is not `$file`, if both are there.
    let names = filling.names.iter().enumerate();
    let fits = names.filter(|(_, name)| {
        let rest = after.strip_prefix(name.as_str());
        !name.is_empty() && rest.is_some_and(|rest| !rest.starts_with(is_letter))
    });
    let (place, name) = fits.max_by_key(|(_, name)| name.len())?;
    word(1 + name.len(), place)
}

/// Splits arguments as a shell would: at spaces, except in quotes or after a backslash. A quote
/// that is not closed is only a character.
fn words(args: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = args.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' | '\'' if rest.as_str().contains(c) => {
                let word = word.get_or_insert_default();
                while let Some(inner) = rest.next().filter(|inner| *inner != c) {
                    let escapes = inner == '\\' && c == '"';
                    let escapes = escapes && rest.as_str().starts_with(['"', '\\']);
                    word.push(if escapes {
                        rest.next().unwrap_or(inner)
                    } else {
                        inner
                    });
                }
            }
            '\\' => word
                .get_or_insert_default()
                .push(rest.next().unwrap_or('\\')),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(body: &str, args: &str, names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        fill(
            body,
            &Filling {
                args,
                names: &names,
                folder: Path::new("/s/k"),
                project: Path::new("/p"),
                session: "id",
            },
        )
    }

    #[test]
    fn arguments_are_split_as_in_a_shell() {
        for (args, want) in [
            ("a  b\tc", &["a", "b", "c"][..]),
            ("'a b' \"c 'd'\" e' 'f", &["a b", "c 'd'", "e f"]),
            (r#"a\ b "c\"d" 'e\f' g\"#, &["a b", "c\"d", "e\\f", "g\\"]),
            ("'' x \"\"", &["", "x", ""]),
            ("don't #1", &["don't", "#1"]),
            ("  ", &[]),
        ] {
            assert_eq!(words(args), want, "{args}");
        }
    }

    #[test]
    fn placeholders_get_their_values() {
        let args = "'one two' three";
        for (body, names, want) in [
            ("$ARGUMENTS!", &[][..], "'one two' three!"),
            ("$0|$1|$2|$ARGUMENTS[1]", &[], "one two|three|$2|three"),
            (
                "$ARGUMENTS[9] $ARGUMENTS[x] $0",
                &[],
                "$ARGUMENTS[9] 'one two' three[x] one two",
            ),
            (
                "$file, $file-name $files",
                &["file", "file-name"],
                "one two, three $files",
            ),
            ("$ARGUMENTSX $0$1", &[], "$ARGUMENTSX one twothree"),
            (
                "${CLAUDE_SKILL_DIR}/x ${CLAUDE_PROJECT_DIR} ${CLAUDE_SESSION_ID} ${HOME} $0",
                &[],
                "/s/k/x /p id ${HOME} one two",
            ),
            ("$ $$ $é $0", &[], "$ $$ $é one two"),
            (
                "$99999999999999999999999 $0",
                &[],
                "$99999999999999999999999 one two",
            ),
            ("plain\n\n", &[], "plain\n\nArguments: 'one two' three"),
        ] {
            assert_eq!(filled(body, args, names), want, "{body}");
        }
        assert_eq!(filled("a $ARGUMENTS b", "", &[]), "a  b");
        assert_eq!(filled("plain\n", " ", &[]), "plain\n");
        // Values are not looked at again.
        let again = "$1 ${CLAUDE_SESSION_ID} $ARGUMENTS";
        assert_eq!(filled("$ARGUMENTS", again, &[]), again);
    }
}
