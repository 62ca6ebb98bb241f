//! `gaffer show`: the figures of a crew's run, read back from disk.

use crate::harness::{Place, Ran, run};
use serde_json::Value;

const SCRIPT: &str = "agents: [
  { name: main, steps: [
    { usage: { input: 1000, output: 10 }, calls: [{ tool: Agent, input: { description: Look around, name: looker, subagent_type: explore, prompt: go } }, { tool: Agent, input: { description: Write it, name: writer, prompt: go, max_turns: 1 } }] },
    { usage: { input: 7, cache_read: 1010, output: 3 }, say: Waiting. },
    { when: { notifications: 2 }, usage: { input: 11, cache_read: 1017, cache_write: 5, output: 4 }, say: All done. }] },
  { name: looker, steps: [
    { usage: { input: 333, output: 1 }, model: other-model, calls: [{ tool: Bash, input: { command: pwd } }, { tool: Glob, input: { pattern: '*' } }] },
    { usage: { input: 21, cache_write: 9, output: 2 }, say: Nothing here. }] },
  { name: writer, steps: [{ calls: [{ tool: Write, input: { file_path: a.txt, content: x } }] }] }]";

fn crew(place: &Place) -> Ran {
    let more = [
        "--mode",
        "coordinator",
        "--output-format",
        "json",
        "--session-id",
        "first-1",
    ];
    let ran = run(place.scripted(SCRIPT, &[&["-p", "go"], &more[..]].concat()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran
}

fn show(place: &Place, args: &[&str]) -> Ran {
    let settings = place.root.path().join("settings.json");
    let fixed = ["show", "--settings", settings.to_str().unwrap()];
    run(place.gaffer(&[&fixed[..], args].concat()))
}

fn shown(place: &Place, args: &[&str]) -> Value {
    let ran = show(place, &[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn sum(rows: &Value, key: &str) -> u64 {
    let rows = rows.as_object().unwrap().values();
    rows.map(|row| row.pointer(key).unwrap().as_u64().unwrap())
        .sum()
}

#[test]
fn the_figures_are_those_of_the_run() {
    let place = Place::new();
    let result = crew(&place).result();
    let shown = shown(&place, &["first"]);
    let names: Vec<&str> = shown["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "main");
    assert_eq!(names.len(), 3, "{names:?}");
    let main = &shown["agents"][0];
    for (ours, theirs) in [
        ("/usage", "/usage"),
        ("/turns", "/num_turns"),
        ("/tool_uses", "/tool_uses"),
    ] {
        assert_eq!(main.pointer(ours), result.pointer(theirs), "{ours}");
    }
    assert_eq!(shown["totals"]["cost_usd"], result["total_cost_usd"]);
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    let models = result["modelUsage"].as_object().unwrap();
    assert_eq!(models.len(), 2);
    for (model, told) in models {
        let ours = &shown["models"][model];
        assert_eq!(ours["usage"]["input_tokens"], told["inputTokens"]);
        assert_eq!(ours["usage"]["output_tokens"], told["outputTokens"]);
        let read = &ours["usage"]["cache_read_input_tokens"];
        assert_eq!(read, &told["cacheReadInputTokens"]);
        let written = &ours["usage"]["cache_creation_input_tokens"];
        assert_eq!(written, &told["cacheCreationInputTokens"]);
        assert_eq!(ours["cost_usd"], told["costUSD"]);
    }
    let crew = &result["crew"];
    for (ours, own, workers) in [
        ("turns", "num_turns", "turns"),
        ("tool_uses", "tool_uses", "tool_uses"),
    ] {
        let all = result[own].as_u64().unwrap() + crew[workers].as_u64().unwrap();
        assert_eq!(shown["totals"][ours], all);
    }
    // Sums by type and by model come to the same.
    for key in [
        "/turns",
        "/tool_uses",
        "/usage/input_tokens",
        "/usage/output_tokens",
    ] {
        let all = shown["totals"].pointer(key).unwrap().as_u64().unwrap();
        assert_eq!(sum(&shown["types"], key), all, "{key}");
        assert_eq!(sum(&shown["models"], key), all, "{key}");
    }
}

#[test]
fn the_tree_says_who_did_what_and_how_it_ended() {
    let place = Place::new();
    crew(&place);
    let ran = show(&place, &[]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let line = |name: &str| {
        let found = ran.out.lines().find(|line| line.contains(name));
        found.unwrap_or_else(|| panic!("{name}: {}", ran.out))
    };
    assert!(ran.out.starts_with("Session first-1 · coordinator"));
    assert!(line("main ").contains("coordinator"), "{}", ran.out);
    assert!(line("looker").contains("─ looker  explore"), "{}", ran.out);
    assert!(line("looker").contains("done · agent-"), "{}", ran.out);
    assert!(line("looker").ends_with("· Look around"), "{}", ran.out);
    assert!(
        line("writer").contains("failed (reached its limit of turns"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("could not be read"), "{}", ran.out);
}

#[test]
fn a_killed_session_and_a_damaged_transcript_are_shown_too() {
    let place = Place::new();
    crew(&place);
    for path in place.transcripts() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.pop();
        let cut = lines.join("\n") + "\n{\"at\":\"2026-";
        std::fs::write(&path, cut).unwrap();
    }
    let shown = shown(&place, &[]);
    for agent in shown["agents"].as_array().unwrap() {
        assert_eq!(agent["reason"], "interrupted");
        assert_eq!(agent["has_end"], false);
        assert_eq!(agent["damaged_lines"], 1);
    }
    let ran = show(&place, &[]);
    assert!(ran.out.contains("interrupted · agent-"), "{}", ran.out);
    assert!(
        ran.out
            .contains("3 lines of the transcripts could not be read"),
        "{}",
        ran.out
    );
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let place = Place::new();
    place.write("settings.json", "{}");
    let ran = show(&place, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("there is no session yet"), "{}", ran.err);
    crew(&place);
    let ran = show(&place, &["nosuch\u{1b}[2J"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(
        ran.err,
        "gaffer: there is no session `nosuch[2J`; the newest: first-1\n"
    );
    let elsewhere = place.home();
    let ran = show(&place, &["--cwd", elsewhere.to_str().unwrap()]);
    assert!(
        ran.err
            .contains("no session of this folder; the newest of others: first-1"),
        "{}",
        ran.err
    );
    let ran = show(&place, &["fir", "--cwd", elsewhere.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn an_unknown_price_stays_unknown() {
    let place = Place::new();
    crew(&place);
    let ran = run(place.gaffer(&["show"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("unknown"), "{}", ran.out);
    assert!(!ran.out.contains("$0.0000"), "{}", ran.out);
}
