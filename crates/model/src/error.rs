//! What can go wrong with a request, typed by what to do about it.

use crate::gate::Pressure;
use std::time::Duration;

/// One failed request. The message is the provider's own words where it gave any.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct ModelError {
    pub kind: ErrorKind,
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// 429: too many requests or tokens.
    RateLimited,
    /// 529 and its kin: the provider has no room for anybody.
    Overloaded,
    /// Other 5xx.
    Server,
    /// Could not connect, or the connection broke before the answer began.
    Connection,
    /// The stream ended before its final event.
    Cut,
    /// The stream held something that is not an event of this wire.
    Garbled,
    /// No first byte within its deadline.
    NoFirstByte,
    /// The stream went silent for longer than its deadline.
    Silent,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404: wrong address or unknown model.
    NotFound,
    /// The conversation no longer fits the model.
    PromptTooLong,
    /// Any other 4xx: the request itself is wrong.
    BadRequest,
    /// The answer is larger than we accept.
    TooLarge,
    /// A page or a plain document where a stream of events should be.
    NotAStream,
    /// The provider did something that this version does not know.
    Unsupported,
    /// The script of a scripted model does not fit the run.
    Script,
}

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Try again, a bounded number of times.
    Retry,
    /// Try again for as long as the bound on time allows: the provider is full, nothing is wrong.
    Wait,
    GiveUp,
}

impl ErrorKind {
    pub fn action(self) -> Action {
        match self {
            Self::RateLimited | Self::Overloaded => Action::Wait,
            Self::Server
            | Self::Connection
            | Self::Cut
            | Self::Garbled
            | Self::NoFirstByte
            | Self::Silent => Action::Retry,
            Self::Unauthorized
            | Self::Forbidden
            | Self::NotFound
            | Self::PromptTooLong
            | Self::BadRequest
            | Self::TooLarge
            | Self::NotAStream
            | Self::Unsupported
            | Self::Script => Action::GiveUp,
        }
    }

    /// How the provider said that too much is asked of it, if it did.
    pub fn pressure(self) -> Option<Pressure> {
        match self {
            Self::RateLimited => Some(Pressure::TooFast),
            Self::Overloaded => Some(Pressure::Overloaded),
            _ => None,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::RateLimited => "rate limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server error",
            Self::Connection => "connection lost",
            Self::Cut => "the answer was cut off",
            Self::Garbled => "the answer was garbled",
            Self::NoFirstByte => "no answer within the deadline",
            Self::Silent => "the answer went silent",
            Self::Unauthorized => "the key was refused",
            Self::Forbidden => "not allowed",
            Self::NotFound => "not found",
            Self::PromptTooLong => "the conversation is too long for the model",
            Self::BadRequest => "the request was refused",
            Self::TooLarge => "the answer is too large",
            Self::NotAStream => "the server did not answer with a stream of events",
            Self::Unsupported => "not supported",
            Self::Script => "the script does not fit",
        }
    }

    /// What the user can do about it.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::Unauthorized => Some(
                "check the key in ANTHROPIC_API_KEY or OPENAI_API_KEY and that it belongs to this provider",
            ),
            Self::Forbidden => {
                Some("the key may not use this model or address; choose another with --model")
            }
            Self::NotFound => Some(
                "check --model, and ANTHROPIC_BASE_URL or OPENAI_BASE_URL; a server without the Responses API needs --provider openai-chat",
            ),
            Self::BadRequest => {
                Some("if the model does not exist or lacks tools, choose another with --model")
            }
            Self::NotAStream => Some(
                "check ANTHROPIC_BASE_URL or OPENAI_BASE_URL: is that the address of the API itself?",
            ),
            Self::Connection => Some("check the network, the proxy variables and the base address"),
            _ => None,
        }
    }
}

impl ModelError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
        }
    }

    fn describe(&self) -> String {
        let mut text = self.kind.label().to_owned();
        if let Some(status) = self.status {
            text.push_str(&format!(" (HTTP {status})"));
        }
        if !self.message.is_empty() {
            text.push_str(": ");
            text.push_str(&self.message);
        }
        text
    }

    /// The error with what to do about it, in one line.
    pub fn with_hint(&self) -> String {
        match self.kind.hint() {
            Some(hint) => format!("{self} ({hint})"),
            None => self.to_string(),
        }
    }
}
