//! The UI's thread, and what it is given of the world: earlier words, names of files, commands.

use crate::budget;
use crate::run::Job;
use crate::system;
use gaffer_protocol::{Command, Event};
use gaffer_tui::{Options, SlashCommand, run};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Below gaffer's own folder: what the user has written, one JSON text a line.
const HISTORY: &str = "history.jsonl";
/// So many of them are offered again; with twice as many the file is made shorter.
const REMEMBERED: usize = 500;
/// So many names are looked at for a completion: it happens while the user types.
const MOST_NAMES: usize = 2000;
/// The signal may be taken by another thread: until then nothing may be drawn.
const STOPS: Duration = Duration::from_millis(50);

pub(super) struct Ui(JoinHandle<io::Result<()>>);

impl Ui {
    pub(super) fn open(
        events: Receiver<Event>,
        commands: Sender<Command>,
        options: Options,
    ) -> io::Result<Self> {
        let show = move || {
            let left = run(events, &commands, options)?;
            // Ending them takes a moment, and the user is back at the shell's screen.
            if let Some(line) = left
                .to_string()
                .lines()
                .next()
                .filter(|_| !left.running.is_empty())
            {
                drop(writeln!(io::stderr(), "{line}: stopping"));
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("ui".to_owned());
        Ok(Self(thread.spawn(show)?))
    }

    /// When the UI has given the terminal back.
    pub(super) fn wait(self) -> io::Result<()> {
        let panicked = |_| Err(io::Error::other("the UI panicked"));
        self.0.join().unwrap_or_else(panicked)
    }
}

/// What the UI of a session needs to know.
pub(super) fn options(job: &Job) -> Options {
    let path = job.home.path().join(HISTORY);
    let skill = |skill: &gaffer_tools::skill::Skill| SlashCommand {
        name: skill.name.clone(),
        what: skill.about.lines().next().unwrap_or_default().to_owned(),
    };
    let cwd = job.cwd.clone();
    Options {
        is_colorless: false,
        history: history(&path),
        keep: Some(Box::new(move |text| keep(&path, text))),
        files: Some(Box::new(move |name| files(&cwd, name))),
        commands: job.gear.skills().map(skill).collect(),
        budget: budget::choose(&job.common, &job.settings),
        suspend: Some(Box::new(suspend)),
    }
}

fn history(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > 2 * REMEMBERED {
        let kept = lines[lines.len() - REMEMBERED..].join("\n") + "\n";
        // It is only longer than it need be.
        drop(write_private(path, kept.as_bytes(), false));
    }
    let from = lines.len().saturating_sub(REMEMBERED);
    let read = |line: &&str| serde_json::from_str(line).ok();
    lines[from..].iter().filter_map(read).collect()
}

/// What cannot be kept is not offered again; nothing else depends on it.
fn keep(path: &Path, text: &str) {
    let line = serde_json::Value::from(text).to_string() + "\n";
    drop(write_private(path, line.as_bytes(), true));
}

/// For the user's eyes alone: prompts may hold secrets.
fn write_private(path: &Path, bytes: &[u8], appends: bool) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = File::options();
    options.create(true).mode(0o600);
    options.append(appends).write(true).truncate(!appends);
    options.open(path)?.write_all(bytes)
}

/// Files below the working folder whose path begins so.
fn files(cwd: &Path, name: &str) -> Vec<String> {
    let (folder, begin) = match name.rsplit_once('/') {
        Some((folder, begin)) => (format!("{folder}/"), begin),
        None => (String::new(), name),
    };
    let place: PathBuf = cwd.join(&folder);
    let Ok(entries) = fs::read_dir(place) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.take(MOST_NAMES).flatten() {
        let Ok(own) = entry.file_name().into_string() else {
            continue;
        };
        let is_hidden = own.starts_with('.') && !begin.starts_with('.');
        if is_hidden || !own.starts_with(begin) {
            continue;
        }
        let end = match entry.file_type() {
            Ok(kind) if kind.is_dir() => "/",
            _ => "",
        };
        found.push(format!("{folder}{own}{end}"));
    }
    found.sort();
    found
}

fn suspend() {
    if let Err(why) = kill_process(getpid(), Signal::TSTP) {
        system::say(&format!("gaffer: cannot stop here: {why}"));
    }
    thread::sleep(STOPS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_offered_again_and_the_file_stays_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/history.jsonl");
        assert_eq!(history(&path), [""; 0]);
        for n in 0..=2 * REMEMBERED {
            keep(&path, &format!("line {n}\nand more"));
        }
        let before = history(&path);
        assert_eq!(before.len(), REMEMBERED);
        assert_eq!(before[REMEMBERED - 1], "line 1000\nand more");
        assert_eq!(history(&path), before, "it was cut and says the same");
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            REMEMBERED
        );
    }

    #[test]
    fn files_are_found_by_the_beginning_of_their_path() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/deep")).unwrap();
        for name in ["src/main.rs", "src/mode.rs", ".hidden", "run.sh"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |name: &str| files(folder.path(), name);
        assert_eq!(found(""), ["run.sh", "src/"]);
        assert_eq!(found("src/m"), ["src/main.rs", "src/mode.rs"]);
        assert_eq!(found("src/d"), ["src/deep/"]);
        assert_eq!(found(".h"), [".hidden"]);
        assert_eq!(found("nowhere/x"), [""; 0]);
    }
}
