//! `finished`: what a worker that has ended leaves in memory.

use crate::crowd::Plan;
use crate::report::{Report, least_and_middle, mib};
use crate::{crew, gaffer};
use std::path::Path;

const WORKERS: u64 = 100;
const FEW: u64 = 1;
const MANY: u64 = 11;
const RUNS: usize = 3;
const MOST: u64 = 20_000;

/// A hundred run at a time, once or eleven times over: what runs is the same at the peak of both,
/// and what differs was left behind by a thousand workers.
pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        few.push(peak(&binary, FEW)?);
        many.push(peak(&binary, MANY)?);
    }
    let (_, few) = least_and_middle(&few);
    let (_, many) = least_and_middle(&many);
    let left = many.saturating_sub(few) / (WORKERS * (MANY - FEW));
    let mut report = Report::default();
    report.row([
        &format!("median of {RUNS} runs"),
        "100 workers",
        "1100 workers",
    ]);
    report.row(["peak resident memory", &mib(few), &mib(many)]);
    report.row(["a finished worker leaves", "", &format!("{left} bytes")]);
    report.goal("under 20 KB a finished worker", left < MOST);
    Ok(report)
}

fn peak(binary: &Path, rounds: u64) -> anyhow::Result<u64> {
    let plan = Plan {
        workers: WORKERS,
        rounds,
        reads: 2,
        coordinator_delay: 0,
        worker_delay: 20,
        ..Plan::default()
    };
    Ok(crew::once(binary, plan, WORKERS)?.used.peak)
}
