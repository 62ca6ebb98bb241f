//! `alive`: what many workers cost in memory and open files that are alive at the same time. The
//! model is so slow that all have started before the first ends.

use crate::crowd::{Plan, Process};
use crate::growth::{Growth, Series};
use crate::process::{start, status};
use crate::report::{Report, count, kib, mib};
use crate::{events, gaffer, options};
use anyhow::{Context, ensure};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SIZES: [u64; 3] = [100, 1000, 10_000];
/// Before each of a worker's two answers, in milliseconds. The gate lets a thousand requests
/// through at a time and who came first goes first: a worker has its second turn after all that
/// had begun by then. Ten thousand take longer to begin.
const DELAY: u64 = 2000;
const DELAY_OF_MANY: u64 = 5000;
const MANY: u64 = 5000;
const EVERY: Duration = Duration::from_millis(50);

/// What the process had at most.
#[derive(Debug, Clone, Copy, Default)]
struct Most {
    workers: u64,
    peak: u64,
    transcripts: u64,
    files: u64,
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let sizes = match options::value("--workers") {
        Some(text) => vec![text.parse().context("--workers takes a number")?],
        None if options::is_try() => SIZES[..1].to_vec(),
        None => SIZES.to_vec(),
    };
    let given = options::value("--delay").map(|text| text.parse());
    let given = given.transpose().context("--delay takes a number")?;
    let mut rows = Vec::new();
    for workers in sizes {
        let usual = if workers < MANY { DELAY } else { DELAY_OF_MANY };
        rows.push(crowded(&binary, workers, given.unwrap_or(usual))?);
    }
    let mut report = Report::default();
    let mut add = |name: &str, show: &dyn Fn(&Most) -> String| {
        report.cells(name, &rows.iter().map(show).collect::<Vec<_>>());
    };
    add("alive at once", &|row| format!("{} workers", row.workers));
    add("transcripts open at once", &|row| count(row.transcripts));
    add("files open at once, with connections", &|row| {
        count(row.files)
    });
    add("peak resident memory", &|row| mib(row.peak));
    if let Some(first) = rows.first().copied() {
        add("memory for each worker beyond the first size", &|row| {
            let more = row.workers.saturating_sub(first.workers);
            let each = row.peak.saturating_sub(first.peak).checked_div(more);
            each.map_or_else(String::new, kib)
        });
    }
    for row in &rows {
        // The coordinator has one, too. A few workers may have ended already.
        let is_crowded = row.transcripts >= row.workers * 95 / 100;
        report.goal(format!("{}: all alive at once", row.workers), is_crowded);
        if row.workers == 10_000 {
            report.goal("10000: under 1 GiB", row.peak < 1 << 30);
        }
    }
    let points = rows.iter().map(|row| {
        let mib = row.peak as f64 / f64::from(1 << 20);
        (row.workers as f64, mib)
    });
    report.growth(Growth::new(
        "memory",
        [
            "Peak resident memory of workers alive at once",
            "workers",
            "MiB",
        ],
        vec![Series::new("gaffer", points)],
    ));
    Ok(report)
}

fn crowded(binary: &Path, workers: u64, delay: u64) -> anyhow::Result<Most> {
    let plan = Plan {
        workers,
        rounds: 1,
        reads: 1,
        worker_delay: delay,
        ..Plan::default()
    };
    let server = Process::start(plan)?;
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(events::FILE), events::file())?;
    let running = start(&mut gaffer::crew(
        binary,
        home.path(),
        server.address,
        workers,
    ))?;
    let pid = running.id();
    let is_over = AtomicBool::new(false);
    let (most, used) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut most = Most::default();
            while !is_over.load(Ordering::Relaxed) {
                look(pid, &mut most);
                std::thread::sleep(EVERY);
            }
            most
        });
        let used = running.wait();
        is_over.store(true, Ordering::Relaxed);
        (looking.join().unwrap_or_default(), used)
    });
    let (used, seen) = (used?, server.finish()?);
    ensure!(used.status.success(), "gaffer ended with {}", used.status);
    let asked = (workers, workers * (plan.reads + 1));
    ensure!(
        (seen.finished, seen.workers) == asked,
        "the server saw {seen:?}"
    );
    Ok(Most { workers, ..most })
}

/// Nothing is learnt of a process that has ended meanwhile.
fn look(pid: u32, most: &mut Most) {
    let Ok(list) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return;
    };
    let (mut files, mut transcripts) = (0, 0);
    for file in list.flatten() {
        files += 1;
        let target = std::fs::read_link(file.path());
        let is_transcript = target.is_ok_and(|it| it.extension().is_some_and(|it| it == "jsonl"));
        transcripts += u64::from(is_transcript);
    }
    most.files = most.files.max(files);
    most.transcripts = most.transcripts.max(transcripts);
    // What a parent hears of its child in the end would include the parent.
    most.peak = most.peak.max(status(pid, "VmHWM").unwrap_or(0) * 1024);
}
