//! What several hooks say together.

use super::*;

fn choice(choice: Choice, reason: &str) -> Verdict {
    Verdict {
        decision: Some(Decision {
            choice,
            reason: Some(reason.to_owned()),
        }),
        ..Verdict::default()
    }
}

fn merge(verdicts: impl IntoIterator<Item = Verdict>) -> Merged {
    let mut merged = Merged::default();
    for (number, verdict) in verdicts.into_iter().enumerate() {
        merged.add(&format!("h{number}"), verdict);
    }
    merged
}

#[test]
fn the_strictest_decision_wins_in_any_order() {
    let order = [Choice::Allow, Choice::Ask, Choice::Defer, Choice::Deny];
    for (low, weaker) in order.iter().enumerate() {
        for (high, stricter) in order.iter().enumerate().skip(low) {
            let names = [low.to_string(), high.to_string()];
            let (a, b) = (choice(*weaker, &names[0]), choice(*stricter, &names[1]));
            for pair in [[a.clone(), b.clone()], [b, a]] {
                let decision = merge(pair).decision.unwrap();
                assert_eq!(decision.choice, *stricter, "{weaker:?} {stricter:?}");
                assert_eq!(decision.reason.as_deref(), Some(names[1].as_str()));
            }
        }
    }
    let all = order.map(|it| choice(it, "r"));
    assert_eq!(merge(all).blocked(), Some("r"));
    assert!(merge([]).decision.is_none());
}

#[test]
fn reasons_of_equal_decisions_follow_each_other() {
    let merged = merge([
        choice(Choice::Deny, "a"),
        choice(Choice::Allow, "x"),
        choice(Choice::Deny, "b"),
    ]);
    assert_eq!(merged.blocked(), Some("a\nb"));
}

#[test]
fn contexts_and_messages_add_up() {
    let with = |context: &str, message: &str, stop: Option<&str>| Verdict {
        context: Some(context.to_owned()),
        message: Some(message.to_owned()),
        stop: stop.map(str::to_owned),
        ..Verdict::default()
    };
    let merged = merge([
        with("a", "m", None),
        Verdict::default(),
        with("b", "n", Some("s")),
        with("b", "o", Some("t")),
    ]);
    assert_eq!(merged.context.as_deref(), Some("a\nb\nb"));
    assert_eq!(merged.messages, ["m", "n", "o"]);
    assert_eq!(merged.stop.as_deref(), Some("s"));
}

#[test]
fn the_first_new_input_wins_and_another_is_reported() {
    let with = |command: &str| Verdict {
        updated_input: json!({"command": command}).as_object().cloned(),
        updated_output: Some(json!(command)),
        ..Verdict::default()
    };
    let merged = merge([Verdict::default(), with("a"), with("b"), with("a")]);
    assert_eq!(merged.updated_input.unwrap()["command"], "a");
    assert_eq!(merged.updated_output, Some(json!("a")));
    let reports: Vec<String> = merged.reports.iter().map(ToString::to_string).collect();
    assert_eq!(
        reports,
        [
            "hook `h2` rewrote the input too, but an earlier hook did so first",
            "hook `h2` rewrote the output too, but an earlier hook did so first",
        ]
    );
}

/// The order is that of the settings, not that in which hooks end.
#[tokio::test]
async fn real_hooks_are_merged_in_the_order_of_the_settings() {
    let say = |wait: &str, members: Value| {
        let answer = json!({"hookSpecificOutput": members});
        command(&format!("sleep {wait}; echo '{answer}'"))
    };
    let handlers = json!([
        say(
            "0.3",
            json!({"permissionDecision": "allow", "updatedInput": {"command": "first"}, "additionalContext": "1"})
        ),
        say(
            "0",
            json!({"permissionDecision": "ask", "updatedInput": {"command": "second"}, "additionalContext": "2"})
        ),
    ]);
    let merged = ask(EventKind::PreToolUse, handlers).await;
    assert_eq!(merged.decision.unwrap().choice, Choice::Ask);
    assert_eq!(merged.updated_input.unwrap()["command"], "first");
    assert_eq!(merged.context.as_deref(), Some("1\n2"));
    assert_eq!(merged.reports.len(), 1);
}
