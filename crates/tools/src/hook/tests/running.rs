//! Which hooks run, how often, side by side, and what a failing one means.

use super::*;

/// Runs settings at one moment, and says which of their scripts wrote a letter.
async fn letters(hooks: Value, moment: Moment) -> (String, Merged) {
    let temp = tempfile::tempdir().unwrap();
    let hooks = Hooks::new(HookConfig::read(&hooks), surroundings(temp.path()));
    let merged = hooks.run(&event_in(temp.path(), moment)).await;
    let written = std::fs::read_to_string(temp.path().join("out")).unwrap_or_default();
    let mut letters: Vec<char> = written.chars().collect();
    letters.sort_unstable();
    (letters.into_iter().collect(), merged)
}

fn writes(letter: &str) -> Value {
    command(&format!("printf {letter} >> out"))
}

fn writes_if(letter: &str, rule: &str) -> Value {
    let mut handler = writes(letter);
    handler["if"] = rule.into();
    handler
}

#[tokio::test]
async fn only_hooks_that_fit_run() {
    let hooks = json!({
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [writes("a"), writes_if("b", "Bash(rm *)")]},
            {"matcher": "Edit|Write", "hooks": [writes("c")]},
            {"matcher": "^B.*h$", "hooks": [writes("d")]},
            {"hooks": [writes("e")]},
            {"matcher": "Task", "hooks": [writes("f")]},
        ],
        "PostToolUse": [{"hooks": [writes("x")]}],
        "Stop": [{"matcher": "nothing", "hooks": [writes("s"), writes_if("t", "Bash(rm *)")]}],
    });
    let rows = [
        (before("Bash", "ls"), "ade"),
        (before("Bash", "rm x"), "abde"),
        (before("Edit", "rm x"), "ce"),
        (before("Agent", ""), "ef"),
        (stop(), "s"),
        (moment(EventKind::Notification), ""),
    ];
    for (moment, want) in rows {
        let (got, merged) = letters(hooks.clone(), moment).await;
        assert_eq!(got, want);
        assert!(merged.reports.is_empty() && merged.decision.is_none());
    }
}

#[tokio::test]
async fn the_same_hook_runs_once() {
    let exec = json!({"type": "command", "command": "sh", "args": ["-c", "printf b >> out"]});
    let hooks = json!({"PreToolUse": [
        {"matcher": "Bash", "hooks": [writes("a"), writes("a"), exec]},
        {"hooks": [writes("a"), exec, writes_if("a", "Bash(rm *)")]},
    ]});
    assert_eq!(letters(hooks, before("Bash", "rm x")).await.0, "ab");
}

#[tokio::test]
async fn a_wrong_matcher_or_rule_is_closed_before_a_call_and_open_after_it() {
    let rows = [
        (
            json!([{"matcher": "(", "hooks": [writes("a")]}]),
            "the matcher `(` is no regular",
        ),
        (
            json!([{"hooks": [writes_if("a", "Bash(((")]}]),
            "its `if` rule `Bash(((` cannot be",
        ),
    ];
    for (groups, want) in rows {
        let (got, merged) = letters(json!({"PreToolUse": groups}), before("Bash", "ls")).await;
        let reason = merged.blocked().unwrap();
        assert!(got.is_empty() && reason.contains(want), "{reason}");
        let after = moment(EventKind::PostToolUse);
        let (got, merged) = letters(json!({"PostToolUse": groups}), after).await;
        assert!(got.is_empty() && merged.decision.is_none());
    }
    // A rule is not looked at where the matcher does not fit.
    let groups = json!([{"matcher": "Edit", "hooks": [writes_if("a", "Bash(((")]}]);
    let (_, merged) = letters(json!({"PreToolUse": groups}), before("Bash", "ls")).await;
    assert!(merged.decision.is_none() && merged.reports.is_empty());
}

/// Each waits for all the others, so one after the other they would never end.
#[tokio::test]
async fn hooks_run_side_by_side() {
    let meet = |number: usize| {
        let others = "[ -e 0 ] && [ -e 1 ] && [ -e 2 ] && [ -e 3 ]";
        command(&format!(
            "touch {number}; until {others}; do sleep 0.02; done"
        ))
    };
    let handlers: Vec<Value> = (0..4).map(meet).collect();
    let merged = ask(EventKind::PostToolUse, handlers.into()).await;
    assert_eq!(texts(&merged), [""; 0]);
}

#[tokio::test]
async fn a_timeout_blocks_or_passes_as_set_and_spares_the_others() {
    let slow = json!({"type": "command", "command": "echo '{}'; sleep 60", "timeout": 0.2});
    for kind in [
        EventKind::PreToolUse,
        EventKind::PermissionRequest,
        EventKind::PostToolUse,
    ] {
        for set in [None, Some(OnTimeout::Block), Some(OnTimeout::Pass)] {
            let temp = tempfile::tempdir().unwrap();
            let mut around = surroundings(temp.path());
            around.on_timeout = set.into_iter().map(|set| (kind, set)).collect();
            let other = command(&format!(
                "echo '{}'",
                json!({"hookSpecificOutput": {"additionalContext": "c"}})
            ));
            let hooks = Hooks::new(config(kind, &json!([slow, other])), around);
            let merged = hooks.run(&event_in(temp.path(), moment(kind))).await;
            assert_eq!(texts(&merged), ["gave no answer in 0.2 s and was ended"]);
            assert_eq!(merged.context.as_deref(), Some("c"));
            let blocks = set.unwrap_or(kind.on_timeout()) == OnTimeout::Block;
            assert_eq!(merged.blocked().is_some(), blocks, "{kind:?} {set:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_started_blocks_as_a_timeout_does() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("not-executable"), "").unwrap();
    let rows = [
        json!({"type": "command", "command": "./no-such-script.sh"}),
        json!({"type": "command", "command": "./not-executable"}),
        json!({"type": "command", "command": "no-such-program", "args": []}),
        json!({"type": "command", "command": "a\u{0}b"}),
        json!({"type": "command", "command": "x", "timeout": "soon"}),
        json!({"type": "http", "url": "http://127.0.0.1:1/"}),
    ];
    for handler in rows {
        for kind in [EventKind::PreToolUse, EventKind::Stop] {
            let hooks = Hooks::new(config(kind, &json!([handler])), surroundings(temp.path()));
            let merged = hooks.run(&event_in(temp.path(), moment(kind))).await;
            assert_eq!(
                merged.blocked().is_some(),
                kind == EventKind::PreToolUse,
                "{handler}"
            );
            let texts = texts(&merged);
            assert!(texts[0].starts_with("could not be run: "), "{texts:?}");
        }
    }
    let hooks = Hooks::new(
        config(EventKind::Stop, &json!([command("true")])),
        surroundings(temp.path()),
    );
    let merged = hooks
        .run(&event_in(Path::new("/no/such/folder"), stop()))
        .await;
    assert!(texts(&merged)[0].contains("(in /no/such/folder)"));
}

#[tokio::test]
async fn the_project_folder_is_filled_in() {
    let temp = tempfile::tempdir().unwrap();
    // Its name is no program, however it is used.
    let project = temp.path().join("a b; $(touch bad) 'c");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("hook.sh"), "printf \"$1\" >> out").unwrap();
    let handlers = json!([
        command("sh \"${CLAUDE_PROJECT_DIR}/hook.sh\" a"),
        command("sh \"$GAFFER_PROJECT_DIR\"/hook.sh b"),
        {"type": "command", "command": "sh", "args": ["${CLAUDE_PROJECT_DIR}/hook.sh", "c"]},
        {"type": "command", "command": "[ \"$BASH\" ] && printf d >> out", "shell": "bash"},
    ]);
    let hooks = Hooks::new(config(EventKind::Stop, &handlers), surroundings(&project));
    let merged = hooks.run(&event_in(temp.path(), stop())).await;
    assert_eq!(texts(&merged), [""; 0]);
    let mut out = std::fs::read(temp.path().join("out")).unwrap();
    out.sort_unstable();
    assert_eq!(out, b"abcd");
    assert!(!temp.path().join("bad").exists());
}

#[tokio::test]
async fn hooks_that_nobody_waits_for_decide_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let handler = |script: &str, member: &str, timeout: f64| {
        let mut handler = command(script);
        handler[member] = true.into();
        handler["timeout"] = timeout.into();
        handler
    };
    let answer = json!({"decision": "block", "continue": false, "systemMessage": "m",
        "hookSpecificOutput": {"additionalContext": "c", "updatedInput": {}}});
    let handlers = json!([
        handler(&format!("echo '{answer}'"), "async", 20.0),
        handler("echo bad news >&2; exit 2", "asyncRewake", 20.0),
        handler("sleep 60", "async", 0.2),
    ]);
    let hooks = Hooks::new(
        config(EventKind::PreToolUse, &handlers),
        surroundings(temp.path()),
    );
    let merged = hooks
        .run(&event_in(temp.path(), before("Bash", "ls")))
        .await;
    assert!(merged.decision.is_none() && merged.reports.is_empty());
    let mut later = Vec::new();
    for hook in merged.later {
        assert!(!hook.hook().is_empty());
        later.push(hook.finish().await);
    }
    let [quiet, waking, late] = &later[..] else {
        panic!()
    };
    assert!(quiet.decision.is_none() && quiet.stop.is_none() && quiet.updated_input.is_none());
    assert_eq!(
        (quiet.context.as_deref(), &quiet.messages[..]),
        (Some("c"), &["m".to_owned()][..])
    );
    assert_eq!(waking.blocked(), Some("bad news"));
    assert!(late.decision.is_none() && late.reports.len() == 1);
}
