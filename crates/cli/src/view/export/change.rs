//! What a call changed in a file, and diffs that commands print: lines marked and coloured.

use super::markup::escape;
use super::{clean, left_out};
use gaffer_protocol::ToolUse;
use gaffer_protocol::diff::diff;
use serde_json::Value;

/// So many characters of a change are shown.
const LONGEST: usize = 40_000;

/// Lines that went and lines that came, each with its mark in front.
#[derive(Debug)]
pub(super) struct Change {
    lines: Vec<String>,
}

impl Change {
    /// None for calls that change no file, or whose arguments make no sense.
    pub(super) fn of(call: &ToolUse) -> Option<Self> {
        let input: Value = serde_json::from_str(call.input.as_text()).ok()?;
        let lines = match call.name.as_str() {
            "Edit" => edited(&input)?,
            "MultiEdit" => {
                let edits = input.get("edits")?.as_array()?.iter();
                edits.filter_map(edited).flatten().collect()
            }
            "Write" => {
                let content = clean(input.get("content")?.as_str()?);
                content.lines().map(|line| format!("+{line}")).collect()
            }
            _ => return None,
        };
        Some(Self { lines })
    }

    /// How many lines came and went.
    pub(super) fn counts(&self) -> String {
        let count = |mark| self.lines.iter().filter(|it| it.starts_with(mark)).count();
        let (come, gone) = (count('+'), count('-'));
        let mut out = String::new();
        if come > 0 {
            out.push_str(&format!(" <ins>+{come}</ins>"));
        }
        if gone > 0 {
            out.push_str(&format!(" <del>−{gone}</del>"));
        }
        out
    }

    pub(super) fn html(&self) -> String {
        marked(self.lines.iter().map(String::as_str))
    }
}

fn edited(edit: &Value) -> Option<Vec<String>> {
    let text = |key: &str| Some(clean(edit.get(key)?.as_str()?));
    Some(diff(&text("old_string")?, &text("new_string")?))
}

/// A result that is a diff, as git prints it.
pub(super) fn printed(text: &str) -> Option<String> {
    let begins = |mark: &str| text.lines().any(|line| line.starts_with(mark));
    let is_diff = begins("@@ -") && begins("+++ ");
    is_diff.then(|| marked(text.lines()))
}

fn marked<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut out = "<pre class=\"diff\">".to_owned();
    let (mut shown, mut more) = (0, 0);
    for line in lines {
        let long = line.chars().count() + 1;
        if shown + long > LONGEST {
            more += long;
            continue;
        }
        shown += long;
        let text = escape(line);
        let is_head = ["+++ ", "--- ", "@@ ", "diff --git "];
        let is_head = is_head.iter().any(|mark| line.starts_with(mark));
        out.push_str(&match line.chars().next() {
            _ if is_head => format!("<b>{text}</b>"),
            Some('+') => format!("<ins>{text}</ins>"),
            Some('-') => format!("<del>{text}</del>"),
            _ => format!("<span>{text}</span>"),
        });
    }
    out.push_str("</pre>");
    if more > 0 {
        out.push_str(&format!("<p class=\"soft\">{}</p>", left_out(more)));
    }
    out
}
