//! A recorded run, replayed, gives the same transcript.

use crate::harness::{Place, run};
use gaffer_testkit::{Server, WireKind};
use serde_json::Value;

const SCRIPT: &str = r#"
agents:
  - name: main
    steps:
      - think: "Two things.\n"
        say: "I look: ${ and \"quotes\"\n\n  indented\ttab"
        calls:
          - { tool: Bash, as: b, input: { command: "echo hi; echo ${X}" } }
          - { tool: Bash, input_text: "{\"command\" :  \"echo spaced\"}" }
          - { tool: Read, input_text: "not json" }
      - say: "Done:\n- one\n- two"
        usage: { input: 5, cache_read: 100, output: 9 }
"#;

/// Times and the agent's id differ from run to run; nothing else may.
fn normalised(mut transcript: Vec<Value>) -> Vec<Value> {
    for record in &mut transcript {
        record["at"] = Value::Null;
        if let Some(start) = record["entry"].get_mut("start") {
            for name in ["session", "agent", "cwd", "provider", "model"] {
                start[name] = Value::Null;
            }
        }
        // The context names the folder.
        if let Some(input) = record["entry"].get_mut("input") {
            input["blocks"][0] = Value::Null;
        }
    }
    transcript
}

#[test]
fn on_every_wire() {
    for wire in WireKind::ALL {
        let script = SCRIPT.replace("${X}", "$${X}").replace("${ and", "$${ and");
        let place = Place::new();
        let server = Server::start(&script);
        let ran = run(place.on_wire(wire, &server, &["-p", "go", "--record", "run.yaml"]));
        assert_eq!(ran.code, Some(0), "{wire:?}: {ran:#?}");
        let recorded = std::fs::read_to_string(place.project().join("run.yaml")).unwrap();

        let again = Place::new();
        let replayed = run(again.scripted(&recorded, &["-p", "go"]));
        assert_eq!(
            replayed.code,
            Some(0),
            "{wire:?}: {replayed:#?}\n{recorded}"
        );
        assert_eq!(replayed.out, ran.out);
        assert_eq!(
            normalised(again.transcript()),
            normalised(place.transcript()),
            "{wire:?}\n{recorded}"
        );
    }
}

#[test]
fn a_recording_is_not_lost_to_a_run_that_never_began() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ say: Hi. }] }]";
    let args = ["-p", "go", "--session-id", "one", "--record", "keep.yaml"];
    let kept = || std::fs::read_to_string(place.project().join("keep.yaml")).unwrap();
    assert_eq!(run(place.scripted(script, &args)).code, Some(0));
    let before = kept();
    assert_eq!(run(place.scripted(script, &args)).code, Some(2));
    assert_eq!(kept(), before);
}
