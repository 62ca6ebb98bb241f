//! SKILL.md: what it says about itself in its frontmatter, and its text.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The file's name in a skill's folder.
pub(super) const NAME: &str = "SKILL.md";
/// Larger files are no instructions.
const LARGEST: u64 = 256 << 10;
const LONGEST_NAME: usize = 64;

/// What a skill's frontmatter says. What is not known here is ignored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Front {
    pub name: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "when_to_use", alias = "when-to-use")]
    pub when_to_use: Option<String>,
    /// For people, as they type.
    pub argument_hint: Option<Words>,
    /// The names of the arguments, in their order.
    pub arguments: Option<Words>,
    /// Only people may use it.
    pub disable_model_invocation: bool,
    /// Whether people may use it.
    pub user_invocable: Option<bool>,
    pub allowed_tools: Option<Words>,
    pub disallowed_tools: Option<Words>,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// `fork` for an agent of its own.
    pub context: Option<String>,
    pub agent: Option<String>,
    pub background: Option<bool>,
    pub hooks: Option<serde_json::Value>,
    pub paths: Option<Words>,
    pub shell: Option<String>,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    pub metadata: Option<serde_json::Value>,
}

/// One text or a list of them, as people write both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    One(String),
    Many(Vec<String>),
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Words, E> {
        Ok(Words::One(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Words, E> {
        Ok(Words::One(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Words, E> {
        Ok(Words::One(number.to_string()))
    }

    /// Each element is asked for as a text, so that `1` and `y` are none but that.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(Words::Many(texts))
    }
}

impl Words {
    /// The words of a text, or the texts of a list.
    pub fn list(&self) -> Vec<String> {
        match self {
            Self::One(text) => text.split_whitespace().map(str::to_owned).collect(),
            Self::Many(texts) => texts.clone(),
        }
    }
}

/// Reads a skill's file: its frontmatter and its text.
pub(super) fn read(path: &Path) -> Result<(Front, String), String> {
    let text = load(path)?;
    let (front, body) = split(&text)?;
    Ok((parse(front)?, body.to_owned()))
}

fn load(path: &Path) -> Result<String, String> {
    let say = |error: io::Error| error.to_string();
    // A pipe or a device would be waited for without end.
    if !path.metadata().map_err(say)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(say)?;
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(say)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    Ok(text.trim_start_matches('\u{feff}').replace("\r\n", "\n"))
}

fn split(text: &str) -> Result<(&str, &str), String> {
    let missing = "it does not begin with frontmatter between two lines of ---";
    let rest = text.strip_prefix("---\n").ok_or(missing)?;
    // Empty frontmatter has no line break of its own before the second line.
    let (front, body) = match rest.strip_prefix("---") {
        Some(body) => ("", body),
        None => rest.split_once("\n---").ok_or(missing)?,
    };
    let body = body.trim_start_matches('-').trim_start_matches([' ', '\t']);
    Ok((front, body.trim_start_matches('\n')))
}

fn parse(front: &str) -> Result<Front, String> {
    // The text may be somebody's secret that a link points to: errors do not quote it.
    let options = || serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let parsed = serde_saphyr::from_str_with_options::<Option<Front>>(front, options());
    let parsed = parsed.or_else(|error| {
        // People write `description: Use this: …` and `argument-hint: [a] [b]`, which is no YAML,
        // and other programs take it.
        serde_saphyr::from_str_with_options(&quoted(front), options()).map_err(|_| error)
    });
    parsed
        .map(Option::unwrap_or_default)
        .map_err(|error| error.to_string().trim_end().to_owned())
}

/// The frontmatter with quotes around the values that stand on one line by themselves.
fn quoted(front: &str) -> String {
    let quote = |line: &str| {
        let Some((key, value)) = line.split_once(": ") else {
            return line.to_owned();
        };
        let value = value.trim();
        let is_key = key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let is_list = value.starts_with(['[', '{']) && key != "argument-hint";
        let is_plain = !value.starts_with(['"', '\'', '|', '>', '&', '*']);
        let is_scalar = matches!(value, "" | "true" | "false");
        if !is_key || is_list || !is_plain || is_scalar {
            return line.to_owned();
        }
        format!("{key}: '{}'", value.replace('\'', "''"))
    };
    let lines: Vec<String> = front.lines().map(quote).collect();
    lines.join("\n")
}

/// The name that a skill goes by: its own, or its folder's.
pub(super) fn name(front: &Front, folder: &Path) -> Result<String, String> {
    let own = front.name.as_deref().map(str::trim);
    let own = own.filter(|name| !name.is_empty()).map(str::to_owned);
    let name = own.or_else(|| Some(folder.file_name()?.to_str()?.to_owned()));
    let name = name.ok_or("its folder's name is no text")?;
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_fine) {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        return Err(format!(
            "`{shown}` is no name of up to 64 small letters, digits and hyphens"
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> Front {
        parse(text).unwrap()
    }

    #[test]
    fn frontmatter_and_body_are_told_apart() {
        for (text, want) in [
            (
                "---\nname: a\n---\n\nbody\n---\n",
                ("name: a", "body\n---\n"),
            ),
            ("---\nname: a\n--- \nbody", ("name: a", "body")),
            ("---\n---\nbody", ("", "body")),
            ("---\nname: a\n---", ("name: a", "")),
        ] {
            assert_eq!(split(text).unwrap(), want, "{text}");
        }
        for text in ["", "body", "---\nname: a\n", "--- x\n---\n"] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_are_read_as_people_write_them() {
        let all = front(
            "name: a\ndescription: >\n  One\n  two.\nwhen_to_use: now\narguments: [x, y, 1]\n\
             argument-hint: <x> <y>\ndisable-model-invocation: true\nuser-invocable: false\n\
             allowed-tools: Bash(git:*) Read\nmetadata: {author: me}\nunknown: [1, {a: b}]\n\
             hooks:\n  Stop: []\n",
        );
        assert_eq!(all.description.as_deref(), Some("One two.\n"));
        assert_eq!(all.arguments.unwrap().list(), ["x", "y", "1"]);
        assert_eq!(all.allowed_tools.unwrap().list(), ["Bash(git:*)", "Read"]);
        assert!(all.disable_model_invocation && all.user_invocable == Some(false));
        assert_eq!(front(""), Front::default());
        assert_eq!(front("# nothing").name, None);
    }

    #[test]
    fn what_is_almost_yaml_is_taken() {
        let odd = front(
            "name: a\ndescription: Use it: when it's time # always\nargument-hint: [a] [b]\n\
             arguments: [a, b]\ndisable-model-invocation: true",
        );
        assert_eq!(
            odd.description.as_deref(),
            Some("Use it: when it's time # always")
        );
        assert_eq!(odd.argument_hint, Some(Words::One("[a] [b]".into())));
        assert_eq!(odd.arguments.unwrap().list(), ["a", "b"]);
        assert!(odd.disable_model_invocation);
        let error = parse("name: [secret\nx").unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        assert!(parse("- a\n- b").is_err());
        let laughs = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                      c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                      e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                      metadata: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
        assert!(parse(laughs).is_err());
    }

    #[test]
    fn names_are_plain() {
        let named = |name: &str| {
            let front = Front {
                name: Some(name.to_owned()),
                ..Front::default()
            };
            self::name(&front, Path::new("/x/folder"))
        };
        assert_eq!(named("a-1").unwrap(), "a-1");
        assert_eq!(named(" ").unwrap(), "folder");
        for bad in ["A", "a b", "../x", "a/b", "é", &"a".repeat(65)] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
