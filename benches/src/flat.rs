//! `flat`: whether a turn late in a conversation costs what an early one cost.

use crate::agent::{self, Way};
use crate::callgrind::instructions;
use crate::growth::{Growth, Series};
use crate::report::{Report, count, ratio};

/// Turns at which the account is taken: the first hundred is held against the fifth.
const MARKS: [usize; 4] = [0, 100, 400, 500];
/// Turns before the one that is looked at.
const LENGTHS: [usize; 5] = [20, 50, 100, 200, 500];
const MOST_RATIO: f64 = 1.10;

/// What the first hundred of turns and the last one cost.
#[derive(Debug, Clone, Copy)]
struct Hundreds {
    first: u64,
    last: u64,
}

impl Hundreds {
    fn of(at: [u64; 4]) -> Self {
        Self {
            first: at[1].saturating_sub(at[0]),
            last: at[3].saturating_sub(at[2]),
        }
    }

    fn ratio(self) -> f64 {
        self.last as f64 / self.first as f64
    }

    fn row(self, name: &str, report: &mut Report) {
        let (first, last) = (self.first as f64, self.last as f64);
        let shown = [count(self.first / 100), count(self.last / 100)];
        report.row([name, &shown[0], &shown[1], &ratio(last, first)]);
    }
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let rope = instructions_at_marks(Way::Rope)?;
    let naive = instructions_at_marks(Way::Naive)?;
    let [rope_calls, rope_bytes] = asked_at_marks(Way::Rope)?;
    let [_, naive_bytes] = asked_at_marks(Way::Naive)?;

    let mut report = Report::default();
    report.row(["a turn", "turns 1-100", "turns 401-500", "ratio"]);
    rope.row("instructions", &mut report);
    rope_calls.row("allocations", &mut report);
    rope_bytes.row("bytes allocated", &mut report);
    naive.row("instructions, serialised anew", &mut report);
    naive_bytes.row("bytes allocated, serialised anew", &mut report);
    report.goal(
        "instructions a turn grow by 10 % at most",
        rope.ratio() <= MOST_RATIO,
    );
    report.goal(
        "allocations a turn grow by 10 % at most",
        rope_calls.ratio() <= MOST_RATIO,
    );
    report.growth(Growth::new(
        "bytes",
        [
            "Bytes allocated for a turn, by the length of the conversation",
            "turns before it",
            "bytes",
        ],
        vec![
            Series::new("gaffer", bytes_by_length(Way::Rope)?),
            Series::new("serialised anew", bytes_by_length(Way::Naive)?),
        ],
    ));
    Ok(report)
}

/// What turns ask of the allocator, each the mean of ten.
fn bytes_by_length(way: Way) -> anyhow::Result<Vec<(f64, f64)>> {
    let asked = agent::run(way, MARKS[3])?.asked;
    let bytes = |turn: usize| asked.get(turn).map_or(0, |asked| asked.bytes);
    let point = |length: usize| {
        let ten = bytes(length).saturating_sub(bytes(length - 10));
        (length as f64, ten as f64 / 10.0)
    };
    Ok(LENGTHS.map(point).into())
}

fn instructions_at_marks(way: Way) -> anyhow::Result<Hundreds> {
    let mut at = [0; 4];
    for (count, turns) in at.iter_mut().zip(MARKS) {
        *count = instructions(&["__agent", way.as_str(), &turns.to_string()])?;
    }
    Ok(Hundreds::of(at))
}

/// Calls of the allocator, and bytes.
fn asked_at_marks(way: Way) -> anyhow::Result<[Hundreds; 2]> {
    let asked = agent::run(way, MARKS[3])?.asked;
    let calls = MARKS.map(|turn| asked.get(turn).map_or(0, |asked| asked.calls));
    let bytes = MARKS.map(|turn| asked.get(turn).map_or(0, |asked| asked.bytes));
    Ok([Hundreds::of(calls), Hundreds::of(bytes)])
}
