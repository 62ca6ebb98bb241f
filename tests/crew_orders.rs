//! Guardrails about orders, with the real program: what the coordinator is told, what is refused,
//! what a program sees, and what a project's own rules change.

use crate::crew_world::{Plan, World};
use crate::harness::{Place, Ran, run};
use gaffer_protocol::End;
use serde_json::{Value, json};

const CREW: [&str; 6] = [
    "-p",
    "go",
    "--mode",
    "coordinator",
    "--output-format",
    "stream-json",
];

const GOOD: &str =
    "note.txt says `lo`, which is wrong: users read `hello`. Change it. Report the new line.";
const BAD: &str = "Fix the bug based on your findings.";

fn crew(place: &Place, agents: &Value) -> Ran {
    let script = json!({ "agents": agents });
    run(place.scripted(&script.to_string(), &CREW))
}

fn call(tool: &str, name: &str, input: &Value) -> Value {
    json!({"tool": tool, "as": name, "input": input})
}

fn start(name: &str, prompt: &str) -> Value {
    let input = json!({"description": "A task", "name": name, "prompt": prompt});
    call("Agent", name, &input)
}

fn advice(ran: &Ran) -> Vec<(String, bool)> {
    let all = ran.events().into_iter();
    // What is out of turn is looked at elsewhere.
    let is_advice = |line: &Value| line["subtype"] == "advice" && line["guardrail"] != "phases";
    all.filter(is_advice)
        .map(|line| {
            let rule = line["rule"].as_str().unwrap().to_owned();
            (rule, line["refused"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn a_bad_order_goes_out_with_advice_or_is_refused_or_is_not_looked_at() {
    let levels = [
        ("{}", "Advice: hands-on"),
        (
            r#"{"guardrails": {"orders": "enforce"}}"#,
            "No worker was started: hands-on",
        ),
        (r#"{"guardrails": {"orders": "off"}}"#, "transcript: "),
    ];
    for (n, (settings, told)) in levels.into_iter().enumerate() {
        let place = Place::new();
        place.write("home/.gaffer/settings.json", settings);
        let is_refused = n == 1;
        let last = match is_refused {
            true => json!({"expect": [{"of": "w", "error": true, "result": told}], "say": "Done."}),
            false => {
                json!({"expect": [{"of": "w", "error": false, "result": told}], "say": "Done."})
            }
        };
        let ran = crew(
            &place,
            &json!([
                {"name": "main", "steps": [{"calls": [start("w", BAD)]}, last, {"say": "Done."}]},
                {"steps": [{"say": "Mended."}]},
            ]),
        );
        assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
        let result = ran.result();
        assert_eq!(result["crew"]["started"], u32::from(!is_refused));
        let found = advice(&ran);
        match n {
            2 => assert_eq!((found.len(), &result["crew"]["advice"]), (0, &json!({}))),
            _ => {
                assert!(
                    found.contains(&("hands-on".to_owned(), is_refused)),
                    "{found:?}"
                );
                assert_eq!(result["crew"]["advice"]["hands-on"], 1);
                assert_eq!(
                    result["crew"]["advice_refused"],
                    found.iter().filter(|it| it.1).count()
                );
            }
        }
    }
}

/// A worker that writes a file, then what comes next for it.
fn written(next: &Value, told: &Value) -> Value {
    json!([
        {"name": "main", "steps": [
            {"calls": [start("writer", GOOD)]},
            {"expect": [{"of": "writer", "error": false, "result": {"matches": "jsonl$"}}], "say": "It runs."},
            {"when": {"notifications": 1},
             "expect": [{"text": "<advice>It wrote note.txt: corrections continue it"}],
             "calls": [next]},
            told,
            {"say": "Done."},
        ]},
        {"name": "writer", "steps": [
            {"calls": [{"tool": "Read", "input": {"file_path": "note.txt"}}]},
            {"calls": [{"tool": "Edit", "input": {"file_path": "note.txt", "old_string": "lo", "new_string": "hello"}}]},
            {"say": "It says hello now."},
            {"say": "Looked at it."},
        ]},
        {"steps": [{"say": "Done."}]},
    ])
}

#[test]
fn who_should_get_an_order_is_said_in_the_answer_and_at_the_end_of_a_task() {
    let verify = json!({"to": "writer", "message": "Verify that note.txt says hello. Run `grep hello note.txt` and report."});
    let other = "note.txt must end with a line break, because tools expect one. Add it. Report the result of `tail -c1 note.txt`.";
    let cases = [
        (
            call("SendMessage", "m", &verify),
            "Advice: fresh-verifies: writer wrote note.txt itself",
        ),
        (
            start("m", other),
            "Advice: continue-recent: writer has just worked on note.txt",
        ),
    ];
    for (next, told) in cases {
        let place = Place::new();
        place.write("project/note.txt", "lo\n");
        let told =
            json!({"expect": [{"of": "m", "error": false, "result": told}], "say": "I see."});
        let ran = crew(&place, &written(&next, &told));
        assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
        assert_eq!(advice(&ran).len(), 1);
    }
    // Where it is enforced, nothing happens.
    let place = Place::new();
    place.write("project/note.txt", "lo\n");
    place.write(
        "home/.gaffer/settings.json",
        r#"{"guardrails": {"continue": "enforce"}}"#,
    );
    let told = "Nothing was sent: fresh-verifies";
    let told = json!({"expect": [{"of": "m", "error": true, "result": told}], "say": "I see."});
    let ran = crew(&place, &written(&call("SendMessage", "m", &verify), &told));
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
    assert_eq!(ran.result()["crew"]["continued"], 0);
}

#[test]
fn a_projects_own_rules_count_and_broken_ones_end_the_run() {
    let place = Place::new();
    let agents = json!([
        {"name": "main", "steps": [
            {"calls": [start("w", BAD)]},
            {"expect": [{"of": "w", "error": false, "result": "Advice: no-path"}], "say": "Done."},
            {"say": "Done."},
        ]},
        {"steps": [{"say": "Mended."}]},
    ]);
    place.write("project/.gaffer/order-rules.toml", "off = [\"hands-on\"]\n");
    let ran = crew(&place, &agents);
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
    let place = Place::new();
    place.write(
        "project/.gaffer/order-rules.toml",
        "off = [\"hands-off\"]\n",
    );
    let ran = crew(&place, &agents);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.err
            .contains("order-rules.toml: `off` names `hands-off`, and there is no such rule"),
        "{}",
        ran.err
    );
    assert!(place.transcripts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn scores_are_kept_for_each_order_of_a_task() {
    let message = json!({"to": "w", "message": "How is it going?"});
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [start("w", BAD), start("v", GOOD)]},
            {"say": "Waiting."},
            {"when": {"notifications": 2}, "calls": [call("SendMessage", "m", &message)]},
            {"expect": [{"of": "m", "error": false, "result": "Advice: status"}], "say": "Waiting."},
            {"when": {"notifications": 3}, "say": "Done."},
        ]},
        // They take a moment, so that the coordinator has said its word before they report.
        {"steps": [{"delay": "1s", "say": "Done."}, {"delay": "1s", "say": "Well."}]},
    ]});
    let mut world = World::new(Plan::script(&script.to_string()));
    assert_eq!(world.run("go").await, End::Done);
    let scores = world.crew.order_scores().into_iter();
    let mut scores: Vec<(String, Vec<u8>)> = scores
        .map(|(_, name, scores)| (name.to_string(), scores))
        .collect();
    scores.sort();
    assert_eq!(
        scores,
        [("v".to_owned(), vec![100]), ("w".to_owned(), vec![0, 70])]
    );
    let statistics = world.crew.statistics();
    assert_eq!((statistics.judged, statistics.mean_score), (3, Some(56)));
}
