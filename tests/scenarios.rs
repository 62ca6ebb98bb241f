//! Plays every file in `tests/scenarios` in process and on all three wires.

use crate::harness::{Place, Ran, run};
use gaffer_testkit::{Server, WireKind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    #[expect(dead_code, reason = "for the reader of the file")]
    about: String,
    prompt: String,
    /// Files of the project before the run.
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    args: Vec<String>,
    /// What the agents answer.
    script: Value,
    expect: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    exit: i32,
    /// The `result` of the result event.
    result: String,
    /// Why it ended.
    reason: String,
    /// The kinds of the transcript's records, in order.
    transcript: Vec<String>,
    /// The events that programs see, in order: `type` or `type/subtype`.
    events: Vec<String>,
    /// Files of the project after the run.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Texts that some tool's result contains.
    #[serde(default)]
    results: Vec<String>,
}

fn play(scenario: &Scenario, wire: Option<WireKind>) {
    let place = Place::new();
    for (name, text) in &scenario.files {
        place.write(&format!("project/{name}"), text);
    }
    let script = scenario.script.to_string();
    let mut args = vec!["-p", &scenario.prompt, "--output-format", "stream-json"];
    args.extend(scenario.args.iter().map(String::as_str));
    let ran = match wire {
        None => run(place.scripted(&script, &args)),
        Some(wire) => {
            let server = Server::with_pieces(&script, 37);
            let ran = run(place.on_wire(wire, &server, &args));
            assert!(
                server.left_over().is_empty(),
                "{:?}: {:?}",
                server.left_over(),
                ran
            );
            ran
        }
    };
    compare(scenario, &place, &ran);
}

fn compare(scenario: &Scenario, place: &Place, ran: &Ran) {
    let want = &scenario.expect;
    let result = ran.result();
    assert_eq!(ran.code, Some(want.exit), "{ran:#?}");
    assert_eq!(result["type"], "result");
    assert_eq!(result["result"], want.result.trim_end(), "{ran:#?}");
    assert_eq!(result["terminal_reason"], want.reason);
    let transcript = place.transcript();
    let kind = |record: &Value| {
        record["entry"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone()
    };
    assert_eq!(
        transcript.iter().map(kind).collect::<Vec<_>>(),
        want.transcript,
        "{transcript:#?}"
    );
    let name = |event: &Value| match event["subtype"]
        .as_str()
        .filter(|_| event["type"] == "system")
    {
        Some(subtype) => format!("system/{subtype}"),
        None => event["type"].as_str().unwrap().to_owned(),
    };
    let events = ran.events();
    assert_eq!(
        events.iter().map(name).collect::<Vec<_>>(),
        want.events,
        "{events:#?}"
    );
    for (name, text) in &want.files {
        let there = std::fs::read_to_string(place.project().join(name)).unwrap();
        assert_eq!(&there, text, "{name}");
    }
    for text in &want.results {
        let found = transcript.iter().any(|record| {
            record["entry"]["result"]["parts"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|part| {
                    part["text"]
                        .as_str()
                        .is_some_and(|result| result.contains(text))
                })
        });
        assert!(found, "no result contains {text:?}: {transcript:#?}");
    }
    // The money adds up: what the result says is what the answers said.
    let tokens = |path: &str| -> u64 {
        let answers = transcript
            .iter()
            .filter_map(|record| record["entry"]["answer"]["usage"][path].as_u64());
        answers.sum()
    };
    assert_eq!(result["usage"]["output_tokens"], tokens("output"));
    assert_eq!(
        result["usage"]["cache_read_input_tokens"],
        tokens("cache_read")
    );
}

fn all(wire: Option<WireKind>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{folder:?} has lost its scenarios");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let scenario: Scenario = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let told = std::panic::catch_unwind(|| play(&scenario, wire));
        assert!(told.is_ok(), "{} on {wire:?}", file.display());
    }
}

#[test]
fn in_process() {
    all(None);
}

#[test]
fn on_anthropic_messages() {
    all(Some(WireKind::Anthropic));
}

#[test]
fn on_openai_responses() {
    all(Some(WireKind::Responses));
}

#[test]
fn on_chat_completions() {
    all(Some(WireKind::Chat));
}
