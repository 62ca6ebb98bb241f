//! Exit codes: anything unfinished is never 0.

use gaffer_protocol::End;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Budget = 3,
    Denied = 4,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&End> for Exit {
    fn from(end: &End) -> Self {
        match end {
            End::Done => Self::Done,
            End::Budget => Self::Budget,
            End::Denied(_) => Self::Denied,
            End::Interrupted | End::StoppedByUser => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}

/// The user asked for something that cannot be: one line, exit code 2, nothing written.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_done_task_exits_with_zero() {
        let ends = [
            End::MaxTurns,
            End::Budget,
            End::Context,
            End::EmptyAnswer,
            End::Interrupted,
            End::StoppedByUser,
            End::StoppedByCoordinator,
            End::HostLost,
            End::ProviderError(String::new()),
            End::Denied(String::new()),
            End::Crashed(String::new()),
        ];
        for end in ends {
            assert_ne!(Exit::from(&end) as u8, 0, "{end:?}");
        }
        assert_eq!(Exit::from(&End::Done) as u8, 0);
    }
}
