//! The system's limit of open files bounds how many work at once, and nothing else.

use crate::harness::{Place, Ran, run};
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};
use std::process::Command;

const WORKERS: usize = 40;

/// The same program, but with limits that a shell sets before it becomes the program.
#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is started here"
)]
fn limited(program: &Command, limits: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args())
        .env_clear()
        .current_dir(program.get_current_dir().unwrap());
    for (name, value) in program.get_envs() {
        shell.env(name, value.unwrap());
    }
    shell
}

/// Forty workers at once, each with a file and a command.
fn crew(limits: &str, command: &str, says: &str) -> Ran {
    let place = Place::new();
    place.write("project/a.txt", "something to read\n");
    let call = |n: usize| {
        let input = json!({"description": "Look", "name": format!("w{n}"), "prompt": "go"});
        json!({"tool": "Agent", "input": input})
    };
    let calls: Vec<Value> = (0..WORKERS).map(call).collect();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": calls},
            {"say": "Waiting."},
            {"when": {"notifications": WORKERS}, "say": "All heard."},
        ]},
        {"steps": [
            {"calls": [
                {"tool": "Read", "as": "file", "input": {"file_path": "a.txt"}},
                {"tool": "Bash", "as": "command", "input": {"command": command}},
            ]},
            {"expect": [
                {"of": "file", "error": false, "result": "something to read"},
                {"of": "command", "error": false, "result": says},
            ], "say": "Done."},
        ]},
    ]});
    let server = Server::start(&script.to_string());
    let args = ["-p", "go", "--mode", "coordinator", "--max-workers", "40"];
    let more = ["--output-format", "stream-json"];
    let program = place.on_wire(WireKind::Anthropic, &server, &[&args[..], &more].concat());
    let ran = run(limited(&program, limits));
    assert_eq!(server.violations(), Vec::<String>::new());
    ran
}

#[test]
fn a_crew_of_forty_finishes_with_64_open_files() {
    let ran = crew("ulimit -n 64", "cat a.txt", "something to read");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.result()["result"], "All heard.");
    assert_eq!(ran.result()["crew"]["completed"], WORKERS, "{}", ran.err);
    let said = "workers at once instead of 40, as the system allows 64 open files";
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn the_limit_is_raised_for_the_crew_and_not_for_its_commands() {
    let ran = crew("ulimit -Sn 64", "echo \"limit $(ulimit -Sn)\"", "limit 64");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.result()["crew"]["completed"], WORKERS, "{}", ran.err);
    assert!(!ran.err.contains("open files"), "{}", ran.err);
}
