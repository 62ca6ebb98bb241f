//! Settings files: what they may say, and where it stands if they say it wrong.

use crate::args::SandboxMode;
use crate::exit::Usage;
use crate::system;
use gaffer_model::price::Price;
use gaffer_model::provider::Kind;
use gaffer_model::script::Span;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One settings file. Every member may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Settings {
    /// `normal` or `coordinator`.
    pub(crate) mode: Option<String>,
    /// Who answers where no `--provider` says so.
    pub(crate) provider: Option<String>,
    /// The model where no `--model` says so.
    pub(crate) model: Option<String>,
    pub(crate) max_turns: Option<u32>,
    /// By provider: `anthropic`, `openai`, `openai-chat`.
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// By model: dollars for a million tokens, and sizes.
    pub(crate) prices: BTreeMap<String, Price>,
    pub(crate) retry: RetrySettings,
    pub(crate) sandbox: SandboxSettings,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct SandboxSettings {
    /// `auto`, `require` or `off`.
    pub(crate) mode: Option<SandboxMode>,
    pub(crate) network: Option<bool>,
    /// Further folders that commands may write, such as a build tool's cache.
    pub(crate) allow_write: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ProviderSettings {
    pub(crate) base_url: Option<String>,
    pub(crate) model: Option<String>,
    /// Further headers; `${agent}` and `${agent_type}` stand for who asks.
    pub(crate) headers: BTreeMap<String, String>,
    /// Further members of each request.
    pub(crate) extra: serde_json::Map<String, serde_json::Value>,
    pub(crate) images: Option<bool>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) max_concurrent_requests: Option<u32>,
    pub(crate) first_byte_timeout: Option<Span>,
    pub(crate) silence_timeout: Option<Span>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct RetrySettings {
    pub(crate) attempts: Option<u32>,
    /// How long an overloaded provider is waited for.
    pub(crate) overload: Option<Span>,
    pub(crate) first_delay: Option<Span>,
    pub(crate) longest_delay: Option<Span>,
}

const KEYS: [&str; 8] = [
    "mode",
    "provider",
    "model",
    "maxTurns",
    "providers",
    "prices",
    "retry",
    "sandbox",
];

impl Settings {
    /// The user's own file, where there is one, with the file of `--settings` over it.
    pub(crate) fn load(home: Option<&Path>, given: Option<&Path>) -> Result<Self, Usage> {
        let mut settings = Self::default();
        if let Some(path) = home.map(|home| home.join("settings.json"))
            && path.exists()
        {
            settings = Self::read(&path)?;
        }
        if let Some(path) = given {
            settings = Self::read(path)?.over(settings);
        }
        Ok(settings)
    }

    fn read(path: &Path) -> Result<Self, Usage> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Usage::new(format!("cannot read the settings {shown}: {error}")))?;
        // A struct can also be read from a list of its members, which nobody means here.
        if !text.trim_start().starts_with('{') {
            let message = format!("settings {shown}, line 1: expected an object, `{{ … }}`");
            return Err(Usage::new(message));
        }
        let settings: Self = serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default();
            Usage::new(format!(
                "settings {shown}, line {line}, column {column}: {what}"
            ))
        })?;
        settings
            .check()
            .map_err(|what| Usage::new(format!("settings {shown}: {what}")))?;
        let all: BTreeMap<String, serde::de::IgnoredAny> =
            serde_json::from_str(&text).unwrap_or_default();
        for key in all.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let near = nearest(key).map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            system::say(&format!(
                "gaffer: settings {shown}: unknown key `{key}`{near}"
            ));
        }
        Ok(settings)
    }

    /// What types cannot say.
    fn check(&self) -> Result<(), String> {
        if self.max_turns == Some(0) {
            return Err("`maxTurns` is at least 1".to_owned());
        }
        if let Some(name) = self
            .providers
            .keys()
            .find(|name| Kind::parse(name).is_none())
        {
            let all = Kind::ALL.map(Kind::as_str).join(", ");
            return Err(format!("`providers` has `{name}`, which is none of {all}"));
        }
        match self.prices.iter().find(|(_, price)| !price.is_sound()) {
            Some((model, _)) => Err(format!("the price of `{model}` is below zero")),
            None => Ok(()),
        }
    }

    /// This file's values where it has them, else the other's.
    fn over(self, base: Self) -> Self {
        let mut providers = base.providers;
        for (name, new) in self.providers {
            let old = providers.remove(&name).unwrap_or_default();
            providers.insert(name, new.over(old));
        }
        let mut prices = base.prices;
        for (model, new) in self.prices {
            let old = prices.remove(&model).unwrap_or_default();
            prices.insert(model, new.over(&old));
        }
        Self {
            mode: self.mode.or(base.mode),
            provider: self.provider.or(base.provider),
            model: self.model.or(base.model),
            max_turns: self.max_turns.or(base.max_turns),
            providers,
            prices,
            retry: RetrySettings {
                attempts: self.retry.attempts.or(base.retry.attempts),
                overload: self.retry.overload.or(base.retry.overload),
                first_delay: self.retry.first_delay.or(base.retry.first_delay),
                longest_delay: self.retry.longest_delay.or(base.retry.longest_delay),
            },
            sandbox: SandboxSettings {
                mode: self.sandbox.mode.or(base.sandbox.mode),
                network: self.sandbox.network.or(base.sandbox.network),
                allow_write: [base.sandbox.allow_write, self.sandbox.allow_write].concat(),
            },
        }
    }
}

impl ProviderSettings {
    fn over(self, base: Self) -> Self {
        let mut headers = base.headers;
        headers.extend(self.headers);
        let mut extra = base.extra;
        extra.extend(self.extra);
        Self {
            base_url: self.base_url.or(base.base_url),
            model: self.model.or(base.model),
            headers,
            extra,
            images: self.images.or(base.images),
            max_output_tokens: self.max_output_tokens.or(base.max_output_tokens),
            max_concurrent_requests: self
                .max_concurrent_requests
                .or(base.max_concurrent_requests),
            first_byte_timeout: self.first_byte_timeout.or(base.first_byte_timeout),
            silence_timeout: self.silence_timeout.or(base.silence_timeout),
        }
    }
}

/// The known key that is a few letters away.
fn nearest(key: &str) -> Option<&'static str> {
    let with_distance = KEYS.iter().map(|known| (distance(key, known), *known));
    let (distance, known) = with_distance.min()?;
    (distance <= 2.max(key.len() / 3)).then_some(known)
}

/// How many letters must change to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_named() {
        assert_eq!(nearest("modell"), Some("model"));
        assert_eq!(nearest("max_turns"), Some("maxTurns"));
        assert_eq!(nearest("permissions"), None);
    }

    #[test]
    fn a_given_file_goes_over_the_users_own() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(temp.path().join(name), text).unwrap();
        write(
            "settings.json",
            r#"{"model":"a","maxTurns":3,"providers":{"openai":{"baseUrl":"http://x","headers":{"a":"1"}}}}"#,
        );
        write(
            "given.json",
            r#"{"model":"b","providers":{"openai":{"headers":{"b":"2"}}}}"#,
        );
        let given = temp.path().join("given.json");
        let settings = Settings::load(Some(temp.path()), Some(&given)).unwrap();
        assert_eq!(settings.model.as_deref(), Some("b"));
        assert_eq!(settings.max_turns, Some(3));
        let openai = &settings.providers["openai"];
        assert_eq!(openai.base_url.as_deref(), Some("http://x"));
        assert_eq!(openai.headers.len(), 2);
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("s.json");
        std::fs::write(
            &path,
            "{\n  \"model\": \"a\",\n  \"maxTurns\": \"three\"\n}",
        )
        .unwrap();
        let error = Settings::load(None, Some(&path)).unwrap_err().to_string();
        assert!(
            error.contains(
                "s.json, line 3, column 21: invalid type: string \"three\", expected u32"
            ),
            "{error}"
        );
        let missing = temp.path().join("none.json");
        assert!(
            Settings::load(None, Some(&missing))
                .unwrap_err()
                .to_string()
                .contains("none.json")
        );
    }
}
