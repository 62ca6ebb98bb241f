//! What hooks are told.

use super::*;

/// What every event has, with the members of its own added.
fn common(name: &str, own: &Value) -> Value {
    let mut all = json!({
        "session_id": "s-1",
        "transcript_path": "/t/s-1.jsonl",
        "cwd": "/project",
        "permission_mode": "default",
        "hook_event_name": name,
    });
    let members = all.as_object_mut().unwrap();
    members.extend(own.as_object().unwrap().clone());
    all
}

#[test]
fn each_event_has_the_members_that_hooks_know() {
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    let with_tool = |own: Value| {
        let mut all = tool.clone();
        all.as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        all
    };
    let rows = [
        (EventKind::SessionStart, json!({"source": "startup"})),
        (EventKind::SessionEnd, json!({"reason": "other"})),
        (EventKind::UserPromptSubmit, json!({"prompt": "Hello"})),
        (
            EventKind::PreToolUse,
            with_tool(json!({"tool_use_id": "call-1"})),
        ),
        (
            EventKind::PostToolUse,
            with_tool(json!({
                "tool_use_id": "call-1", "tool_response": {"stdout": "a"}, "duration_ms": 12,
            })),
        ),
        (
            EventKind::PostToolUseFailure,
            with_tool(json!({
                "tool_use_id": "call-1", "error": "exit code 1", "is_interrupt": false,
            })),
        ),
        (
            EventKind::PermissionRequest,
            with_tool(json!({"permission_suggestions": []})),
        ),
        (
            EventKind::Stop,
            json!({
                "stop_hook_active": false, "last_assistant_message": "Done.",
                "background_tasks": [], "session_crons": [],
            }),
        ),
        (
            EventKind::SubagentStart,
            json!({"agent_id": "agent-1", "agent_type": "explorer"}),
        ),
        (
            EventKind::SubagentStop,
            json!({
                "agent_id": "agent-1", "agent_type": "explorer", "stop_hook_active": true,
                "agent_transcript_path": "/t/agent-1.jsonl", "last_assistant_message": "Done.",
            }),
        ),
        (
            EventKind::PreCompact,
            json!({"trigger": "auto", "custom_instructions": null}),
        ),
        (
            EventKind::PostCompact,
            json!({"trigger": "manual", "compact_summary": "It was about tea."}),
        ),
        (
            EventKind::Notification,
            json!({
                "message": "Waiting", "notification_type": "idle_prompt",
            }),
        ),
        (EventKind::WorktreeCreate, json!({"name": "agent-1"})),
        (
            EventKind::WorktreeRemove,
            json!({"worktree_path": "/w/agent-1"}),
        ),
    ];
    assert_eq!(rows.len(), EventKind::ALL.len());
    for (kind, own) in rows {
        let event = event_in(Path::new("/project"), moment(kind));
        assert_eq!(event.to_json(), common(kind.name(), &own), "{kind:?}");
        assert_eq!(EventKind::parse(kind.name()), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn optional_members_are_there_when_they_are_known() {
    let mut event = event_in(
        Path::new("/project"),
        Moment::SessionStart {
            source: Source::Fork,
            model: Some("m".into()),
            session_title: Some("t".into()),
        },
    );
    event.agent_type = Some("reviewer".into());
    let own =
        json!({"agent_type": "reviewer", "source": "fork", "model": "m", "session_title": "t"});
    assert_eq!(event.to_json(), common("SessionStart", &own));
    event.agent_id = Some("agent-9".into());
    event.moment = Moment::Notification {
        message: "m".into(),
        title: Some("t".into()),
        notification_type: "n".into(),
    };
    let own = json!({"agent_id": "agent-9", "agent_type": "reviewer", "message": "m", "title": "t", "notification_type": "n"});
    assert_eq!(event.to_json(), common("Notification", &own));
    // The worker that is about to start is the one that counts.
    event.moment = moment(EventKind::SubagentStart);
    assert_eq!(event.to_json()["agent_id"], "agent-1");
    assert_eq!(event.to_json()["agent_type"], "explorer");
}

#[test]
fn matchers_are_compared_with_what_each_event_is_about() {
    let rows: [(EventKind, &[&str]); 13] = [
        (EventKind::SessionStart, &["startup"]),
        (EventKind::SessionEnd, &["other"]),
        (EventKind::UserPromptSubmit, &[]),
        (EventKind::PreToolUse, &["Bash"]),
        (EventKind::PostToolUse, &["Bash"]),
        (EventKind::PostToolUseFailure, &["Bash"]),
        (EventKind::PermissionRequest, &["Bash"]),
        (EventKind::Stop, &[]),
        (EventKind::SubagentStart, &["explorer"]),
        (EventKind::SubagentStop, &["explorer"]),
        (EventKind::PreCompact, &["auto"]),
        (EventKind::PostCompact, &["manual"]),
        (EventKind::Notification, &["idle_prompt"]),
    ];
    for (kind, want) in rows {
        assert_eq!(moment(kind).subjects(), want, "{kind:?}");
        assert_eq!(kind.has_matcher(), !want.is_empty(), "{kind:?}");
        let has_tool = moment(kind).tool().is_some();
        assert_eq!(kind.is_about_a_tool(), has_tool, "{kind:?}");
    }
    assert_eq!(before("Agent", "").subjects(), ["Agent", "Task"]);
}

/// What a script reads is what `to_json` gives, for each event, with its folder and variables.
#[tokio::test]
async fn scripts_get_the_event_the_folder_and_the_variables() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().canonicalize().unwrap();
    let script = r#"cat > in.json; echo "$PWD $CLAUDE_PROJECT_DIR $GAFFER_PROJECT_DIR" > env"#;
    for kind in EventKind::ALL {
        let config = config(kind, &json!([command(script)]));
        let hooks = Hooks::new(config, surroundings(Path::new("/the project")));
        assert!(hooks.has(kind));
        let event = event_in(&folder, moment(kind));
        let merged = hooks.run(&event).await;
        assert!(merged.decision.is_none() && merged.reports.is_empty());
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let got: Value = serde_json::from_str(&read("in.json")).unwrap();
        assert_eq!(got, event.to_json(), "{kind:?}");
        let want = format!("{} /the project /the project\n", folder.display());
        assert_eq!(read("env"), want);
    }
}
