//! `beside`: whether a worker's turn costs the same beside ten others and beside many. Instructions
//! of the real binary, counted; what its start and its workers' starts cost cancels out.

use crate::callgrind::instructions_of;
use crate::crowd::{Plan, Process};
use crate::growth::{Growth, Series};
use crate::report::{Report, count, ratio};
use crate::{events, gaffer, options};
use anyhow::ensure;
use std::path::Path;

/// Workers at once. The first are held against the last.
const SIZES: [u64; 3] = [10, 40, 160];
/// Turns of each worker, few and many: the difference is what is counted.
const FEW: u64 = 2;
const MANY: u64 = 12;
const MOST_RATIO: f64 = 1.10;

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let sizes = match options::is_try() {
        true => &SIZES[..1],
        false => &SIZES[..],
    };
    let mut turns = Vec::new();
    for workers in sizes {
        let few = counted(&binary, *workers, FEW)?;
        let many = counted(&binary, *workers, MANY)?;
        turns.push(many.saturating_sub(few) / (workers * (MANY - FEW)));
    }
    let mut report = Report::default();
    let named = |workers: &u64| format!("beside {workers}");
    report.cells(
        "a worker's turn",
        &sizes.iter().map(named).collect::<Vec<_>>(),
    );
    let shown = |turn: &u64| count(*turn);
    report.cells("instructions", &turns.iter().map(shown).collect::<Vec<_>>());
    if let (Some(first), Some(last)) = (turns.first(), turns.last()) {
        let (first, last) = (*first as f64, *last as f64);
        report.row(["the last by the first", &ratio(last, first)]);
        if sizes.len() == SIZES.len() {
            report.goal(
                "instructions of a turn grow by 10 % at most from 10 workers to 160",
                last <= first * MOST_RATIO,
            );
        }
    }
    let points = sizes.iter().zip(&turns);
    let points = points.map(|(workers, turn)| (*workers as f64, *turn as f64));
    report.growth(Growth::new(
        "turn",
        [
            "Work of a turn beside other workers",
            "workers at once",
            "instructions",
        ],
        vec![Series::new("a turn", points)],
    ));
    Ok(report)
}

fn counted(binary: &Path, workers: u64, reads: u64) -> anyhow::Result<u64> {
    let plan = Plan {
        workers,
        rounds: 1,
        reads,
        // Long enough for all to have asked before the first is answered, also where everything is
        // fifty times slower: the others are to be there.
        worker_delay: 20 * workers,
        ..Plan::default()
    };
    let server = Process::start(plan)?;
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(events::FILE), events::file())?;
    let gaffer = gaffer::crew(binary, home.path(), server.address, workers);
    let count = instructions_of(&gaffer)?;
    let seen = server.finish()?;
    let asked = (workers, workers * (reads + 1));
    ensure!(
        (seen.finished, seen.workers) == asked,
        "the server saw {seen:?}"
    );
    Ok(count)
}
