//! Checks of texts, values taken out of results, and `${name}` in what a script says.

use super::{Check, CheckBy, Save, Step};
use gaffer_protocol::ToolResult;
use regex_lite::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

impl Check {
    /// Whether some text passes, or, for what must not be there, whether all do.
    pub(super) fn holds_among<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> bool {
        let mut texts = texts.into_iter();
        match self {
            Self::By(CheckBy::Lacks(_)) => texts.all(|text| self.holds(text.as_ref())),
            _ => texts.any(|text| self.holds(text.as_ref())),
        }
    }

    pub(super) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Contains(part) | Self::By(CheckBy::Contains(part)) => text.contains(part),
            Self::By(CheckBy::Equals(all)) => text == all,
            Self::By(CheckBy::Lacks(part)) => !text.contains(part),
            // Patterns were compiled once when the script was read, so they are valid.
            Self::By(CheckBy::Matches(pattern)) => {
                Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Contains(part) | Self::By(CheckBy::Contains(part)) => {
                format!("contains {part:?}")
            }
            Self::By(CheckBy::Equals(all)) => format!("is {all:?}"),
            Self::By(CheckBy::Lacks(part)) => format!("does not contain {part:?}"),
            Self::By(CheckBy::Matches(pattern)) => format!("matches {pattern:?}"),
        }
    }

    pub(super) fn pattern(&self) -> Option<&str> {
        match self {
            Self::By(CheckBy::Matches(pattern)) => Some(pattern),
            _ => None,
        }
    }
}

/// Patterns fail when the script is read, not in the middle of a run.
pub(super) fn check_pattern(pattern: &str) -> Result<(), String> {
    let compiled = Regex::new(pattern);
    compiled
        .map(|_| ())
        .map_err(|error| format!("the pattern {pattern:?}: {error}"))
}

pub(super) fn check_patterns(step: &Step) -> Result<(), String> {
    let mut checks = step
        .expect
        .iter()
        .flat_map(|expect| [expect.text.as_ref(), expect.result.as_ref()])
        .flatten()
        .filter_map(Check::pattern);
    let saves = step
        .save
        .values()
        .filter_map(|save| save.matches.as_deref());
    checks.by_ref().chain(saves).try_for_each(check_pattern)
}

/// Takes a value out of a result; the error says why there is none.
pub(super) fn take(save: &Save, result: &ToolResult) -> Result<String, String> {
    let text = result.text();
    if let Some(pointer) = &save.json {
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| format!("the result is not JSON ({error}): {text:?}"))?;
        return match value.pointer(pointer) {
            Some(Value::String(value)) => Ok(value.clone()),
            Some(value) => Ok(value.to_string()),
            None => Err(format!("the result has nothing at {pointer}: {text}")),
        };
    }
    let Some(pattern) = &save.matches else {
        return Ok(text);
    };
    let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
    let captures = regex.captures(&text);
    let found = captures
        .as_ref()
        .and_then(|found| found.get(1).or(found.get(0)));
    let found = found.map(|found| found.as_str().to_owned());
    found.ok_or_else(|| format!("the result has no match of {pattern:?}: {text:?}"))
}

/// Puts values in the place of `${name}`. `$${` stands for itself.
pub(super) fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at]);
            out.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else {
            rest = &rest[at..];
            break;
        };
        let name = &rest[at + 2..at + end];
        match values.get(name) {
            Some(value) => out.push_str(value),
            None => {
                let known: Vec<&str> = values.keys().map(String::as_str).collect();
                return Err(format!(
                    "there is no value `{name}` (there is: {})",
                    known.join(", ")
                ));
            }
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The same in every string of a JSON value.
pub(super) fn fill_json(value: &Value, values: &BTreeMap<String, String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(fill(text, values)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| fill_json(item, values));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| Ok((key.clone(), fill_json(value, values)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_dollars_escaped() {
        let values = BTreeMap::from([("task".to_owned(), "agent-1".to_owned())]);
        assert_eq!(fill("stop ${task}!", &values).unwrap(), "stop agent-1!");
        assert_eq!(
            fill("echo $${HOME} $HOME ${", &values).unwrap(),
            "echo ${HOME} $HOME ${"
        );
        assert!(
            fill("${nobody}", &values)
                .unwrap_err()
                .contains("there is: task")
        );
    }
}
