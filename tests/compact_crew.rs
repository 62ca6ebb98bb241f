//! A coordinator whose workers report more than its context could hold.

use crate::harness::{Place, run};
use gaffer_testkit::{Server, Small, WireKind, asks_for_summary, is_compacted};
use serde_json::Value;

const WINDOW: usize = 32_000;
const WORKERS: usize = 100;

#[test]
fn a_hundred_large_results_leave_room_in_the_coordinators_context() {
    for wire in [WireKind::Anthropic, WireKind::Chat] {
        let start = |n: usize| {
            format!(
                "{{ tool: Agent, input: {{ description: Task {n}, name: w{n}, prompt: Look into {n} }} }}"
            )
        };
        let steps = (0..WORKERS / 20).map(|step| {
            let calls: Vec<String> = (step * 20..(step + 1) * 20).map(start).collect();
            format!("{{ calls: [{}] }}", calls.join(", "))
        });
        let steps: Vec<String> = steps.collect();
        let report = "A-finding-of-some-length-that-matters.-".repeat(100 * 1024 / 39);
        let script = format!(
            "agents: [
              {{ name: main, steps: [{}, {{ when: {{ notifications: {WORKERS} }}, say: All heard. }}] }},
              {{ steps: [{{ delay: 20ms, say: \"{report}\" }}] }}]",
            steps.join(", ")
        );
        let place = Place::new();
        let small = Small {
            window: WINDOW,
            summary: "## Goal\nHear all.".to_owned(),
        };
        let server = Server::small(&script, small);
        let args = [
            "-p",
            "Find out. My words: quince and plum.",
            "--mode",
            "coordinator",
        ];
        let mut command = place.on_wire(wire, &server, &args);
        let path = place.settings(wire);
        let mut all: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        all["prices"]["scripted"]["context"] = WINDOW.into();
        all["providers"][wire.provider()]["firstByteTimeout"] = "1m".into();
        place.write("settings.json", &all.to_string());
        command.env("GAFFER_SIMPLE", "1");
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let asked = server.asked();
        let bodies: Vec<String> = asked
            .iter()
            .filter(|it| it.agent == "main")
            .map(|it| String::from_utf8(it.body.clone()).unwrap())
            .collect();
        let most = bodies.iter().map(|body| body.len() / 4).max().unwrap();
        let summaries = bodies.iter().filter(|body| asks_for_summary(body)).count();
        assert!(most * 10 <= WINDOW * 7, "{most}");
        assert!(summaries >= 1);
        let last = bodies.last().unwrap();
        for n in 0..WORKERS {
            let name = format!("Agent \\\"Task {n}\\\" completed");
            assert_eq!(last.matches(&name).count(), 1, "{wire:?}: {name}");
        }
        let restarted = bodies.windows(2).filter(|pair| asks_for_summary(&pair[0]));
        let mut with_workers = 0;
        for pair in restarted {
            assert!(is_compacted(&pair[1]));
            assert!(pair[1].contains("My words: quince and plum."));
            with_workers += usize::from(pair[1].contains("<workers>"));
        }
        assert!(with_workers >= 1, "nobody ran when it was compacted");
    }
}
