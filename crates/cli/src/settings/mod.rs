//! Settings: what files may say, and where it stands if they say it wrong.

pub(crate) mod budget;
pub(crate) mod layers;
pub(crate) mod merge;
pub(crate) mod size;

use crate::args::SandboxMode;
use crate::exit::Usage;
use crate::system;
use budget::BudgetSettings;
use gaffer_agent::CompactionLimits;
use gaffer_crew::orders::Level;
use gaffer_model::price::Price;
use gaffer_model::provider::Kind;
use gaffer_model::script::Span;
use gaffer_tools::hook::{EventKind, OnTimeout};
use gaffer_tools::lease::LeaseLimits;
use gaffer_tools::nearest::hint;
use layers::{Layer, Places};
use merge::{Merged, Origin};
use serde::Deserialize;
use size::Bytes;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One settings file, or all of them put together. Every member may be left out.
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
    /// Whether Glob leaves out what .gitignore names. Grep always does.
    pub(crate) glob_respects_gitignore: Option<bool>,
    /// By provider: `anthropic`, `openai`, `openai-chat`.
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// By model: dollars for a million tokens, and sizes.
    pub(crate) prices: BTreeMap<String, Price>,
    pub(crate) retry: RetrySettings,
    pub(crate) sandbox: SandboxSettings,
    pub(crate) worktree: WorktreeSettings,
    /// How finished branches are integrated.
    pub(crate) integrate: IntegrateSettings,
    pub(crate) permissions: PermissionSettings,
    /// By event; see docs.
    pub(crate) hooks: serde_json::Map<String, serde_json::Value>,
    pub(crate) disable_all_hooks: bool,
    /// By event: whether a hook that gave no answer blocks.
    pub(crate) on_hook_timeout: BTreeMap<EventKind, OnTimeout>,
    pub(crate) web: WebSettings,
    /// By role (`coordinator`, `worker`) or agent type: its model.
    pub(crate) models: BTreeMap<String, String>,
    /// So many workers run at once.
    pub(crate) max_workers: Option<usize>,
    /// How deep agents may start agents in normal mode.
    pub(crate) max_depth: Option<u32>,
    /// Whether conversations are compacted without anybody asking for it.
    pub(crate) auto_compact_enabled: Option<bool>,
    /// So many tokens of a model's context are used at most.
    pub(crate) auto_compact_window: Option<u64>,
    /// What a session may use in all.
    pub(crate) budget: BudgetSettings,
    /// Whether the user approves the coordinator's plan before anything is changed.
    pub(crate) plan_first: Option<bool>,
    /// How orders are looked at before they are carried out.
    pub(crate) guardrails: GuardrailSettings,
    /// Answers questions about pages of the web; of the same provider.
    pub(crate) small_model: Option<String>,
    /// A session that was last written longer ago is removed.
    pub(crate) cleanup_period_days: Option<u32>,
    pub(crate) sessions: SessionSettings,
    /// With less free space no session starts; 0 for any.
    pub(crate) min_free_space: Option<Bytes>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct SessionSettings {
    /// So much all sessions take together; 0 for no limit.
    pub(crate) max_size: Option<Bytes>,
}

/// By guardrail: `off`, `warn` or `enforce`; leases cannot be off.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GuardrailSettings {
    /// The quality of orders.
    pub(crate) orders: Level,
    /// Whether a worker is continued or a fresh one started.
    #[serde(rename = "continue")]
    pub(crate) continues: Level,
    /// Who may write which file.
    pub(crate) leases: LeaseLevel,
    /// So long somebody waits for a file that another holds.
    #[serde(rename = "leaseWaitSeconds")]
    pub(crate) lease_wait_seconds: Option<u64>,
    /// What orders of one message cost together.
    pub(crate) budget: Level,
    /// Whether orders come in their turn.
    pub(crate) phases: Level,
}

/// What becomes of a write to a file that another holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LeaseLevel {
    /// It goes through, and is spoken of.
    Warn,
    /// It waits, and is refused if that takes too long.
    #[default]
    Enforce,
}

impl GuardrailSettings {
    pub(crate) fn lease_limits(&self) -> LeaseLimits {
        let default = LeaseLimits::default();
        LeaseLimits {
            is_enforced: self.leases == LeaseLevel::Enforce,
            wait: self
                .lease_wait_seconds
                .map_or(default.wait, std::time::Duration::from_secs),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct WebSettings {
    /// Hosts, addresses and networks that may be reached although they are not public.
    pub(crate) allow: Vec<String>,
    pub(crate) search: Option<Search>,
}

/// Who answers searches.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Search {
    /// The model's provider, where it has a search tool of its own.
    Provider,
    /// A SearXNG server's address.
    Searxng(String),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PermissionSettings {
    pub(crate) allow: Vec<String>,
    pub(crate) ask: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) default_mode: Option<String>,
    pub(crate) additional_directories: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct SandboxSettings {
    /// `auto`, `require` or `off`.
    pub(crate) mode: Option<SandboxMode>,
    pub(crate) network: Option<bool>,
    /// Further folders that commands may write, such as a build tool's cache.
    pub(crate) allow_write: Vec<PathBuf>,
    /// Whether a command may ask to run outside the sandbox.
    pub(crate) allow_unsandboxed_commands: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WorktreeSettings {
    pub(crate) base_ref: BaseRef,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct IntegrateSettings {
    /// The project's own test command, run after each merge.
    pub(crate) test: Option<String>,
    /// So long a check may take.
    pub(crate) timeout_seconds: Option<u64>,
}

/// What the worktree of a worker begins from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BaseRef {
    /// The commit that the user's checkout is at.
    #[default]
    Head,
    /// The default branch.
    Fresh,
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

/// Below this a prompt with its tools would hardly fit.
const LEAST_WINDOW: u64 = 4_000;

/// The keys of a settings file, with what holds where a key is not given.
pub(crate) const KEYS: [(&str, &str); 28] = [
    ("mode", "coordinator"),
    ("provider", "by the key that is set"),
    ("model", "the provider's"),
    ("maxTurns", "no limit"),
    ("globRespectsGitignore", "false"),
    ("providers", "{}"),
    ("prices", "the built-in table"),
    ("retry", "{}"),
    ("sandbox", "{}"),
    ("worktree", "{}"),
    ("integrate", "{}"),
    ("permissions", "{}"),
    ("hooks", "{}"),
    ("disableAllHooks", "false"),
    ("onHookTimeout", "block before a call and at a question"),
    ("web", "{}"),
    ("smallModel", "none"),
    ("models", "the session's own model for all"),
    ("maxWorkers", "16"),
    ("maxDepth", "1"),
    ("budget", "no limit"),
    ("guardrails", "warn; leases enforce"),
    ("planFirst", "false"),
    ("autoCompactEnabled", "true"),
    ("autoCompactWindow", "the model's context"),
    ("cleanupPeriodDays", "30"),
    ("sessions", "{}"),
    ("minFreeSpace", "500MB"),
];

impl Settings {
    /// Reads all files and puts them together.
    pub(crate) fn load(places: &Places) -> Result<(Self, Merged), Usage> {
        let mut merged = Merged::default();
        for layer in layers::read(places)? {
            Self::check_layer(&layer)?;
            let (value, refused) = layer.value()?;
            let path = layer.path.display();
            for key in refused {
                system::say(&format!(
                    "gaffer: settings {path}: `{key}` is left out: only your own settings may say that"
                ));
            }
            let origin = Origin {
                level: layer.level,
                path: layer.path.clone(),
            };
            merged.over(&value, &origin);
        }
        let all = if merged.value.is_null() {
            Self::default()
        } else {
            // Each file was read by itself, so together they can be read too.
            Self::deserialize(&merged.value)
                .map_err(|error| Usage::new(format!("settings: {error}")))?
        };
        Ok((all, merged))
    }

    /// Each file is read by itself first: an error then has a line.
    fn check_layer(layer: &Layer) -> Result<(), Usage> {
        let path = layer.path.display();
        // A struct can also be read from a list of its members, which nobody means here.
        if !layer.text.trim_start().starts_with('{') {
            let message = format!("settings {path}, line 1: expected an object, `{{ … }}`");
            return Err(Usage::new(message));
        }
        if layer.is_foreign {
            // Of another tool's file only its own parts must be sound for us.
            let shared = layer.value()?.0;
            let read = Self::deserialize(&shared);
            return read
                .map(|_| ())
                .map_err(|error| Usage::new(format!("settings {path}: {error}")));
        }
        let settings: Self =
            serde_json::from_str(&layer.text).map_err(|error| layer.wrong(&error))?;
        settings
            .check()
            .map_err(|what| Usage::new(format!("settings {path}: {what}")))?;
        let all: BTreeMap<String, serde::de::IgnoredAny> =
            serde_json::from_str(&layer.text).unwrap_or_default();
        let known = |key: &str| KEYS.iter().any(|(known, _)| *known == key) || key == "$schema";
        for key in all.keys().filter(|key| !known(key)) {
            let near = hint(key, KEYS.map(|(known, _)| known));
            system::say(&format!(
                "gaffer: settings {path}: unknown key `{key}`{near}"
            ));
        }
        Ok(())
    }

    pub(crate) fn compaction(&self) -> CompactionLimits {
        CompactionLimits {
            is_auto: self.auto_compact_enabled.unwrap_or(true),
            // Another tool's file is not ours to refuse.
            window: self.auto_compact_window.map(|it| it.max(LEAST_WINDOW)),
        }
    }

    /// What types cannot say.
    fn check(&self) -> Result<(), String> {
        if self.max_turns == Some(0) {
            return Err("`maxTurns` is at least 1".to_owned());
        }
        if self.max_workers == Some(0) {
            return Err("`maxWorkers` is at least 1".to_owned());
        }
        if self.auto_compact_window.is_some_and(|it| it < LEAST_WINDOW) {
            return Err(format!("`autoCompactWindow` is at least {LEAST_WINDOW}"));
        }
        if self.integrate.timeout_seconds == Some(0) {
            return Err("`integrate.timeoutSeconds` is at least 1".to_owned());
        }
        if self.cleanup_period_days == Some(0) {
            return Err("`cleanupPeriodDays` is at least 1".to_owned());
        }
        if let Some(problem) = gaffer_protocol::Budget::from(self.budget).problem() {
            return Err(format!(
                "`budget`: {}",
                problem.replace("`seconds`", "`wall`")
            ));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use layers::Level as FileLevel;
    use serde_json::json;

    struct World {
        temp: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            Self {
                temp: tempfile::tempdir().unwrap(),
            }
        }

        fn write(&self, name: &str, value: &serde_json::Value) {
            let path = self.temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value.to_string()).unwrap();
        }

        fn load(&self, given: bool) -> Result<(Settings, Merged), Usage> {
            let at = |name: &str| self.temp.path().join(name);
            Settings::load(&Places {
                home: at("home/.gaffer"),
                user: Some(at("home")),
                project: Some(at("project")),
                system: at("etc"),
                given: given.then(|| at("given.json")),
            })
        }
    }

    #[test]
    fn the_nearest_key_is_named() {
        let near = |key| hint(key, KEYS.map(|(known, _)| known));
        assert_eq!(near("modell"), "; did you mean `model`?");
        assert_eq!(near("max_turns"), "; did you mean `maxTurns`?");
        assert_eq!(near("enabledPlugins"), "");
    }

    #[test]
    fn levels_go_over_each_other_and_lists_add_up() {
        let world = World::new();
        world.write(
            "home/.gaffer/settings.json",
            &json!({"model": "user", "maxTurns": 1, "permissions": {"deny": ["A"]}}),
        );
        world.write(
            "project/.gaffer/settings.json",
            &json!({"model": "project", "maxTurns": 2, "permissions": {"deny": ["B"]}}),
        );
        world.write(
            "project/.gaffer/settings.local.json",
            &json!({"model": "local", "permissions": {"deny": ["C"]}}),
        );
        world.write("given.json", &json!({"model": "given"}));
        let (settings, merged) = world.load(true).unwrap();
        assert_eq!(settings.model.as_deref(), Some("given"));
        assert_eq!(settings.max_turns, Some(2));
        assert_eq!(settings.permissions.deny, ["A", "B", "C"]);
        assert_eq!(
            merged.origin("permissions.deny[1]").unwrap().level,
            FileLevel::Project
        );
        world.write(
            "etc/gaffer/managed-settings.json",
            &json!({"model": "managed"}),
        );
        assert_eq!(
            world.load(true).unwrap().0.model.as_deref(),
            Some("managed")
        );
    }

    #[test]
    fn files_of_another_tool_are_read_where_there_is_none_of_our_own() {
        let world = World::new();
        let theirs = json!({"model": "opus", "statusLine": 3, "autoCompactEnabled": false, "permissions": {"allow": ["Bash(ls)"], "other": 1}, "hooks": {"Stop": []}});
        world.write("home/.claude/settings.json", &theirs);
        world.write(
            "project/.claude/settings.local.json",
            &json!({"permissions": {"deny": ["Read(.env)"]}}),
        );
        let (settings, _) = world.load(false).unwrap();
        assert_eq!(settings.model, None, "their models are not ours");
        assert_eq!(settings.permissions.allow, ["Bash(ls)"]);
        assert_eq!(settings.permissions.deny, ["Read(.env)"]);
        assert!(settings.hooks.contains_key("Stop"));
        assert!(!settings.compaction().is_auto);
        world.write("home/.gaffer/settings.json", &json!({"maxTurns": 5}));
        assert!(world.load(false).unwrap().0.permissions.allow.is_empty());
    }

    #[test]
    fn a_project_cannot_say_where_keys_go_or_what_holds_it_back() {
        let world = World::new();
        let evil = json!({"providers": {"anthropic": {"baseUrl": "http://evil.example"}}, "sandbox": {"mode": "off"}, "maxTurns": 9, "cleanupPeriodDays": 1, "sessions": {"maxSize": 1}, "minFreeSpace": "9TB"});
        for name in [
            "project/.gaffer/settings.json",
            "project/.gaffer/settings.local.json",
        ] {
            world.write(name, &evil);
        }
        let (settings, _) = world.load(false).unwrap();
        assert!(settings.providers.is_empty());
        assert_eq!(settings.sandbox.mode, None);
        assert_eq!(settings.cleanup_period_days, None);
        assert_eq!(settings.sessions.max_size, None);
        assert_eq!(settings.min_free_space, None);
        assert_eq!(settings.max_turns, Some(9));
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let world = World::new();
        let path = world.temp.path().join("given.json");
        std::fs::write(path, "{\n  \"model\": \"a\",\n  \"maxTurns\": \"three\"\n}").unwrap();
        let error = world.load(true).unwrap_err().to_string();
        assert!(
            error.contains(
                "given.json, line 3, column 21: invalid type: string \"three\", expected u32"
            ),
            "{error}"
        );
    }
}
