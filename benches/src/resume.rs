//! `resume`: from exec of the real binary to the first request of a session that goes on after a
//! kill: a thousand agents, half a gigabyte of transcripts.

use crate::growth::{Growth, Series};
use crate::past::{Past, SESSION};
use crate::report::{Report, least_and_middle, mib, ms};
use crate::server::{Play, Server};
use crate::{gaffer, process};
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

const RUNS: usize = 5;
const WORKER: usize = 500_000;
const MAIN: usize = 5_000_000;
const LIVE: u32 = 16;
const FEW: u32 = 100;
const MANY: u32 = 1000;
const MOST_WALL: Duration = Duration::from_secs(1);
/// What an ended agent may leave in memory, and have read, in bytes.
const MOST_LEFT: u64 = 20_000;
const MOST_READ: u64 = 40_000;

/// The middle of several runs.
#[derive(Debug, Default)]
struct Row {
    least: Duration,
    wall: Duration,
    cpu: Duration,
    peak: u64,
    /// Bytes that were read before the first request.
    read: u64,
}

/// Each is the one before with something more, so that the differences tell what costs what.
pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let (sender, heads) = mpsc::channel();
    let (_server, address) = Server::listen(Play::Reads(0), Some(sender))?;
    let past = |workers: u32, live, main| Past {
        ended: workers - live,
        live,
        worker: WORKER,
        main,
    };
    let row = |past| measure(&binary, address, &heads, past);
    let [empty, alone, live, few, many] = [
        row(past(0, 0, 1000))?,
        row(past(0, 0, MAIN))?,
        row(past(LIVE, LIVE, MAIN))?,
        row(past(FEW, LIVE, MAIN))?,
        row(past(MANY, LIVE, MAIN))?,
    ];
    let mut report = Report::default();
    report.row([
        &format!("exec to first request, {RUNS} runs"),
        "least",
        "median",
        "CPU, whole run",
        "peak memory",
        "read",
    ]);
    for (name, row) in [
        ("a session of 1 KB", &empty),
        ("its own transcript is 5 MB", &alone),
        ("and 16 workers of 500 KB were cut off", &live),
        ("and 84 had ended: 50 MB", &few),
        ("and 984 had ended: 500 MB", &many),
    ] {
        report.row([
            name,
            &ms(row.least),
            &ms(row.wall),
            &ms(row.cpu),
            &mib(row.peak),
            &mib(row.read),
        ]);
    }
    let each = |few: u64, many: u64| many.saturating_sub(few) / u64::from(MANY - FEW);
    let (left, read) = (each(few.peak, many.peak), each(few.read, many.read));
    report.row(["an ended agent leaves in memory", &format!("{left} bytes")]);
    report.row(["an ended agent has read", &format!("{read} bytes")]);
    let points = |get: &dyn Fn(&Row) -> f64| {
        let rows = [(LIVE, &live), (FEW, &few), (MANY, &many)];
        rows.map(|(agents, row)| (f64::from(agents), get(row)))
    };
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    report.growth(Growth::new(
        "time",
        ["Resume of a session", "agents, of which 16 go on", "ms"],
        vec![
            Series::new("exec to first request", points(&|row| millis(row.wall))),
            Series::new("CPU of the whole run", points(&|row| millis(row.cpu))),
        ],
    ));
    report.time_goal("1000 agents and 500 MB within 1 s", many.wall < MOST_WALL);
    report.goal("under 20 KB of memory an ended agent", left < MOST_LEFT);
    report.goal("under 40 KB read an ended agent", read < MOST_READ);
    Ok(report)
}

fn measure(
    binary: &Path,
    address: SocketAddr,
    heads: &Receiver<Instant>,
    past: Past,
) -> anyhow::Result<Row> {
    let root = tempfile::tempdir()?;
    let path = root.path().canonicalize()?;
    let work = path.join("work");
    std::fs::create_dir(&work)?;
    make(&path, &work, past)?;
    let (mut walls, mut cpus, mut peaks, mut reads) = (vec![], vec![], vec![], vec![]);
    for number in 0..RUNS {
        let home = path.join(format!("home-{number}"));
        copy(&path.join("left"), &home.join(".gaffer"))?;
        let mut command = gaffer::crew(binary, &home, address, 32);
        command.args(["--resume", SESSION]).current_dir(&work);
        let running = process::start(&mut command)?;
        let Ok(arrived) = heads.recv_timeout(Duration::from_secs(60)) else {
            running.stop();
            anyhow::bail!("no request came");
        };
        let pid = running.id();
        reads.push(read_by(pid).unwrap_or_default());
        // What its parent hears of it in the end includes the parent, which may have grown.
        peaks.push(process::status(pid, "VmHWM").context("it is gone")? * 1024);
        walls.push(arrived - running.began);
        let used = running.wait()?;
        ensure!(used.status.success(), "gaffer ended with {}", used.status);
        cpus.push(used.cpu);
        // There is one request; a second one would be taken for that of the next run.
        while heads.try_recv().is_ok() {}
        std::fs::remove_dir_all(&home)?;
    }
    let (least, wall) = least_and_middle(&walls);
    Ok(Row {
        least,
        wall,
        cpu: least_and_middle(&cpus).1,
        peak: least_and_middle(&peaks).1,
        read: least_and_middle(&reads).1,
    })
}

/// Another process makes it: what this one had in memory would be counted as its children's.
fn make(root: &Path, work: &Path, past: Past) -> anyhow::Result<()> {
    let left = root.join("left").display().to_string();
    let work = work.display().to_string();
    let size = past.words();
    let mut words = vec!["__past", &left, &work];
    words.extend(size.iter().map(String::as_str));
    let status = process::own(&words)?.status()?;
    ensure!(status.success(), "the session could not be made: {status}");
    Ok(())
}

/// The same session once more. Transcripts of workers are shared: half a gigabyte takes a while,
/// and a session that goes on does not write to them.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?;
        let target: PathBuf = to.join(name);
        let text = name.to_string_lossy();
        let is_worker = text.starts_with("agent-") && text != "agent-00000000.jsonl";
        match path.is_dir() {
            true => copy(&path, &target)?,
            false if is_worker => std::fs::hard_link(&path, &target)?,
            false => drop(std::fs::copy(&path, &target)?),
        }
    }
    Ok(())
}

/// How many bytes a process has read so far, from wherever.
fn read_by(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("rchar:"))?;
    line.trim().parse().ok()
}
