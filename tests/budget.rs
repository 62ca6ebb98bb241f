//! What a session may use, with the real program: flags, exit codes, figures, and going on.

use crate::harness::{Place, Ran, run};
use serde_json::{Value, json};

fn toils(times: u32) -> Value {
    json!({"say": "Half done.", "usage": {"input": 900, "output": 100}, "calls": [{"tool": "Glob", "input": {"pattern": "*"}}], "repeat": times})
}

fn play(place: &Place, steps: &Value, more: &[&str]) -> Ran {
    let script = json!({"agents": [{"name": "main", "steps": steps}]});
    let fixed = ["-p", "go", "--output-format", "stream-json"];
    run(place.scripted(&script.to_string(), &[&fixed[..], more].concat()))
}

#[test]
fn a_session_ends_at_its_cap_with_what_it_has_and_goes_on_with_a_higher_one() {
    let place = Place::new();
    let cap = ["--max-tokens-total", "10000", "--session-id", "s-1"];
    let ran = play(&place, &json!([toils(99)]), &cap);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let result = ran.result();
    assert_eq!(result["terminal_reason"], "budget");
    assert_eq!(result["subtype"], "error_max_budget_usd");
    assert_eq!(result["result"], "Half done.");
    let budget = &result["budget"];
    assert_eq!(budget["caps"], json!({"tokens": 10_000}));
    assert_eq!(budget["ended_by"], "tokens");
    assert_eq!(
        budget["spent"]["tokens"], 10_000,
        "the last turn fits: {budget}"
    );
    let usage = &result["usage"];
    let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(budget["spent"]["tokens"], sum);
    let stages: Vec<Value> = ran
        .events()
        .into_iter()
        .filter(|event| event["subtype"] == "budget")
        .map(|event| event["stage"].clone())
        .collect();
    assert_eq!(stages, ["near", "reached"]);

    // The cap is the session's, and what was used counts.
    let same = play(&place, &json!([]), &["--resume", "s-1"]);
    assert_eq!(same.code, Some(3), "{same:?}");
    assert_eq!(same.result()["num_turns"], 0, "nothing was asked");

    let higher = ["--resume", "s-1", "--max-tokens-total", "15000"];
    let steps = json!([toils(10), {"say": "All done.", "usage": {"input": 1900, "output": 100}}]);
    let more = play(&place, &steps, &higher);
    assert_eq!(more.code, Some(0), "{more:?}");
    assert_eq!(more.result()["budget"]["spent"]["tokens"], 12_000);

    let settings = place.root.path().join("settings.json");
    let show = ["show", "s-1", "--settings", settings.to_str().unwrap()];
    let shown = run(place.gaffer(&show));
    assert!(
        shown.out.contains("budget · 12000 tokens of 15000 tokens"),
        "{shown:?}"
    );
    let shown = run(place.gaffer(&[&show[..], &["--json"]].concat()));
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown["budget"]["caps"]["tokens"], 15_000);
    let totals = &shown["totals"]["usage"];
    let sum = totals["input_tokens"].as_u64().unwrap() + totals["output_tokens"].as_u64().unwrap();
    assert_eq!(shown["budget"]["spent"]["tokens"], sum, "they add up");
}

#[test]
fn money_is_a_cap_where_there_are_prices() {
    let place = Place::new();
    // $0.0019 an answer.
    let ran = play(&place, &json!([toils(99)]), &["--max-budget-usd", "0.02"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let spent = ran.result()["budget"]["spent"]["usd"].as_f64().unwrap();
    assert!((0.015..=0.02).contains(&spent), "{spent}");
    assert_eq!(ran.result()["budget"]["ended_by"], "usd");
    let settings = place.write("free.json", r#"{"smallModel": "nobody-knows-1"}"#);
    let more = [
        "--max-budget-usd",
        "1",
        "--settings",
        settings.to_str().unwrap(),
    ];
    let script = place.write("s.yaml", "agents: [{ steps: [{ say: x }] }]");
    let fixed = [
        "-p",
        "go",
        "--provider",
        "scripted",
        "--model",
        script.to_str().unwrap(),
    ];
    let ran = run(place.gaffer(&[&fixed[..], &more].concat()));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("has no price; give one in the settings"),
        "{ran:?}"
    );
    assert!(place.transcripts().len() == 1, "nothing was written");
}

#[test]
fn settings_hold_caps_too_and_a_project_has_none() {
    let place = Place::new();
    place.write(
        "project/.gaffer/settings.json",
        r#"{"budget": {"tokens": 1}}"#,
    );
    let ran = play(&place, &json!([{"say": "Done."}]), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("`budget` is left out"), "{ran:?}");
    place.write(
        "home/.gaffer/settings.json",
        r#"{"budget": {"tokens": 5000, "wall": "20m"}}"#,
    );
    let ran = play(&place, &json!([toils(99)]), &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(
        ran.result()["budget"]["caps"],
        json!({"tokens": 5000, "seconds": 1200})
    );
    for bad in [
        r#"{"usd": 0}"#,
        r#"{"tokens": 0}"#,
        r#"{"wall": "0s"}"#,
        r#"{"wall": 0}"#,
    ] {
        place.write(
            "home/.gaffer/settings.json",
            &format!("{{\"budget\": {bad}}}"),
        );
        let ran = play(&place, &json!([]), &[]);
        assert_eq!(ran.code, Some(2), "{bad}: {ran:?}");
    }
}

#[test]
fn bad_caps_are_usage_errors() {
    let place = Place::new();
    for bad in [
        ["--max-budget-usd", "0"],
        ["--max-budget-usd", "NaN"],
        ["--max-tokens-total", "0"],
        ["--max-wall", "0s"],
        ["--max-wall", "soon"],
        ["--max-workers-total", "0"],
    ] {
        let ran = play(&place, &json!([]), &bad);
        assert_eq!(ran.code, Some(2), "{bad:?}: {ran:?}");
        assert!(ran.err.contains(bad[0]), "{ran:?}");
    }
    assert!(place.transcripts().is_empty());
}
