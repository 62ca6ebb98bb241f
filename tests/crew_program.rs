//! Crews of the real program: what the coordinator's context holds, what binds workers, when the
//! program ends, what is left in restricted places.

use crate::harness::{Place, Ran, run};
use gaffer_store::Fold;
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};
use std::path::Path;

const CREW: [&str; 6] = [
    "-p",
    "go",
    "--mode",
    "coordinator",
    "--output-format",
    "stream-json",
];

fn crew(place: &Place, script: &Value, more: &[&str]) -> Ran {
    let args = [&CREW[..], more].concat();
    run(place.scripted(&script.to_string(), &args))
}

fn agent(name: &str, more: &[(&str, &str)]) -> Value {
    let mut input = json!({"description": format!("Task {name}"), "name": name, "prompt": "go"});
    for (key, value) in more {
        input[key] = json!(value);
    }
    json!({"tool": "Agent", "as": name, "input": input})
}

#[test]
fn a_hundred_long_results_leave_room_and_stand_whole_in_their_files() {
    let place = Place::new();
    let lines: Vec<String> = (0..1000)
        .map(|n| format!("{n:04} {}", "x".repeat(95)))
        .collect();
    let result = lines.join("\n");
    let calls: Vec<Value> = (0..100).map(|n| agent(&format!("w{n}"), &[])).collect();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": calls},
            {"save": {
                "id": {"of": "w99", "matches": "task_id: (\\S+)"},
                "dir": {"of": "w99", "matches": "transcript: (.+)/agent-"},
            }, "say": "Waiting."},
            {"when": {"notifications": 100}, "calls": [{"tool": "Scratchpad", "as": "file", "input": {
                "action": "read", "path": "${dir}/results/${id}-1.md", "offset": 999,
            }}]},
            {"expect": [{"of": "file", "error": false, "result": "0999 xxx"}], "say": "All read."},
        ]},
        {"steps": [{"delay": "500ms", "say": result}]},
    ]});
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.result()["result"], "All read.");
    assert_eq!(ran.result()["crew"]["completed"], 100);
    let mut whole = 0;
    for path in place.transcripts() {
        let fold = Fold::read(&path).unwrap();
        let start = fold.start.unwrap();
        match start.parent {
            // Three bytes a token, 200,000 tokens, of which 30 % are left.
            None => {
                let bytes = serde_json::to_vec(&fold.messages).unwrap().len();
                assert!(bytes < 600_000 / 10 * 7, "{bytes} bytes");
            }
            Some(_) => {
                let file = path.parent().unwrap().join("results");
                let file = file.join(format!("{}-1.md", start.agent));
                assert_eq!(std::fs::read_to_string(file).unwrap(), result);
                whole += 1;
            }
        }
    }
    assert_eq!(whole, 100);
}

#[test]
fn what_the_user_denies_is_denied_to_workers_of_every_mode() {
    let place = Place::new();
    place.write(
        "home/.gaffer/settings.json",
        r#"{"permissions": {"deny": ["Edit(secret.txt)", "Bash(touch:*)"]}}"#,
    );
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"allow": ["Edit(secret.txt)", "Write(secret.txt)", "Bash(touch:*)"]}}"#,
    );
    let modes = ["default", "acceptEdits", "bypassPermissions", "plan"];
    let mut calls = Vec::new();
    for mode in modes {
        let name = mode.to_lowercase();
        let text = format!(
            "---\nname: {name}\ndescription: x\npermissionMode: {mode}\ntools: Bash, Write, Edit\n---\nGo.\n"
        );
        place.write(&format!("project/.claude/agents/{name}.md"), &text);
        calls.push(agent(&format!("w-{name}"), &[("subagent_type", &name)]));
    }
    let bash = |label: &str, command: &str| json!({"tool": "Bash", "as": label, "input": {"command": command}});
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": calls},
            {"say": "Waiting."},
            {"when": {"notifications": 4}, "say": "All tried."},
        ]},
        {"steps": [
            {"calls": [
                {"tool": "Write", "as": "x", "input": {"file_path": "secret.txt", "content": "x"}},
                bash("y", "touch touched.txt"),
                bash("z", "echo the shell works"),
            ]},
            {"expect": [
                {"of": "x", "error": true},
                {"of": "y", "error": true},
                {"of": "z", "error": false, "result": "the shell works"},
            ], "say": "Denied."},
        ]},
    ]});
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.result()["crew"]["completed"], 4, "{ran:#?}");
    for name in ["secret.txt", "touched.txt"] {
        assert!(!place.project().join(name).exists(), "{name}");
    }
}

#[test]
fn the_program_ends_when_its_workers_have_and_not_before() {
    let place = Place::new();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("a", &[]), agent("b", &[])]},
            {"say": "They are at it."},
            {"when": {"notifications": 2}, "say": "Both are done."},
        ]},
        {"name": "a", "steps": [{"calls": [{"tool": "Bash", "input": {"command": "sleep 1; echo > late"}}]}, {"say": "Done."}]},
        {"name": "b", "steps": [{"say": "Done."}]},
    ]});
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.result()["result"], "Both are done.");
    assert!(place.project().join("late").exists());
}

#[test]
fn a_coordinator_out_of_turns_fails_and_leaves_no_process() {
    let place = Place::new();
    let bash = |command: &str| json!({"calls": [{"tool": "Bash", "input": {"command": command}}]});
    let script = json!({"agents": [
        {"name": "main", "steps": [{"calls": [agent("a", &[]), agent("b", &[])]}, {"say": "Waiting."}]},
        {"name": "a", "steps": [bash("echo $$ > pid; sleep 300"), {"say": "Never."}]},
        // It ends when the other one is in the middle of its work, and wakes the coordinator.
        {"name": "b", "steps": [bash("until [ -s pid ]; do sleep 0.02; done"), {"say": "Done."}]},
    ]});
    let ran = crew(&place, &script, &["--max-turns", "2"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(ran.result()["crew"]["started"], 2);
    assert_eq!(ran.result()["crew"]["completed"], 1);
    let shell = std::fs::read_to_string(place.project().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(shell.trim()).exists());
}

#[test]
fn in_restricted_places_workers_have_three_tools_and_nothing_else() {
    for is_argument in [true, false] {
        let place = Place::new();
        place.write("project/CLAUDE.md", "The word is marzipan.");
        place.write(
            "project/.claude/skills/bake/SKILL.md",
            "---\nname: bake\ndescription: Bakes with marzipan\n---\nBake.\n",
        );
        let hook = json!({"hooks": [{"type": "command", "command": "touch hooked"}]});
        let hooks = json!({"hooks": {"SubagentStart": [hook], "PreToolUse": [hook], "SubagentStop": [hook]}});
        place.write("home/.gaffer/settings.json", &hooks.to_string());
        let script = json!({"agents": [
            {"name": "main", "steps": [
                {"calls": [agent("w", &[])]},
                {"say": "Waiting."},
                {"when": {"notifications": 1}, "say": "Done."},
            ]},
            {"name": "w", "steps": [
                {"calls": [{"tool": "Bash", "input": {"command": "echo hi"}}]},
                {"say": "Done."},
            ]},
        ]});
        let server = Server::start(&script.to_string());
        let more: &[&str] = if is_argument { &["--bare"] } else { &[] };
        let args = [&CREW[..], more].concat();
        let mut command = place.on_wire(WireKind::Anthropic, &server, &args);
        if !is_argument {
            command.env("GAFFER_SIMPLE", "1");
        }
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let asked = server.asked();
        let worker: Vec<_> = asked.iter().filter(|asked| asked.agent == "w").collect();
        assert_eq!(worker.len(), 2);
        let body = worker[0].json();
        let tools = body["tools"].as_array().unwrap().iter();
        let tools: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(tools, ["Bash", "Edit", "Read"]);
        for asked in &asked {
            assert!(!String::from_utf8_lossy(&asked.body).contains("marzipan"));
        }
        assert!(!place.project().join("hooked").exists());
    }
}

#[test]
fn sub_agents_start_others_where_the_settings_let_them() {
    for (depth, want) in [(1, "There is no tool `Agent`"), (2, "deep.")] {
        let place = Place::new();
        let settings = format!("{{\"maxDepth\": {depth}}}");
        place.write("home/.gaffer/settings.json", &settings);
        let script = "agents: [
          { name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Above, name: above, prompt: go } }] }, { save: { said: { of: a } }, say: '${said}' }] },
          { name: above, steps: [{ calls: [{ tool: Agent, as: b, input: { description: Below, name: below, prompt: go } }] }, { save: { said: { of: b } }, say: '${said}' }] },
          { name: below, steps: [{ say: deep. }] }]";
        let args = ["-p", "go", "--mode", "normal", "--max-workers", "1"];
        let ran = run(place.scripted(script, &args));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.out.contains(want), "{depth}: {ran:#?}");
    }
}
