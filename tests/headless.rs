//! `gaffer -p`: what goes to standard output, what the exit code says, where the prompt comes from.

use crate::harness::{Place, run, wait};
use gaffer_protocol::End;
use gaffer_testkit::{Server, WireKind};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const HELLO: &str = "agents: [{ steps: [{ calls: [{ tool: Bash, input: { command: echo hi } }] }, { say: 'The answer.' }] }]";

#[test]
fn nothing_but_the_answer_goes_to_a_pipe() {
    let place = Place::new();
    let ran = run(place.scripted(HELLO, &["-p", "go"]));
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "The answer.\n", "")
    );
}

#[test]
fn json_is_one_object_with_the_figures() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ say: Yes., usage: { input: 100, cache_read: 1000, cache_write: 200, output: 10 }, model: scripted }] }]";
    let ran = run(place.scripted(
        script,
        &[
            "-p",
            "go",
            "--output-format",
            "json",
            "--session-id",
            "my-session",
        ],
    ));
    assert_eq!(ran.out.lines().count(), 1);
    let result = ran.result();
    let want = [
        ("type", "result"),
        ("subtype", "success"),
        ("result", "Yes."),
        ("session_id", "my-session"),
        ("stop_reason", "end_turn"),
        ("terminal_reason", "done"),
    ];
    for (name, value) in want {
        assert_eq!(result[name], value, "{name}");
    }
    assert_eq!(result["is_error"], false);
    assert_eq!(result["num_turns"], 1);
    assert_eq!(result["usage"]["cache_creation_input_tokens"], 200);
    // 100 at $1, 1000 at $0.1, 200 at $1.25 and 10 at $10 a million.
    assert_eq!(result["total_cost_usd"], 0.00055);
    assert_eq!(result["modelUsage"]["scripted"]["costUSD"], 0.00055);
}

#[test]
fn tokens_of_an_unknown_model_are_counted_and_its_cost_is_not_made_up() {
    let place = Place::new();
    let script =
        "agents: [{ steps: [{ say: Yes., usage: { input: 7, output: 3 }, model: nobody-1 }] }]";
    let path = place.write("s.yaml", script).display().to_string();
    let ran = run(place.gaffer(&[
        "-p",
        "go",
        "--provider",
        "scripted",
        "--model",
        &path,
        "--output-format",
        "json",
    ]));
    let result = ran.result();
    assert_eq!(result["usage"]["input_tokens"], 7, "{ran:?}");
    assert_eq!(result["total_cost_usd"], Value::Null);
}

#[test]
fn the_stream_begins_with_init_and_ends_with_one_result() {
    let place = Place::new();
    let ran = run(place.scripted(HELLO, &["-p", "go", "--output-format", "stream-json"]));
    let events = ran.events();
    assert_eq!(
        (&events[0]["type"], &events[0]["subtype"]),
        (&Value::from("system"), &Value::from("init"))
    );
    assert_eq!(
        events[0]["tools"],
        serde_json::json!([
            "Agent",
            "Bash",
            "Edit",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "SendMessage",
            "TaskStop",
            "WebFetch",
            "Write"
        ])
    );
    assert_eq!(events[0]["cwd"], place.project().to_str().unwrap());
    let results = events
        .iter()
        .filter(|event| event["type"] == "result")
        .count();
    assert_eq!(
        (results, &events[events.len() - 1]["type"]),
        (1, &Value::from("result"))
    );
    let session = &events[0]["session_id"];
    let mut ids = std::collections::HashSet::new();
    for event in &events {
        assert_eq!(&event["session_id"], session);
        assert!(
            ids.insert(event["uuid"].as_str().unwrap().to_owned()),
            "ids are unique"
        );
    }
    let call = events
        .iter()
        .find(|event| event["type"] == "assistant")
        .unwrap();
    assert_eq!(call["message"]["content"][0]["input"]["command"], "echo hi");
    assert_eq!(call["parent_tool_use_id"], Value::Null);
    let answer = events
        .iter()
        .find(|event| event["message"]["content"][0]["type"] == "tool_result")
        .unwrap();
    assert_eq!(
        answer["message"]["content"][0]["tool_use_id"],
        call["message"]["content"][0]["id"]
    );
}

#[test]
fn a_prompt_of_any_size_comes_from_standard_input() {
    let place = Place::new();
    let script =
        "agents: [{ steps: [{ expect: [{ text: { matches: 'END-OF-IT$' } }], say: Read. }] }]";
    let mut command = place.scripted(script, &["-p"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(&b"0123456789abcdef".repeat(200_000))
        .unwrap();
    stdin.write_all(b"END-OF-IT").unwrap();
    drop(stdin);
    let ran = wait(child);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "Read.\n"),
        "{}",
        ran.err
    );
}

#[test]
fn standard_input_is_added_to_a_prompt() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ expect: [{ text: { contains: \"review this\\n\\n+ a line\" } }], say: Fine. }] }]";
    let file = place.write("diff", "+ a line");
    let mut command = place.scripted(script, &["-p", "review this"]);
    command.stdin(std::fs::File::open(file).unwrap());
    let ran = run(command);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "Fine.\n"),
        "{}",
        ran.err
    );
}

#[test]
fn keys_and_own_variables_are_not_in_the_commands_environment() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ calls: [{ tool: Bash, as: env, input: { command: env } }] }, { expect: [{ of: env, result: { lacks: test-key } }, { of: env, result: HOME= }], say: Clean. }] }]";
    let server = Server::start(script);
    let ran = run(place.on_wire(WireKind::Chat, &server, &["-p", "go"]));
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "Clean.\n"),
        "{}",
        ran.err
    );
}

#[test]
fn keys_go_where_each_wire_has_them_and_nowhere_else() {
    for (wire, header, value) in [
        (WireKind::Anthropic, "x-api-key", "test-key"),
        (WireKind::Responses, "authorization", "Bearer test-key"),
        (WireKind::Chat, "authorization", "Bearer test-key"),
    ] {
        let place = Place::new();
        let server = Server::start("agents: [{ steps: [{ say: Hi. }] }]");
        let ran = run(place.on_wire(
            wire,
            &server,
            &["-p", "go", "--output-format", "stream-json"],
        ));
        let asked = &server.asked()[0];
        assert!(
            asked.headers.contains(&(header.into(), value.into())),
            "{:?}",
            asked.headers
        );
        assert!(!String::from_utf8_lossy(&asked.body).contains("test-key"));
        assert!(!ran.out.contains("test-key"));
        let transcript = std::fs::read_to_string(&place.transcripts()[0]).unwrap();
        assert!(!transcript.contains("test-key"));
    }
}

#[test]
fn an_interrupt_ends_the_run_at_once_and_leaves_a_valid_conversation() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ calls: [{ tool: Bash, as: slow, input: { command: 'echo begun; sleep 60' } }] }] }]";
    let mut command = place.scripted(script, &["-p", "go", "--output-format", "stream-json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The call has begun once the answer that makes it is shown.
    lines
        .find(|line| line.as_ref().unwrap().contains("\"assistant\""))
        .unwrap()
        .unwrap();
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let result: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(
        (&result["type"], &result["terminal_reason"]),
        (&Value::from("result"), &Value::from("interrupted"))
    );
    let fold = place.fold();
    assert_eq!(fold.end, Some(End::Interrupted));
    assert_eq!(fold.messages.len(), 3, "the call has its result");
}

#[test]
fn a_reader_that_goes_away_does_not_make_a_mess() {
    let place = Place::new();
    let mut command = place.scripted(HELLO, &["-p", "go", "--output-format", "stream-json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ran = wait(child);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    assert_eq!(
        place.fold().end,
        Some(End::Done),
        "the work itself was done"
    );
}
