//! Sessions on paper: a table for people, lists and lines of JSON for programs.

use super::account::minute;
use super::words::{count, fit, width};
use crate::system::plain;
use gaffer_protocol::{End, Origin};
use gaffer_store::retain::{Cleaned, Why};
use gaffer_store::search::{Hit, Speaker};
use gaffer_store::{Listed, State};
use serde_json::{Value, json};
use std::collections::HashMap;

/// So wide a title may be.
const TITLE: usize = 48;
/// So much of an id is shown, unless more is needed to tell it from others.
const SHORT: usize = 8;

pub(crate) fn text(all: &[Listed], has_folders: bool) -> String {
    let mut heads = vec![
        "session",
        "name or title",
        "mode",
        "agents",
        "last written (UTC)",
    ];
    heads.extend(["size", "state"]);
    if has_folders {
        heads.push("folder");
    }
    let mut rows = vec![heads.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let shorts = Shorts::of(all);
    for it in all {
        let about = it.about.as_ref();
        let mut row = vec![
            shorts.get(it).to_owned(),
            title(it),
            line(about.map_or("?", |about| about.mode.as_str()), 20),
            it.agents.to_string(),
            minute(it.written).trim_end_matches(" UTC").to_owned(),
            size(it.size),
            state(&it.state),
        ];
        if has_folders {
            row.push(line(about.map_or("?", |about| about.cwd.as_str()), 200));
        }
        rows.push(row);
    }
    // Figures stand to the right.
    table(&rows, &[3, 5])
}

/// The same in few columns.
pub(crate) fn brief(all: &[Listed]) -> String {
    let shorts = Shorts::of(all);
    let row = |it: &Listed| {
        let written = minute(it.written).trim_end_matches(" UTC").to_owned();
        vec![shorts.get(it).to_owned(), written, title(it)]
    };
    table(&all.iter().map(row).collect::<Vec<_>>(), &[])
}

fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |n: usize| {
        rows.iter()
            .filter_map(|row| row.get(n))
            .map(|cell| width(cell))
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|n| widest(n).unwrap_or_default())
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut shown = String::new();
        for (n, cell) in row.iter().enumerate() {
            let space = " ".repeat(widths[n].saturating_sub(width(cell)));
            match right.contains(&n) {
                true => shown.push_str(&format!("{space}{cell}  ")),
                false => shown.push_str(&format!("{cell}{space}  ")),
            }
        }
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    out
}

/// A text as one line that is safe to print.
fn line(text: &str, most: usize) -> String {
    fit(&plain(text), most)
}

/// For each session the shortest beginning of its id that is its alone in the list.
pub(crate) struct Shorts<'a>(HashMap<&'a str, &'a str>);

impl<'a> Shorts<'a> {
    pub(crate) fn of(all: &'a [Listed]) -> Self {
        let mut ids: Vec<&str> = all.iter().map(|it| it.found.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        // In order, the ids that begin most alike are neighbours.
        let alike = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let short = |n: usize| {
            let near = [n.checked_sub(1), Some(n + 1)].into_iter().flatten();
            let near = near.filter_map(|near| ids.get(near));
            let same = near.map(|other| alike(ids[n], other)).max();
            let end = same.map_or(SHORT, |same| SHORT.max(same + 1));
            (ids[n], &ids[n][..end.min(ids[n].len())])
        };
        Self((0..ids.len()).map(short).collect())
    }

    fn get(&self, it: &'a Listed) -> &'a str {
        let id = it.found.id.as_str();
        self.0.get(id).copied().unwrap_or(id)
    }
}

/// The name, or else the title in quotes.
fn title(it: &Listed) -> String {
    match (it.name(), &it.about) {
        (Some(name), _) => line(name, TITLE),
        (None, Some(about)) if !about.title.is_empty() => {
            format!("“{}”", line(&about.title, TITLE - 2))
        }
        _ => "–".to_owned(),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

fn state(state: &State) -> String {
    match state {
        State::Running(owner) => format!("running (process {})", owner.pid),
        State::Interrupted | State::Ended(End::Interrupted) => "interrupted".to_owned(),
        State::Ended(end) => line(&end.to_string(), 60),
    }
}

pub(crate) fn json(all: &[Listed]) -> Value {
    all.iter().map(one_json).collect()
}

fn one_json(it: &Listed) -> Value {
    let about = it.about.as_ref();
    let (state, end, owner) = match &it.state {
        State::Running(owner) => ("running", None, Some(owner)),
        State::Ended(end) => ("ended", Some(end), None),
        State::Interrupted => ("interrupted", None, None),
    };
    json!({
        "session_id": it.found.id,
        "name": it.name(),
        "title": about.map(|about| &about.title),
        "mode": about.map(|about| &about.mode),
        "cwd": about.map(|about| &about.cwd),
        "agents": it.agents,
        "created": about.map(|about| about.created),
        "last": it.written,
        "size_bytes": it.size,
        "state": state,
        "reason": end.map(End::reason),
        "message": end.map(ToString::to_string),
        "pid": owner.map(|owner| owner.pid),
        "forked_from": about.and_then(|about| about.forked_from.as_ref()),
        "kept_because": it.kept,
        "folder": it.found.folder.path(),
    })
}

/// The line above what was found in a session.
pub(crate) fn search_head<'a>(it: &'a Listed, shorts: &Shorts<'a>) -> String {
    format!(
        "{}  {}  {}\n",
        shorts.get(it),
        minute(it.written),
        title(it)
    )
}

pub(crate) fn hit_text(hit: &Hit) -> String {
    let name = if hit.name.is_empty() { "?" } else { &hit.name };
    let line = plain(&hit.line).replace('\t', " ");
    format!("  {}, {}: {line}\n", plain(name), speaker(hit.speaker))
}

fn speaker(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::Input(Some(Origin::Human)) => "the user",
        Speaker::Input(Some(Origin::Agent)) => "mail",
        Speaker::Input(Some(Origin::TaskNotification)) => "notification",
        Speaker::Input(Some(Origin::Hook)) => "hook",
        Speaker::Input(Some(Origin::Context | Origin::Compacted) | None) => "context",
        Speaker::Answer => "answer",
        Speaker::Call => "call",
        Speaker::Result => "result",
    }
}

pub(crate) fn hit_json(it: &Listed, hit: &Hit) -> String {
    let value = json!({
        "session_id": it.found.id,
        "agent_id": hit.agent,
        "agent": hit.name,
        "at": hit.at,
        "where": speaker(hit.speaker),
        "line": hit.line,
    });
    format!("{value}\n")
}

pub(crate) fn title_json(it: &Listed, line: &str) -> String {
    let value = json!({ "session_id": it.found.id, "where": "title", "line": line });
    format!("{value}\n")
}

/// What a cleaning removed, or would remove, a line for each session.
pub(crate) fn cleaned(done: &Cleaned) -> String {
    let row = |(it, why): &(Listed, Why)| {
        let why = match why {
            Why::Age => "too old",
            Why::Size => "too much in all",
        };
        let row = [it.found.id.to_string(), title(it), minute(it.written)];
        let more = [size(it.size), why.to_owned()];
        row.into_iter().chain(more).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = done.removed.iter().map(row).collect();
    table(&rows, &[3])
}

pub(crate) fn cleaned_sum(done: &Cleaned, is_dry: bool) -> String {
    let sessions = count(
        u32::try_from(done.removed.len()).unwrap_or(u32::MAX),
        "session",
    );
    let did = if is_dry { "would remove" } else { "removed" };
    match done.removed.len() {
        0 => "gaffer: nothing is too old or too much".to_owned(),
        _ => format!("gaffer: {did} {sessions}, {}", size(done.bytes())),
    }
}
