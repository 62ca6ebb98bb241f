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
            "Bash",
            "Edit",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
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

#[test]
fn commands_run_in_the_sandbox_unless_it_is_off() {
    let place = Place::new();
    let command = "echo x > ../escaped || echo held";
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{{ tool: Bash, input: {{ command: '{command}' }} }}] }}, {{ say: Done. }}] }}]"
    );
    for (args, escaped) in [
        (&["-p", "go"][..], false),
        (
            &[
                "-p",
                "go",
                "--sandbox",
                "off",
                "--permission-mode",
                "bypassPermissions",
            ],
            true,
        ),
    ] {
        let ran = run(place.scripted(&script, args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(
            place.root.path().join("escaped").exists(),
            escaped,
            "{args:?}"
        );
    }
}

#[test]
fn a_command_leaves_the_sandbox_only_where_the_user_lets_it() {
    let place = Place::new();
    let command = "make -s";
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{{ tool: Bash, input: {{ command: '{command}', dangerouslyDisableSandbox: true }} }}] }}, {{ say: Done. }}] }}]"
    );
    place.write("bin/make", "#!/bin/sh\necho x > ../escaped\n");
    let make = place.root.path().join("bin/make");
    let mut mode = std::fs::metadata(&make).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&make, mode).unwrap();
    let bypass = ["--permission-mode", "bypassPermissions"];
    let rule = ["--allowed-tools", "Bash(make *)"];
    let lets = r#"{"sandbox": {"allowUnsandboxedCommands": true}}"#;
    let rows: [(&str, &str, &[&str], bool); 6] = [
        ("{}", "{}", &bypass, false),
        ("{}", lets, &bypass, false),
        (lets, "{}", &[], false),
        (lets, r#"{"permissions": {"allow": ["Bash"]}}"#, &[], false),
        (lets, "{}", &rule, true),
        (lets, "{}", &bypass, true),
    ];
    for (user, project, args, escapes) in rows {
        let escaped = place.root.path().join("escaped");
        drop(std::fs::remove_file(&escaped));
        place.write("home/.gaffer/settings.json", user);
        place.write("project/.gaffer/settings.json", project);
        let mut command = place.scripted(&script, &[&["-p", "go"], args].concat());
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = place.root.path().join("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(
            escaped.exists(),
            escapes,
            "{user} {project} {args:?}: {ran:?}"
        );
    }
}

#[test]
fn other_folders_are_opened_only_when_added() {
    let place = Place::new();
    let more = place
        .write("more/note.txt", "a note")
        .parent()
        .unwrap()
        .display()
        .to_string();
    let script = "agents: [{ steps: [{ calls: [{ tool: Read, as: r, input: { file_path: ../more/note.txt } }, { tool: Bash, input: { command: 'echo y > ../more/new' } }] }, { save: { said: { of: r } }, say: '${said}' }] }]";
    let without = run(place.scripted(script, &["-p", "go"]));
    assert!(
        without.out.contains("is outside the folders"),
        "{without:?}"
    );
    let with = run(place.scripted(script, &["-p", "go", "--add-dir", &more]));
    assert!(with.out.contains("a note"), "{with:?}");
    assert!(place.root.path().join("more/new").exists());
}

const WRITES: &str = "agents: [{ steps: [{ calls: [{ tool: Write, as: w, input: { file_path: new.txt, content: hi } }] }, { save: { said: { of: w } }, say: '${said}' }] }]";

#[test]
fn what_is_not_allowed_is_not_done_and_is_listed() {
    for (args, allowed) in [
        (&["--permission-mode", "acceptEdits"][..], true),
        (&["--permission-mode", "default"], false),
        (
            &[
                "--permission-mode",
                "default",
                "--allowedTools",
                "Edit(new.txt) Read",
            ],
            true,
        ),
        (&["--permission-mode", "plan"], false),
        (&["--disallowedTools", "Write(new.txt)"], false),
        (
            &[
                "--permission-mode",
                "bypassPermissions",
                "--disallowed-tools",
                "Edit(*.txt)",
            ],
            false,
        ),
        (&[], true),
    ] {
        let place = Place::new();
        let all = [&["-p", "go", "--output-format", "json"], args].concat();
        let ran = run(place.scripted(WRITES, &all));
        assert_eq!(
            place.project().join("new.txt").exists(),
            allowed,
            "{args:?}: {ran:?}"
        );
        let result = ran.result();
        let denials = result["permission_denials"].as_array().unwrap();
        assert_eq!(denials.is_empty(), allowed, "{args:?}: {denials:?}");
        if !allowed {
            assert_eq!(denials[0]["tool_name"], "Write");
            assert!(
                result["result"]
                    .as_str()
                    .unwrap()
                    .starts_with("Not allowed, and not carried out:")
            );
        }
    }
}

#[test]
fn a_tool_that_is_denied_whole_is_not_there() {
    let place = Place::new();
    let args = ["-p", "go", "--disallowedTools", "Write", "--output-format"];
    let ran = run(place.scripted(WRITES, &[&args[..], &["stream-json"]].concat()));
    let tools = ran.events()[0]["tools"].to_string();
    assert!(
        !tools.contains("Write") && tools.contains("Edit"),
        "{tools}"
    );
    assert!(ran.out.contains("There is no tool `Write`"), "{}", ran.out);
    assert!(!place.project().join("new.txt").exists());
}

#[test]
fn rules_of_settings_hold_and_a_project_cannot_lift_them() {
    let place = Place::new();
    place.write(
        "home/.gaffer/settings.json",
        r#"{"permissions": {"deny": ["Edit(new.txt)"]}}"#,
    );
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"allow": ["Write", "Edit"]}}"#,
    );
    let ran = run(place.scripted(WRITES, &["-p", "go"]));
    assert!(ran.out.contains("the user's settings"), "{ran:?}");
    assert!(!place.project().join("new.txt").exists());
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
    );
    let ran = run(place.scripted(WRITES, &["-p", "go"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("a project cannot set `bypassPermissions`"),
        "{}",
        ran.err
    );
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"deny": ["Bash(rm"]}}"#,
    );
    let ran = run(place.scripted(WRITES, &["-p", "go"]));
    assert_eq!(
        ran.code,
        Some(2),
        "a rule that cannot be read might be the one that forbids: {ran:?}"
    );
}

#[test]
fn the_users_list_of_git_is_found_through_the_environment() {
    let script = "agents: [{ steps: [{ calls: [{ tool: Grep, input: { pattern: needle } }] }, { say: Done. }] }]";
    let found = |place: &Place, variables: &[(&str, &str)]| {
        let mut command = place.scripted(script, &["-p", "go", "--output-format", "stream-json"]);
        command.envs(variables.iter().copied());
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ["a.swp", "b.bak", "c.tmp"].map(|name| ran.out.contains(name))
    };
    let place = Place::new();
    place.write("project/.git/config", "");
    for name in ["a.swp", "b.bak", "c.tmp"] {
        place.write(&format!("project/{name}"), "needle");
    }
    assert_eq!(found(&place, &[]), [true, true, true]);
    place.write("home/.config/git/ignore", "*.swp");
    assert_eq!(found(&place, &[]), [false, true, true]);
    let other = place.write("other/git/ignore", "*.bak");
    let other = other.ancestors().nth(2).unwrap().display().to_string();
    let variables = [("XDG_CONFIG_HOME", other.as_str())];
    assert_eq!(found(&place, &variables), [true, false, true]);
    place.write("home/mine", "*.tmp");
    place.write("home/.gitconfig", "[core]\n\texcludesFile = ~/mine\n");
    assert_eq!(found(&place, &[]), [true, true, false]);
}

#[test]
fn glob_obeys_gitignore_where_the_settings_say_so() {
    let script = "agents: [{ steps: [{ calls: [{ tool: Glob, input: { pattern: '*.log' } }] }, { say: Done. }] }]";
    let place = Place::new();
    place.write("project/.git/config", "");
    place.write("project/.gitignore", "old.log");
    place.write("project/new.log", "");
    place.write("project/old.log", "");
    for (settings, shows_old) in [
        ("{}", true),
        (r#"{"globRespectsGitignore": true}"#, false),
        (r#"{"globRespectsGitignore": false}"#, true),
    ] {
        place.write("project/.gaffer/settings.json", settings);
        let args = ["-p", "go", "--output-format", "stream-json"];
        let ran = run(place.scripted(script, &args));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{settings}");
        assert!(ran.out.contains("new.log"), "{settings}");
        assert_eq!(ran.out.contains("old.log"), shows_old, "{settings}");
    }
    let shown = run(place.gaffer(&["config", "globRespectsGitignore"])).out;
    assert!(
        shown.starts_with("globRespectsGitignore = false    (project:"),
        "{shown}"
    );
}
