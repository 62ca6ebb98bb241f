//! What hooks answer: exit codes, forms of output, and what cannot be read.

use super::*;
use std::time::Duration;

const DENY: Choice = Choice::Deny;

fn exited(code: i32, stdout: &str, stderr: &str) -> Reply {
    Reply::Exited {
        code,
        stdout: Text {
            text: stdout.to_owned(),
            is_whole: true,
        },
        stderr: stderr.to_owned(),
    }
}

fn verdict(kind: EventKind, answer: Reply) -> Verdict {
    Verdict::of(kind, answer, kind.on_timeout())
}

fn said(kind: EventKind, stdout: &Value) -> Verdict {
    verdict(kind, exited(0, &format!(" {stdout}\n"), "ignored"))
}

fn specific(kind: EventKind, mut members: Value) -> Verdict {
    members["hookEventName"] = kind.name().into();
    said(kind, &json!({"hookSpecificOutput": members}))
}

fn decided(verdict: &Verdict) -> Option<(Choice, &str)> {
    let decision = verdict.decision.as_ref()?;
    Some((decision.choice, decision.reason.as_deref().unwrap_or("-")))
}

#[tokio::test]
async fn exit_codes_of_real_scripts() {
    let kind = EventKind::PreToolUse;
    let merged = ask_script(kind, "echo all well; echo noise >&2").await;
    assert!(merged.decision.is_none() && merged.reports.is_empty() && merged.context.is_none());
    let merged = ask_script(
        kind,
        "echo '{\"reason\":\"x\"}'; echo no rm here >&2; exit 2",
    )
    .await;
    assert_eq!(merged.blocked(), Some("no rm here"));
    let merged = ask_script(kind, "exit 2").await;
    assert_eq!(merged.blocked(), Some("a hook refused, without a reason"));
    let merged = ask_script(kind, "echo '{\"reason\":\"from JSON\"}'; exit 2").await;
    assert_eq!(merged.blocked(), Some("from JSON"));
    let merged = ask_script(kind, "printf 'oh\\nmore\\n' >&2; exit 1").await;
    assert_eq!(
        (merged.blocked(), texts(&merged)),
        (None, vec!["failed with exit code 1: oh"])
    );
    let merged = ask_script(kind, "echo '{\"decision\":\"block\"}'; exit 3").await;
    assert_eq!(
        (merged.blocked(), texts(&merged)),
        (None, vec!["failed with exit code 3"])
    );
    let merged = ask_script(kind, "kill -9 $$").await;
    assert_eq!(
        (merged.blocked(), texts(&merged)),
        (None, vec!["was ended by signal 9"])
    );
}

#[test]
fn exit_code_2_refuses_where_something_can_be_refused() {
    for kind in EventKind::ALL {
        let verdict = verdict(kind, exited(2, "", "why\n"));
        let can_block = !matches!(
            kind,
            EventKind::SessionStart
                | EventKind::SessionEnd
                | EventKind::SubagentStart
                | EventKind::PostCompact
                | EventKind::Notification
                | EventKind::WorktreeCreate
                | EventKind::WorktreeRemove
        );
        assert_eq!(decided(&verdict).is_some(), can_block, "{kind:?}");
        assert_eq!(verdict.message.is_some(), !can_block, "{kind:?}");
    }
}

#[test]
fn plain_output_is_context_only_where_users_know_it_to_be() {
    for kind in EventKind::ALL {
        let takes = matches!(kind, EventKind::SessionStart | EventKind::UserPromptSubmit);
        let verdict = verdict(kind, exited(0, "  on branch x\n", ""));
        assert_eq!(
            verdict.context.as_deref(),
            takes.then_some("on branch x"),
            "{kind:?}"
        );
        assert!(verdict.reports.is_empty());
    }
}

#[test]
fn decisions_before_a_call() {
    let kind = EventKind::PreToolUse;
    let rows = [
        ("allow", Choice::Allow),
        ("ask", Choice::Ask),
        ("defer", Choice::Defer),
        ("deny", DENY),
    ];
    for (word, choice) in rows {
        let verdict = specific(
            kind,
            json!({
                "permissionDecision": word, "permissionDecisionReason": "why",
                "updatedInput": {"command": "ls"}, "additionalContext": "c",
            }),
        );
        assert_eq!(decided(&verdict), Some((choice, "why")));
        let input = verdict.updated_input.unwrap();
        assert_eq!(Value::Object(input), json!({"command": "ls"}));
        assert_eq!(verdict.context.as_deref(), Some("c"));
        assert!(verdict.reports.is_empty());
    }
    // Without a name there is no doubt; the older form still counts; the stricter of both holds.
    let verdict = said(
        kind,
        &json!({"hookSpecificOutput": {"permissionDecision": "ask"}}),
    );
    assert_eq!(decided(&verdict), Some((Choice::Ask, "-")));
    let verdict = said(kind, &json!({"decision": "approve", "reason": "r"}));
    assert_eq!(decided(&verdict), Some((Choice::Allow, "r")));
    let verdict = said(
        kind,
        &json!({
            "decision": "block", "reason": "r", "hookSpecificOutput": {"permissionDecision": "allow"},
        }),
    );
    assert_eq!(decided(&verdict), Some((DENY, "r")));
}

#[test]
fn answers_to_a_permission_request() {
    let kind = EventKind::PermissionRequest;
    let decision = json!({"behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": []});
    let verdict = specific(kind, json!({"decision": decision}));
    assert_eq!(decided(&verdict), Some((Choice::Allow, "-")));
    assert!(verdict.updated_input.is_some() && verdict.reports[0].contains("updatedPermissions"));
    let decision = json!({"behavior": "deny", "message": "no", "interrupt": true});
    let verdict = specific(kind, json!({"decision": decision}));
    assert_eq!(
        (decided(&verdict), verdict.interrupt),
        (Some((DENY, "no")), true)
    );
    let verdict = specific(kind, json!({"decision": {"behavior": "perhaps"}}));
    assert_eq!(decided(&verdict).map(|it| it.0), Some(DENY));
}

#[test]
fn members_that_every_event_has() {
    for kind in EventKind::ALL {
        let verdict = said(
            kind,
            &json!({
                "continue": false, "stopReason": "over", "systemMessage": "m",
                "suppressOutput": true, "new": [1],
            }),
        );
        assert_eq!(verdict.stop.as_deref(), Some("over"), "{kind:?}");
        assert_eq!(verdict.message.as_deref(), Some("m"));
        assert!(verdict.reports.is_empty() && verdict.decision.is_none());
        let verdict = said(
            kind,
            &json!({"continue": true, "reason": null, "decision": null}),
        );
        assert_eq!(verdict, Verdict::default());
        let verdict = said(kind, &json!({"decision": "block", "reason": "r"}));
        let want = kind.can_block().then_some((DENY, "r"));
        assert_eq!(decided(&verdict), want, "{kind:?}");
        assert_eq!(verdict.message.is_some(), !kind.can_block());
    }
    assert!(
        said(EventKind::Stop, &json!({"continue": false}))
            .stop
            .is_some()
    );
    let verdict = specific(
        EventKind::PostToolUse,
        json!({"updatedToolOutput": {"stdout": "x"}}),
    );
    assert_eq!(verdict.updated_output, Some(json!({"stdout": "x"})));
    let verdict = specific(EventKind::SubagentStart, json!({"additionalContext": "c"}));
    assert_eq!(verdict.context.as_deref(), Some("c"));
}

#[test]
fn what_cannot_be_read_is_reported_and_blocks_as_a_timeout_does() {
    let deep = format!("{}{}", "{\"a\":".repeat(500), "1");
    let rows = [
        (
            "{\"hookSpecificOutput\": {\"permissionDecision\": \"de",
            "no JSON: EOF while parsing",
        ),
        ("{ok}", "no JSON: key must be a string"),
        ("{} {}", "no JSON: trailing characters"),
        (deep.as_str(), "no JSON: recursion limit exceeded"),
        (
            "{\"continue\": \"false\"}",
            "`continue` is neither true nor false",
        ),
        ("{\"decision\": \"deny\"}", "`decision` is not \"block\""),
        ("{\"decision\": {}}", "`decision` is not \"block\""),
        (
            "{\"permissionDecision\": \"deny\"}",
            "`permissionDecision` belongs into",
        ),
        (
            "{\"hookSpecificOutput\": []}",
            "`hookSpecificOutput` is no object",
        ),
        (
            "{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\"}}",
            "`hookEventName` is \"Stop\"",
        ),
        (
            "{\"hookSpecificOutput\": {\"permissionDecision\": \"no\"}}",
            "is none of allow",
        ),
        (
            "{\"hookSpecificOutput\": {\"permissionDecision\": 1}}",
            "is none of allow",
        ),
        (
            "{\"hookSpecificOutput\": {\"permissionDecision\": \"allow\", \"updatedInput\": \"x\"}}",
            "`updatedInput` is no object",
        ),
    ];
    for (text, want) in rows {
        let kind = EventKind::PreToolUse;
        let blocked = verdict(kind, exited(0, text, ""));
        assert!(
            blocked.reports[0].contains(want),
            "{text}: {:?}",
            blocked.reports
        );
        assert_eq!(decided(&blocked).map(|it| it.0), Some(DENY), "{text}");
        assert!(blocked.updated_input.is_none());
        let passed = Verdict::of(kind, exited(0, text, ""), OnTimeout::Pass);
        assert!(
            passed.decision.is_none() && passed.updated_input.is_none(),
            "{text}"
        );
        assert_eq!(passed.reports, blocked.reports);
    }
    let half = verdict(EventKind::PostToolUse, exited(0, "{\"decision\":", ""));
    assert!(half.decision.is_none() && half.reports.len() == 1);
}

#[test]
fn a_reply_cut_anywhere_is_never_taken_for_a_whole_one() {
    let whole = json!({"continue": true, "hookSpecificOutput": {
        "permissionDecision": "allow", "updatedInput": {"command": "é"}}})
    .to_string();
    for cut in 1..whole.len() {
        let part = String::from_utf8_lossy(&whole.as_bytes()[..cut]);
        for kind in EventKind::ALL {
            let verdict = verdict(kind, exited(0, &part, ""));
            assert_eq!(verdict.reports.len(), 1, "{part}");
            let blocks = kind.on_timeout() == OnTimeout::Block;
            assert_eq!(decided(&verdict).is_some(), blocks, "{part}");
        }
    }
}

#[test]
fn texts_of_the_wrong_type_are_left_out_and_long_ones_cut() {
    let verdict = said(
        EventKind::PreToolUse,
        &json!({"systemMessage": 7, "additionalContext": "x"}),
    );
    assert!(verdict.decision.is_none() && verdict.message.is_none());
    assert_eq!(verdict.reports.len(), 2, "{:?}", verdict.reports);
    let long = "ä".repeat(10_003);
    let verdict = specific(EventKind::PreToolUse, json!({"additionalContext": long}));
    let context = verdict.context.unwrap();
    assert_eq!(context.chars().filter(|c| *c == 'ä').count(), 9950);
    assert!(context.chars().count() <= 10_000);
    assert!(context.ends_with("[… 53 characters left out]"));
    assert!(verdict.reports[0].contains("`additionalContext` has 10003 characters"));
    let exact = specific(
        EventKind::PreToolUse,
        json!({"additionalContext": "a".repeat(10_000)}),
    );
    assert!(exact.reports.is_empty());
    let reason = verdict_of_exit_2(&"e".repeat(20_000));
    assert!(reason.chars().count() <= 10_000);
}

fn verdict_of_exit_2(stderr: &str) -> String {
    let verdict = verdict(EventKind::Stop, exited(2, "", stderr));
    verdict.decision.unwrap().reason.unwrap()
}

#[test]
fn no_answer_means_what_the_setting_says() {
    let answers = [
        Reply::TimedOut(Duration::from_millis(1500)),
        Reply::NotStarted("no such file".into()),
    ];
    for kind in EventKind::ALL {
        let guards = matches!(kind, EventKind::PreToolUse | EventKind::PermissionRequest);
        for answer in &answers {
            let by_default = verdict(kind, answer.clone());
            assert_eq!(by_default.decision.is_some(), guards, "{kind:?}");
            assert_eq!(by_default.reports.len(), 1);
            let passed = Verdict::of(kind, answer.clone(), OnTimeout::Pass);
            assert!(passed.decision.is_none() && passed.reports.len() == 1);
            let blocked = Verdict::of(kind, answer.clone(), OnTimeout::Block);
            assert_eq!(blocked.decision.is_some(), kind.can_block(), "{kind:?}");
        }
        let failed = Verdict::of(kind, Reply::Failed("HTTP 500".into()), OnTimeout::Block);
        assert!(failed.decision.is_none() && failed.reports == ["HTTP 500"]);
    }
}
