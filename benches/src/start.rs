//! `start`: from exec of the real binary to the arrival of its first request.

use crate::report::{Report, least_and_middle, mib, ms};
use crate::server::{Play, Server};
use crate::{gaffer, process};
use anyhow::{Context, ensure};
use std::sync::mpsc;
use std::time::Duration;

const RUNS: usize = 30;
const MOST_WALL: Duration = Duration::from_millis(15);
const MOST_MEMORY: u64 = 20 << 20;

/// The server runs on a thread here, as one process has one clock.
pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let (sender, heads) = mpsc::channel();
    let (_server, address) = Server::listen(Play::Reads(0), Some(sender))?;
    let (mut walls, mut cpus, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let home = tempfile::tempdir()?;
        let running = process::start(&mut gaffer::headless(&binary, home.path(), address))?;
        let Ok(arrived) = heads.recv_timeout(Duration::from_secs(20)) else {
            running.stop();
            anyhow::bail!("no request came");
        };
        walls.push(arrived - running.began);
        let used = running.wait()?;
        ensure!(used.status.success(), "gaffer ended with {}", used.status);
        cpus.push(used.cpu);
        peaks.push(used.peak);
    }
    let (wall, middle_wall) = least_and_middle(&walls);
    let (cpu, middle_cpu) = least_and_middle(&cpus);
    let (peak, middle_peak) = least_and_middle(&peaks);
    let most = peaks.iter().max().copied().context("no run")?;

    let mut report = Report::default();
    let runs = format!("of {RUNS} runs");
    report.row([&runs, "least", "median"]);
    report.row(["exec to first request", &ms(wall), &ms(middle_wall)]);
    report.row(["CPU, to the end of the run", &ms(cpu), &ms(middle_cpu)]);
    report.row(["peak resident memory", &mib(peak), &mib(middle_peak)]);
    report.time_goal(
        "the first request within 15 ms (median)",
        middle_wall < MOST_WALL,
    );
    report.goal("under 20 MiB in every run", most < MOST_MEMORY);
    Ok(report)
}
