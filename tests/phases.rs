//! Phases, with the real program: which orders are out of turn at each level, what is said before
//! the end, what the course of a session looks like, and what a plan waits for.

use crate::harness::{Place, Ran, run};
use serde_json::{Value, json};

const CREW: [&str; 6] = [
    "-p",
    "go",
    "--mode",
    "coordinator",
    "--output-format",
    "stream-json",
];

const VAGUE: &str = "The greeting is wrong: users read hello. Change it. Report the new line.";
const LOOK: &str = "Find out where the greeting is made. Change nothing. Report the file and line.";
const CHECK: &str = "Verify that note.txt says hello. Run `grep hello note.txt` and report.";

pub(crate) fn crew(place: &Place, agents: &Value, more: &[&str]) -> Ran {
    let script = json!({ "agents": agents });
    run(place.scripted(&script.to_string(), &[&CREW[..], more].concat()))
}

fn at(level: &str) -> Place {
    let place = Place::new();
    place.write("project/note.txt", "lo\n");
    let quiet = json!({"guardrails": {"phases": level, "orders": "off", "continue": "off"}});
    place.write("home/.gaffer/settings.json", &quiet.to_string());
    place
}

fn start(name: &str, more: &Value) -> Value {
    let mut input = json!({"description": "A task", "name": name});
    input
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"tool": "Agent", "as": name, "input": input})
}

fn rules(ran: &Ran) -> Vec<(String, bool)> {
    let is_advice = |line: &Value| line["subtype"] == "advice";
    let lines = ran.events().into_iter().filter(is_advice);
    lines
        .map(|line| {
            assert_eq!(line["guardrail"], "phases");
            let rule = line["rule"].as_str().unwrap().to_owned();
            (rule, line["refused"].as_bool().unwrap())
        })
        .collect()
}

/// The answer to one order at a level: what the coordinator is told, and which rules spoke.
fn answered(place: &Place, first: &[Value], last: &Value, is_refused: bool, told: &str) -> Ran {
    let name = last["as"].as_str().unwrap();
    let mut calls = first.to_vec();
    calls.push(last.clone());
    let expect = json!([{"of": name, "error": is_refused, "result": {"matches": told}}]);
    let started = calls.len() - usize::from(is_refused);
    let ran = crew(
        place,
        &json!([
            {"name": "main", "steps": [
                {"calls": calls},
                {"expect": expect, "say": "They run."},
                {"when": {"notifications": started}, "meanwhile": "Not yet.", "say": "Done."},
            ]},
            {"steps": [{"say": "Looked at it."}]},
        ]),
        &[],
    );
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
    assert_eq!(ran.result()["crew"]["started"], started);
    ran
}

#[test]
fn work_without_research_is_out_of_turn() {
    let order = start("w", &json!({"prompt": VAGUE}));
    for (level, is_refused, told) in [
        ("off", false, "jsonl$"),
        (
            "warn",
            false,
            "Advice: unresearched: Nothing has been looked into",
        ),
        ("enforce", true, "No worker was started: unresearched"),
    ] {
        let ran = answered(&at(level), &[], &order, is_refused, told);
        let expected: &[(String, bool)] = match level {
            "off" => &[],
            _ => &[("unresearched".to_owned(), is_refused)],
        };
        assert_eq!(rules(&ran), expected, "{level}");
    }
    // An order that says where, and a project in which there is nothing to look at.
    let named = "note.txt says `lo`. Change it to hello. Report the new line.";
    let named = start("w", &json!({"prompt": named}));
    answered(&at("enforce"), &[], &named, false, "jsonl$");
    let empty = at("enforce");
    std::fs::remove_file(empty.project().join("note.txt")).unwrap();
    answered(&empty, &[], &order, false, "jsonl$");
}

#[test]
fn work_waits_for_the_research_that_was_started_with_it() {
    let look = start(
        "looker",
        &json!({"prompt": LOOK, "subagent_type": "explore"}),
    );
    let named = json!({"prompt": "note.txt says `lo`. Change it to hello. Report the new line."});
    for (level, is_refused, told) in [
        ("off", false, "jsonl$"),
        (
            "warn",
            false,
            "Advice: research-running: looker still looks into it",
        ),
        ("enforce", true, "No worker was started: research-running"),
    ] {
        let order = start("w", &named);
        let ran = answered(
            &at(level),
            std::slice::from_ref(&look),
            &order,
            is_refused,
            told,
        );
        assert_eq!(rules(&ran).len(), usize::from(level != "off"));
    }
    let mut waits = named;
    waits["depends_on"] = json!(["looker"]);
    let order = start("w", &waits);
    answered(&at("enforce"), &[look], &order, false, "begins by itself");
}

/// A worker that changes a file, and what the coordinator does then.
fn written(then: &Value) -> Value {
    let work = json!({"prompt": "note.txt says `lo`, users read hello. Change it. Report the line.", "phase": "implementation"});
    let edit = json!({"file_path": "note.txt", "old_string": "lo", "new_string": "hello"});
    let mut steps = vec![
        json!({"calls": [start("writer", &work)]}),
        json!({"say": "It runs."}),
    ];
    steps.extend(then.as_array().unwrap().clone());
    json!([
        {"name": "main", "steps": steps},
        {"name": "writer", "steps": [
            {"calls": [{"tool": "Read", "input": {"file_path": "note.txt"}}]},
            {"calls": [{"tool": "Edit", "input": edit}]},
            {"say": "It says hello now."},
            {"say": "I looked at it again."},
        ]},
        {"name": "checker", "steps": [
            {"calls": [{"tool": "Bash", "input": {"command": "grep hello note.txt"}}]},
            {"say": "It does."},
        ]},
    ])
}

#[test]
fn nobody_verifies_what_they_wrote() {
    let message = json!({"to": "writer", "message": CHECK});
    for (level, is_error, told) in [
        ("off", false, "goes on with it$"),
        (
            "warn",
            false,
            "Advice: own-verification: writer changed that itself",
        ),
        ("enforce", true, "Nothing was sent: own-verification"),
    ] {
        let expect = json!([{"of": "m", "error": is_error, "result": {"matches": told}}]);
        let ran = crew(
            &at(level),
            &written(&json!([
                {"when": {"notifications": 1}, "calls": [{"tool": "SendMessage", "as": "m", "input": message}]},
                {"expect": expect, "say": "So be it."},
                {"say": "Done."},
                {"say": "Done."},
            ])),
            &[],
        );
        assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
        let own = rules(&ran)
            .into_iter()
            .filter(|it| it.0 == "own-verification");
        assert_eq!(own.count(), usize::from(level != "off"), "{level}");
    }
}

#[test]
fn work_that_nobody_verified_shows_at_the_end() {
    let warn = crew(
        &at("warn"),
        &written(&json!([{"when": {"notifications": 1}, "say": "It is done."}])),
        &[],
    );
    assert_eq!(rules(&warn), [("unchecked-work".to_owned(), false)]);
    let result = warn.result();
    assert_eq!(result["result"], "It is done.");
    let phases = &result["crew"]["phases"];
    assert_eq!(phases["unchecked"], json!(["writer"]));
    assert_eq!(
        phases["left_out"],
        json!(["research", "synthesis", "verification"])
    );
    let off = crew(
        &at("off"),
        &written(&json!([{"when": {"notifications": 1}, "say": "It is done."}])),
        &[],
    );
    assert_eq!(rules(&off), []);
    // Where it is enforced, it is said once.
    let told = json!([{"text": {"matches": "^Before you end: writer changed something"}}]);
    let enforce = crew(
        &at("enforce"),
        &written(&json!([
            {"when": {"notifications": 1}, "say": "It is done."},
            {"expect": told, "say": "It is done, and not verified: it is one word."},
        ])),
        &[],
    );
    assert_eq!(enforce.code, Some(0), "{}", enforce.err);
    assert_eq!(rules(&enforce), [("unchecked-work".to_owned(), true)]);
    assert_eq!(
        enforce.result()["result"],
        "It is done, and not verified: it is one word."
    );
}

#[test]
fn a_verified_course_is_told_whole_and_adds_up() {
    let check = start(
        "checker",
        &json!({"prompt": CHECK, "subagent_type": "verifier"}),
    );
    let place = at("enforce");
    let ran = crew(
        &place,
        &written(&json!([
            {"when": {"notifications": 1}, "expect": [{"text": "<unverified/>"}], "calls": [check]},
            {"say": "It is being verified."},
            {"when": {"notifications": 2}, "say": "It is done."},
        ])),
        &["--session-id", "s"],
    );
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
    assert_eq!(rules(&ran), []);
    let result = ran.result();
    let phases = &result["crew"]["phases"];
    assert_eq!(
        phases["course"],
        json!([
            {"phase": "implementation", "workers": ["writer"]},
            {"phase": "verification", "workers": ["checker"]},
        ])
    );
    assert_eq!(phases["left_out"], json!(["research", "synthesis"]));
    assert_eq!(
        (&phases["unchecked"], &phases["unverified"]),
        (&json!([]), &json!([]))
    );
    let sum = |key: &str| -> u64 {
        let all = phases["totals"].as_object().unwrap().values();
        all.map(|it| it[key].as_u64().unwrap()).sum()
    };
    let own = |key: &str| result[key].as_u64().unwrap();
    let turns = own("num_turns") + result["crew"]["turns"].as_u64().unwrap();
    assert_eq!(sum("turns"), turns);
    let uses = own("tool_uses") + result["crew"]["tool_uses"].as_u64().unwrap();
    assert_eq!(sum("tool_uses"), uses);
    let started: Vec<Value> = ran
        .events()
        .into_iter()
        .filter(|line| line["subtype"] == "task_started")
        .map(|line| line["phase"].clone())
        .collect();
    assert_eq!(started, ["implementation", "verification"]);
    // The same, read from disk.
    let shown = run(place.gaffer(&["show", "s", "--json"]));
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown["phases"]["course"], phases["course"]);
    assert_eq!(
        shown["phases"]["totals"]["verification"]["turns"],
        phases["totals"]["verification"]["turns"]
    );
    assert_eq!(shown["agents"][1]["phase"], "implementation");
    let text = run(place.gaffer(&["show", "s"])).out;
    assert!(
        text.contains("phases: implementation (writer) → verification (checker)"),
        "{text}"
    );
    assert!(text.contains("left out: research, synthesis"), "{text}");
}

#[test]
fn who_changed_nothing_has_looked_and_a_session_that_goes_on_knows_it() {
    let place = at("enforce");
    let look = start("looker", &json!({"prompt": LOOK}));
    let work = json!({"prompt": VAGUE, "phase": "implementation"});
    let agents = json!([
        {"name": "main", "steps": [
            {"calls": [look]},
            {"say": "It looks."},
            {"when": {"notifications": 1}, "say": "It is in note.txt."},
            // Nothing but what the book keeps can say that this was looked into.
            {"calls": [start("w", &work)]},
            {"expect": [{"of": "w", "error": false}], "say": "It works."},
            {"when": {"notifications": 2}, "say": "Done."},
            {"say": "Not verified."},
        ]},
        {"steps": [{"say": "I saw it."}]},
    ]);
    let first = crew(&place, &agents, &["--session-id", "s"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(
        first.result()["crew"]["phases"]["course"],
        json!([{"phase": "research", "workers": ["looker"]}, {"phase": "synthesis", "workers": []}])
    );
    assert_eq!(
        first.result()["crew"]["phases"]["unverified"],
        json!(["looker"])
    );
    let script = json!({ "agents": agents }).to_string();
    let again = [
        "-p",
        "now do it",
        "--resume",
        "s",
        "--mode",
        "coordinator",
        "--output-format",
        "stream-json",
    ];
    let second = run(place.scripted(&script, &again));
    assert_eq!(second.code, Some(0), "{} {}", second.err, second.result());
    assert_eq!(rules(&second), [("unchecked-work".to_owned(), true)]);
    let course = &second.result()["crew"]["phases"]["course"];
    assert_eq!(course[0]["workers"], json!(["looker"]), "{course}");
    assert_eq!(course[2]["workers"], json!(["w"]), "{course}");
}
