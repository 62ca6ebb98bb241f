//! Which machine it is, and what else it did while a bench ran. Where little was idle, or a virtual machine's host
//! took much away, times say little.

use serde_json::{Value, json};
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

/// What figures depend on.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory: String,
    pub(crate) kernel: String,
}

impl Machine {
    /// This one. What the system does not tell is empty.
    pub(crate) fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let kilobytes = after(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse::<f64>().ok());
        Self {
            cpu: after(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: kilobytes.map_or_else(String::new, |kib| {
                format!("{:.1} GiB", kib / f64::from(1 << 20))
            }),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Self {
            cpu,
            cores,
            memory,
            kernel,
        } = self;
        json!({"cpu": cpu, "cores": cores, "memory": memory, "kernel": kernel})
    }
}

/// What stands behind a name and a colon.
fn after(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
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

impl Meanwhile {
    pub(crate) fn json(self) -> Value {
        json!({"idle_percent": self.idle.round(), "stolen_percent": self.stolen.round()})
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
    fn the_machine_is_known_by_what_the_system_tells() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(
            after(text, "model name").as_deref(),
            Some("Some CPU @ 2 GHz")
        );
        let this = Machine::this();
        assert!(this.cores > 0 && this.memory.ends_with("GiB"), "{this:?}");
    }

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
