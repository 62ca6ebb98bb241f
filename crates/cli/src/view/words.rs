//! How views say things: calls, numbers, and as much of a text as a line holds.

use gaffer_protocol::{Cost, ToolUse, Usage};
use unicode_width::UnicodeWidthChar;

/// A call as a person reads it: the tool and the argument that matters.
pub(super) fn describe(call: &ToolUse) -> String {
    let input: serde_json::Value = serde_json::from_str(call.input.as_text()).unwrap_or_default();
    let keys = [
        "command",
        "file_path",
        "pattern",
        "url",
        "query",
        "description",
        "task_id",
        "to",
        "path",
        "prompt",
    ];
    let what = keys.iter().find_map(|key| input.get(key)?.as_str());
    match what {
        Some(what) => format!("{} {what}", call.name),
        None => call.name.clone(),
    }
}

pub(super) fn count(n: u32, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

pub(super) fn summary(turns: u32, usage: Usage, cost: Cost, seconds: u64) -> String {
    format!(
        "{} · {} tokens · {cost} · {seconds} s",
        count(turns, "turn"),
        thousands(usage.total()),
    )
}

pub(super) fn thousands(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// The first line of a text, and whether there is more.
pub(super) fn first_line(text: &str) -> (&str, &'static str) {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    (first, if lines.next().is_some() { " …" } else { "" })
}

/// How many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

fn columns(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// As much as fits on the line.
pub(super) fn fit(text: &str, most: usize) -> String {
    let text = text.replace(['\t', '\n'], " ");
    if width(&text) <= most {
        return text;
    }
    let mut cut = String::new();
    let mut taken = 0;
    for c in text.chars() {
        taken += columns(c);
        // The last column is for the mark.
        if taken >= most {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// A text on so many lines as it needs, broken between words.
pub(super) fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.trim().lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && width(&line) + 1 + width(word) > most {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&fit(word, most));
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_cut_by_columns_and_not_by_characters() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
        assert_eq!(fit("日本語日本", 6), "日本…");
        assert_eq!(fit("a\tb\nc", 10), "a b c");
    }

    #[test]
    fn long_words_are_broken_between_words() {
        assert_eq!(
            wrap("one two three\n\nfour", 8),
            ["one two", "three", "", "four"]
        );
    }

    proptest! {
        #[test]
        fn no_text_is_wider_than_it_may_be(text: String, most in 1usize..100) {
            prop_assert!(width(&fit(&text, most)) <= most);
            prop_assert!(wrap(&text, most).iter().all(|line| width(line) <= most));
        }
    }
}
