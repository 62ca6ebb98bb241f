//! Names of things: sessions, agents, tool calls. Each can only hold what is safe as a file name.

use crate::clock::Entropy;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Why a text cannot be an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error(
        "a session id is 1 to 64 letters, digits, `-` or `_` and starts with a letter or digit, not `{0}`"
    )]
    Session(String),
    #[error("an agent id is `agent-` and 8 hex digits, not `{0}`")]
    Agent(String),
    #[error(
        "an agent's name is 1 to 64 of a-z, 0-9 and `-`, and does not look like an id, not `{0}`"
    )]
    Name(String),
}

/// One conversation with the user, on disk.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(Arc<str>);

impl SessionId {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let fits = (1..=64).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(IdError::Session(text.to_owned()))
        }
    }

    /// A random one, in the form of a version 4 UUID: programs that drive agents expect that form.
    pub fn random(entropy: &dyn Entropy) -> Self {
        Self(uuid_v4(entropy).into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A random version 4 UUID as text.
pub fn uuid_v4(entropy: &dyn Entropy) -> String {
    let (high, low) = (entropy.next(), entropy.next());
    let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
    let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

impl TryFrom<String> for SessionId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One letter of a session, counted from 1 in the order in which they were written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MailId(pub u64);

impl fmt::Display for MailId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "msg-{}", self.0)
    }
}

/// One agent of a session: `agent-` and 8 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(u32);

impl AgentId {
    pub fn random(entropy: &dyn Entropy) -> Self {
        Self((entropy.next() >> 32) as u32)
    }

    pub fn parse(text: &str) -> Result<Self, IdError> {
        let digits = text.strip_prefix("agent-").filter(|digits| {
            digits.len() == 8
                && digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .map(Self)
            .ok_or_else(|| IdError::Agent(text.to_owned()))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent-{:08x}", self.0)
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for AgentId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

/// What people and the coordinator call an agent: unique in a session.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// The name of the agent that talks with the user.
    pub fn main() -> Self {
        Self("main".into())
    }

    pub fn parse(text: &str) -> Result<Self, IdError> {
        let fits = (1..=64).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && AgentId::parse(text).is_err();
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(IdError::Name(text.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The provider's id of one tool call. Providers choose its form; it goes back unchanged.
pub type CallId = String;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug)]
    struct Fixed(u64);
    impl Entropy for Fixed {
        fn next(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_session_id_cannot_leave_its_folder() {
        for bad in ["", "..", "a/b", "-x", "_x", "a b", "ä", &"x".repeat(65)] {
            assert!(SessionId::parse(bad).is_err(), "{bad}");
        }
        for good in ["a", "3f2b-11", "Feature_1"] {
            assert_eq!(SessionId::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_name_never_looks_like_an_id() {
        assert!(AgentName::parse("agent-1a2b3c4d").is_err());
        assert!(AgentName::parse("agent-1a2b3c4").is_ok());
        assert!(AgentName::parse("Reviewer").is_err());
    }

    proptest! {
        #[test]
        fn ids_read_back_what_they_wrote(bits: u64) {
            let id = AgentId::random(&Fixed(bits));
            prop_assert_eq!(AgentId::parse(&id.to_string()), Ok(id));
            let session = SessionId::random(&Fixed(bits));
            prop_assert_eq!(session.as_str().len(), 36);
            prop_assert_eq!(&session.as_str()[14..15], "4");
            prop_assert!(SessionId::parse(session.as_str()).is_ok());
        }
    }
}
