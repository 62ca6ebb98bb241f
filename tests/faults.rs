//! Each fault that cannot be repeated away ends the run with a typed error: no panic, no hang.

use crate::harness::{Place, run};
use gaffer_testkit::{Server, WireKind};
use std::time::{Duration, Instant};

/// Plays a fault for every attempt; answers the reason, the error and how many requests there were.
fn suffer(fault: &str, wire: WireKind) -> (String, String, usize) {
    let place = Place::new();
    let script = format!("agents: [{{ steps: [{{ repeat: 1000, say: Hal, fault: {fault} }}] }}]");
    let server = Server::start(&script);
    let began = Instant::now();
    let ran = run(place.on_wire(wire, &server, &["-p", "go", "--output-format", "json"]));
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{fault} on {wire:?} took {:?}",
        began.elapsed()
    );
    assert_eq!(ran.code, Some(1), "{fault} on {wire:?}: {ran:#?}");
    let result = ran.result();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["result"], "", "half an answer is no result");
    let reason = result["terminal_reason"].as_str().unwrap().to_owned();
    let error = result["errors"][0].as_str().unwrap().to_owned();
    (reason, error, server.asked().len())
}

fn on_all(fault: &str, reason: &str, error: &str, requests: usize) {
    for wire in WireKind::ALL {
        let (is_reason, is_error, is_requests) = suffer(fault, wire);
        assert_eq!(is_reason, reason, "{fault} on {wire:?}: {is_error}");
        assert!(is_error.contains(error), "{fault} on {wire:?}: {is_error}");
        assert_eq!(is_requests, requests, "{fault} on {wire:?}: {is_error}");
    }
}

#[test]
fn a_refused_key_is_told_at_once() {
    on_all(
        "unauthorized",
        "provider_error",
        "the key was refused (HTTP 401): invalid key (check the key in",
        1,
    );
}

#[test]
fn what_is_not_allowed_is_told_at_once() {
    on_all(
        "forbidden",
        "provider_error",
        "not allowed (HTTP 403): forbidden",
        1,
    );
}

#[test]
fn a_bad_request_is_told_with_the_providers_words() {
    on_all(
        "{ bad_request: 'max_tokens: must be even' }",
        "provider_error",
        "max_tokens: must be even",
        1,
    );
}

#[test]
fn a_prompt_that_is_too_long_is_an_end_of_its_own() {
    on_all("prompt_too_long", "context", "context is full", 1);
}

#[test]
fn a_web_page_is_no_answer() {
    on_all(
        "html",
        "provider_error",
        "did not answer with a stream of events",
        1,
    );
}

#[test]
fn server_errors_are_repeated_so_many_times() {
    on_all(
        "server_error",
        "provider_error",
        "server error (HTTP 500): internal error; given up after 3 attempts",
        3,
    );
}

#[test]
fn a_lost_connection_is_repeated() {
    // The client's own library asks once more on a connection that was open before.
    for wire in WireKind::ALL {
        let (reason, error, requests) = suffer("disconnect", wire);
        assert_eq!(reason, "provider_error");
        assert!(error.contains("connection lost"), "{error}");
        assert!((3..=6).contains(&requests), "{requests}");
    }
}

#[test]
fn a_stream_that_is_cut_is_no_answer() {
    on_all(
        "cut",
        "provider_error",
        "the answer was cut off: the stream ended before its final event",
        3,
    );
}

#[test]
fn half_an_event_is_garbled() {
    on_all("garbled", "provider_error", "the answer was garbled", 3);
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for() {
    on_all("hang", "no_progress", "no answer within the deadline", 3);
}

#[test]
fn a_stream_that_goes_silent_is_not_waited_for() {
    on_all(
        "silence",
        "no_progress",
        "the answer went silent: nothing came for 1 s",
        3,
    );
}

#[test]
fn an_event_without_end_is_bounded() {
    let (reason, error, _) = suffer("flood", WireKind::Anthropic);
    assert_eq!(reason, "provider_error");
    assert!(error.contains("an event is over"), "{error}");
}

#[test]
fn overload_is_bounded_by_time_alone() {
    for fault in ["overloaded", "overloaded_inside"] {
        let (reason, error, requests) = suffer(fault, WireKind::Anthropic);
        assert_eq!(reason, "provider_error");
        assert!(error.contains("given up after"), "{error}");
        assert!(requests > 10, "{requests} attempts in 2 s of patience");
    }
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_check() {
    let place = Place::new();
    let server = Server::start("agents: []");
    let mut command = place.on_wire(WireKind::Anthropic, &server, &["-p", "go"]);
    command.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let ran = run(command);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.contains("connection lost"), "{}", ran.err);
    assert!(ran.err.contains("check the network"), "{}", ran.err);
}
