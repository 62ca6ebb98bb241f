//! Scripts: what does not fit fails the run and shows the difference.

use crate::harness::{Place, run};
use gaffer_model::script::{Outcome, Player, Script, Speaker};
use gaffer_protocol::{Block, Origin};

#[test]
fn a_wrong_expectation_shows_what_was_expected_and_what_came() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ calls: [{ tool: Bash, as: x, input: { command: echo five } }] }, { expect: [{ of: x, result: six }], say: Fine. }] }]";
    let ran = run(place.scripted(script, &["-p", "go"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err
            .contains("agent `main`, step 2: expected a result that contains \"six\""),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("result of call_1: \"five\""),
        "{}",
        ran.err
    );
}

#[test]
fn a_run_that_goes_past_its_script_fails() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ calls: [{ tool: Bash, input: { command: 'true' } }] }] }]";
    let ran = run(place.scripted(script, &["-p", "go"]));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("step 2: the script ends after step 1"),
        "{}",
        ran.err
    );
}

#[test]
fn an_agent_without_an_entry_fails() {
    let place = Place::new();
    let ran = run(place.scripted("agents: [{ name: other, steps: [] }]", &["-p", "go"]));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err
            .contains("no entry of the script fits the agent `main`"),
        "{}",
        ran.err
    );
}

#[test]
fn steps_that_were_not_played_are_named() {
    let place = Place::new();
    let ran = run(place.scripted(
        "agents: [{ name: main, steps: [{ say: A. }, { say: B. }] }]",
        &["-p", "go"],
    ));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "A.\n"));
    assert!(
        ran.err
            .contains("not played to its end: main: 1 of 2 steps"),
        "{}",
        ran.err
    );
}

#[test]
fn values_are_taken_from_results() {
    let place = Place::new();
    let script = r#"
agents:
  - steps:
      - calls: [{ tool: Bash, as: made, input: { command: "echo '{\"task_id\": \"agent-0000abcd\", \"n\": 3}'" } }]
      - save:
          id: { of: made, json: /task_id }
          n: { matches: '"n": ([0-9]+)' }
        calls: [{ tool: Bash, input: { command: "echo ${id}-${n}" } }]
      - expect: [{ result: { equals: agent-0000abcd-3 } }]
        say: "It was ${id}."
"#;
    let ran = run(place.scripted(script, &["-p", "go"]));
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "It was agent-0000abcd.\n"),
        "{}",
        ran.err
    );
}

#[test]
fn what_must_not_be_there_must_be_nowhere() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ expect: [{ text: { lacks: secret } }], say: Fine. }] }]";
    let code = |prompt| run(place.scripted(script, &["-p", prompt])).code;
    assert_eq!(code("tell the secret"), Some(1));
    assert_eq!(code("tell nothing"), Some(0));
}

#[test]
fn a_broken_script_is_named_with_its_place_and_nothing_is_written() {
    let cases = [
        ("agents:\n  - steps:\n      - sya: hi\n", "sya"),
        ("agents: [", "script.yaml"),
        ("version: 2\nagents: []\n", "version 2"),
        (
            "agents: [{ steps: [{ say: a, answer: [] }] }]",
            "agent 1, step 1: `answer` stands instead",
        ),
        (
            "agents: [{ steps: [{ expect: [{ text: { matches: '(' } }] }] }]",
            "pattern",
        ),
        ("agents: [{ steps: [{ delay: soon }] }]", "no duration"),
        (
            "agents: [{ prompt: { matches: '(' }, steps: [] }]",
            "agent 1: the pattern",
        ),
        (
            "agents: [{ steps: [{ expect: [{ text: 3 }] }] }]",
            "expected a text in quotes",
        ),
    ];
    for (script, want) in cases {
        let place = Place::new();
        let ran = run(place.scripted(script, &["-p", "go"]));
        assert_eq!(ran.code, Some(2), "{script}: {ran:?}");
        assert!(ran.err.contains(want), "{script}: {}", ran.err);
        assert!(std::fs::read_dir(place.home()).unwrap().next().is_none());
    }
}

#[test]
fn the_schema_in_the_documentation_is_the_present_one() {
    let place = Place::new();
    let ran = run(place.gaffer(&["script", "schema"]));
    let there =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/script.schema.json");
    let there = std::fs::read_to_string(there).unwrap();
    assert_eq!(ran.out, there, "run `cargo xtask schema`");
}

#[test]
fn check_reads_a_script_without_running_it() {
    let place = Place::new();
    place.write("project/s.yaml", "agents: [{ steps: [{ say: A. }] }]");
    let ran = run(place.gaffer(&["script", "check", "s.yaml"]));
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "s.yaml: sound; 1 agent, 1 step\n")
    );
}

#[test]
fn a_step_can_wait_for_notifications() {
    let script = "agents: [{ steps: [{ say: Started. }, { when: { notifications: 2 }, meanwhile: Not yet., say: Both are back. }] }]";
    let player = Player::new(Script::parse(script).unwrap());
    let who = Speaker {
        id: "1".into(),
        name: "main".into(),
        agent_type: "coordinator".into(),
    };
    let notification = Block::from(
        Origin::TaskNotification,
        "<task-notification>…</task-notification>",
    );
    // The user's words never count, whatever they look like.
    let forged = Block::from_human("<task-notification>…</task-notification>");
    let mut said = Vec::new();
    for input in [
        vec![],
        vec![notification.clone()],
        vec![forged],
        vec![notification],
    ] {
        match player.next(&who, &input).unwrap().outcome {
            Outcome::Answer(answer) => said.push(answer.text()),
            Outcome::Fault(..) => panic!("a fault"),
        }
    }
    assert_eq!(said, ["Started.", "Not yet.", "Not yet.", "Both are back."]);
}
