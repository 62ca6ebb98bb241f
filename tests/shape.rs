//! Results of a set form: met at once, after a word, never; and what a schema may not be.

use crate::harness::{Place, Ran, run};
use serde_json::{Value, json};

fn crew(worker: &Value, order: &Value, expect: &str) -> Ran {
    let place = Place::new();
    let schema = json!({"type": "object", "required": ["files"], "properties": {"files": {"type": "array", "items": {"type": "string"}}}});
    let mut input =
        json!({"description": "List it", "name": "w", "prompt": "go", "result_schema": schema});
    input
        .as_object_mut()
        .unwrap()
        .extend(order.as_object().unwrap().clone());
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [{"tool": "Agent", "as": "w", "input": input}]},
            {"when": {"notifications": 1}, "meanwhile": "Waiting.", "expect": [{"text": {"matches": expect}}], "say": "Heard."},
        ]},
        {"name": "w", "steps": worker},
    ]});
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
    ran
}

fn give(value: &Value) -> Value {
    json!({"calls": [{"tool": "StructuredOutput", "as": "s", "input": value}]})
}

#[test]
fn a_result_of_the_right_form_is_taken_at_once() {
    let told = json!([{"text": {"matches": "(?s)call StructuredOutput.*\"required\""}}]);
    let mut first = give(&json!({"files": ["a.rs"]}));
    first["expect"] = told;
    let worker = json!([first, {"say": "Given."}]);
    let done = "(?s)completed.*<result>\\{\"files\":\\[\"a.rs\"\\]\\}</result>";
    let ran = crew(&worker, &json!({}), done);
    assert_eq!(ran.result()["crew"]["completed"], 1);
    // It is proven, so there is more than its word.
    assert_eq!(ran.result()["crew"]["phases"]["unverified"], json!([]));
    // The same as its last words.
    let worker = json!([{"say": "```json\n{\"files\": []}\n```"}]);
    crew(
        &worker,
        &json!({}),
        "(?s)completed.*<result>\\{\"files\":\\[\\]\\}</result>",
    );
}

#[test]
fn what_does_not_fit_goes_back_to_the_worker() {
    let wrong =
        json!([{"of": "s", "error": true, "result": "/files/0: 7 is not of type \"string\""}]);
    let told = json!([{"text": {"matches": "(?s)the answer is no JSON.*tries left: 3"}}]);
    let mut again = give(&json!({"files": ["b"]}));
    again["expect"] = told;
    let worker = json!([give(&json!({"files": [7]})), {"expect": wrong, "say": "I tried."}, again, {"say": "Now."}]);
    crew(
        &worker,
        &json!({}),
        "(?s)completed.*\\{\"files\":\\[\"b\"\\]\\}",
    );
}

#[test]
fn a_form_that_is_never_met_is_a_failure() {
    let worker = json!([{"say": "There are two files.", "repeat": 4}]);
    let failed = "(?s)<status>failed</status>.*does not fit its schema.*There are two files.*<reason>schema_not_met";
    let ran = crew(&worker, &json!({}), failed);
    assert_eq!(ran.result()["crew"]["ends"]["schema_not_met"], 1);
}

#[test]
fn the_form_is_looked_at_before_the_command() {
    let write = json!({"tool": "Bash", "input": {"command": "touch made"}});
    let worker = json!([
        {"say": "Done."},
        {"expect": [{"text": "StructuredOutput"}], "calls": [{"tool": "StructuredOutput", "input": {"files": []}}]},
        {"say": "Done."},
        {"expect": [{"text": "test -e made"}], "calls": [write]},
        {"say": "Done."},
    ]);
    crew(
        &worker,
        &json!({"done_when": "test -e made"}),
        "(?s)completed.*\\{\"files\":\\[\\]\\}",
    );
}

#[test]
fn a_schema_that_cannot_be_used_starts_nobody() {
    for (schema, why) in [
        (json!({"type": "strin"}), "`result_schema` cannot be used"),
        (
            json!({"$ref": "https://example.com/a.json"}),
            "outside of it",
        ),
        (json!(7), "no JSON object"),
    ] {
        let place = Place::new();
        let order = json!({"description": "List it", "prompt": "go", "result_schema": schema});
        let script = json!({"agents": [{"name": "main", "steps": [
            {"calls": [{"tool": "Agent", "as": "w", "input": order}]},
            {"expect": [{"of": "w", "error": true, "result": why}], "say": "I see."},
        ]}]});
        let args = [
            "-p",
            "go",
            "--mode",
            "coordinator",
            "--output-format",
            "stream-json",
        ];
        let ran = run(place.scripted(&script.to_string(), &args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.result()["crew"]["started"], 0);
    }
}

/// One agent whose answer has to be a number.
fn asked(steps: &Value, format: &str) -> Ran {
    let place = Place::new();
    let script = json!({"agents": [{"name": "main", "steps": steps}]});
    let schema =
        r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
    let file = place.write("schema.json", schema).display().to_string();
    let args = [
        "-p",
        "go",
        "--output-format",
        format,
        "--json-schema",
        &file,
    ];
    run(place.scripted(&script.to_string(), &args))
}

#[test]
fn the_answer_to_the_user_can_have_a_form_too() {
    let told = json!([{"text": {"matches": "the answer is no JSON"}}]);
    let mut again = give(&json!({"n": 7}));
    again["expect"] = told;
    let steps = json!([{"say": "Seven."}, again, {"say": "There it is."}]);
    let ran = asked(&steps, "json");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.result()["structured_output"], json!({"n": 7}));
    let ran = asked(&steps, "text");
    assert_eq!(ran.out, "{\"n\":7}\n");
    let ran = asked(&json!([{"say": "Seven.", "repeat": 4}]), "json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.result()["subtype"],
        "error_max_structured_output_retries"
    );
    assert_eq!(ran.result()["structured_output"], Value::Null);
    let wrong = Place::new();
    let ran = run(wrong.gaffer(&["-p", "go", "--json-schema", r#"{"type": "strin"}"#]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("--json-schema"), "{}", ran.err);
}
