//! `idle`: what a session costs that has nothing to do but wait for its model: alone, and with a
//! hundred workers that wait, too.

use crate::crowd::{Crowd, Plan};
use crate::report::{Report, ms};
use crate::{events, gaffer, options, process};
use anyhow::{Context, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

const WORKERS: u64 = 100;
/// No answer comes while it is looked at.
const NEVER: u64 = 600_000;
const STAND: Duration = Duration::from_secs(10);
/// What follows from the last request that was sent.
const SETTLE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spent {
    cpu: Duration,
    /// Of all its threads, given up by themselves or not.
    switches: u64,
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let stand = match options::is_try() {
        true => STAND / 10,
        false => STAND,
    };
    let alone = resting(&binary, 0, stand)?;
    let crew = resting(&binary, WORKERS, stand)?;
    let mut report = Report::default();
    let shown = format!("in {} s of waiting", stand.as_secs());
    report.row([&shown, "no worker", "100 workers wait"]);
    report.row(["CPU", &ms(alone.cpu), &ms(crew.cpu)]);
    let switches = [alone, crew].map(|it| it.switches.to_string());
    report.row(["context switches", &switches[0], &switches[1]]);
    for (name, spent) in [("alone", alone), ("with 100 workers", crew)] {
        report.goal(format!("{name}: no CPU"), spent.cpu.is_zero());
        report.goal(format!("{name}: no context switch"), spent.switches == 0);
    }
    Ok(report)
}

/// What one used while it stood.
fn resting(binary: &Path, workers: u64, stand: Duration) -> anyhow::Result<Spent> {
    let plan = Plan {
        workers,
        rounds: 1,
        // The coordinator has had its word when the workers have asked.
        coordinator_delay: if workers == 0 { NEVER } else { 0 },
        worker_delay: NEVER,
        ..Plan::default()
    };
    let (crowd, address) = Crowd::listen(plan, false)?;
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(events::FILE), events::file())?;
    let mut gaffer = gaffer::crew(binary, home.path(), address, workers.max(1));
    let running = process::start(&mut gaffer)?;
    let stood = watch(&crowd, workers, running.id(), stand);
    running.stop();
    stood
}

fn watch(crowd: &Crowd, workers: u64, pid: u32, stand: Duration) -> anyhow::Result<Spent> {
    let began = Instant::now();
    let asked = || {
        let seen = crowd.seen();
        (seen.coordinator.min(1), seen.workers)
    };
    while asked() != (1, workers) {
        ensure!(began.elapsed() < PATIENCE, "it asked for {:?}", asked());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(SETTLE);
    let before = spent(pid)?;
    std::thread::sleep(stand);
    let after = spent(pid)?;
    ensure!(asked() == (1, workers), "it did not rest");
    Ok(Spent {
        cpu: after.cpu.saturating_sub(before.cpu),
        switches: after.switches.saturating_sub(before.switches),
    })
}

fn spent(pid: u32) -> anyhow::Result<Spent> {
    let mut all = Spent {
        cpu: Duration::ZERO,
        switches: 0,
    };
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let folder = thread?.path();
        // A thread that has ended since the list was made has used nothing more.
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let (Some(time), Some(status)) = (read("schedstat"), read("status")) else {
            continue;
        };
        all.cpu += on_processor(&time).context("the system does not tell times of threads")?;
        all.switches += switches(&status);
    }
    Ok(all)
}

/// The first number is that of nanoseconds on a processor. It is exact where ticks are not.
fn on_processor(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

fn switches(status: &str) -> u64 {
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter(|(name, _)| name.ends_with("voluntary_ctxt_switches"))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Threads:\t1\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(switches(status), 7);
        assert_eq!(
            on_processor("1500 20 3\n"),
            Some(Duration::from_nanos(1500))
        );
        let own = spent(std::process::id()).unwrap();
        assert!(own.cpu > Duration::ZERO, "{own:?}");
    }
}
