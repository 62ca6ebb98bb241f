//! `peers`: other agent programs that are installed, each in the same small session against the
//! same server: one prompt, one word for an answer. What counts is the ratio to gaffer, in turn
//! with which each of them runs. One file says how one program is pointed at the server.

mod aider;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod wire;

use crate::process::{self, Used, command};
use crate::report::{Report, least_and_middle, mib, ms};
use crate::{gaffer, options, say};
use anyhow::{Context, ensure};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

const RUNS: usize = 5;
/// A program that asks nobody for so long does not know its server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nobody looks at the key.
const KEY: &str = "bench";
const PROMPT: &str = "hi";

/// Another program, and how it is told where its model is.
struct Peer {
    program: &'static str,
    prepare: fn(&mut Command, &Setting<'_>) -> anyhow::Result<()>,
}

/// Where it runs.
struct Setting<'a> {
    home: &'a Path,
    server: SocketAddr,
}

const PEERS: [Peer; 5] = [
    claude::PEER,
    codex::PEER,
    opencode::PEER,
    gemini::PEER,
    aider::PEER,
];

/// What one session took.
#[derive(Debug, Clone, Copy)]
struct Took {
    first: Duration,
    used: Used,
}

/// The middle of several sessions.
#[derive(Debug, Clone, Copy, Default)]
struct Middle {
    first: Duration,
    cpu: Duration,
    peak: u64,
}

impl Middle {
    fn of(all: &[Took]) -> Self {
        let middle = |get: fn(&Took) -> Duration| {
            let spans: Vec<Duration> = all.iter().map(get).collect();
            least_and_middle(&spans).1
        };
        let peaks: Vec<u64> = all.iter().map(|took| took.used.peak).collect();
        Self {
            first: middle(|took| took.first),
            cpu: middle(|took| took.used.cpu),
            peak: least_and_middle(&peaks).1,
        }
    }
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runs = if options::is_try() { 1 } else { RUNS };
    compare_all(&PEERS, &binary, &path, runs)
}

fn compare_all(peers: &[Peer], binary: &Path, path: &OsStr, runs: usize) -> anyhow::Result<Report> {
    let (sender, asked) = mpsc::channel();
    let server = wire::listen(sender)?;
    let mut report = Report::default();
    report.row([
        "one prompt, one word; medians",
        "start to first request",
        "CPU",
        "peak memory",
    ]);
    let (mut skipped, mut failed) = (Vec::new(), Vec::new());
    for peer in peers {
        let Some(program) = find(peer.program, path) else {
            say::note(&format!(
                "bench: {} is not installed: skipped",
                peer.program
            ));
            skipped.push(peer.program);
            continue;
        };
        let sides = sessions(binary, (peer, &program, path), (server, &asked), runs);
        match sides {
            Ok(sides) => add(&mut report, peer.program, sides),
            // What another program does is no failure of ours.
            Err(error) => {
                say::note(&format!("bench: {} is left out: {error:#}", peer.program));
                failed.push(peer.program);
            }
        }
    }
    for (why, names) in [("not installed", skipped), ("left out", failed)] {
        if !names.is_empty() {
            report.row([&format!("{why}: {}", names.join(", "))]);
        }
    }
    Ok(report)
}

fn add(report: &mut Report, name: &str, [ours, theirs]: [Middle; 2]) {
    let mut row = |name: &str, it: Middle| {
        report.row([name, &ms(it.first), &ms(it.cpu), &mib(it.peak)]);
    };
    row(name, theirs);
    row(&format!("gaffer, in turn with {name}"), ours);
    let times = |theirs: f64, ours: f64| format!("{:.1} times", theirs / ours.max(1e-9));
    report.row([
        &format!("{name} by gaffer"),
        &times(theirs.first.as_secs_f64(), ours.first.as_secs_f64()),
        &times(theirs.cpu.as_secs_f64(), ours.cpu.as_secs_f64()),
        &times(theirs.peak as f64, ours.peak as f64),
    ]);
}

/// Both in turn, so that what else the machine does meets both.
fn sessions(
    binary: &Path,
    (peer, program, path): (&Peer, &Path, &OsStr),
    (server, asked): (SocketAddr, &Receiver<Instant>),
    runs: usize,
) -> anyhow::Result<[Middle; 2]> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let home = tempfile::tempdir()?;
        ours.push(session(
            &mut gaffer::headless(binary, home.path(), server),
            asked,
        )?);
        let home = tempfile::tempdir()?;
        let mut other = command(program);
        other
            .env_clear()
            .env("PATH", path)
            .env("HOME", home.path())
            .env("TERM", "dumb")
            .env("CI", "1")
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let setting = Setting {
            home: home.path(),
            server,
        };
        (peer.prepare)(&mut other, &setting)?;
        theirs.push(session(&mut other, asked)?);
    }
    Ok([Middle::of(&ours), Middle::of(&theirs)])
}

fn session(program: &mut Command, asked: &Receiver<Instant>) -> anyhow::Result<Took> {
    // A late request of the one before is not this one's first.
    while asked.try_recv().is_ok() {}
    let running = process::start(program.process_group(0))?;
    let (began, group) = (running.began, running.id());
    let Ok(arrived) = asked.recv_timeout(PATIENCE) else {
        end_group(group);
        running.stop();
        anyhow::bail!("it asked nobody for {} s", PATIENCE.as_secs());
    };
    // One that never ends is ended, so that waiting for it does.
    let (over, is_over) = mpsc::channel::<()>();
    let watching = std::thread::spawn(move || {
        if is_over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            end_group(group);
        }
    });
    let used = running.wait();
    drop(over);
    drop(watching.join());
    // What it left behind would be in the way of the next.
    end_group(group);
    let used = used?;
    ensure!(used.status.success(), "it ended with {}", used.status);
    Ok(Took {
        first: arrived.saturating_duration_since(began),
        used,
    })
}

#[expect(
    unsafe_code,
    reason = "the standard library ends one process, not a group of them"
)]
fn end_group(group: u32) {
    // SAFETY: a call with two numbers. The group is that of a process of ours, or there is none.
    unsafe { libc::kill(-group.cast_signed(), libc::SIGKILL) };
}

/// A program in one of the folders that a PATH names.
fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        let about = file.metadata();
        about.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(is_program)
}

/// Writes a file of settings below a home.
fn settings(home: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = home.join(name);
    let folder = path.parent().context("a file without a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(&path, text)?;
    Ok(path)
}

#[cfg(test)]
mod tests;
