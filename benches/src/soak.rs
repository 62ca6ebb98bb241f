//! `soak`: a long run of the real binary in which workers with large outputs end and others take
//! their places: whether its memory stays what it was.

use crate::crowd::{Crowd, Plan};
use crate::picture::{Curve, svg};
use crate::process::{start, status};
use crate::report::{Report, mib, ratio};
use crate::{events, gaffer, options, past, say};
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIVE: u64 = 32;
const FINISHED: u64 = 200;
/// Of the file that is read, of what a command prints, and of a result.
const BYTES: usize = 100_000;
const READS: u64 = 6;
const DELAY: u64 = 150;
const EVERY: Duration = Duration::from_millis(50);
const MOST_GROWTH: f64 = 1.15;

/// What the process was at one time.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    at: Duration,
    resident: u64,
    threads: u64,
    files: u64,
    finished: u64,
    /// The most memory that it had so far.
    peak: u64,
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let finished = match options::value("--finished") {
        Some(text) => text.parse().context("--finished takes a number")?,
        None => FINISHED,
    };
    let binary = gaffer::binary()?;
    let plan = Plan {
        workers: finished + LIVE,
        rounds: 1,
        reads: READS,
        coordinator_delay: 20,
        worker_delay: DELAY,
        live: LIVE,
        big: BYTES as u64,
    };
    let samples = soak(&binary, plan)?;
    let peak = most(&samples, |it| it.peak);
    // While all places are taken: what comes after shrinks, and would flatter.
    let busy: Vec<Sample> = samples
        .iter()
        .filter(|sample| sample.finished < finished)
        .copied()
        .collect();
    let path = picture(&samples, finished)?;
    let quarters = quarters(&busy);
    let mut report = Report::default();
    report.row(["while 32 work; quarters of the run", "1", "2", "3", "4"]);
    let mut add = |name: &str, show: &dyn Fn(&[Sample]) -> String| {
        let [one, two, three, four] = quarters.map(show);
        report.row([name, &one, &two, &three, &four]);
    };
    add("resident memory, mean", &|all| {
        mib(mean(all, |it| it.resident))
    });
    add("most", &|all| mib(most(all, |it| it.resident)));
    add("threads, most", &|all| {
        most(all, |it| it.threads).to_string()
    });
    add("open files, most", &|all| {
        most(all, |it| it.files).to_string()
    });
    add("workers that have ended", &|all| {
        most(all, |it| it.finished).to_string()
    });
    let [_, second, _, last] = quarters;
    let resident = |all| mean(all, |it| it.resident) as f64;
    let growth = resident(last) / resident(second);
    report.row(["last quarter by the second", &ratio(growth, 1.0)]);
    report.row(["peak resident memory of the whole run", &mib(peak)]);
    let seconds = samples.last().map_or(0.0, |it| it.at.as_secs_f64());
    report.row(["wall", &format!("{seconds:.0} s")]);
    say::note(&format!("bench: the curve is {}", path.display()));
    report.goal(
        "the last quarter at most 1.15 times the second",
        growth <= MOST_GROWTH,
    );
    let flat = |get: fn(&Sample) -> u64| most(last, get) <= most(second, get) + 8;
    report.goal(
        "threads and open files flat",
        flat(|it| it.threads) && flat(|it| it.files),
    );
    Ok(report)
}

/// One session, looked at every now and then.
fn soak(binary: &Path, plan: Plan) -> anyhow::Result<Vec<Sample>> {
    let (crowd, address) = Crowd::listen(plan, false)?;
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(events::FILE), past::source(BYTES))?;
    let mut command = gaffer::crew(binary, home.path(), address, LIVE);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let running = start(&mut command)?;
    let (pid, began) = (running.id(), running.began);
    let is_over = AtomicBool::new(false);
    let (samples, used) = std::thread::scope(|scope| {
        let look = || {
            let mut samples = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let finished = crowd.seen().finished;
                samples.extend(look_at(pid, began, finished));
                std::thread::sleep(EVERY);
            }
            samples
        };
        let looking = scope.spawn(look);
        let used = running.wait();
        is_over.store(true, Ordering::Relaxed);
        (looking.join().unwrap_or_default(), used)
    });
    let used = used?;
    ensure!(used.status.success(), "gaffer ended with {}", used.status);
    let seen = crowd.seen();
    ensure!(
        (seen.finished, seen.workers) == (plan.workers, plan.workers * (plan.reads + 1)),
        "the server saw {seen:?}"
    );
    Ok(samples)
}

/// None when it is over.
fn look_at(pid: u32, began: Instant, finished: u64) -> Option<Sample> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some(Sample {
        at: began.elapsed(),
        resident: status(pid, "VmRSS")? * 1024,
        threads: status(pid, "Threads")?,
        files: files as u64,
        finished,
        peak: status(pid, "VmHWM")? * 1024,
    })
}

/// By time.
fn quarters(samples: &[Sample]) -> [&[Sample]; 4] {
    let first = samples.first().map_or(Duration::ZERO, |it| it.at);
    let last = samples.last().map_or(Duration::ZERO, |it| it.at);
    let place = |quarter: u32| {
        let until = first + (last - first) * quarter / 4;
        samples.partition_point(|sample| sample.at < until)
    };
    let cuts = [0, place(1), place(2), place(3), samples.len()];
    [0, 1, 2, 3].map(|n| &samples[cuts[n]..cuts[n + 1]])
}

fn mean(samples: &[Sample], get: impl Fn(&Sample) -> u64) -> u64 {
    samples.iter().map(get).sum::<u64>() / (samples.len() as u64).max(1)
}

fn most(samples: &[Sample], get: impl Fn(&Sample) -> u64) -> u64 {
    samples.iter().map(get).max().unwrap_or(0)
}

fn picture(samples: &[Sample], finished: u64) -> anyhow::Result<PathBuf> {
    let points = |get: &dyn Fn(&Sample) -> f64| {
        let point = |sample: &Sample| (sample.at.as_secs_f64(), get(sample));
        samples.iter().map(point).collect()
    };
    let mib = |sample: &Sample| sample.resident as f64 / f64::from(1 << 20);
    let memory: Vec<(f64, f64)> = points(&mib);
    let peak = memory.iter().map(|(_, y)| *y).fold(1.0, f64::max);
    let curves = [
        Curve {
            name: "resident memory, MiB",
            colour: "#b03020",
            most: (peak * 1.4 / 20.0).ceil() * 20.0,
            points: memory,
        },
        Curve {
            name: "workers that have ended",
            colour: "#3060a0",
            most: (finished + LIVE) as f64,
            points: points(&|sample| sample.finished as f64),
        },
    ];
    let title = format!("{LIVE} workers at a time, outputs and results of 100 KB");
    let path = match options::value("--picture") {
        Some(path) => PathBuf::from(path),
        None => crate::target()?.join("bench/soak.svg"),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&path, svg(&title, "seconds", &curves))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_are_of_the_time_and_not_of_the_samples() {
        let sample = |ms| Sample {
            at: Duration::from_millis(ms),
            ..Sample::default()
        };
        let all = [0, 1, 2, 3, 30, 60, 80, 90, 100].map(sample);
        assert_eq!(quarters(&all).map(<[Sample]>::len), [4, 1, 1, 3]);
        assert_eq!(quarters(&[]).map(<[Sample]>::len), [0; 4]);
    }
}
