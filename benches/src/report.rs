//! What a bench says in the end: a table of figures, and whether its goals hold.

use crate::say;
use std::time::Duration;

/// Figures in rows, the first of which names the columns.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Vec<String>>,
    goals: Vec<Goal>,
}

#[derive(Debug)]
struct Goal {
    what: String,
    holds: bool,
    decides: bool,
}

impl Report {
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows.push(cells.map(str::to_owned).into());
    }

    /// A goal on something that can be counted: missing it fails the run.
    pub(crate) fn goal(&mut self, what: impl Into<String>, holds: bool) {
        let what = what.into();
        self.goals.push(Goal {
            what,
            holds,
            decides: true,
        });
    }

    /// A goal on time. It is said, but does not fail the run: the machine may have been busy.
    pub(crate) fn time_goal(&mut self, what: impl Into<String>, holds: bool) {
        let what = what.into();
        self.goals.push(Goal {
            what,
            holds,
            decides: false,
        });
    }

    pub(crate) fn holds(&self) -> bool {
        self.goals.iter().all(|goal| goal.holds || !goal.decides)
    }

    pub(crate) fn print(&self) {
        for line in self.lines() {
            say::out(&format!("  {line}"));
        }
    }

    fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let cell = |(column, text): (usize, &String)| {
            let width = widths[column];
            // Names to the left, figures to the right.
            if column == 0 {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        };
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
            cells.join("  ").trim_end().to_owned()
        };
        let goal = |goal: &Goal| {
            let verdict = if goal.holds { "holds" } else { "MISSED" };
            format!("goal: {} {verdict}", goal.what)
        };
        let goals = self.goals.iter().map(goal);
        self.rows.iter().map(line).chain(goals).collect()
    }
}

pub(crate) fn ms(span: Duration) -> String {
    format!("{:.3} ms", span.as_secs_f64() * 1e3)
}

pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub(crate) fn ratio(of: f64, to: f64) -> String {
    format!("{:.3}", of / to)
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// The smallest and the middle one. An even number of values has two middle ones: the later.
pub(crate) fn least_and_middle<T: Ord + Copy + Default>(values: &[T]) -> (T, T) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
    (at(0), at(sorted.len() / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let mut report = Report::default();
        report.row(["", "least"]);
        report.row(["wall", "12.000 ms"]);
        report.goal("under 1", true);
        report.time_goal("under 2", false);
        let want = [
            "          least",
            "wall  12.000 ms",
            "goal: under 1 holds",
            "goal: under 2 MISSED",
        ];
        assert_eq!(report.lines(), want);
        assert!(report.holds(), "time alone does not decide");
        report.goal("under 3", false);
        assert!(!report.holds());
    }

    #[test]
    fn figures_are_written_for_reading() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(ms(Duration::from_micros(1500)), "1.500 ms");
        assert_eq!(mib(3 << 19), "1.5 MiB");
        assert_eq!(least_and_middle(&[3, 1, 2]), (1, 2));
        assert_eq!(least_and_middle::<u8>(&[]), (0, 0));
    }
}
