//! `crew`: a coordinator of the real binary starts many workers at once, each with five reads,
//! against a model that takes 100 ms for every answer.

use crate::crowd::{Plan, Process, Seen};
use crate::process::Used;
use crate::report::{Report, mib, ms, ratio};
use crate::{events, gaffer, process};
use anyhow::{Context, ensure};
use std::path::Path;
use std::time::Duration;

const READS: u64 = 5;
const DELAY: Duration = Duration::from_millis(100);
const RUNS: usize = 3;
/// Five reads and the answer of a worker; the coordinator's start, and its turn when the last
/// worker has ended. Its word in between runs beside the workers.
const TURNS_IN_A_ROW: u32 = READS as u32 + 1 + 2;
const MOST: f64 = 1.25;
const MOST_CPU: Duration = Duration::from_micros(300);

/// The best of several runs.
#[derive(Debug)]
struct Row {
    workers: u64,
    wall: Duration,
    cpu: Duration,
    /// The most of all runs.
    peak: u64,
    /// The least of all runs.
    in_flight: u64,
    coordinator: u64,
    connections: u64,
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let ideal = DELAY * TURNS_IN_A_ROW;
    let rows = [
        best(&binary, 10, RUNS)?,
        best(&binary, 100, RUNS)?,
        best(&binary, 1000, 1)?,
    ];
    let of = |show: &dyn Fn(&Row) -> String| rows.each_ref().map(show);
    let mut report = Report::default();
    let mut add = |name: &str, [ten, hundred, thousand]: [String; 3]| {
        report.row([name, &ten, &hundred, &thousand]);
    };
    add(
        &format!("workers; best of {RUNS} runs, of one for 1000"),
        of(&|row| row.workers.to_string()),
    );
    add("wall, start and end included", of(&|row| ms(row.wall)));
    add("ideal: 8 turns of 100 ms in a row", of(&|_| ms(ideal)));
    add(
        "ratio",
        of(&|row| ratio(row.wall.as_secs_f64(), ideal.as_secs_f64())),
    );
    add("CPU of gaffer", of(&|row| ms(row.cpu)));
    add("CPU of a worker's turn", of(&|row| ms(row.cpu_a_turn())));
    add("peak resident memory (most)", of(&|row| mib(row.peak)));
    add(
        "workers' requests in flight at once (least)",
        of(&|row| row.in_flight.to_string()),
    );
    add(
        "turns of the coordinator",
        of(&|row| row.coordinator.to_string()),
    );
    add("connections", of(&|row| row.connections.to_string()));
    let [ten, hundred, thousand] = &rows;
    report.goal(
        "all in flight at once, 10 and 100",
        ten.in_flight == 10 && hundred.in_flight == 100,
    );
    let holds = |row: &Row| row.wall.as_secs_f64() <= MOST * ideal.as_secs_f64();
    report.time_goal("100: at most 1.25 times the ideal", holds(hundred));
    report.time_goal("10: within 0.85 s", ten.wall <= Duration::from_millis(850));
    report.time_goal(
        "100: 0.3 ms of CPU a worker's turn",
        hundred.cpu_a_turn() <= MOST_CPU,
    );
    report.time_goal("1000: within 2 s", thousand.wall <= Duration::from_secs(2));
    report.time_goal("1000: within 150 MiB", thousand.peak <= 150 << 20);
    Ok(report)
}

impl Row {
    /// All that gaffer did, divided by the workers' turns: start, end and coordinator included.
    fn cpu_a_turn(&self) -> Duration {
        let turns = self.workers * (READS + 1);
        self.cpu / u32::try_from(turns).unwrap_or(u32::MAX)
    }
}

fn best(binary: &Path, workers: u64, runs: usize) -> anyhow::Result<Row> {
    let plan = Plan {
        workers,
        rounds: 1,
        reads: READS,
        coordinator_delay: DELAY.as_millis() as u64,
        worker_delay: DELAY.as_millis() as u64,
        ..Plan::default()
    };
    let mut all = Vec::new();
    for _ in 0..runs {
        all.push(once(binary, plan, workers)?);
    }
    let (used, seen) = all
        .iter()
        .min_by_key(|(used, _)| used.wall)
        .context("no run")?;
    Ok(Row {
        workers,
        wall: used.wall,
        cpu: used.cpu,
        peak: all.iter().map(|(used, _)| used.peak).max().unwrap_or(0),
        in_flight: all
            .iter()
            .map(|(_, seen)| seen.most_in_flight)
            .min()
            .unwrap_or(0),
        coordinator: seen.coordinator,
        connections: seen.connections,
    })
}

/// One session of a crew against a server of its own. A run in which a worker had fewer turns
/// than it should would look quick, so it ends the bench.
pub(crate) fn once(binary: &Path, plan: Plan, places: u64) -> anyhow::Result<(Used, Seen)> {
    let server = Process::start(plan)?;
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(events::FILE), events::file())?;
    let mut gaffer = gaffer::crew(binary, home.path(), server.address, places);
    let used = process::start(&mut gaffer)?.wait()?;
    let seen = server.finish()?;
    ensure!(used.status.success(), "gaffer ended with {}", used.status);
    let workers = plan.workers * plan.rounds;
    let asked = workers * (plan.reads + 1);
    ensure!(
        (seen.finished, seen.workers) == (workers, asked),
        "the server saw {seen:?}"
    );
    Ok((used, seen))
}
