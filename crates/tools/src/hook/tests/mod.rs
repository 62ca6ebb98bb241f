//! Tests of hooks, with real shell scripts and a real server on loopback.

mod config;
mod events;
mod merging;
mod processes;
mod replies;
mod running;
mod server;
mod web;

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What hooks of the tests are given. Rules are judged by a few words.
fn surroundings(project: &Path) -> Surroundings {
    Surroundings {
        project: project.to_owned(),
        hidden: Vec::new(),
        variables: Arc::new(|name| (name == "TOKEN").then(|| "s3cret".to_owned())),
        conditions: Arc::new(|rule, tool, input| match rule {
            "Bash(rm *)" => {
                let command = input["command"].as_str().unwrap_or_default();
                Ok(tool == "Bash" && command.starts_with("rm "))
            }
            _ => Err(format!("`{rule}` is no rule")),
        }),
        on_timeout: BTreeMap::new(),
    }
}

fn event_in(folder: &Path, moment: Moment) -> HookEvent {
    HookEvent {
        session_id: "s-1".into(),
        transcript_path: "/t/s-1.jsonl".into(),
        cwd: folder.to_owned(),
        permission_mode: "default".into(),
        agent_id: None,
        agent_type: None,
        moment,
    }
}

fn before(tool: &str, command: &str) -> Moment {
    Moment::PreToolUse {
        tool_name: tool.into(),
        tool_input: json!({"command": command}),
        tool_use_id: "call-1".into(),
    }
}

fn stop() -> Moment {
    Moment::Stop {
        stop_hook_active: false,
        last_assistant_message: "Done.".into(),
        background_tasks: Vec::new(),
        session_crons: Vec::new(),
    }
}

/// A moment of each kind.
fn moment(kind: EventKind) -> Moment {
    let (tool_name, tool_use_id) = ("Bash".to_owned(), "call-1".to_owned());
    let tool_input = json!({"command": "ls"});
    let last_assistant_message = "Done.".to_owned();
    match kind {
        EventKind::SessionStart => Moment::SessionStart {
            source: Source::Startup,
            model: None,
            session_title: None,
        },
        EventKind::SessionEnd => Moment::SessionEnd {
            reason: "other".into(),
        },
        EventKind::UserPromptSubmit => Moment::UserPromptSubmit {
            prompt: "Hello".into(),
        },
        EventKind::PreToolUse => before("Bash", "ls"),
        EventKind::PostToolUse => Moment::PostToolUse {
            tool_name,
            tool_input,
            tool_response: json!({"stdout": "a"}),
            tool_use_id,
            duration_ms: Some(12),
        },
        EventKind::PostToolUseFailure => Moment::PostToolUseFailure {
            tool_name,
            tool_input,
            tool_use_id,
            error: "exit code 1".into(),
            is_interrupt: false,
            duration_ms: None,
        },
        EventKind::PermissionRequest => Moment::PermissionRequest {
            tool_name,
            tool_input,
            permission_suggestions: Vec::new(),
        },
        EventKind::Stop => stop(),
        EventKind::SubagentStart => Moment::SubagentStart {
            agent_id: "agent-1".into(),
            agent_type: "explorer".into(),
        },
        EventKind::SubagentStop => Moment::SubagentStop {
            stop_hook_active: true,
            agent_id: "agent-1".into(),
            agent_type: "explorer".into(),
            agent_transcript_path: "/t/agent-1.jsonl".into(),
            last_assistant_message,
        },
        EventKind::PreCompact => Moment::PreCompact {
            trigger: Trigger::Auto,
            custom_instructions: None,
        },
        EventKind::PostCompact => Moment::PostCompact {
            trigger: Trigger::Manual,
            compact_summary: "It was about tea.".into(),
        },
        EventKind::WorktreeCreate => Moment::WorktreeCreate {
            name: "agent-1".into(),
        },
        EventKind::WorktreeRemove => Moment::WorktreeRemove {
            worktree_path: "/w/agent-1".into(),
        },
        EventKind::Notification => Moment::Notification {
            message: "Waiting".into(),
            title: None,
            notification_type: "idle_prompt".into(),
        },
    }
}

/// Hooks for one kind of moment, from the `hooks` of a group without a matcher.
fn config(kind: EventKind, handlers: &Value) -> HookConfig {
    HookConfig::read(&json!({kind.name(): [{"hooks": handlers}]}))
}

fn command(script: &str) -> Value {
    json!({"type": "command", "command": script, "timeout": 20})
}

/// Runs handlers at a moment of this kind, in a folder of their own.
async fn ask(kind: EventKind, handlers: Value) -> Merged {
    let temp = tempfile::tempdir().unwrap();
    let config = config(kind, &handlers);
    assert_eq!(config.warnings, [""; 0]);
    let hooks = Hooks::new(config, surroundings(temp.path()));
    hooks.run(&event_in(temp.path(), moment(kind))).await
}

/// Runs one script at a moment of this kind.
async fn ask_script(kind: EventKind, script: &str) -> Merged {
    ask(kind, json!([command(script)])).await
}

fn texts(merged: &Merged) -> Vec<&str> {
    merged
        .reports
        .iter()
        .map(|report| report.text.as_str())
        .collect()
}
