//! `edit`: Edit of a file of 10 MB, near its end.

use crate::caller::Caller;
use crate::report::{Report, least_and_middle, ms};
use anyhow::{Context, ensure};
use gaffer_tools::edit::Edit;
use gaffer_tools::erase;
use gaffer_tools::read::Read;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const BYTES: usize = 10_000_000;
const RUNS: usize = 31;
const MOST: Duration = Duration::from_millis(50);
/// What one run makes of the other's.
const STATES: [&str; 2] = ["the mark as it was", "the mark as it is now"];

pub(crate) fn run() -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.txt");
    std::fs::write(&path, text())?;
    let own = tempfile::tempdir()?;
    // No command is ever started, so anything may stand for the warden.
    let caller = Caller::new(folder.path(), own.path(), own.path())?;
    let (read, edit) = (erase(Read), erase(Edit));
    let read_input = json!({"file_path": "large.txt", "offset": 1, "limit": 10});
    let (_, first_read) = caller.call(read.as_ref(), &read_input)?;

    let (mut edits, mut cpus, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let [old, new] = [STATES[run % 2], STATES[(run + 1) % 2]];
        let input = json!({"file_path": "large.txt", "old_string": old, "new_string": new});
        let before = cpu()?;
        edits.push(caller.call(edit.as_ref(), &input)?.1);
        cpus.push(cpu()? - before);
        copies.push(copy(folder.path())?);
    }
    let edited = std::fs::read_to_string(&path)?;
    ensure!(edited.contains(STATES[RUNS % 2]), "the file was not edited");

    let (edit, middle_edit) = least_and_middle(&edits);
    let (_, middle_cpu) = least_and_middle(&cpus);
    let (copy, middle_copy) = least_and_middle(&copies);
    let mut report = Report::default();
    let shown = format!("10 MB, of {RUNS} runs");
    report.row([&shown, "least", "median"]);
    report.row(["Edit near the end", &ms(edit), &ms(middle_edit)]);
    report.row(["CPU of it", "", &ms(middle_cpu)]);
    report.row(["read, written anew, renamed", &ms(copy), &ms(middle_copy)]);
    report.row(["Read of its first lines, once", &ms(first_read)]);
    report.time_goal("an edit within 50 ms (median)", middle_edit < MOST);
    Ok(report)
}

/// What this thread, on which tools run that do not leave it, has computed so far. The system
/// tells it to a tick, so that only the middle of many runs means something.
fn cpu() -> anyhow::Result<Duration> {
    let said = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos = said.split_whitespace().next().context("no figure")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Below this no edit can be that leaves the file whole at every moment.
fn copy(folder: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let bytes = std::fs::read(folder.join("large.txt"))?;
    let new = folder.join("copy.new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(&bytes)?;
    drop(file);
    std::fs::rename(new, folder.join("copy.txt"))?;
    Ok(began.elapsed())
}

/// Lines of text, a few of them not ASCII, with the mark near the end.
fn text() -> String {
    let mut text = String::with_capacity(BYTES + 200);
    let mut number = 0;
    let mut line = |text: &mut String| {
        let end = if number % 50 == 0 {
            "für alle – fin"
        } else {
            "the rest is as before"
        };
        text.push_str(&format!("line {number} of the file, as was said: {end}\n"));
        number += 1;
    };
    while text.len() < BYTES - 1000 {
        line(&mut text);
    }
    text.push_str(STATES[0]);
    text.push('\n');
    while text.len() < BYTES {
        line(&mut text);
    }
    text
}
