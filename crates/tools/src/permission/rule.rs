//! Rules: `Tool` or `Tool(specifier)`, read from text and given back as the same text.

use super::paths::PathPattern;
use super::pattern::Pattern;
use super::source::Kind;
use std::fmt;
use std::str::FromStr;

/// One rule. Two rules are equal when their texts are.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    pub(super) tool: String,
    pub(super) specifier: Specifier,
}

#[derive(Debug, Clone)]
pub(super) enum Specifier {
    /// Every use of the tool.
    Any,
    Command(Pattern),
    Path(PathPattern),
    Domain(Pattern),
    /// A skill with its arguments, or an agent type.
    Name(Pattern),
    /// One member of the input.
    Parameter {
        key: String,
        value: Pattern,
    },
}

/// What is wrong with a rule's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule `{text}` is wrong at character {at}: expected {expected}")]
pub struct RuleError {
    pub text: String,
    /// Counted from 1.
    pub at: usize,
    pub expected: String,
}

/// Members of inputs that rules may speak of where other text is more usual: `Bash(make:*)` is
/// a command and `Agent(plugin:name)` a type.
const BASH_KEYS: [&str; 2] = ["run_in_background", "dangerouslyDisableSandbox"];
const AGENT_KEYS: [&str; 8] = [
    "isolation",
    "mode",
    "model",
    "name",
    "phase",
    "run_in_background",
    "subagent_type",
    "team_name",
];

impl Rule {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = |at: usize, expected: &str| RuleError {
            text: text.to_owned(),
            at: text.get(..at).map_or(0, |before| before.chars().count()) + 1,
            expected: expected.to_owned(),
        };
        let end = text.find('(').unwrap_or(text.len());
        let (tool, rest) = text.split_at(end);
        check_tool(tool).map_err(|(at, expected)| wrong(at, expected))?;
        let tool = if tool == "Task" { "Agent" } else { tool };
        let specifier = if rest.is_empty() {
            Specifier::Any
        } else {
            let inside = rest
                .strip_prefix('(')
                .and_then(|rest| rest.strip_suffix(')'))
                .ok_or_else(|| wrong(text.len(), "`)` at the end"))?;
            if inside.trim().is_empty() {
                return Err(wrong(end + 1, "something between the parentheses"));
            }
            specifier(tool, inside.trim()).map_err(|expected| wrong(end + 1, &expected))?
        };
        Ok(Self {
            text: text.to_owned(),
            tool: tool.to_owned(),
            specifier,
        })
    }

    /// Reads a rule for a list. Rules about parameters cannot allow: what they do not name would
    /// be allowed unseen.
    pub fn parse_for(kind: Kind, text: &str) -> Result<Self, RuleError> {
        let rule = Self::parse(text)?;
        match rule.specifier {
            Specifier::Parameter { .. } if kind == Kind::Allow => Err(RuleError {
                at: rule.tool.len() + 2,
                text: rule.text,
                expected: "no parameter: such a rule can only deny or ask".to_owned(),
            }),
            _ => Ok(rule),
        }
    }

    /// Several rules in one text, with commas or spaces between them, as on a command line.
    pub fn parse_list(kind: Kind, text: &str) -> Result<Vec<Self>, RuleError> {
        let mut rules = Vec::new();
        let mut depth = 0_usize;
        let mut start = 0;
        for (at, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                c if depth == 0 && (c == ',' || c.is_whitespace()) => {
                    rules.push(&text[start..at]);
                    start = at + c.len_utf8();
                }
                _ => {}
            }
        }
        rules.push(&text[start..]);
        let rules = rules.into_iter().filter(|rule| !rule.trim().is_empty());
        rules.map(|rule| Self::parse_for(kind, rule)).collect()
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The tool that it is written for.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether it speaks of every use of its tool.
    pub fn is_whole_tool(&self) -> bool {
        matches!(self.specifier, Specifier::Any)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::parse(text)
    }
}

fn check_tool(tool: &str) -> Result<(), (usize, &'static str)> {
    if tool.is_empty() {
        return Err((0, "the name of a tool"));
    }
    let is_mcp = tool.starts_with("mcp__");
    for (at, c) in tool.char_indices() {
        match c {
            '*' if is_mcp => {}
            '*' => return Err((at, "a tool's whole name: only names of MCP tools take `*`")),
            c if c.is_ascii_alphanumeric() || "_-.".contains(c) => {}
            _ => return Err((at, "a letter, a digit, `_`, `-`, `.` or `(`")),
        }
    }
    if tool == "mcp__" {
        return Err((tool.len(), "the name of an MCP server"));
    }
    Ok(())
}

/// Reads what stands between the parentheses; an error says what was expected.
fn specifier(tool: &str, inside: &str) -> Result<Specifier, String> {
    if inside == "*" {
        return Ok(Specifier::Any);
    }
    match tool {
        "Bash" => match parameter(inside, &BASH_KEYS) {
            Some(parameter) => Ok(parameter),
            None => command(inside).map(or_any(Specifier::Command)),
        },
        "Read" | "Edit" | "Write" | "NotebookEdit" | "MultiEdit" | "Grep" | "Glob" | "Cd" => {
            PathPattern::parse(inside).map(Specifier::Path)
        }
        "WebFetch" => match inside.strip_prefix("domain:").map(str::trim) {
            Some(domain) if !domain.is_empty() => Ok(or_any(Specifier::Domain)(Pattern::new(
                &domain.to_lowercase(),
            ))),
            _ => Err("`domain:` and a name".to_owned()),
        },
        "Skill" => command(inside).map(or_any(Specifier::Name)),
        "Agent" => Ok(parameter(inside, &AGENT_KEYS)
            .unwrap_or_else(|| or_any(Specifier::Name)(Pattern::new(&inside.to_lowercase())))),
        _ => parameter(inside, &[])
            .ok_or_else(|| format!("`name:value` for a member of {tool}'s input, or `*`")),
    }
}

fn or_any(make: fn(Pattern) -> Specifier) -> impl Fn(Pattern) -> Specifier {
    move |pattern| match pattern.is_any() {
        true => Specifier::Any,
        false => make(pattern),
    }
}

/// `prefix:*` is the older way to write `prefix *`.
fn command(inside: &str) -> Result<Pattern, String> {
    match inside.strip_suffix(":*").map(str::trim) {
        Some("") => Err("a command before `:*`".to_owned()),
        Some(prefix) => Ok(Pattern::new(&format!("{prefix} *"))),
        None => Ok(Pattern::new(inside)),
    }
}

/// `key:value`, with one of the keys; without keys any name is one.
fn parameter(inside: &str, keys: &[&str]) -> Option<Specifier> {
    let (key, value) = inside.split_once(':')?;
    let is_name = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_key = if keys.is_empty() {
        is_name
    } else {
        keys.contains(&key)
    };
    is_key.then(|| Specifier::Parameter {
        key: key.to_owned(),
        value: Pattern::new(value.trim()),
    })
}

#[cfg(test)]
mod tests;
