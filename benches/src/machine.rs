//! What else the machine did while a bench ran. Where little was idle, or a virtual machine's host
//! took much away, times say little.

use std::fmt;

/// Ticks of all processors since the machine's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

/// Shares of the processors' time, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Meanwhile {
    idle: f64,
    stolen: f64,
}

/// `None` where the system does not tell.
pub(crate) fn ticks() -> Option<Ticks> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

pub(crate) fn since(before: Ticks) -> Option<Meanwhile> {
    Some(between(before, ticks()?))
}

fn between(before: Ticks, now: Ticks) -> Meanwhile {
    let all = now.all.saturating_sub(before.all).max(1);
    let share = |ticks: u64| 100.0 * ticks as f64 / all as f64;
    Meanwhile {
        idle: share(now.idle.saturating_sub(before.idle)),
        stolen: share(now.stolen.saturating_sub(before.stolen)),
    }
}

impl fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { idle, stolen } = self;
        write!(
            f,
            "the machine was {idle:.0} % idle; its host took {stolen:.0} %"
        )
    }
}

fn parse(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
    // user nice system idle iowait irq softirq steal; guests behind it are part of user.
    let first = ticks.get(..8)?;
    Some(Ticks {
        all: first.iter().sum(),
        idle: first[3],
        stolen: first[7],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_all_ticks() {
        let before = parse("cpu  10 0 10 70 0 0 5 5 3 0\ncpu0 1 1\n").unwrap();
        assert_eq!((before.all, before.idle, before.stolen), (100, 70, 5));
        let now = parse("cpu  20 0 20 130 0 0 5 25 3 0\n").unwrap();
        let said = between(before, now).to_string();
        assert_eq!(said, "the machine was 60 % idle; its host took 20 %");
        assert_eq!(parse("cpu 1 2\n"), None);
    }
}
