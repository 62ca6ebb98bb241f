//! `crew`: a coordinator of the real binary starts many workers at once, each with five reads,
//! against a model that takes 100 ms for every answer.

use crate::crowd::{Plan, Process, Seen};
use crate::growth::{Growth, Series};
use crate::process::Used;
use crate::report::{Report, kib, mib, ms, ratio};
use crate::{events, gaffer, options, process};
use anyhow::{Context, ensure};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const READS: u64 = 5;
const DELAY: Duration = Duration::from_millis(100);
const RUNS: usize = 3;
/// Workers, and how often they are run.
const SIZES: [(u64, usize); 4] = [(10, RUNS), (100, RUNS), (1000, 1), (10_000, 1)];
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
    /// Kept until all have run: on a file system without a journal ext4 passes over what was
    /// deleted in the last minutes, one by one, whenever a file is made.
    _homes: Vec<TempDir>,
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let ideal = DELAY * TURNS_IN_A_ROW;
    let mut rows = Vec::new();
    for (workers, runs) in sizes()? {
        rows.push(best(&binary, workers, runs)?);
    }
    let mut report = Report::default();
    let mut add = |name: &str, show: &dyn Fn(&Row) -> String| {
        let cells: Vec<String> = rows.iter().map(show).collect();
        report.cells(name, &cells);
    };
    add(
        &format!("workers; best of {RUNS} runs, of one from 1000 on"),
        &|row| format!("{} workers", row.workers),
    );
    add("wall, start and end included", &|row| ms(row.wall));
    add("ideal: 8 turns of 100 ms in a row", &|_| ms(ideal));
    add("wall by the ideal", &|row| {
        ratio(row.wall.as_secs_f64(), ideal.as_secs_f64())
    });
    add("CPU of gaffer", &|row| ms(row.cpu));
    add("CPU of a worker's turn", &|row| ms(row.cpu_a_turn()));
    add("peak resident memory (most)", &|row| mib(row.peak));
    let least = rows.first().map_or(0, |row| row.peak);
    add("memory for each worker beyond the first ten", &|row| {
        let more = row.workers.saturating_sub(10);
        let each = row.peak.saturating_sub(least).checked_div(more);
        each.map_or_else(String::new, kib)
    });
    add("workers' requests in flight at once (least)", &|row| {
        row.in_flight.to_string()
    });
    add("turns of the coordinator", &|row| {
        row.coordinator.to_string()
    });
    add("connections", &|row| row.connections.to_string());
    for row in &rows {
        add_goals(&mut report, row, ideal);
    }
    add_growths(&mut report, &rows);
    Ok(report)
}

/// All of them, or the one that was asked for.
fn sizes() -> anyhow::Result<Vec<(u64, usize)>> {
    if let Some(text) = options::value("--workers") {
        let workers = text.parse().context("--workers takes a number")?;
        return Ok(vec![(workers, 1)]);
    }
    let count = if options::is_try() { 1 } else { SIZES.len() };
    Ok(SIZES[..count].to_vec())
}

fn add_goals(report: &mut Report, row: &Row, ideal: Duration) {
    let all = row.in_flight == row.workers;
    match row.workers {
        10 => {
            report.goal("10: all in flight at once", all);
            report.time_goal("10: within 0.85 s", row.wall <= Duration::from_millis(850));
        }
        100 => {
            report.goal("100: all in flight at once", all);
            let most = MOST * ideal.as_secs_f64();
            let holds = row.wall.as_secs_f64() <= most;
            report.time_goal("100: at most 1.25 times the ideal", holds);
            let holds = row.cpu_a_turn() <= MOST_CPU;
            report.time_goal("100: 0.3 ms of CPU a worker's turn", holds);
        }
        1000 => {
            report.time_goal("1000: within 2 s", row.wall <= Duration::from_secs(2));
            let holds = row.cpu_a_turn() <= MOST_CPU;
            report.time_goal("1000: 0.3 ms of CPU a worker's turn", holds);
            report.goal("1000: within 150 MiB", row.peak <= 150 << 20);
        }
        10_000 => report.goal("10,000: all finish, under 1 GiB", row.peak < 1 << 30),
        _ => {}
    }
}

fn add_growths(report: &mut Report, rows: &[Row]) {
    let mut add = |name: &str, title: &str, up: &str, get: &dyn Fn(&Row) -> f64| {
        let points = rows.iter().map(|row| (row.workers as f64, get(row)));
        report.growth(Growth::new(
            name,
            [title, "workers at once", up],
            vec![Series::new("gaffer", points)],
        ));
    };
    add("wall", "Wall of a fan-out", "seconds", &|row| {
        row.wall.as_secs_f64()
    });
    add("cpu", "CPU of a worker's turn in a fan-out", "ms", &|row| {
        row.cpu_a_turn().as_secs_f64() * 1e3
    });
    add(
        "memory",
        "Peak resident memory of a fan-out",
        "MiB",
        &|row| row.peak as f64 / f64::from(1 << 20),
    );
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
    let best = all.iter().min_by_key(|ran| ran.used.wall);
    let Ran { used, seen, .. } = best.context("no run")?;
    let in_flight = all.iter().map(|ran| ran.seen.most_in_flight);
    Ok(Row {
        workers,
        wall: used.wall,
        cpu: used.cpu,
        peak: all.iter().map(|ran| ran.used.peak).max().unwrap_or(0),
        in_flight: in_flight.min().unwrap_or(0),
        coordinator: seen.coordinator,
        connections: seen.connections,
        _homes: all.into_iter().map(|ran| ran.home).collect(),
    })
}

/// A session that came to its end, and where.
pub(crate) struct Ran {
    pub(crate) used: Used,
    pub(crate) seen: Seen,
    home: TempDir,
}

/// One session of a crew against a server of its own. A run in which a worker had fewer turns
/// than it should would look quick, so it ends the bench.
pub(crate) fn once(binary: &Path, plan: Plan, places: u64) -> anyhow::Result<Ran> {
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
    Ok(Ran { used, seen, home })
}
