//! Hooks that are servers.

use super::server::{Response, ok, serve};
use super::*;

async fn post(kind: EventKind, reply: Response) -> Merged {
    let (url, _requests) = serve(vec![reply]);
    ask(kind, json!([{"type": "http", "url": url, "timeout": 5}])).await
}

#[tokio::test]
async fn the_event_is_posted_with_headers_filled_in() {
    let (url, requests) = serve(vec![ok("")]);
    let temp = tempfile::tempdir().unwrap();
    let handler = json!({"type": "http", "url": format!("{url}?q=1"), "timeout": 5,
        "headers": {
            "Authorization": "Bearer ${TOKEN}", "X-Short": "$TOKEN-x", "X-Other": "a$HOME${HOME}b",
            "X-Unset": "[${UNSET}]", "X-Plain": "5$ ${ $1 $",
        },
        "allowedEnvVars": ["TOKEN", "UNSET"]});
    let config = config(EventKind::PreToolUse, &json!([handler]));
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
    let hooks = Hooks::new(config, surroundings(temp.path()));
    let event = event_in(temp.path(), before("Bash", "ls"));
    let merged = hooks.run(&event).await;
    assert!(merged.decision.is_none() && merged.reports.is_empty());
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /hook?q=1 HTTP/1.1");
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, event.to_json());
    let rows = [
        ("content-type", "application/json"),
        ("authorization", "Bearer s3cret"),
        ("x-short", "s3cret-x"),
        ("x-other", "ab"),
        ("x-unset", "[]"),
        ("x-plain", "5$ ${ $1 $"),
    ];
    for (name, want) in rows {
        assert_eq!(request.header(name), Some(want), "{name}");
    }
}

#[tokio::test]
async fn answers_are_those_of_commands() {
    let deny = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}});
    let merged = post(EventKind::PreToolUse, ok(&deny)).await;
    assert_eq!(merged.blocked(), Some("no"));
    let merged = post(
        EventKind::PreToolUse,
        Response::Status(201, deny.to_string()),
    )
    .await;
    assert_eq!(merged.blocked(), Some("no"));
    let merged = post(EventKind::SessionStart, ok("branch x")).await;
    assert_eq!(merged.context.as_deref(), Some("branch x"));
    let merged = post(EventKind::PreToolUse, ok("fine")).await;
    assert!(merged.decision.is_none() && merged.reports.is_empty());
    let merged = post(EventKind::PreToolUse, ok("{\"decision\":")).await;
    assert!(merged.blocked().unwrap().contains("no JSON"));
    let long = format!("{{\"systemMessage\":\"{}\"}}", "x".repeat(5 << 20));
    let merged = post(EventKind::PreToolUse, ok(&long)).await;
    assert!(merged.blocked().unwrap().contains("it is too long"));
}

#[tokio::test]
async fn a_status_alone_decides_nothing() {
    for status in [302, 400, 403, 500] {
        let body = json!({"decision": "block"}).to_string();
        let merged = post(EventKind::PreToolUse, Response::Status(status, body)).await;
        assert!(merged.decision.is_none(), "{status}");
        let text = texts(&merged)[0];
        assert!(
            text.starts_with(&format!("answered with HTTP {status}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn no_answer_means_what_the_setting_says() {
    for kind in [EventKind::PreToolUse, EventKind::PostToolUse] {
        let merged = post(kind, Response::Cut("{\"decision\": null}".into())).await;
        let text = texts(&merged)[0];
        assert!(text.contains("its answer broke off"), "{text}");
        assert_eq!(merged.blocked().is_some(), kind == EventKind::PreToolUse);
        let (url, _requests) = serve(vec![Response::Never]);
        let merged = ask(kind, json!([{"type": "http", "url": url, "timeout": 0.3}])).await;
        assert_eq!(texts(&merged), ["gave no answer in 0.3 s and was ended"]);
        assert_eq!(merged.blocked().is_some(), kind == EventKind::PreToolUse);
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_no_request_and_stays_secret() {
    let temp = tempfile::tempdir().unwrap();
    let mut around = surroundings(temp.path());
    around.variables = Arc::new(|_| Some("two\nlines".to_owned()));
    let handler = json!({"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X-Key": "$K"},
        "allowedEnvVars": ["K"]});
    let hooks = Hooks::new(config(EventKind::PreToolUse, &json!([handler])), around);
    let merged = hooks
        .run(&event_in(temp.path(), before("Bash", "ls")))
        .await;
    let reason = merged.blocked().unwrap();
    assert!(reason.contains("the header `X-Key` has characters") && !reason.contains("two"));
}

#[tokio::test]
async fn servers_and_commands_are_asked_together_and_once() {
    let answer = json!({"hookSpecificOutput": {"additionalContext": "from the server"}});
    let (url, requests) = serve(vec![ok(&answer), ok(&answer)]);
    let handler = json!({"type": "http", "url": url, "timeout": 5});
    let script = command("echo '{\"hookSpecificOutput\":{\"additionalContext\":\"from here\"}}'");
    let merged = ask(EventKind::PostToolUse, json!([handler, script, handler])).await;
    assert_eq!(
        merged.context.as_deref(),
        Some("from the server\nfrom here")
    );
    assert_eq!(requests.try_iter().count(), 1);
}
