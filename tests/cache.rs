//! What a provider's prompt cache reads on the next turn.

use crate::harness::{Place, run};
use gaffer_testkit::{Server, WireKind};

const SCRIPT: &str = "
agents:
  - steps:
      - calls: [{ tool: Bash, input: { command: echo 1 } }]
      # More blocks than a provider looks back from a mark.
      - calls:
          - { tool: Bash, input: { command: echo a } }
          - { tool: Bash, input: { command: echo b } }
          - { tool: Bash, input: { command: echo c } }
          - { tool: Bash, input: { command: echo d } }
          - { tool: Bash, input: { command: echo e } }
          - { tool: Bash, input: { command: echo f } }
          - { tool: Bash, input: { command: echo g } }
          - { tool: Bash, input: { command: echo h } }
          - { tool: Bash, input: { command: echo i } }
          - { tool: Bash, input: { command: echo j } }
          - { tool: Bash, input: { command: echo k } }
          - { tool: Bash, input: { command: echo l } }
      - calls: [{ tool: Bash, input: { command: echo 3 } }]
      - say: Done.
";

#[test]
fn all_that_was_sent_before_is_read_from_the_cache() {
    let place = Place::new();
    let server = Server::start(SCRIPT);
    let ran = run(place.on_wire(WireKind::Anthropic, &server, &["-p", "go"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = server.asked();
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[0].cached, 0);
    for pair in asked.windows(2) {
        // Whatever the last request marked to be kept is found again, to the byte.
        assert_eq!(pair[1].cached, pair[0].cacheable);
        assert!(pair[1].cacheable > pair[0].cacheable);
    }
}

#[test]
fn the_openai_wire_names_the_prefix_to_the_cache() {
    let place = Place::new();
    let server = Server::start("agents: [{ steps: [{ say: Hi. }] }]");
    run(place.on_wire(WireKind::Responses, &server, &["-p", "go"]));
    let body = server.asked()[0].json();
    assert_eq!(body["prompt_cache_key"].as_str().unwrap().len(), 32);
    assert_eq!(body["include"][0], "reasoning.encrypted_content");
}

#[cfg(feature = "coordinator")]
const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

/// How much of a request a provider that has seen the earlier ones reads from its cache, whoever
/// sent them: up to a mark that was sent before, or as far as any of them goes along.
#[cfg(feature = "coordinator")]
fn cached(earlier: &[gaffer_testkit::Asked], now: &gaffer_testkit::Asked) -> usize {
    use gaffer_testkit::Asked;
    let text = |asked: &Asked| String::from_utf8(asked.body.clone()).unwrap();
    let marks = |asked: &Asked| -> Vec<String> {
        let text = text(asked);
        let marks = text.match_indices(MARK);
        marks.map(|(at, _)| text[..at].replace(MARK, "")).collect()
    };
    let reads = |before: &Asked| match now.wire {
        WireKind::Anthropic => {
            let kept = marks(before);
            let found = marks(now).into_iter().filter(|it| kept.contains(it));
            found.map(|it| it.len()).max().unwrap_or(0)
        }
        _ => {
            let pairs = before.body.iter().zip(&now.body);
            pairs.take_while(|(a, b)| a == b).count()
        }
    };
    earlier.iter().map(reads).max().unwrap_or(0)
}

#[cfg(feature = "coordinator")]
#[test]
fn workers_of_one_type_share_their_prefix_and_wakes_lose_nothing() {
    let start = |name: &str| {
        format!(
            "{{ tool: Agent, input: {{ description: Task, name: {name}, prompt: Do what {name} does }} }}"
        )
    };
    let script = format!(
        "agents: [
          {{ name: main, steps: [
            {{ calls: [{}] }}, {{ say: Waiting. }},
            {{ when: {{ notifications: 1 }}, calls: [{}, {}, {{ tool: SendMessage, input: {{ to: w1, message: Go on }} }}] }}, {{ say: Waiting. }},
            {{ when: {{ notifications: 4 }}, say: Done. }}] }},
          {{ steps: [{{ calls: [{{ tool: Bash, input: {{ command: echo a }} }}] }}, {{ say: One. }}, {{ say: Two. }}] }}]",
        start("w1"),
        start("w2"),
        start("w3"),
    );
    let begins = |wire: WireKind| match wire {
        // Where they work is the same for all of them, and marked.
        WireKind::Anthropic => "</context>",
        WireKind::Responses => "\"input\":",
        WireKind::Chat => "\"role\":\"user\"",
    };
    for wire in WireKind::ALL {
        let place = Place::new();
        let server = Server::start(&script);
        let ran = run(place.on_wire(wire, &server, &["-p", "go", "--mode", "coordinator"]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let asked = server.asked();
        let (mut fresh, mut woken) = (0, 0);
        for (n, now) in asked.iter().enumerate() {
            let earlier = &asked[..n];
            let read = cached(earlier, now);
            let own = earlier.iter().rfind(|it| it.agent == now.agent);
            match own {
                Some(before) => {
                    let sent = match wire {
                        WireKind::Anthropic => cached(std::slice::from_ref(before), before),
                        _ => before.body.len(),
                    };
                    assert!(
                        read * 100 >= sent * 99,
                        "{wire:?} {}: {read} of {sent}",
                        now.agent
                    );
                    woken += 1;
                }
                None if now.agent != "main" && now.agent != "w1" => {
                    let text = String::from_utf8_lossy(&now.body).replace(MARK, "");
                    let prefix = text.find(begins(wire)).unwrap();
                    let least = match wire {
                        WireKind::Anthropic => prefix,
                        _ => prefix * 95 / 100,
                    };
                    assert!(read >= least, "{wire:?} {}: {read} of {prefix}", now.agent);
                    fresh += 1;
                }
                None => {}
            }
        }
        assert_eq!(fresh, 2);
        assert!(woken >= 8, "{woken}");
    }
}
