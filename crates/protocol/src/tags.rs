//! Tags that gaffer writes into messages, and how other people's text is kept from looking like
//! them. Code stays readable: only what could be taken for one of our tags is changed.

use std::borrow::Cow;

/// Every name that stands in a tag of ours, or that models take for a word from above.
const NAMES: [&str; 32] = [
    "task-notification",
    "task-id",
    "status",
    "summary",
    "result",
    "usage",
    "total_tokens",
    "tool_uses",
    "duration_ms",
    "reason",
    "output-file",
    "worktree",
    "path",
    "branch",
    "changed-files",
    "file",
    "denials",
    "denial",
    "advice",
    "unverified",
    "context",
    "workers",
    "message",
    "document",
    "memory",
    "system",
    "system-reminder",
    "page",
    "compacted-words",
    "compacted-tasks",
    "compacted-files",
    "compacted-summary",
];

/// Text that opens and closes none of our tags, whatever it says.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '&']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        match c {
            '<' if begins_tag(rest) => out.push_str("&lt;"),
            '&' if rest.starts_with("lt;") || rest.starts_with("amp;") => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Text that neither opens nor closes the tag of this name and is otherwise as it was. It is for
/// showing: there is no way back.
pub fn disarm<'a>(text: &'a str, name: &str) -> Cow<'a, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices('<') {
        if tag_name(&text[at + 1..]).eq_ignore_ascii_case(name) {
            out.push_str(&text[done..at]);
            out.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The text that was escaped.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        rest = if let Some(after) = after.strip_prefix("lt;") {
            out.push('<');
            after
        } else if let Some(after) = after.strip_prefix("amp;") {
            out.push('&');
            after
        } else {
            out.push('&');
            after
        };
    }
    out.push_str(rest);
    out
}

/// Whether what stands behind a `<` could be read as a tag of ours, also by somebody who does not
/// look closely.
fn begins_tag(rest: &str) -> bool {
    let name = tag_name(rest);
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The name in a tag whose `<` was just read.
fn tag_name(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    &rest[..end.unwrap_or(rest.len())]
}
