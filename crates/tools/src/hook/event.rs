//! The moments at which hooks are asked, and what they are told then.

use super::kind::EventKind;
use gaffer_protocol::Trigger;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// One moment, with what is true at every moment.
#[derive(Debug, Clone)]
pub struct HookEvent {
    pub session_id: String,
    pub transcript_path: PathBuf,
    /// Where the agent is; hooks are started there.
    pub cwd: PathBuf,
    pub permission_mode: String,
    /// The worker in which it happens; none for the session's own agent.
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    pub moment: Moment,
}

impl HookEvent {
    /// What a hook reads: first what every moment has, then what only this one has.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("session_id", self.session_id.as_str().into());
        put("transcript_path", lossy(&self.transcript_path).into());
        put("cwd", lossy(&self.cwd).into());
        put("permission_mode", self.permission_mode.as_str().into());
        put("hook_event_name", self.moment.kind().name().into());
        let agent = [
            ("agent_id", &self.agent_id),
            ("agent_type", &self.agent_type),
        ];
        for (name, value) in agent {
            if let Some(value) = value {
                put(name, value.as_str().into());
            }
        }
        // Texts, numbers and values that are JSON already: nothing of it can fail. A worker's
        // start and end name the worker in the members from above, and win.
        if let Ok(Value::Object(own)) = serde_json::to_value(&self.moment) {
            members.extend(own);
        }
        Value::Object(members)
    }
}

/// What happens, or is about to. The members have the names that hooks know.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Moment {
    SessionStart {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_title: Option<String>,
    },
    SessionEnd {
        reason: String,
    },
    UserPromptSubmit {
        prompt: String,
    },
    PreToolUse {
        tool_name: String,
        tool_input: Value,
        tool_use_id: String,
    },
    PostToolUse {
        tool_name: String,
        tool_input: Value,
        tool_response: Value,
        tool_use_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    PostToolUseFailure {
        tool_name: String,
        tool_input: Value,
        tool_use_id: String,
        error: String,
        is_interrupt: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    PermissionRequest {
        tool_name: String,
        tool_input: Value,
        permission_suggestions: Vec<Value>,
    },
    Stop {
        /// Whether a hook has made the agent go on already.
        stop_hook_active: bool,
        last_assistant_message: String,
        background_tasks: Vec<Value>,
        session_crons: Vec<Value>,
    },
    SubagentStart {
        agent_id: String,
        agent_type: String,
    },
    SubagentStop {
        stop_hook_active: bool,
        agent_id: String,
        agent_type: String,
        #[serde(serialize_with = "as_text")]
        agent_transcript_path: PathBuf,
        last_assistant_message: String,
    },
    PreCompact {
        trigger: Trigger,
        custom_instructions: Option<String>,
    },
    PostCompact {
        trigger: Trigger,
        compact_summary: String,
    },
    Notification {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        notification_type: String,
    },
    WorktreeCreate {
        /// The worker's id, which is the folder's name.
        name: String,
    },
    WorktreeRemove {
        #[serde(serialize_with = "as_text")]
        worktree_path: PathBuf,
    },
}

impl Moment {
    pub fn kind(&self) -> EventKind {
        match self {
            Self::SessionStart { .. } => EventKind::SessionStart,
            Self::SessionEnd { .. } => EventKind::SessionEnd,
            Self::UserPromptSubmit { .. } => EventKind::UserPromptSubmit,
            Self::PreToolUse { .. } => EventKind::PreToolUse,
            Self::PostToolUse { .. } => EventKind::PostToolUse,
            Self::PostToolUseFailure { .. } => EventKind::PostToolUseFailure,
            Self::PermissionRequest { .. } => EventKind::PermissionRequest,
            Self::Stop { .. } => EventKind::Stop,
            Self::SubagentStart { .. } => EventKind::SubagentStart,
            Self::SubagentStop { .. } => EventKind::SubagentStop,
            Self::PreCompact { .. } => EventKind::PreCompact,
            Self::PostCompact { .. } => EventKind::PostCompact,
            Self::Notification { .. } => EventKind::Notification,
            Self::WorktreeCreate { .. } => EventKind::WorktreeCreate,
            Self::WorktreeRemove { .. } => EventKind::WorktreeRemove,
        }
    }

    /// The tool's name and input, where it is about a tool.
    pub fn tool(&self) -> Option<(&str, &Value)> {
        match self {
            Self::PreToolUse {
                tool_name,
                tool_input,
                ..
            }
            | Self::PostToolUse {
                tool_name,
                tool_input,
                ..
            }
            | Self::PostToolUseFailure {
                tool_name,
                tool_input,
                ..
            }
            | Self::PermissionRequest {
                tool_name,
                tool_input,
                ..
            } => Some((tool_name, tool_input)),
            _ => None,
        }
    }

    /// The names that a matcher is compared with; none where every hook is asked.
    pub fn subjects(&self) -> Vec<&str> {
        match self {
            Self::SessionStart { source, .. } => vec![source.as_str()],
            Self::SessionEnd { reason } => vec![reason],
            Self::SubagentStart { agent_type, .. } | Self::SubagentStop { agent_type, .. } => {
                vec![agent_type]
            }
            Self::PreCompact { trigger, .. } | Self::PostCompact { trigger, .. } => {
                vec![trigger.as_str()]
            }
            Self::Notification {
                notification_type, ..
            } => vec![notification_type],
            _ => match self.tool() {
                // Users' settings still have the tool's older name.
                Some(("Agent", _)) => vec!["Agent", "Task"],
                Some((name, _)) => vec![name],
                None => Vec::new(),
            },
        }
    }
}

/// How a session came to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Fork => "fork",
        }
    }
}

/// JSON has no bytes: what is no text in a path is shown as such.
fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&lossy(path))
}
