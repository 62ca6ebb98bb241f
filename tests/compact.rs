//! Compaction in the whole program, on all three wires, against a server with a small context.
#![cfg_attr(
    not(feature = "coordinator"),
    expect(dead_code, reason = "a worker needs a coordinator")
)]

use crate::harness::{Place, Ran, run};
use gaffer_testkit::{Asked, Server, Small, WireKind, asks_for_summary, head, is_compacted};
use serde_json::{Value, json};

const WINDOW: usize = 16_000;
const SUMMARY: &str = "## Goal\nRead all files.\n## Next\nRead on.";

fn small(window: usize) -> Small {
    Small {
        window,
        summary: SUMMARY.to_owned(),
    }
}

/// A place whose settings know the size of the server's model, or do not.
fn settings(place: &Place, wire: WireKind, more: &Value) {
    let path = place.settings(wire);
    let mut all: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (key, value) in more.as_object().unwrap() {
        match (&mut all[key], value) {
            (Value::Object(old), Value::Object(new)) => old.extend(new.clone()),
            (old, new) => *old = new.clone(),
        }
    }
    place.write("settings.json", &all.to_string());
}

fn start(place: &Place, wire: WireKind, server: &Server, more: &Value, args: &[&str]) -> Ran {
    let mut command = place.on_wire(wire, server, args);
    // It wrote the settings; these go over them.
    settings(place, wire, more);
    command.env("GAFFER_SIMPLE", "1");
    run(command)
}

fn known() -> Value {
    json!({"prices": {"scripted": {"input": 1.0, "output": 10.0, "context": WINDOW, "max_output": 2000}}})
}

/// Reads files over and over: most are small, and some are larger than the whole context.
fn reads(place: &Place, count: usize) -> String {
    let sizes = [300, 900, 200, 2_500, 40_000, 500, 7_000];
    let paths = sizes.map(|size| {
        let line = "All work and no play makes a file a dull file.\n";
        let text = line.repeat(size / line.len() + 1);
        let path = place.write(&format!("project/f{size}.txt"), &text[..size]);
        path.canonicalize().unwrap().display().to_string()
    });
    let steps = (0..count).map(|n| {
        let path = &paths[n % paths.len()];
        format!("{{ calls: [{{ tool: Read, input: {{ file_path: {path} }} }}] }}")
    });
    steps.collect::<Vec<_>>().join(",\n")
}

fn of<'a>(asked: &'a [Asked], agent: &'a str) -> impl Iterator<Item = (&'a Asked, String)> {
    let own = asked.iter().filter(move |it| it.agent == agent);
    own.map(|it| (it, String::from_utf8(it.body.clone()).unwrap()))
}

#[cfg(feature = "coordinator")]
#[test]
fn a_worker_on_a_small_model_finishes_five_hundred_calls() {
    for wire in WireKind::ALL {
        let place = Place::new();
        let order = "Read all files; the word of the day is quince";
        let script = format!(
            "agents: [
              {{ name: main, steps: [
                {{ calls: [{{ tool: Agent, input: {{ description: Task, name: w, prompt: {order} }} }}] }},
                {{ say: Waiting. }},
                {{ when: {{ notifications: 1 }}, say: Done. }}] }},
              {{ name: w, steps: [{}, {{ say: I read them all. }}] }}]",
            reads(&place, 500)
        );
        let server = Server::small(&script, small(WINDOW));
        let args = [
            "-p",
            "go",
            "--mode",
            "coordinator",
            "--output-format",
            "stream-json",
            "--verbose",
        ];
        let ran = start(&place, wire, &server, &known(), &args);
        assert_eq!(ran.code, Some(0), "{wire:?} {}", ran.err);
        assert_eq!(server.left_over(), [""; 0]);
        let asked = server.asked();
        let tokens = of(&asked, "w").map(|(_, body)| body.len() / 4);
        let most = tokens.max().unwrap();
        let summaries = of(&asked, "w").filter(|(_, body)| asks_for_summary(body));
        let summaries = summaries.count();
        // None was refused, and there was always room for an answer.
        assert!(most <= WINDOW / 10 * 7, "{most}");
        assert!((5..120).contains(&summaries), "{summaries}");
        assert_eq!(of(&asked, "w").count(), 501 + summaries);
        check_compacted(wire, &asked, order);
        let boundaries = ran.events().into_iter();
        let boundaries = boundaries.filter(|it| it["subtype"] == "compact_boundary");
        let boundaries: Vec<Value> = boundaries.collect();
        assert_eq!(boundaries.len(), summaries);
        assert_eq!(boundaries[0]["compact_metadata"]["trigger"], "auto");
        // The ledger has all that the server said, summaries included.
        let served = asked.iter().map(|it| it.body.len() as u64 / 4).sum::<u64>();
        let result = ran.result();
        assert_eq!(result["modelUsage"]["scripted"]["inputTokens"], served);
        let output = asked.len() as u64 * 100;
        assert_eq!(result["modelUsage"]["scripted"]["outputTokens"], output);
    }
}

/// The first request after each summary has the order and the summary, and the same prefix; the
/// summary was asked for with all that the cache had.
fn check_compacted(wire: WireKind, asked: &[Asked], order: &str) {
    let own: Vec<(&Asked, String)> = of(asked, "w").collect();
    for n in 1..own.len() {
        let (request, body) = &own[n];
        let (before, body_before) = &own[n - 1];
        let marks = |body: &str| body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        if asks_for_summary(body) {
            let (now, then) = (marks(body), marks(body_before));
            assert!(now.starts_with(&then[..then.len() - 4]), "{wire:?} {n}");
            if wire == WireKind::Anthropic {
                assert_eq!(request.cached, before.cacheable);
            }
            assert!(is_compacted(&own[n + 1].1));
        } else if asks_for_summary(body_before) {
            assert_eq!(head(wire, body), head(wire, &own[0].1));
            for words in [order, "Read all files.", "f40000.txt", "working folder"] {
                assert!(body.contains(words), "{wire:?} {n}: {words}");
            }
        }
    }
}

#[test]
fn what_nobody_knows_of_a_model_is_learnt_from_its_refusal() {
    for wire in WireKind::ALL {
        let place = Place::new();
        let script = format!(
            "agents: [{{ steps: [{}, {{ say: Done. }}] }}]",
            reads(&place, 40)
        );
        let server = Server::small(&script, small(WINDOW));
        let ran = start(
            &place,
            wire,
            &server,
            &json!({}),
            &["-p", "Read them. Plum."],
        );
        assert_eq!(ran.code, Some(0), "{wire:?} {}", ran.err);
        let asked = server.asked();
        let refused = asked.iter().filter(|it| it.body.len() / 4 > WINDOW).count();
        assert!((1..4).contains(&refused), "{refused} of {}", asked.len());
        let last = asked.last().unwrap();
        assert!(String::from_utf8_lossy(&last.body).contains("Read them. Plum."));
        let fold = place.fold();
        assert!(fold.compactions >= 1);
        assert_eq!(fold.turns.iter().filter(|it| !it.is_summary).count(), 41);
    }
}

#[test]
fn with_compaction_switched_off_the_context_is_an_end() {
    let place = Place::new();
    let script = format!(
        "agents: [{{ steps: [{}, {{ say: Done. }}] }}]",
        reads(&place, 40)
    );
    let server = Server::small(&script, small(WINDOW));
    let off = json!({"autoCompactEnabled": false});
    let ran = start(
        &place,
        WireKind::Chat,
        &server,
        &off,
        &["-p", "go", "--output-format", "json"],
    );
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.result()["terminal_reason"], "context");
}

#[test]
fn the_window_can_be_set_smaller_than_the_models() {
    let place = Place::new();
    let script = format!(
        "agents: [{{ steps: [{}, {{ say: Done. }}] }}]",
        reads(&place, 30)
    );
    let server = Server::small(&script, small(100_000));
    let more = json!({"autoCompactWindow": 12_000});
    let ran = start(&place, WireKind::Anthropic, &server, &more, &["-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(place.fold().compactions > 0);
    let asked = server.asked();
    assert!(asked.iter().all(|it| it.body.len() / 4 <= 12_000));
}

#[test]
fn hooks_are_asked_before_and_told_after() {
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let window = |more: Value| {
        let mut all = json!({"autoCompactWindow": 30_000});
        all["hooks"] = more;
        all
    };
    for is_blocked in [false, true] {
        let place = Place::new();
        let steps = reads(&place, 40);
        let script = format!("agents: [{{ steps: [{steps}, {{ say: Done. }}] }}]");
        let server = Server::small(&script, small(1_000_000));
        let before = if is_blocked {
            "cat > pre.json; exit 2"
        } else {
            "cat > pre.json"
        };
        let hooks = json!({"PreCompact": hook(before), "PostCompact": hook("cat > post.json")});
        let mut command = place.on_wire(WireKind::Chat, &server, &["-p", "go"]);
        settings(&place, WireKind::Chat, &window(hooks));
        command.stdin(std::process::Stdio::null());
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let told = |name: &str| std::fs::read_to_string(place.project().join(name)).ok();
        let pre: Value = serde_json::from_str(&told("pre.json").unwrap()).unwrap();
        assert_eq!(
            (&pre["trigger"], &pre["custom_instructions"]),
            (&json!("auto"), &Value::Null)
        );
        assert_eq!(told("post.json").is_some(), !is_blocked);
        assert_eq!(place.fold().compactions == 0, is_blocked);
        if let Some(post) = told("post.json") {
            let post: Value = serde_json::from_str(&post).unwrap();
            assert_eq!(post["compact_summary"], SUMMARY);
        }
    }
}
