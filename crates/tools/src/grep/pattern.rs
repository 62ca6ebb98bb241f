//! From what a model wrote to a matcher, or to an error that says what to change.

use super::{GrepInput, Style};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

/// What one pattern may cost in memory. ripgrep allows ten times as much, but has one user.
const MOST_PROGRAM: usize = 32 << 20;
const MOST_CACHE: usize = 64 << 20;

pub(super) fn compile(input: &GrepInput, style: Style) -> Result<RegexMatcher, String> {
    let pattern = &input.pattern;
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(input.ignore_case.unwrap_or(false))
        .dot_matches_new_line(style.multiline)
        .size_limit(MOST_PROGRAM)
        .dfa_size_limit(MOST_CACHE)
        // `$` matches before either line end.
        .crlf(true);
    if style.multiline {
        builder.line_terminator(None);
    }
    let built = builder.build(pattern).or_else(|error| {
        // Whoever looks for a carriage return does not want it taken for a line end.
        match error.kind() {
            ErrorKind::NotAllowed(text) if text == "\r" => {
                builder.crlf(false).line_terminator(Some(b'\n'));
                builder.build(pattern)
            }
            _ => Err(error),
        }
    });
    built.map_err(|error| explain(pattern, &error))
}

fn explain(pattern: &str, error: &grep_regex::Error) -> String {
    let (what, change) = match error.kind() {
        ErrorKind::NotAllowed(_) => (
            "it matches a line end".to_owned(),
            "Set multiline to true to match across lines.",
        ),
        _ => {
            // The library draws the pattern with a mark below; its last line says it in words.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let what = last.trim_start_matches("error: ").to_owned();
            let change = change(&what);
            (what, change)
        }
    };
    let shown: String = pattern.chars().take(200).collect();
    format!("The pattern {shown:?} is not valid: {what}. {change}")
}

/// What to do about an error, by the library's words for it.
fn change(what: &str) -> &'static str {
    const CHANGES: [(&str, &str); 8] = [
        (
            "repetition quantifier",
            r"Write literal braces as `\{` and `\}`.",
        ),
        (
            "counted repetition",
            r"Write literal braces as `\{` and `\}`.",
        ),
        (
            "repetition operator",
            r"Write a literal `*`, `+`, `?` or `{` with a backslash.",
        ),
        ("group", r"Write literal parentheses as `\(` and `\)`."),
        (
            "character class",
            r"Write literal brackets as `\[` and `\]`.",
        ),
        (
            "look-around",
            "Match more, and look at the lines that are found.",
        ),
        (
            "backreferences",
            "Match more, and look at the lines that are found.",
        ),
        ("size limit", "Use smaller counts in `{}`."),
    ];
    let fits = |(words, _): &&(&str, &str)| what.contains(words);
    let found = CHANGES.iter().find(fits);
    found.map_or(
        "Write special characters that are meant literally with a backslash.",
        |(_, change)| change,
    )
}
