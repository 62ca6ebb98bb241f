//! Edit: one exact text in a file becomes another.

use crate::context::Context;
use crate::file::{change, check_seen, explain, hold, load, locate, save};
use crate::nearest::distance;
use crate::tool::{Access, Output, Run};
use gaffer_workspace::fence::FenceError;
use memchr::memmem::{self, Finder};
use memchr::{memchr_iter, memrchr};
use schemars::JsonSchema;
use serde::Deserialize;

/// Replaces a text in a file that was read before. `old_string` must stand there exactly, and only
/// once unless `replace_all` is set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// Absolute, or from the working folder.
    pub file_path: String,
    /// The text to replace, without line numbers. Empty to create a new file.
    pub old_string: String,
    /// What comes in its place.
    pub new_string: String,
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
pub struct Edit;

impl Run for Edit {
    const NAME: &'static str = "Edit";
    const ACCESS: Access = Access::Writes;
    type Input = EditInput;

    async fn run(&self, input: EditInput, context: &Context) -> Output {
        let shown = input.file_path.clone();
        let done = change(context, &shown, move |context| edit(&input, context)).await;
        match done {
            Ok(text) => Output::text(text),
            Err(why) => Output::error(format!("{shown} was not changed: {why}.")),
        }
    }
}

fn edit(input: &EditInput, context: &Context) -> Result<String, String> {
    if input.old_string == input.new_string {
        return Err("the old and the new text are the same".to_owned());
    }
    let fenced = locate(context, &input.file_path)?;
    let explain = |error| explain(context, &input.file_path, error);
    let held = hold(context, &fenced);
    let old = match load(context, &fenced) {
        Err(FenceError::Io(error))
            if error.kind() == std::io::ErrorKind::NotFound && input.old_string.is_empty() =>
        {
            let bytes = input.new_string.as_bytes();
            let note = save(context, &fenced, held, bytes, None).map_err(explain)?;
            return Ok(format!("{} created.{note}", input.file_path));
        }
        old => old.map_err(explain)?,
    };
    check_seen(context, &fenced, &old.bytes)?;
    let text = String::from_utf8(old.bytes)
        .map_err(|_| "it is not UTF-8 text; change it with a command".to_owned())?;
    let change = replace(text, input)?;
    let bytes = change.text.as_bytes();
    let note = save(context, &fenced, held, bytes, Some(old.mode)).map_err(explain)?;
    Ok(format!(
        "{}\n{}{note}",
        change.said,
        around(&change.text, change.at, change.len)
    ))
}

struct Change {
    text: String,
    /// Where the first replacement stands in the new text, and how long it is.
    at: usize,
    len: usize,
    said: String,
}

fn replace(mut text: String, input: &EditInput) -> Result<Change, String> {
    if input.old_string.is_empty() {
        return Err(
            "`old_string` is empty, but the file exists; give the text to replace".to_owned(),
        );
    }
    // Models write line feeds; a file with other line ends keeps its own.
    let has_crlf = memmem::find(text.as_bytes(), b"\r\n").is_some();
    let own = |part: &str| {
        if has_crlf && !part.contains("\r\n") {
            part.replace('\n', "\r\n")
        } else {
            part.to_owned()
        }
    };
    let (old, new) = (own(&input.old_string), own(&input.new_string));
    let finder = Finder::new(&old);
    let mut places = finder.find_iter(text.as_bytes());
    let Some(at) = places.next() else {
        return Err(not_found(&text, &old));
    };
    let more = places.count();
    if more > 0 && input.replace_all != Some(true) {
        let lines: Vec<String> = finder
            .find_iter(text.as_bytes())
            .take(10)
            .map(|at| (newlines(&text[..at]) + 1).to_string())
            .collect();
        return Err(format!(
            "`old_string` stands there {} times (lines {}); give more of its surroundings, or set `replace_all`",
            more + 1,
            lines.join(", ")
        ));
    }
    let times = if more == 0 {
        String::new()
    } else {
        format!(" in {} places", more + 1)
    };
    if more == 0 {
        // In place: a second copy of a large file costs more than finding the place did.
        text.replace_range(at..at + old.len(), &new);
    } else {
        text = text.replace(&old, &new);
    }
    Ok(Change {
        text,
        at,
        len: new.len(),
        said: format!("{} changed{times}. Now there is:", input.file_path),
    })
}

/// The line that is most like what was looked for tells where the text differs.
fn not_found(text: &str, old: &str) -> String {
    let wanted = old
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim();
    let close = text
        .lines()
        .enumerate()
        // Comparing long lines with all others would take long, and they are seldom meant.
        .filter(|(_, line)| {
            line.len() < 400 && line.trim().len().abs_diff(wanted.len()) <= wanted.len() / 3 + 2
        })
        .take(20_000)
        .map(|(n, line)| (distance(line.trim(), wanted), n + 1, line))
        .min_by_key(|(distance, ..)| *distance)
        .filter(|(distance, ..)| wanted.len() < 400 && *distance <= wanted.chars().count() / 3);
    match close {
        Some((0, n, _)) => format!(
            "`old_string` is not there as given; line {n} begins like it, but what surrounds it differs (white space counts)"
        ),
        Some((_, n, line)) => format!(
            "`old_string` is not there; line {n} is similar: {:?}",
            line.trim_end()
        ),
        None => "`old_string` is not there".to_owned(),
    }
}

/// The lines of a change with two before and after.
fn around(text: &str, at: usize, len: usize) -> String {
    const MOST: usize = 40;
    let first = newlines(&text[..at]);
    let last = first + newlines(&text[at..at + len]);
    let from = first.saturating_sub(2);
    let to = (last + 3).min(from + MOST);
    // From the change back to the line: from the top it can be far.
    let line_start = |end: usize| memrchr(b'\n', &text.as_bytes()[..end]).map_or(0, |end| end + 1);
    let start = (from..first).fold(line_start(at), |start, _| line_start(start - 1));
    let mut out = String::new();
    for (n, line) in (from..to).zip(text[start..].lines()) {
        let line: String = line.chars().take(500).collect();
        out.push_str(&format!("{}\t{line}\n", n + 1));
    }
    if last + 3 > to {
        out.push_str("[…]\n");
    }
    out
}

fn newlines(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same from the top.
    fn slow_around(text: &str, at: usize, len: usize) -> String {
        let first = text[..at].matches('\n').count();
        let last = text[..at + len].matches('\n').count();
        let from = first.saturating_sub(2);
        let to = (last + 3).min(from + 40);
        let lines = text.lines().enumerate().skip(from).take(to - from);
        let mut out: String = lines
            .map(|(n, line)| format!("{}\t{line}\n", n + 1))
            .collect();
        if last + 3 > to {
            out.push_str("[…]\n");
        }
        out
    }

    proptest! {
        #[test]
        fn the_surroundings_are_those_found_from_the_top(
            before in "[a\r\n]{0,20}",
            new in "[b\n]{0,60}",
            after in "[a\n]{0,12}",
        ) {
            let text = [before.as_str(), &new, &after].concat();
            let got = around(&text, before.len(), new.len());
            prop_assert_eq!(got, slow_around(&text, before.len(), new.len()));
        }
    }
}
