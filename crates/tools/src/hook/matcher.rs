//! Matchers: which tools, sources or agent types a group of hooks is for.

use regex_lite::Regex;
use serde_json::Value;

/// A group's filter. What it is compared with depends on the event: see [`super::Moment::subjects`].
#[derive(Debug, Clone)]
pub enum Matcher {
    All,
    Names(Vec<String>),
    /// Found anywhere in the name.
    Pattern(Regex),
    /// Matches nothing; before a tool's call it blocks, because nobody knows what it was to guard.
    Invalid(String),
}

impl Matcher {
    /// Reads the `matcher` of a group.
    pub fn read(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::All,
            Some(Value::String(text)) => Self::parse(text),
            Some(other) => Self::Invalid(format!("the matcher {other} is no text")),
        }
    }

    fn parse(text: &str) -> Self {
        if matches!(text.trim(), "" | "*") {
            return Self::All;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-, |".contains(c);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(str::trim);
            let names: Vec<String> = names
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            return match names.is_empty() {
                true => Self::Invalid(format!("the matcher `{text}` names nothing")),
                false => Self::Names(names),
            };
        }
        match Regex::new(text) {
            Ok(pattern) => Self::Pattern(pattern),
            Err(why) => Self::Invalid(format!(
                "the matcher `{text}` is no regular expression that can be used here: {why}"
            )),
        }
    }

    /// Whether one of a thing's names fits. A thing without names fits every sound matcher.
    pub fn fits(&self, subjects: &[&str]) -> bool {
        match self {
            Self::Invalid(_) => false,
            Self::All => true,
            _ if subjects.is_empty() => true,
            Self::Names(names) => names.iter().any(|name| subjects.contains(&name.as_str())),
            Self::Pattern(pattern) => subjects.iter().any(|subject| pattern.is_match(subject)),
        }
    }

    /// What is wrong with it.
    pub fn fault(&self) -> Option<&str> {
        match self {
            Self::Invalid(why) => Some(why),
            _ => None,
        }
    }
}
