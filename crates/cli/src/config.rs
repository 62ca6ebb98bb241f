//! `gaffer config`: every setting in force, and where it comes from.

use crate::args::{Common, ConfigArgs};
use crate::exit::{Exit, Usage};
use crate::settings::merge::Merged;
use crate::settings::{KEYS, Settings};
use crate::setup::{places, working_folder};
use crate::system;
use serde_json::{Map, Value, json};
use std::io::Write;

pub(crate) fn config(args: &ConfigArgs) -> anyhow::Result<Exit> {
    let home =
        system::home().ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"))?;
    let common = Common {
        cwd: args.cwd.clone(),
        ..Common::default()
    };
    let cwd = working_folder(&common)?;
    let (_, merged) = Settings::load(&places(&home, &cwd, args.settings.clone()))?;
    let wanted = |path: &str| {
        let key = args.key.as_deref();
        key.is_none_or(|key| {
            path == key
                || path
                    .strip_prefix(key)
                    .is_some_and(|rest| rest.starts_with(['.', '[']))
        })
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", as_json(&merged, wanted))?;
        return Ok(Exit::Done);
    }
    for (path, value) in merged.leaves().into_iter().filter(|(path, _)| wanted(path)) {
        let origin = merged.origin(&path);
        let origin =
            origin.map(|origin| format!("{}: {}", origin.level.as_str(), origin.path.display()));
        writeln!(out, "{path} = {value}    ({})", origin.unwrap_or_default())?;
    }
    for (key, default) in KEYS.iter().filter(|(key, _)| wanted(key)) {
        if merged.value.get(key).is_none() {
            writeln!(out, "{key} = {default}    (default)")?;
        }
    }
    Ok(Exit::Done)
}

fn as_json(merged: &Merged, wanted: impl Fn(&str) -> bool) -> Value {
    let mut all = Map::new();
    for (path, value) in merged.leaves().into_iter().filter(|(path, _)| wanted(path)) {
        let origin = merged.origin(&path);
        let shown = json!({
            "value": value,
            "level": origin.map(|origin| origin.level.as_str()),
            "file": origin.map(|origin| &origin.path),
        });
        all.insert(path, shown);
    }
    Value::Object(all)
}
