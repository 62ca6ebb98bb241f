//! A long run keeps its memory: workers with large outputs end one after another, and what they
//! leave does not grow with them.

use crate::harness::Place;
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

/// Of what is read, of what a command prints and of a result.
const BYTES: usize = 100_000;
const PLACES: usize = 8;
const FEW: usize = 16;
const MANY: usize = 80;
/// What one that has ended may leave, with what its coordinator has heard of it: 32 to 45 KB. With
/// nothing but its result kept it would be 100 KB more.
const MOST_LEFT: u64 = 90_000;

fn script(workers: usize) -> String {
    let call = |n: usize| {
        let name = format!("w{n}");
        json!({"tool": "Agent", "input": {"description": "Look", "name": name, "prompt": "go"}})
    };
    let calls: Vec<Value> = (0..workers).map(call).collect();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": calls},
            {"say": "Waiting."},
            {"when": {"notifications": workers}, "say": "All heard."},
        ]},
        {"steps": [
            {"calls": [
                {"tool": "Read", "input": {"file_path": "big.txt"}},
                {"tool": "Bash", "input": {"command": "cat big.txt"}},
            ]},
            {"say": "A long result. ".repeat(BYTES / 15)},
        ]},
    ]});
    script.to_string()
}

/// What the process had at most, in bytes.
fn peak(workers: usize) -> u64 {
    let place = Place::new();
    let line = "a line of a file that is worth nothing but its length\n";
    place.write("project/big.txt", &line.repeat(BYTES / line.len()));
    let server = Server::start(&script(workers));
    let places = PLACES.to_string();
    let args = [
        "-p",
        "go",
        "--mode",
        "coordinator",
        "--max-workers",
        &places,
    ];
    let mut command = place.on_wire(WireKind::Anthropic, &server, &args);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let code = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0) * 1024);
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(code, Some(0), "{:?}", server.violations());
    // All have read, and all have ended: else there was nothing to keep.
    let files = place.transcripts();
    assert_eq!(files.len(), workers + 1);
    let sizes = files.iter().map(|path| path.metadata().unwrap().len());
    assert!(sizes.sum::<u64>() > workers as u64 * 2 * BYTES as u64);
    peak
}

#[test]
fn a_long_run_keeps_its_memory() {
    let (few, many) = (peak(FEW), peak(MANY));
    let left = many.saturating_sub(few) / (MANY - FEW) as u64;
    assert!(
        left < MOST_LEFT,
        "{FEW} workers: {few} bytes, {MANY} workers: {many} bytes, {left} for each"
    );
}
