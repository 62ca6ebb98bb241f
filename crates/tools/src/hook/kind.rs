//! The kinds of moments at which hooks are asked, and what holds for each kind.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The kinds of moments, by the names that settings use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKind {
    SessionStart,
    SessionEnd,
    UserPromptSubmit,
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    PermissionRequest,
    Stop,
    SubagentStart,
    SubagentStop,
    PreCompact,
    PostCompact,
    Notification,
    WorktreeCreate,
    WorktreeRemove,
}

/// What a hook that gave no usable reply means: it ran out of time, could not be started, or
/// said something that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    Block,
    Pass,
}

impl EventKind {
    pub const ALL: [Self; 15] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::PostCompact,
        Self::Notification,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Notification => "Notification",
            Self::WorktreeCreate => "WorktreeCreate",
            Self::WorktreeRemove => "WorktreeRemove",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is about a tool's call. Only then an `if` can be judged.
    pub fn is_about_a_tool(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::PermissionRequest
        )
    }

    /// Whether hooks of this kind can be chosen by a matcher.
    pub fn has_matcher(self) -> bool {
        !matches!(
            self,
            Self::UserPromptSubmit | Self::Stop | Self::WorktreeCreate | Self::WorktreeRemove
        )
    }

    /// Whether a refusal means something. Where it does not, its reason is for the user to see.
    pub fn can_block(self) -> bool {
        !matches!(
            self,
            Self::SessionStart
                | Self::SessionEnd
                | Self::SubagentStart
                | Self::PostCompact
                | Self::Notification
                | Self::WorktreeCreate
                | Self::WorktreeRemove
        )
    }

    /// Whether what a hook prints without any form is context for the model.
    pub fn takes_plain_text(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit)
    }

    /// How long a hook may take that names no limit of its own.
    pub fn default_timeout(self) -> Duration {
        match self {
            Self::UserPromptSubmit => Duration::from_secs(30),
            Self::SessionEnd => Duration::from_millis(1500),
            _ => Duration::from_secs(600),
        }
    }

    /// The most that a hook may ask for.
    pub fn longest_timeout(self) -> Duration {
        match self {
            Self::SessionEnd => Duration::from_secs(60),
            _ => Duration::from_secs(24 * 60 * 60),
        }
    }

    /// What applies where settings say nothing: a guard that fails guards.
    pub fn on_timeout(self) -> OnTimeout {
        match self {
            Self::PreToolUse | Self::PermissionRequest => OnTimeout::Block,
            _ => OnTimeout::Pass,
        }
    }
}
