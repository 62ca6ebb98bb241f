//! Why an agent ended: a closed list, of which one entry alone is success.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A natural end with a non-empty result.
    Done,
    StoppedByCoordinator,
    StoppedByUser,
    MaxTurns,
    Budget,
    /// The model's context or its answer's limit was reached.
    Context,
    ProviderError(String),
    NoProgress(String),
    EmptyAnswer,
    NotProven(String),
    SchemaNotMet(String),
    Denied(String),
    DependencyFailed(String),
    /// The process ended under it.
    Interrupted,
    Crashed(String),
    HostLost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Completed,
    Failed,
    Killed,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Completed, Self::Failed, Self::Killed]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

impl End {
    pub fn status(&self) -> Status {
        match self {
            Self::Done => Status::Completed,
            Self::StoppedByCoordinator | Self::StoppedByUser => Status::Killed,
            _ => Status::Failed,
        }
    }

    /// The reason as one word, for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::StoppedByCoordinator => "stopped_by_coordinator",
            Self::StoppedByUser => "stopped_by_user",
            Self::MaxTurns => "max_turns",
            Self::Budget => "budget",
            Self::Context => "context",
            Self::ProviderError(_) => "provider_error",
            Self::NoProgress(_) => "no_progress",
            Self::EmptyAnswer => "empty_answer",
            Self::NotProven(_) => "not_proven",
            Self::SchemaNotMet(_) => "schema_not_met",
            Self::Denied(_) => "denied",
            Self::DependencyFailed(_) => "dependency_failed",
            Self::Interrupted => "interrupted",
            Self::Crashed(_) => "crashed",
            Self::HostLost => "host_lost",
        }
    }
}

/// A sentence for people, with what to do where there is something.
impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::StoppedByCoordinator => f.write_str("stopped by the coordinator"),
            Self::StoppedByUser => f.write_str("stopped by the user"),
            Self::MaxTurns => f.write_str("reached its limit of turns (raise it with --max-turns)"),
            Self::Budget => f.write_str("reached its budget"),
            Self::Context => f.write_str("the model's context is full"),
            Self::ProviderError(why) => write!(f, "the model provider failed: {why}"),
            Self::NoProgress(why) => write!(f, "no progress: {why}"),
            Self::EmptyAnswer => f.write_str("the model ended its turn without a word"),
            Self::NotProven(why) => write!(f, "not proven: {why}"),
            Self::SchemaNotMet(why) => write!(f, "the result does not fit its schema: {why}"),
            Self::Denied(why) => write!(f, "denied: {why}"),
            Self::DependencyFailed(why) => write!(f, "a task it depends on failed: {why}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Crashed(why) => write!(f, "crashed: {why}"),
            Self::HostLost => f.write_str("the host that ran it was lost"),
        }
    }
}
