//! A crew and a server that speaks HTTP/2: many requests share few connections.

use crate::harness::{Place, run};
use gaffer_testkit::{Front, Server, WireKind};

const WORKERS: usize = 100;

#[test]
fn a_hundred_workers_share_a_few_connections() {
    let starts: Vec<String> = (0..WORKERS)
        .map(|n| {
            format!("{{ tool: Agent, input: {{ description: Task {n}, name: w{n}, prompt: go, phase: research }} }}")
        })
        .collect();
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ repeat: {}, say: Heard. }}] }}, {{ steps: [{{ delay: 700ms, say: Done. }}] }}]",
        starts.join(", "),
        WORKERS + 2,
    );
    let place = Place::new();
    let server = Server::start(&script);
    let front = Front::before(server.address());
    let authority = place.write("authority.pem", front.authority());
    let most = WORKERS.to_string();
    let args = [
        "-p",
        "go",
        "--mode",
        "coordinator",
        "--max-workers",
        &most,
        "--output-format",
        "json",
    ];
    let mut gaffer = place.on_wire(WireKind::Anthropic, &server, &args);
    gaffer
        .env("ANTHROPIC_BASE_URL", front.url())
        .env("SSL_CERT_FILE", authority);
    let ran = run(gaffer);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.result()["crew"]["completed"], WORKERS, "{}", ran.out);
    let (connections, at_once) = (front.connections(), front.most_at_once());
    assert!(at_once > WORKERS / 2, "{at_once} at once");
    assert!(
        connections <= 3,
        "{connections} connections, {at_once} at once"
    );
}
