//! Two workers and one file: who waits, who is told, and what commands did to the files of others.

use crate::harness::{Place, Ran, run};
use serde_json::{Value, json};

/// A crew whose coordinator starts these workers and waits for all of them.
fn crew(place: &Place, workers: &[(Value, Value)], setting: &Value) -> Ran {
    let settings = json!({"guardrails": setting}).to_string();
    place.write("home/.gaffer/settings.json", &settings);
    let order = |(n, (more, _)): (usize, &(Value, Value))| {
        let name = format!("w{}", n + 1);
        let mut input =
            json!({"description": format!("Task of {name}"), "name": name, "prompt": "go"});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        json!({"tool": "Agent", "input": input})
    };
    let calls: Vec<Value> = workers.iter().enumerate().map(order).collect();
    let mut agents = vec![json!({"name": "main", "steps": [
        {"calls": calls},
        {"when": {"notifications": workers.len()}, "meanwhile": "Waiting.", "say": "Heard."},
    ]})];
    for (n, (_, steps)) in workers.iter().enumerate() {
        agents.push(json!({"name": format!("w{}", n + 1), "steps": steps}));
    }
    play(place, &json!({"agents": agents}))
}

fn play(place: &Place, script: &Value) -> Ran {
    let args = [
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
    let ran = run(place.scripted(&script.to_string(), &args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("not played"), "{}", ran.err);
    ran
}

fn bash(command: &str) -> Value {
    json!({"calls": [{"tool": "Bash", "as": "it", "input": {"command": command}}]})
}

fn write(path: &str, text: &str) -> Value {
    json!({"calls": [{"tool": "Write", "as": "it", "input": {"file_path": path, "content": text}}]})
}

fn read(path: &str) -> Value {
    json!({"calls": [{"tool": "Read", "input": {"file_path": path}}]})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"calls": [{"tool": "Edit", "as": "it", "input": {"file_path": path, "old_string": old, "new_string": new}}]})
}

/// A step that expects a result of the one before.
fn after(is_error: bool, words: &str, mut step: Value) -> Value {
    step["expect"] = json!([{"of": "it", "error": is_error, "result": {"matches": words}}]);
    step
}

fn done() -> Value {
    json!({"say": "Done."})
}

#[test]
fn the_second_writer_waits_and_then_reads_what_the_first_has_made() {
    let place = Place::new();
    place.write("project/a.txt", "one\n");
    // Both have read the same before either writes.
    let mut change = edit("a.txt", "one", "two");
    change["delay"] = json!("1s");
    let first = json!([read("a.txt"), change, bash("sleep 3"), done()]);
    let second = json!([
        read("a.txt"),
        bash("sleep 2"),
        edit("a.txt", "one", "other"),
        after(true, "changed since", read("a.txt")),
        edit("a.txt", "two", "three"),
        after(false, "three", done()),
    ]);
    let ran = crew(
        &place,
        &[(json!({}), first), (json!({}), second)],
        &json!({}),
    );
    let text = std::fs::read_to_string(place.project().join("a.txt")).unwrap();
    assert_eq!(text, "three\n");
    assert!(
        ran.out.contains(r#""waiting_for":{"lease":["w1"]}"#),
        "{}",
        ran.out
    );
    let leases = &ran.result()["crew"]["leases"];
    assert_eq!(leases["waits"], 1);
    assert_eq!(leases["conflicts"], 0);
}

#[test]
fn a_circle_is_named_at_once_and_the_other_goes_on() {
    let place = Place::new();
    let first = json!([
        write("a", "1"),
        bash("sleep 1"),
        write("b", "1"),
        after(true, "not been read", done())
    ]);
    let second = json!([
        write("b", "2"),
        bash("sleep 2"),
        write("a", "2"),
        after(true, "never end: w2 → w1 → w2", done()),
    ]);
    let ran = crew(
        &place,
        &[(json!({}), first), (json!({}), second)],
        &json!({}),
    );
    assert_eq!(ran.result()["crew"]["leases"]["conflicts"], 1);
    assert_eq!(ran.result()["crew"]["completed"], 2);
}

#[test]
fn files_of_an_order_bind_its_worker_and_keep_others_out() {
    let place = Place::new();
    place.write("project/src/a.txt", "x");
    let first = json!([
        write("src/new.txt", "1"),
        after(false, "created", write("other.txt", "1")),
        after(
            true,
            "outside the files of this task, `src/\\*\\*`",
            bash("touch stray.txt; sleep 3")
        ),
        after(
            true,
            "(?s)stray.txt changed while this command ran.*w1: `touch stray",
            done()
        ),
    ]);
    let second = json!([
        read("src/a.txt"),
        write("src/a.txt", "2"),
        after(false, "replaced", done())
    ]);
    // No command: with two under way it would not be sure whose the stray file is.
    let mut late = write("src/third.txt", "3");
    late["delay"] = json!("500ms");
    let third = json!([
        late,
        after(true, "w1 .*whose order names `src/\\*\\*`", done())
    ]);
    let ran = crew(
        &place,
        &[
            (json!({"files": ["src/**"]}), first),
            (json!({"files": ["src/a.txt"]}), second),
            (json!({}), third),
        ],
        &json!({"leaseWaitSeconds": 1}),
    );
    assert!(!place.project().join("other.txt").exists());
    assert_eq!(ran.result()["crew"]["completed"], 3);
    assert!(
        ran.out.contains(r#""waiting_for":{"lease":["w1"]}"#),
        "{}",
        ran.out
    );
}

#[test]
fn globs_that_are_none_start_nobody() {
    let place = Place::new();
    let order = json!({"description": "x", "prompt": "go", "files": ["../out"]});
    let script = json!({"agents": [{"name": "main", "steps": [
        {"calls": [{"tool": "Agent", "as": "it", "input": order}]},
        after(true, "No worker was started.*goes up", done()),
    ]}]});
    assert_eq!(play(&place, &script).result()["crew"]["started"], 0);
}

#[test]
fn a_holder_that_is_stopped_lets_go() {
    let place = Place::new();
    let agent = |name: &str| {
        let input = json!({"description": "Hold", "name": name, "prompt": "go"});
        json!({"tool": "Agent", "input": input})
    };
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("w1"), agent("w2")]},
            {"delay": "2s", "calls": [{"tool": "TaskStop", "input": {"task_id": "w1"}}]},
            {"when": {"notifications": 2}, "meanwhile": "Waiting.", "say": "Heard."},
        ]},
        {"name": "w1", "steps": [write("a", "1"), bash("sleep 100")]},
        {"name": "w2", "steps": [bash("sleep 1"), read("a"), write("a", "2"), after(false, "replaced", done())]},
    ]});
    let ran = play(&place, &script);
    assert_eq!(std::fs::read(place.project().join("a")).unwrap(), b"2");
    assert_eq!(ran.result()["crew"]["killed_by_coordinator"], 1);
}

#[test]
fn a_command_that_changes_the_file_of_another_is_told_with_all_that_ran() {
    let place = Place::new();
    let holder = json!([write("a", "1"), {"delay": "4s", "say": "Done."}]);
    let culprit = json!([
        bash("sleep 1; echo 2 >> a; sleep 1; echo said"),
        after(
            true,
            "(?s)said.*/a changed while this command ran, and w1 .*w2: `sleep 1; echo 2.*w3: `sleep 1.5`|(?s)w3: `sleep 1.5`.*w2: `sleep",
            done()
        ),
    ]);
    let bystander = json!([bash("sleep 1.5"), done()]);
    let workers = [
        (json!({}), holder),
        (json!({}), culprit),
        (json!({}), bystander),
    ];
    let ran = crew(&place, &workers, &json!({}));
    let leases = &ran.result()["crew"]["leases"];
    assert!(leases["foreign_changes"].as_u64() >= Some(1), "{leases}");
}

#[test]
fn warnings_let_everything_through_and_speak_of_it() {
    let place = Place::new();
    let first = json!([write("a", "1"), bash("sleep 2"), done()]);
    let second = json!([
        bash("sleep 1"),
        read("a"),
        write("a", "2"),
        after(false, "replaced.*\\nAdvice: held-file: w1", done()),
    ]);
    let workers = [(json!({}), first), (json!({}), second)];
    let ran = crew(&place, &workers, &json!({"leases": "warn"}));
    assert_eq!(ran.result()["crew"]["leases"]["waits"], 0);
    assert_eq!(ran.result()["crew"]["advice"]["held-file"], 1);
    assert!(ran.out.contains(r#""guardrail":"leases""#));
}
