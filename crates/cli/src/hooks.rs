//! The user's hooks, from the settings.

use crate::limits::HIDDEN;
use crate::settings::Settings;
use crate::system;
use gaffer_tools::hook::{HookConfig, Hooks, Surroundings};
use gaffer_tools::permission::Policy;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// None where there are no hooks, or where they are switched off.
pub(crate) fn hooks(settings: &Settings, policy: &Policy, project: &Path) -> Option<Hooks> {
    if settings.disable_all_hooks || settings.hooks.is_empty() {
        return None;
    }
    let config = HookConfig::read(&Value::Object(settings.hooks.clone()));
    for warning in &config.warnings {
        system::say(&format!("gaffer: settings: {warning}"));
    }
    let policy = policy.clone();
    let hidden: Vec<String> = HIDDEN.map(str::to_owned).to_vec();
    let secret = hidden.clone();
    let surroundings = Surroundings {
        project: project.to_owned(),
        hidden,
        variables: Arc::new(move |name| {
            let is_secret = secret.iter().any(|hidden| hidden == name);
            system::variable(name).filter(|_| !is_secret)
        }),
        conditions: Arc::new(move |rule, tool, input| policy.is_about(rule, tool, input)),
        on_timeout: settings.on_hook_timeout.clone(),
    };
    Some(Hooks::new(config, surroundings))
}
