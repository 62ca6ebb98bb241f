//! What counts as done: the command that an order names decides, not the worker's word.

use crate::harness::{Place, Ran, run};
use serde_json::{Value, json};

/// A crew of one worker whose order names a command.
fn crew(place: &Place, done_when: &str, worker: &Value, expect: &str, more: &[&str]) -> Ran {
    let order = json!({
        "description": "Make it", "name": "w", "prompt": "go", "done_when": done_when,
    });
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [{"tool": "Agent", "input": order}]},
            {"when": {"notifications": 1}, "meanwhile": "Waiting.", "expect": [{"text": {"matches": expect}}], "say": "Heard."},
        ]},
        {"name": "w", "steps": worker},
    ]});
    let fixed = [
        "-p",
        "go",
        "--mode",
        "coordinator",
        "--sandbox",
        "off",
        "--permission-mode",
        "bypassPermissions",
        "--output-format",
        "stream-json",
    ];
    run(place.scripted(&script.to_string(), &[&fixed[..], more].concat()))
}

fn bash(command: &str) -> Value {
    json!({"calls": [{"tool": "Bash", "input": {"command": command}}]})
}

#[test]
fn a_worker_goes_on_until_the_command_succeeds() {
    let place = Place::new();
    let told = json!([{"text": {"matches": "(?s)test -e made.*exit code 1.*tries left: 3"}}]);
    let worker = json!([
        // What it sets up for itself proves nothing.
        bash("test() { return 0; }; export -f test; cd /; PATH=/nowhere"),
        {"say": "Done."},
        {"expect": told, "calls": [{"tool": "Write", "input": {"file_path": place.project().join("made"), "content": "x"}}]},
        {"say": "Now it is done."},
    ]);
    let done = "(?s)completed.*Now it is done";
    let ran = crew(&place, "test -e made", &worker, done, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.result()["crew"]["completed"], 1);
}

#[test]
fn what_is_never_proven_has_failed() {
    let place = Place::new();
    let worker = json!([{"say": "Done, I promise.", "repeat": 4}]);
    let failed =
        "(?s)<status>failed</status>.*not proven.*broken: 7.*Done, I promise.*<reason>not_proven";
    let command = "echo broken: 7; exit 3";
    let ran = crew(&place, command, &worker, failed, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.result()["crew"]["failed"], 1);
    assert_eq!(ran.result()["crew"]["ends"]["not_proven"], 1);
}

#[test]
fn a_command_that_the_user_denied_proves_nothing() {
    let place = Place::new();
    let worker = json!([{"say": "Done.", "repeat": 4}]);
    let rules = ["--disallowed-tools", "Bash(touch *)"];
    let ran = crew(&place, "touch made", &worker, "not_proven", &rules);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!place.project().join("made").exists());
}

#[test]
fn nothing_that_the_command_starts_outlives_it() {
    let place = Place::new();
    let worker = json!([{"say": "Done."}]);
    let command = "(setsid sleep 4321 &) ; true";
    let ran = crew(&place, command, &worker, "completed", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let left = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\x004321")
        });
    assert_eq!(left.count(), 0);
}
