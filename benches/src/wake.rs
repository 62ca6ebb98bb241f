//! `wake`: from the last byte of a worker's last answer to the coordinator's next request.

use crate::crowd::Plan;
use crate::report::{Report, least_and_middle, ms};
use crate::{crew, gaffer};
use anyhow::ensure;
use std::time::Duration;

const ROUNDS: u64 = 60;
const MOST: Duration = Duration::from_millis(5);

/// One worker after another, so that nothing else is going on when one ends. Both ends of the span
/// are seen by the server: its process has one clock.
pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let plan = Plan {
        workers: 1,
        rounds: ROUNDS,
        reads: 0,
        coordinator_delay: 0,
        // The coordinator has had its word by then and waits for mail.
        worker_delay: 30,
        ..Plan::default()
    };
    let seen = crew::once(&binary, plan, 1)?.seen;
    ensure!(
        seen.wakes.len() as u64 == ROUNDS,
        "the coordinator was woken {} times",
        seen.wakes.len()
    );
    let (least, middle) = least_and_middle(&seen.wakes);
    let most = seen.wakes.iter().max().copied().unwrap_or_default();
    let mut report = Report::default();
    report.row([&format!("of {ROUNDS} workers"), "least", "median", "most"]);
    report.row([
        "a worker's last byte to the coordinator's request",
        &ms(least),
        &ms(middle),
        &ms(most),
    ]);
    report.time_goal("under 5 ms (median)", middle < MOST);
    Ok(report)
}
