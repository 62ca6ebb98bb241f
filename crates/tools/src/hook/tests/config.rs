//! Settings: shapes, warnings, matchers.

use super::*;
use std::time::Duration;

#[test]
fn the_whole_shape_is_read() {
    let text = r#"{"model": "x", "hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [
        {"type": "command", "command": "c", "args": ["a"], "if": "Bash(rm *)", "timeout": 1.5,
         "async": false, "asyncRewake": false, "shell": "bash", "statusMessage": "Checking"},
        {"type": "http", "url": "http://localhost:1/x", "headers": {"A": "$T"},
         "allowedEnvVars": ["T"]}]}]}}"#;
    let settings: HookSettings = serde_json::from_str(text).unwrap();
    assert_eq!(settings.hooks.warnings, [""; 0]);
    assert!(!settings.disable_all_hooks);
    let [group] = &settings.hooks.groups[..] else {
        panic!()
    };
    assert_eq!(group.event, EventKind::PreToolUse);
    let [first, second] = &group.handlers[..] else {
        panic!()
    };
    let want = Handler {
        runner: Runner::Command(CommandHook {
            command: "c".into(),
            args: Some(vec!["a".into()]),
            shell: Some(Shell::Bash),
        }),
        condition: Some("Bash(rm *)".into()),
        timeout: Some(Duration::from_millis(1500)),
        status_message: Some("Checking".into()),
        background: Background::No,
    };
    assert_eq!(**first, want);
    let Runner::Http(http) = &second.runner else {
        panic!()
    };
    assert_eq!(http.url, "http://localhost:1/x");
    assert_eq!(http.headers["A"], "$T");
    assert_eq!(http.allowed_env_vars, ["T"]);
}

#[test]
fn default_timeouts_are_those_that_users_know() {
    let rows = [
        (EventKind::PreToolUse, None, 600.0),
        (EventKind::Stop, None, 600.0),
        (EventKind::UserPromptSubmit, None, 30.0),
        (EventKind::UserPromptSubmit, Some(100.0), 100.0),
        (EventKind::SessionEnd, None, 1.5),
        (EventKind::SessionEnd, Some(20.0), 20.0),
        (EventKind::SessionEnd, Some(600.0), 60.0),
        (EventKind::PreToolUse, Some(1e300), 86_400.0),
    ];
    for (kind, timeout, want) in rows {
        let mut handler = json!({"type": "command", "command": "c"});
        if let Some(timeout) = timeout {
            handler["timeout"] = json!(timeout);
        }
        let config = config(kind, &json!([handler]));
        let time = config.groups[0].handlers[0].time(kind);
        assert_eq!(time.as_secs_f64(), want, "{kind:?} {timeout:?}");
    }
}

/// Each of these has one warning, which says what is expected.
fn warns(wrap: impl Fn(&str) -> String, rows: &[(&str, &str)]) {
    for (text, want) in rows {
        let hooks: Value = serde_json::from_str(&wrap(text)).unwrap();
        let got = HookConfig::read(&hooks).warnings;
        assert!(got.len() == 1 && got[0].contains(want), "{text}: {got:?}");
    }
}

#[test]
fn wrong_events_and_groups_are_told_with_their_place() {
    let rows = [
        (r#""x""#, "hooks: expected an object"),
        (
            r#"{"PreTooluse": []}"#,
            "hooks.PreTooluse: there is no such event; its hooks never run; did you mean `PreToolUse`?",
        ),
        (
            r#"{"Whatever": []}"#,
            "there is no such event; its hooks never run",
        ),
        (
            r#"{"PostToolBatch": []}"#,
            "hooks.PostToolBatch: this event does not happen here",
        ),
        (r#"{"Stop": {}}"#, "hooks.Stop: expected a list of groups"),
        (
            r#"{"Stop": [7]}"#,
            "hooks.Stop[0]: expected an object with a list named `hooks`",
        ),
        (
            r#"{"Stop": [{"command": "c"}]}"#,
            "hooks.Stop[0]: expected an object with a list",
        ),
        (
            r#"{"Stop": [{"matchers": "x", "hooks": []}]}"#,
            "hooks.Stop[0]: unknown member `matchers`; did you mean `matcher`?",
        ),
        (
            r#"{"Stop": [{"matcher": "x", "hooks": []}]}"#,
            "Stop has nothing to match",
        ),
        (
            r#"{"PreToolUse": [{"matcher": "(", "hooks": []}]}"#,
            "every call is refused until",
        ),
        (
            r#"{"PostToolUse": [{"matcher": "(", "hooks": []}]}"#,
            "its hooks never run",
        ),
        (
            r#"{"PreToolUse": [{"matcher": 7, "hooks": []}]}"#,
            "the matcher 7 is no text",
        ),
    ];
    warns(str::to_owned, &rows);
    assert_eq!(HookConfig::read(&Value::Null).warnings, [""; 0]);
}

#[test]
fn wrong_hooks_are_told_with_their_place_and_the_nearest_name() {
    let rows = [
        (r#""x""#, "hooks.PreToolUse[0].hooks[0]: expected an object"),
        (r#"{"command": "c"}"#, "`type` is missing"),
        (
            r#"{"type": "comand"}"#,
            "no type `comand`; it never runs; did you mean `command`?",
        ),
        (
            r#"{"type": "prompt"}"#,
            "hooks of type `prompt` are not available here",
        ),
        (
            r#"{"type": "agent"}"#,
            "hooks of type `agent` are not available here",
        ),
        (
            r#"{"type": "mcp_tool"}"#,
            "hooks of type `mcp_tool` are not available here",
        ),
        (
            r#"{"type": "command"}"#,
            "missing field `command`; it cannot be run",
        ),
        (
            r#"{"type": "command", "command": "c", "timeout": "5"}"#,
            "`timeout`: invalid type: string \"5\", expected f64",
        ),
        (
            r#"{"type": "command", "command": "c", "timeout": 0}"#,
            "`timeout` is more than 0",
        ),
        (
            r#"{"type": "command", "command": "c", "tiemout": 5}"#,
            "unknown member `tiemout`; did you mean `timeout`?",
        ),
        (
            r#"{"type": "command", "command": "c", "shell": "fish"}"#,
            "`shell`: unknown variant",
        ),
        (
            r#"{"type": "http", "url": "nowhere"}"#,
            "`url` is no address",
        ),
        (
            r#"{"type": "http", "url": "file:///x"}"#,
            "`url` begins with file:",
        ),
        (
            r#"{"type": "http", "url": "http://x", "headers": {"a b": "c"}}"#,
            "`a b` cannot be the name of a header",
        ),
        (
            r#"{"type": "http", "url": "http://x", "headers": {"a": "${B}"}}"#,
            "names $B, which is not in `allowedEnvVars`",
        ),
    ];
    let wrap = |event: &'static str| {
        move |text: &str| format!(r#"{{"{event}": [{{"hooks": [{text}]}}]}}"#)
    };
    warns(wrap("PreToolUse"), &rows);
    let row = (
        r#"{"type": "command", "command": "c", "if": "Bash"}"#,
        "Stop has no tool for `if`",
    );
    warns(wrap("Stop"), &[row]);
}

#[test]
fn one_wrong_hook_leaves_the_others() {
    let hooks = json!({"Stop": [{"hooks": [{"type": "prompt"}, command("true")]}], "Nope": []});
    let config = HookConfig::read(&hooks);
    assert_eq!(config.groups[0].handlers.len(), 1);
    assert_eq!(config.warnings.len(), 2);
    let both = config.clone().and(config);
    assert_eq!((both.groups.len(), both.warnings.len()), (2, 4));
}

#[test]
fn matchers_in_all_their_forms() {
    let rows: [(Value, &[&str], &[&str]); 16] = [
        (Value::Null, &["Bash", "x y"], &[]),
        (json!(""), &["Bash"], &[]),
        (json!("*"), &["Bash"], &[]),
        (json!("Bash"), &["Bash"], &["BashOutput", "bash", "MyBash"]),
        (
            json!("Bash|Edit"),
            &["Bash", "Edit"],
            &["Bash|Edit", "Read"],
        ),
        (json!("Bash, Edit"), &["Bash", "Edit"], &["Read"]),
        (json!("Bash | Edit|"), &["Bash", "Edit"], &["", " "]),
        (json!("mcp__a-b"), &["mcp__a-b"], &["mcp__a-b__c"]),
        (
            json!("mcp__memory__.*"),
            &["mcp__memory__x"],
            &["mcp__other__x"],
        ),
        (json!("Edit.*"), &["Edit", "NotebookEdit"], &["Read"]),
        (
            json!("^(Write|Edit)$"),
            &["Write", "Edit"],
            &["NotebookEdit"],
        ),
        (
            json!(r"mcp__\w+__(?:get|list)"),
            &["mcp__x__list_all"],
            &["mcp__x__put"],
        ),
        (json!(r"a\/b"), &["a/b"], &["ab"]),
        (json!("("), &[], &["(", "Bash"]),
        (json!("(?!Read)"), &[], &["Bash", "Read"]),
        (json!(" | "), &[], &["", "Bash"]),
    ];
    for (matcher, fits, not) in rows {
        let read = Matcher::read(Some(&matcher));
        for name in fits {
            assert!(read.fits(&[name]), "{matcher} fits {name}");
        }
        for name in not {
            assert!(!read.fits(&[name]), "{matcher} does not fit {name}");
        }
    }
}

#[test]
fn labels_are_short_and_hold_no_query() {
    let label =
        |handler: Value| config(EventKind::Stop, &json!([handler])).groups[0].handlers[0].label();
    assert_eq!(label(command("a\n  b")), "a b");
    assert_eq!(label(command(&"é".repeat(100))).chars().count(), 81);
    let url = "http://localhost/x?key=1#y";
    assert_eq!(
        label(json!({"type": "http", "url": url})),
        "http://localhost/x"
    );
}
