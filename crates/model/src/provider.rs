//! Providers: which wire, which address, which key, and the model that comes out of it.

use crate::Model;
use crate::gate::{Gate, SinceBoot};
use crate::http::{HttpModel, Pool};
use crate::wire::{Wire, WireOptions, anthropic::Anthropic, chat::Chat, responses::Responses};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Anthropic,
    OpenAi,
    OpenAiChat,
    Scripted,
}

impl Kind {
    pub const ALL: [Self; 4] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::OpenAiChat,
        Self::Scripted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Scripted => "scripted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::OpenAiChat => "OPENAI_API_KEY",
            Self::Scripted => "",
        }
    }

    pub fn base_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi | Self::OpenAiChat => "OPENAI_BASE_URL",
            Self::Scripted => "",
        }
    }

    pub fn default_base(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiChat => "https://api.openai.com",
            Self::Scripted => "",
        }
    }

    /// The makers' general models as of October 2026. Chat Completions is mostly spoken by local
    /// servers, whose models only their owner knows.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("claude-opus-5-5"),
            Self::OpenAi => Some("gpt-6.1-sol"),
            Self::OpenAiChat => None,
            Self::Scripted => Some("scripted"),
        }
    }
}

/// How long a server may keep silent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deadlines {
    /// From sending the request to the first byte of the answer. A local server may think about a
    /// long prompt for minutes before it says anything.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub silence: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(180),
        }
    }
}

/// Everything that is needed to reach a model over HTTP.
#[derive(Debug, Clone)]
pub struct Connection {
    pub kind: Kind,
    pub base: String,
    pub key: Option<SecretString>,
    pub headers: Vec<(String, String)>,
    pub deadlines: Deadlines,
    pub options: WireOptions,
}

/// Why a model cannot be reached as it is described.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the base address `{0}` is not an http or https address")]
    Address(String),
    #[error("{0}")]
    Header(String),
}

/// A model whose `answer` is one attempt; see `retry` for one that asks again.
pub fn connect(connection: Connection) -> Result<Arc<dyn Model>, ConnectError> {
    let Connection {
        kind,
        base,
        key,
        headers,
        deadlines,
        options,
    } = connection;
    let name = options.model.clone();
    let wire: Arc<dyn Wire> = match kind {
        Kind::Anthropic => Arc::new(Anthropic { options }),
        Kind::OpenAi => Arc::new(Responses { options }),
        Kind::OpenAiChat | Kind::Scripted => Arc::new(Chat { options }),
    };
    let model = HttpModel {
        name,
        url: address(&base, wire.path())?,
        wire,
        key,
        headers,
        deadlines,
        pool: Pool::default(),
    };
    model.check_headers().map_err(ConnectError::Header)?;
    Ok(Arc::new(model))
}

/// Base addresses come with and without a version at their end; without one it is `v1`.
fn address(base: &str, path: &str) -> Result<Url, ConnectError> {
    let bad = || ConnectError::Address(base.to_owned());
    let trimmed = base.trim().trim_end_matches('/');
    let url = Url::parse(trimmed).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad());
    }
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let has_version = last
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let version = if has_version { "" } else { "/v1" };
    Url::parse(&format!("{trimmed}{version}/{path}")).map_err(|_| bad())
}

/// One gate for each provider address and key, shared with all processes that use the same
/// folder.
#[derive(Debug)]
pub struct Gates {
    folder: PathBuf,
    /// So many requests this process can have under way with one of them.
    most: usize,
    gates: Mutex<HashMap<String, Gate>>,
}

impl Gates {
    pub fn below(folder: PathBuf, most: usize) -> Self {
        Self {
            folder,
            most,
            gates: Mutex::default(),
        }
    }

    pub fn of(&self, base: &str, key: Option<&SecretString>, limit: u32) -> Gate {
        let name = gate_name(base, key);
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.folder.join(&name);
        let gate = gates.entry(name);
        gate.or_insert_with(|| Gate::shared(folder, limit, self.most, Arc::new(SinceBoot)))
            .clone()
    }
}

/// Tells providers and keys apart without saying anything about the key. How the address is
/// written makes no difference.
fn gate_name(base: &str, key: Option<&SecretString>) -> String {
    let base = address(base, "").map_or_else(|_| base.to_owned(), |url| url.to_string());
    let mut hash = Sha256::new();
    for part in [b"gaffer gate", base.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(key.map_or("", |key| key.expose_secret()));
    let bytes = hash.finalize();
    bytes[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_addresses_with_and_without_a_version() {
        let rows = [
            (
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "https://api.anthropic.com/",
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "https://api.anthropic.com/v1",
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "http://127.0.0.1:8080/v1/",
                "http://127.0.0.1:8080/v1/messages",
            ),
            (
                "https://gate.example/api/v1",
                "https://gate.example/api/v1/messages",
            ),
            (
                "https://gate.example/paas/v4",
                "https://gate.example/paas/v4/messages",
            ),
            (
                "https://gate.example/vault",
                "https://gate.example/vault/v1/messages",
            ),
        ];
        for (base, want) in rows {
            assert_eq!(address(base, "messages").unwrap().as_str(), want);
        }
        for bad in ["", "api.anthropic.com", "ftp://x", "http://", "unix:/tmp/x"] {
            assert!(address(bad, "messages").is_err(), "{bad}");
        }
    }

    #[test]
    fn one_gate_for_a_provider_and_key() {
        let temp = tempfile::tempdir().unwrap();
        let gates = Gates::below(temp.path().join("gates"), usize::MAX);
        let key = SecretString::from("k");
        let first = gates.of("a", Some(&key), 4);
        let place = std::pin::pin!(first.enter(|| {}));
        let waker = futures_util::task::noop_waker();
        let entered = place.poll(&mut std::task::Context::from_waker(&waker));
        assert!(entered.is_ready());
        assert_eq!(gates.of("a", Some(&key), 4).view().under_way, 1);
        assert_eq!(gates.of("a", None, 4).view().under_way, 0);
        assert_eq!(gates.of("b", Some(&key), 4).view().under_way, 0);
        let names = ["http://h", "http://h/", "http://h/v1"].map(|base| gate_name(base, None));
        assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
        assert!(gate_name("http://h", Some(&key)) != names[0] && !names[0].contains('/'));
    }
}
