//! What a bench says in the end: a table of figures, and whether its goals hold.

use crate::growth::Growth;
use crate::say;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Figures in rows, the first of which names the columns.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Vec<String>>,
    goals: Vec<Goal>,
    growths: Vec<Growth>,
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

    /// A row of as many cells as there are.
    pub(crate) fn cells(&mut self, name: &str, cells: &[String]) {
        let name = std::iter::once(name.to_owned());
        self.rows.push(name.chain(cells.iter().cloned()).collect());
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

    /// How something grows: a picture, and an exponent beside the figures.
    pub(crate) fn growth(&mut self, growth: Growth) {
        self.growths.push(growth);
    }

    pub(crate) fn growths(&self) -> &[Growth] {
        &self.growths
    }

    /// All of it for other programs: figures as numbers with their units, and rows and goals as
    /// they are shown.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        let mut heads: &[String] = &[];
        for (place, row) in self.rows.iter().enumerate() {
            let Some((what, cells)) = row.split_first() else {
                continue;
            };
            let what = what.trim();
            if place > 0 && cells.is_empty() {
                rows.push(json!({"what": what, "measured": ""}));
                continue;
            }
            if place == 0 || cells.iter().all(|cell| figure(cell).is_none()) {
                heads = cells;
                continue;
            }
            let mut shown = Vec::new();
            for (column, cell) in cells.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
                let head = heads.get(column).map_or("", String::as_str);
                shown.push(format!("{head} {cell}").trim().to_owned());
                if let Some((value, unit)) = figure(cell) {
                    let name = [what, head].join(", ");
                    let name = name.trim_matches([',', ' ']);
                    figures.push(json!({"name": name, "value": value, "unit": unit}));
                }
            }
            rows.push(json!({"what": what, "measured": shown.join(", ")}));
        }
        for (name, exponent) in self.exponents() {
            let measured = format!("exponent {exponent:.2}");
            rows.push(json!({"what": name, "measured": measured}));
        }
        let exponent = |(name, value): (String, f64)| json!({"name": name, "value": value});
        let goal =
            |goal: &Goal| json!({"goal": goal.what, "held": goal.holds, "decides": goal.decides});
        let parts = [
            ("figures", figures.into()),
            ("exponents", self.exponents().map(exponent).collect()),
            ("goals", self.goals.iter().map(goal).collect()),
            ("rows", Value::Array(rows)),
        ];
        parts
            .map(|(name, part)| (name.to_owned(), part))
            .into_iter()
            .collect()
    }

    fn exponents(&self) -> impl Iterator<Item = (String, f64)> {
        self.growths.iter().flat_map(|growth| {
            growth.series.iter().filter_map(|series| {
                let name = format!("{}: {}", growth.title, series.name);
                Some((name, series.fit()?.exponent))
            })
        })
    }

    pub(crate) fn holds(&self) -> bool {
        self.goals.iter().all(|goal| goal.holds || !goal.decides)
    }

    pub(crate) fn print(&self) {
        for line in self.lines() {
            say::out(&format!("  {line}"));
        }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.lines().join("\n")
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
        let grows = |(name, exponent)| format!("{name} grows with the power {exponent:.2}");
        let rows = self.rows.iter().map(line);
        rows.chain(self.exponents().map(grows))
            .chain(goals)
            .collect()
    }
}

/// The number of a cell, and its unit.
fn figure(cell: &str) -> Option<(f64, &str)> {
    let end = cell
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | ' ')))
        .unwrap_or(cell.len());
    let (number, unit) = cell.split_at(end);
    let number: String = number.chars().filter(|c| *c != ' ').collect();
    Some((number.parse().ok()?, unit))
}

pub(crate) fn ms(span: Duration) -> String {
    format!("{:.3} ms", span.as_secs_f64() * 1e3)
}

pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub(crate) fn kib(bytes: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
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
    fn cells_are_numbers_with_units() {
        assert_eq!(figure("12.500 ms"), Some((12.5, "ms")));
        assert_eq!(figure("1 234 567"), Some((1_234_567.0, "")));
        assert_eq!(figure("0.997"), Some((0.997, "")));
        assert_eq!(figure("turns 1-100"), None);
        assert_eq!(figure(""), None);
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
