//! Puts settings together: objects member by member, lists one behind the other, other values by
//! the highest level; and keeps where each came from.

use super::layers::Level;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where one value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) level: Level,
    pub(crate) path: PathBuf,
}

/// The merged value with the origin of every leaf, by its path: `permissions.deny[0]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merged {
    pub(crate) value: Value,
    pub(crate) origins: BTreeMap<String, Origin>,
}

impl Merged {
    /// Puts a layer over what there is.
    pub(crate) fn over(&mut self, value: &Value, origin: &Origin) {
        if self.value.is_null() {
            self.value = Value::Object(Map::new());
        }
        put(&mut self.value, value, "", origin, &mut self.origins);
    }

    pub(crate) fn origin(&self, path: &str) -> Option<&Origin> {
        self.origins.get(path)
    }

    /// Every leaf with its path, in the order of the paths.
    pub(crate) fn leaves(&self) -> Vec<(String, &Value)> {
        let mut leaves = Vec::new();
        collect(&self.value, String::new(), &mut leaves);
        leaves
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn put(
    base: &mut Value,
    new: &Value,
    path: &str,
    origin: &Origin,
    origins: &mut BTreeMap<String, Origin>,
) {
    match (base, new) {
        (Value::Object(base), Value::Object(new)) => {
            for (key, value) in new {
                let path = join(path, key);
                put(
                    base.entry(key).or_insert(Value::Null),
                    value,
                    &path,
                    origin,
                    origins,
                );
            }
        }
        (base @ Value::Null, Value::Object(_)) => {
            *base = Value::Object(Map::new());
            put(base, new, path, origin, origins);
        }
        (base, Value::Array(new)) => {
            let mut items = match base.take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            for item in new {
                if !items.contains(item) {
                    origins.insert(format!("{path}[{}]", items.len()), origin.clone());
                    items.push(item.clone());
                }
            }
            *base = Value::Array(items);
        }
        (base, new) => {
            let below = |known: &String| {
                known.starts_with(path) && known[path.len()..].starts_with(['.', '['])
            };
            origins.retain(|known, _| !below(known));
            origins.insert(path.to_owned(), origin.clone());
            *base = new.clone();
        }
    }
}

fn collect<'a>(value: &'a Value, path: String, leaves: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                collect(value, join(&path, key), leaves);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                leaves.push((format!("{path}[{n}]"), item));
            }
        }
        leaf => leaves.push((path, leaf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin(level: Level) -> Origin {
        Origin {
            level,
            path: level.as_str().into(),
        }
    }

    #[test]
    fn higher_levels_win_lists_add_up_and_origins_are_known() {
        let mut merged = Merged::default();
        merged.over(&json!({"model": "a", "permissions": {"deny": ["Bash(rm *)"], "defaultMode": "plan"}, "x": {"y": 1}}), &origin(Level::User));
        merged.over(
            &json!({"permissions": {"deny": ["Read(.env)", "Bash(rm *)"]}, "x": {"z": 2}}),
            &origin(Level::Project),
        );
        merged.over(&json!({"model": "b", "x": 3}), &origin(Level::Local));
        assert_eq!(
            merged.value,
            json!({"model": "b", "permissions": {"deny": ["Bash(rm *)", "Read(.env)"], "defaultMode": "plan"}, "x": 3})
        );
        let levels: Vec<(&str, Level)> = merged
            .origins
            .iter()
            .map(|(path, origin)| (path.as_str(), origin.level))
            .collect();
        assert_eq!(
            levels,
            [
                ("model", Level::Local),
                ("permissions.defaultMode", Level::User),
                ("permissions.deny[0]", Level::User),
                ("permissions.deny[1]", Level::Project),
                ("x", Level::Local),
            ]
        );
        assert_eq!(merged.leaves().len(), 5);
    }
}
