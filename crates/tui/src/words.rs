//! How the UI says things: calls, numbers, times, ends.

use gaffer_protocol::{Cost, End, Status};
use serde_json::Value;

/// The argument of a call that matters to a person.
pub(crate) fn main_argument(input: &Value) -> Option<&str> {
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
    keys.iter().find_map(|key| input.get(key)?.as_str())
}

/// A call on one line: the tool and what it is about.
pub(crate) fn describe(tool: &str, input: &Value) -> String {
    match main_argument(input) {
        Some(what) => format!("{tool} {}", what.lines().next().unwrap_or_default()),
        None => tool.to_owned(),
    }
}

pub(crate) fn count(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

pub(crate) fn thousands(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// A duration in as few letters as are clear.
pub(crate) fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Money, or a question mark where the price is not known.
pub(crate) fn money(cost: Cost) -> String {
    match cost {
        Cost::Unknown => "$?".to_owned(),
        known => known.to_string(),
    }
}

/// The end of a worker in a word or two.
pub(crate) fn ended(end: &End) -> String {
    match end.status() {
        Status::Completed => "completed".to_owned(),
        Status::Killed => format!("{end}"),
        Status::Failed => format!("failed: {end}"),
    }
}

/// The first line of a text, and whether there is more.
pub(crate) fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(_) => format!("{first} …"),
        None => first.to_owned(),
    }
}
