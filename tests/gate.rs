//! Several processes of the real program with one key: they share a limited provider, and one that
//! is killed gives back what it held.

use crate::harness::{Place, wait};
use gaffer_testkit::{Limit, Server, WireKind};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process whose agents the server knows by a prefix.
fn process(place: &Place, server: &Server, prefix: &str, mode: &str, limit: u32) -> Command {
    let settings = json!({
        "providers": {"anthropic": {
            "headers": {"x-gaffer-agent": format!("{prefix}-${{agent}}")},
            "maxConcurrentRequests": limit,
        }},
        "retry": {"overload": "60s"},
    });
    let settings = place.write(&format!("{prefix}.json"), &settings.to_string());
    let settings = settings.display().to_string();
    let provider = WireKind::Anthropic.provider();
    let args = ["-p", "go", "--mode", mode, "--provider", provider];
    let more = ["--model", "scripted", "--output-format", "json"];
    let mut command = place.gaffer(&[&args[..], &more, &["--settings", &settings]].concat());
    command
        .env("ANTHROPIC_BASE_URL", server.base())
        .env("ANTHROPIC_API_KEY", "test-key")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// So many requests a second pass.
const RATE: f64 = 100.0;

/// How well they share is asserted exactly in simulated time, beside the gate. Here the margins are
/// wide: what else the machine does must not decide.
#[test]
fn three_processes_with_ten_workers_each_share_a_limited_provider() {
    let place = Place::new();
    let file = place.write("project/a.txt", "a\n").display().to_string();
    let agent = |n: u32| {
        let input = json!({"description": "Task", "name": format!("w{n}"), "prompt": "go"});
        json!({"tool": "Agent", "input": input})
    };
    let calls: Vec<Value> = (0..10).map(agent).collect();
    let main = |prefix: &str| {
        json!({"name": format!("{prefix}-main"), "steps": [
            {"calls": calls},
            {"say": "Waiting."},
            {"when": {"notifications": 10}, "say": "All done."},
        ]})
    };
    let read = json!({"tool": "Read", "input": {"file_path": file}});
    let worker =
        json!({"steps": [{"repeat": 30, "delay": "20ms", "calls": [read]}, {"say": "Done."}]});
    let script = json!({"agents": [main("a"), main("b"), main("c"), worker]});
    let server = Server::limited(&script.to_string(), Limit::new(RATE, 20.0, None));
    let start = |prefix| process(&place, &server, prefix, "coordinator", 1024).spawn();
    let children = ["a", "b", "c"].map(|prefix| start(prefix).unwrap());
    for child in children {
        let ran = wait(child);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(ran.result()["crew"]["completed"], 10, "{ran:#?}");
        assert!(!ran.err.contains("not shared"), "{}", ran.err);
    }
    let seen = server.passed();
    // From the end of the warm-up to where the first workers have nothing left to do.
    let first = seen[seen.len() / 2].0;
    let last = seen[seen.len() * 17 / 20].0;
    let window: Vec<_> = seen
        .iter()
        .filter(|(at, _)| (first..last).contains(at))
        .collect();
    let passed = window.iter().filter(|(_, passes)| *passes).count() as f64;
    let refused = 1.0 - passed / window.len() as f64;
    let used = passed / (last - first).as_secs_f64() / RATE;
    println!("refused {refused:.4}, used {used:.4} of the rate");
    assert!(refused < 0.3, "refused {refused}");
    assert!(used > 0.1, "used {used}");
    // Whoever is over the limit waits; nobody is turned away.
    let all = seen.iter().filter(|(_, passes)| *passes).count();
    assert!(all >= 3 * (10 * 31 + 2), "{all}");
}

#[test]
fn a_killed_process_gives_its_places_back() {
    let place = Place::new();
    let script = json!({"agents": [
        {"name": "a-main", "steps": [{"delay": "120s", "say": "Never."}]},
        {"name": "b-main", "steps": [{"say": "Through."}]},
    ]});
    let server = Server::start(&script.to_string());
    let start = |prefix| process(&place, &server, prefix, "normal", 1).spawn();
    let mut holder = start("a").unwrap();
    until("the first has the place", || server.asked().len() == 1);
    let waiter = start("b").unwrap();
    // Its transcript is made just before it asks.
    until("the second waits", || place.transcripts().len() == 2);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.asked().len(), 1, "the place is taken");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let killed = Instant::now();
    until("the second goes on", || server.asked().len() == 2);
    let took = killed.elapsed();
    let ran = wait(waiter);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.result()["result"], "Through.");
    println!("on after {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
