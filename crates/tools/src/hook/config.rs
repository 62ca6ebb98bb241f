//! What settings say about hooks.

use super::kind::EventKind;
use super::matcher::Matcher;
use super::reading;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The part of a settings file, or of a file of hooks alone, that is about hooks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HookSettings {
    pub hooks: HookConfig,
    pub disable_all_hooks: bool,
}

/// All hooks of one or several files, in their order.
///
/// Reading it never fails: a hook that is written wrong is a warning, and the others work.
#[derive(Debug, Clone, Default)]
pub struct HookConfig {
    pub groups: Vec<Group>,
    /// What is wrong, each with its place, for the user to read.
    pub warnings: Vec<String>,
}

impl HookConfig {
    /// Reads the value of `hooks`.
    pub fn read(value: &Value) -> Self {
        reading::config(value)
    }

    /// The hooks of both: files add hooks, none takes away another's.
    pub fn and(mut self, other: Self) -> Self {
        self.groups.extend(other.groups);
        self.warnings.extend(other.warnings);
        self
    }
}

impl<'de> Deserialize<'de> for HookConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::read(&value))
    }
}

/// Hooks that are asked at one kind of moment, where the matcher fits.
#[derive(Debug, Clone)]
pub struct Group {
    /// Where it stands in its file.
    pub place: String,
    pub event: EventKind,
    pub matcher: Matcher,
    pub handlers: Vec<Arc<Handler>>,
}

/// One hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Handler {
    pub runner: Runner,
    /// A permission rule that the call has to fit as well.
    pub condition: Option<String>,
    pub timeout: Option<Duration>,
    /// For those who watch, while it runs.
    pub status_message: Option<String>,
    pub background: Background,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Runner {
    Command(CommandHook),
    Http(HttpHook),
    /// It was written wrong. It counts as one that could not be started.
    Broken {
        label: String,
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CommandHook {
    pub command: String,
    /// With arguments, even none, the command is a program that is started without a shell.
    pub args: Option<Vec<String>>,
    pub shell: Option<Shell>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    Bash,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHook {
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The variables that headers may name.
    #[serde(default)]
    pub allowed_env_vars: Vec<String>,
}

impl HttpHook {
    pub fn allows(&self, variable: &str) -> bool {
        self.allowed_env_vars.iter().any(|it| it == variable)
    }
}

/// Whether the agent waits for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    No,
    /// `async`: it decides nothing.
    Quiet,
    /// `asyncRewake`: exit code 2 is news for the agent.
    Wakes,
}

impl Handler {
    /// How it is named in reports: short, on one line, without what may be secret.
    pub fn label(&self) -> String {
        let text = match &self.runner {
            Runner::Command(hook) => &hook.command,
            // A query may hold a key.
            Runner::Http(hook) => hook.url.split(['?', '#']).next().unwrap_or_default(),
            Runner::Broken { label, .. } => label,
        };
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(80) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// How long it may take at a moment of this kind.
    pub fn time(&self, kind: EventKind) -> Duration {
        let time = self.timeout.unwrap_or(kind.default_timeout());
        time.min(kind.longest_timeout())
    }
}
