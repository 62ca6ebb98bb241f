//! Reads the hooks of a settings file, one by one, and says what is wrong with each.

use super::config::{Background, Group, Handler, HookConfig, HttpHook, Runner};
use super::http;
use super::kind::EventKind;
use super::matcher::Matcher;
use crate::nearest::hint;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Events that users' settings may have, but that do not happen here so far.
const ABSENT_EVENTS: [&str; 18] = [
    "Setup",
    "UserPromptExpansion",
    "PermissionDenied",
    "PostToolBatch",
    "MessageDisplay",
    "TaskCreated",
    "TaskCompleted",
    "StopFailure",
    "TeammateIdle",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "FileChanged",
    "Elicitation",
    "ElicitationResult",
    "PreModelSwitch",
    "PostModelSwitch",
];
const TYPES: [&str; 2] = ["command", "http"];
const ABSENT_TYPES: [&str; 3] = ["prompt", "agent", "mcp_tool"];
const GROUP_MEMBERS: [&str; 3] = ["matcher", "hooks", "description"];
const COMMON_MEMBERS: [&str; 7] = [
    "type",
    "if",
    "timeout",
    "statusMessage",
    "once",
    "async",
    "asyncRewake",
];
const COMMAND_MEMBERS: [&str; 3] = ["command", "args", "shell"];
const HTTP_MEMBERS: [&str; 3] = ["url", "headers", "allowedEnvVars"];

/// What hooks of every type may have.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    timeout: Option<f64>,
    status_message: Option<String>,
    #[serde(rename = "async", default)]
    is_async: bool,
    #[serde(default)]
    async_rewake: bool,
    #[serde(rename = "if")]
    condition: Option<String>,
}

/// Reads the value of `hooks`.
pub(super) fn config(value: &Value) -> HookConfig {
    let mut config = HookConfig::default();
    let Value::Object(events) = value else {
        if !value.is_null() {
            let warning = "hooks: expected an object with events as members";
            config.warnings.push(warning.to_owned());
        }
        return config;
    };
    for (name, groups) in events {
        match EventKind::parse(name) {
            Some(event) => read_event(event, groups, &mut config),
            None => config.warnings.push(unknown_event(name)),
        }
    }
    config
}

fn unknown_event(name: &str) -> String {
    if ABSENT_EVENTS.contains(&name) {
        return format!("hooks.{name}: this event does not happen here; its hooks never run");
    }
    let hint = hint(name, EventKind::ALL.map(EventKind::name));
    format!("hooks.{name}: there is no such event; its hooks never run{hint}")
}

fn read_event(event: EventKind, groups: &Value, config: &mut HookConfig) {
    let place = format!("hooks.{}", event.name());
    let Value::Array(groups) = groups else {
        let warning = format!("{place}: expected a list of groups");
        return config.warnings.push(warning);
    };
    for (number, group) in groups.iter().enumerate() {
        let place = format!("{place}[{number}]");
        let handlers = group.get("hooks").and_then(Value::as_array);
        let (Value::Object(members), Some(handlers)) = (group, handlers) else {
            let warning = format!("{place}: expected an object with a list named `hooks`");
            config.warnings.push(warning);
            continue;
        };
        let warnings = &mut config.warnings;
        unknown_members(&place, members, &GROUP_MEMBERS, &[], warnings);
        let matcher = Matcher::read(members.get("matcher"));
        if let Some(why) = matcher.fault() {
            let effect = match event {
                EventKind::PreToolUse => "every call is refused until it is put right",
                _ => "its hooks never run",
            };
            warnings.push(format!("{place}: {why}; {effect}"));
        } else if !event.has_matcher() && !matches!(matcher, Matcher::All) {
            let name = event.name();
            warnings.push(format!(
                "{place}: {name} has nothing to match; its hooks always run"
            ));
        }
        let read = |(number, value)| {
            let place = format!("{place}.hooks[{number}]");
            read_handler(event, &place, value, warnings).map(Arc::new)
        };
        let handlers = handlers.iter().enumerate().filter_map(read).collect();
        config.groups.push(Group {
            place,
            event,
            matcher,
            handlers,
        });
    }
}

/// Reads one hook. None is left of one whose type is not known or not available.
fn read_handler(
    event: EventKind,
    place: &str,
    value: &Value,
    warnings: &mut Vec<String>,
) -> Option<Handler> {
    let Value::Object(members) = value else {
        warnings.push(format!("{place}: expected an object"));
        return None;
    };
    let own = match members.get("type").and_then(Value::as_str) {
        Some("command") => &COMMAND_MEMBERS,
        Some("http") => &HTTP_MEMBERS,
        Some(name) if ABSENT_TYPES.contains(&name) => {
            let warning = "are not available here; it never runs";
            warnings.push(format!("{place}: hooks of type `{name}` {warning}"));
            return None;
        }
        Some(name) => {
            let hint = hint(name, TYPES.into_iter().chain(ABSENT_TYPES));
            warnings.push(format!(
                "{place}: there is no type `{name}`; it never runs{hint}"
            ));
            return None;
        }
        None => {
            warnings.push(format!(
                "{place}: `type` is missing; expected \"command\" or \"http\""
            ));
            return None;
        }
    };
    unknown_members(place, members, &COMMON_MEMBERS, own, warnings);
    let handler = sound_handler(value, place, warnings).unwrap_or_else(|why| {
        warnings.push(format!("{place}: {why}; it cannot be run"));
        broken(place, value, why)
    });
    if handler.condition.is_some() && !event.is_about_a_tool() {
        let name = event.name();
        let warning = format!("{place}: {name} has no tool for `if` to judge; the hook never runs");
        warnings.push(warning);
    }
    Some(handler)
}

fn sound_handler(
    value: &Value,
    place: &str,
    warnings: &mut Vec<String>,
) -> Result<Handler, String> {
    let common: Common = typed(value)?;
    let runner = if value.get("type").is_some_and(|name| name == "http") {
        let hook: HttpHook = typed(value)?;
        http::check(&hook)?;
        for (header, name) in http::unlisted(&hook) {
            warnings.push(format!(
                "{place}: the header `{header}` names ${name}, which is not in `allowedEnvVars` and is left empty"
            ));
        }
        Runner::Http(hook)
    } else {
        Runner::Command(typed(value)?)
    };
    let timeout = match common.timeout {
        None => None,
        // Longer than any day is for ever, and more than clocks can add.
        Some(seconds) if seconds > 0.0 => Some(Duration::from_secs_f64(seconds.min(86_400.0))),
        Some(_) => return Err("`timeout` is more than 0 seconds".to_owned()),
    };
    let background = match (common.async_rewake, common.is_async) {
        (true, _) => Background::Wakes,
        (false, true) => Background::Quiet,
        (false, false) => Background::No,
    };
    Ok(Handler {
        runner,
        condition: common.condition,
        timeout,
        status_message: common.status_message,
        background,
    })
}

/// What stays of a hook that was written wrong: enough to know when it should have run.
fn broken(place: &str, value: &Value, why: String) -> Handler {
    let condition = value.get("if").and_then(Value::as_str);
    Handler {
        runner: Runner::Broken {
            label: place.to_owned(),
            why,
        },
        condition: condition.map(str::to_owned),
        timeout: None,
        status_message: None,
        background: Background::No,
    }
}

/// Reads a value as a type; the error says which member does not fit.
fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| match error.path().to_string() {
        path if path == "." => error.inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    })
}

fn unknown_members(
    place: &str,
    members: &Map<String, Value>,
    common: &[&str],
    own: &[&str],
    warnings: &mut Vec<String>,
) {
    let known = || common.iter().chain(own).copied();
    for name in members
        .keys()
        .filter(|name| known().all(|known| known != *name))
    {
        let hint = hint(name, known());
        warnings.push(format!("{place}: unknown member `{name}`{hint}"));
    }
}
