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
