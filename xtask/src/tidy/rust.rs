//! Checks of Rust files: a first line that says what lives there, their size, no leftovers.

use super::{Finding, around, numbered};

const MOST_LINES: usize = 500;

// Written in two parts, here and in the tests, so that this file passes its own checks.
const MACROS: [&str; 3] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
];
const WORDS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];
const IGNORE: &str = concat!("#[ign", "ore");

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        let what = "the first line is no `//!` line that says what lives here";
        findings.push(Finding::new(path, 1, what));
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        let what = format!("{lines} lines, {MOST_LINES} at most: split the file");
        findings.push(Finding::new(path, MOST_LINES + 1, what));
    }
    for (number, line) in numbered(text) {
        let whats = leftovers(line).chain(bare_ignore(line));
        findings.extend(whats.map(|what| Finding::new(path, number, what)));
    }
    findings
}

fn leftovers(line: &str) -> impl Iterator<Item = String> {
    let macros = MACROS.iter().filter(move |name| {
        around(line, name)
            .any(|(before, after)| !before.ends_with(in_name) && after.starts_with(['(', '[', '{']))
    });
    // Whole words only: templates of temporary names are long rows of the same letter.
    let words = WORDS.iter().filter(move |word| {
        around(line, word)
            .any(|(before, after)| !before.ends_with(in_name) && !after.starts_with(in_name))
    });
    macros
        .chain(words)
        .map(|name| format!("`{name}` is left over"))
}

fn bare_ignore(line: &str) -> Option<String> {
    let is_bare = around(line, IGNORE)
        .filter(|(_, after)| !after.starts_with(in_name))
        .any(|(_, after)| !has_reason(after));
    is_bare.then(|| format!("`{IGNORE}` without a reason: write `{IGNORE} = \"why\"]`"))
}

fn has_reason(after: &str) -> bool {
    after
        .trim_start()
        .strip_prefix('=')
        .map(|value| value.trim_start().trim_start_matches(['r', '#']))
        .and_then(|value| value.strip_prefix('"'))
        .is_some_and(|reason| !reason.trim_start().starts_with('"'))
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines_found(text: &str) -> Vec<usize> {
        let text = format!("//! A file.\n{text}");
        let findings = check("a.rs", &text);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn the_first_line_says_what_lives_there() {
        assert_eq!(check("a.rs", "//! Good.\n"), []);
        for bad in ["", "// Bad.\n", "\n//! Late.\n", "use a;\n"] {
            assert_eq!(check("a.rs", bad).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn size_ends_at_the_limit() {
        assert_eq!(lines_found(&"// x\n".repeat(499)), NONE);
        assert_eq!(lines_found(&"// x\n".repeat(500)), [501]);
    }

    #[test]
    fn leftover_macros_are_found_however_they_are_called() {
        for name in MACROS {
            for call in ["()", "(\"later\")", "[]", "{}"] {
                assert_eq!(lines_found(&format!("let x = {name}{call};\n")), [2]);
            }
            assert_eq!(lines_found(&format!("my_{name}();\n")), NONE);
            assert_eq!(
                lines_found(&format!("// the macro {name} is forbidden\n")),
                NONE
            );
        }
    }

    #[test]
    fn leftover_words_are_found_as_whole_words() {
        for word in WORDS {
            assert_eq!(lines_found(&format!("a();\n// {word}: later\n")), [3]);
            assert_eq!(lines_found(&format!("// {word}\n")), [2]);
            assert_eq!(lines_found(&format!("let name = \"tmp.{word}X\";\n")), NONE);
            assert_eq!(lines_found(&format!("const A_{word}: u8 = 1;\n")), NONE);
        }
    }

    #[test]
    fn ignored_tests_need_a_reason() {
        for bad in ["]", " ]", " = \"\"]", " = \" \"]", "="] {
            assert_eq!(lines_found(&format!("    {IGNORE}{bad}\n")), [2], "{bad}");
        }
        for good in [" = \"slow\"]", "=\"slow\"]", " = r#\"slow\"#]", "d_field]"] {
            assert_eq!(lines_found(&format!("{IGNORE}{good}\n")), NONE, "{good}");
        }
    }
}
