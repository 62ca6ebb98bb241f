//! `cache`: what the input of ten workers costs with a provider that caches what is marked, and
//! what a worker's fixed prefix is made of.

use crate::crowd::{Crowd, Kept, Plan};
use crate::growth::{Growth, Series};
use crate::report::{Report, count};
use crate::{content, events, gaffer, process};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Instant;

pub(crate) const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
const PLAN: Plan = Plan {
    workers: 10,
    rounds: 1,
    reads: 5,
    coordinator_delay: 100,
    worker_delay: 100,
    live: 0,
    big: 0,
};
/// What a token is taken to be, in bytes of a request.
const TOKEN: f64 = 4.0;
const READ: f64 = 0.1;
const WRITE: f64 = 1.25;
const MOST_COST: f64 = 30_000.0;
const LEAST_RATIO: f64 = 0.95;
const MOST_PREFIX: usize = 12_000;

/// From when on what a request has marked can be read by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readable {
    OnArrival,
    /// When its answer begins. Requests that are sent together then each write what they share.
    OnAnswer,
}

/// Input in bytes, by what is paid for it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Input {
    read: usize,
    written: usize,
    plain: usize,
}

impl Input {
    fn cost(self) -> f64 {
        let Self {
            read,
            written,
            plain,
        } = self;
        (read as f64 * READ + written as f64 * WRITE + plain as f64) / TOKEN
    }

    fn hit_ratio(self) -> f64 {
        self.read as f64 / (self.read + self.written + self.plain).max(1) as f64
    }
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let kept = requests(PLAN, &events::file())?;
    let small = requests(PLAN, "one line\n")?;
    let mut report = Report::default();
    let (sent, of_workers) = add_costs(&mut report, "bytes sent", &kept, &small);
    let [seen, small] = [contents(&kept)?, contents(&small)?];
    add_costs(&mut report, "as a provider counts", &seen, &small);

    for (whose, is_coordinator) in [("the coordinator", true), ("a worker", false)] {
        let whose = format!("the last request of {whose}");
        let own = kept.iter().filter(|it| it.is_coordinator == is_coordinator);
        let last = own.max_by_key(|it| it.body.len());
        let last = last.context("somebody asked nothing")?;
        content::report(&mut report, &whose, &last.body)?;
    }

    let first = kept.iter().find(|it| !it.is_coordinator);
    let first = first.context("no worker asked anything")?;
    let parts = prefix(&first.body)?;
    let size: usize = parts.iter().map(|(_, bytes)| bytes).sum();
    report.row(["a worker's fixed prefix", "bytes"]);
    for (name, bytes) in &parts {
        report.row([name, &count(*bytes as u64)]);
    }
    report.row(["all", &count(size as u64)]);
    add_growths(&mut report)?;
    report.goal("input cost at most 30 000", sent.cost() <= MOST_COST);
    // What a coordinator is told it is told once: with its few requests in the sum no prefix of
    // this length comes to the ratio, and a longer one would cost more.
    let ratio = of_workers.hit_ratio();
    report.goal(
        "hit ratio of the workers at least 0.95",
        ratio >= LEAST_RATIO,
    );
    report.goal("prefix at most 12 KB", size <= MOST_PREFIX);
    Ok(report)
}

/// What a session costs with more workers, and with longer ones.
fn add_growths(report: &mut Report) -> anyhow::Result<()> {
    let cost_of = |workers: u64, reads: u64| -> anyhow::Result<f64> {
        let plan = Plan {
            workers,
            reads,
            ..PLAN
        };
        let kept = requests(plan, &events::file())?;
        Ok(cost(&kept, Readable::OnArrival).cost())
    };
    let mut by_workers = Vec::new();
    for workers in [1, 3, 10, 30, 100] {
        by_workers.push((workers as f64, cost_of(workers, PLAN.reads)?));
    }
    let mut by_turns = Vec::new();
    for reads in [5, 15, 45, 135] {
        by_turns.push((reads as f64, cost_of(1, reads)?));
    }
    report.growth(Growth::new(
        "workers",
        ["Input cost by workers, six turns each", "workers", "tokens"],
        vec![Series::new("all requests", by_workers)],
    ));
    report.growth(Growth::new(
        "turns",
        ["Input cost of one worker by its turns", "turns", "tokens"],
        vec![Series::new("all requests", by_turns)],
    ));
    Ok(())
}

/// Adds what all requests cost, and answers what they cost where an entry can be read at once: all
/// of them, and those of the workers.
fn add_costs(report: &mut Report, how: &str, kept: &[Kept], small: &[Kept]) -> (Input, Input) {
    let workers: Vec<Kept> = kept
        .iter()
        .filter(|it| !it.is_coordinator)
        .cloned()
        .collect();
    let now = cost(kept, Readable::OnArrival);
    let all = [
        now,
        cost(kept, Readable::OnAnswer),
        cost(&workers, Readable::OnArrival),
        cost(small, Readable::OnArrival),
    ];
    report.row([
        how,
        "read on arrival",
        "when answered",
        "workers alone",
        "a file of one line",
    ]);
    let mut add = |name: &str, show: &dyn Fn(Input) -> String| {
        let [now, late, alone, small] = all.map(show);
        report.row([name, &now, &late, &alone, &small]);
    };
    let tokens = |bytes: usize| count((bytes as f64 / TOKEN) as u64);
    add("  tokens read from the cache", &|it| tokens(it.read));
    add("  tokens written to it", &|it| tokens(it.written));
    add("  other tokens", &|it| tokens(it.plain));
    add("  input cost in tokens", &|it| count(it.cost() as u64));
    add("  hit ratio", &|it| format!("{:.3}", it.hit_ratio()));
    (now, all[2])
}

/// The same requests with nothing in them but what a provider counts.
fn contents(requests: &[Kept]) -> anyhow::Result<Vec<Kept>> {
    let content = |it: &Kept| {
        Ok(Kept {
            body: content::of(&it.body)?,
            ..it.clone()
        })
    };
    requests.iter().map(content).collect()
}

/// What a crew of the real binary sends. The server runs on a thread here and keeps it all.
fn requests(plan: Plan, file: &str) -> anyhow::Result<Vec<Kept>> {
    let binary = gaffer::binary()?;
    let (crowd, address) = Crowd::listen(plan, true)?;
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(events::FILE), file)?;
    let mut gaffer = gaffer::crew(&binary, home.path(), address, plan.workers);
    let used = process::start(&mut gaffer)?.wait()?;
    ensure!(used.status.success(), "gaffer ended with {}", used.status);
    let seen = crowd.seen();
    let asked = plan.workers * (plan.reads + 1);
    ensure!(seen.workers == asked, "the server saw {seen:?}");
    Ok(crowd.take_kept())
}

/// What a provider would charge for these requests, all of one account and model.
fn cost(requests: &[Kept], readable: Readable) -> Input {
    let mut cache: HashMap<String, Instant> = HashMap::new();
    let mut sum = Input::default();
    for request in requests {
        let text = String::from_utf8_lossy(&request.body);
        let pieces: Vec<&str> = text.split(MARK).collect();
        let mut before = String::new();
        let mut marked = Vec::new();
        for piece in &pieces[..pieces.len() - 1] {
            before.push_str(piece);
            marked.push(before.clone());
        }
        let is_there = |it: &&String| cache.get(*it).is_some_and(|from| *from <= request.arrived);
        let read = marked.iter().rfind(is_there).map_or(0, String::len);
        sum.read += read;
        sum.written += before.len() - read;
        sum.plain += pieces.last().map_or(0, |rest| rest.len());
        let from = match readable {
            Readable::OnArrival => request.arrived,
            Readable::OnAnswer => request.answered.unwrap_or(request.arrived),
        };
        for entry in marked {
            let known = cache.entry(entry).or_insert(from);
            *known = from.min(*known);
        }
    }
    sum
}

/// The parts of what stands before a conversation, by size. Tools are counted as they are sent.
fn prefix(body: &[u8]) -> anyhow::Result<Vec<(String, usize)>> {
    let body: Value = serde_json::from_slice(body).context("a request is not JSON")?;
    let mut parts = vec![("  system".to_owned(), body["system"].to_string().len())];
    for tool in body["tools"].as_array().into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or("?");
        parts.push((format!("  {name}"), tool.to_string().len()));
    }
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_marked_is_read_once_it_is_there() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let request = |body: &str, arrived: u64| Kept {
            is_coordinator: false,
            body: body.replace('|', MARK).into_bytes(),
            arrived: at(arrived),
            answered: Some(at(arrived + 100)),
        };
        let requests = [
            request("prefix|one|.", 0),
            request("prefix|two|.", 1),
            request("prefix|one|more|.", 200),
        ];
        let want = |read, written| Input {
            read,
            written,
            plain: 3,
        };
        let arrival = cost(&requests, Readable::OnArrival);
        assert_eq!(arrival, want(6 + 9, 9 + 3 + 4));
        let answer = cost(&requests, Readable::OnAnswer);
        assert_eq!(answer, want(9, 9 + 9 + 4));
        assert!(answer.cost() > arrival.cost());
        assert!(answer.hit_ratio() < arrival.hit_ratio());
    }
}
