//! Frontmatter: YAML between two lines of `---` at the start of a file. Skills and agent types are
//! written so.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Larger files are no instructions.
const LARGEST: u64 = 256 << 10;
const LONGEST_NAME: usize = 64;
const NOT_REGULAR: &str = "it is not a regular file";

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

    /// The items of a text with commas or spaces between them, or of a list. What stands in
    /// parentheses stays together: `Agent(a, b), Read` has two.
    pub fn items(&self) -> Vec<String> {
        let texts = match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        };
        let mut items = Vec::new();
        for text in texts {
            let mut depth = 0_usize;
            let parts = text.split(|c: char| {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (c == ',' || c.is_whitespace())
            });
            items.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
        }
        items
    }
}

/// Reads a file that may begin with frontmatter, its line ends made plain.
pub fn load(path: &Path) -> Result<String, String> {
    let say = |error: io::Error| error.to_string();
    // A pipe or a device would be waited for without end.
    if !path.metadata().map_err(say)?.is_file() {
        return Err(NOT_REGULAR.to_owned());
    }
    text(File::open(path).map_err(say)?)
}

/// The same of an open file.
pub fn text(file: File) -> Result<String, String> {
    let say = |error: io::Error| error.to_string();
    if !file.metadata().map_err(say)?.is_file() {
        return Err(NOT_REGULAR.to_owned());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(say)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    Ok(text.trim_start_matches('\u{feff}').replace("\r\n", "\n"))
}

/// The frontmatter, and what follows it.
pub fn split(text: &str) -> Result<(&str, &str), String> {
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

/// Reads frontmatter. What is not known is ignored; errors do not quote the text.
pub fn parse<T: DeserializeOwned + Default>(front: &str) -> Result<T, String> {
    // The text may be somebody's secret that a link points to: errors do not quote it.
    let options = || serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let parsed = serde_saphyr::from_str_with_options::<Option<T>>(front, options());
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
        // `tools: *` means all of them, and is half a reference in YAML.
        let is_plain = value == "*" || !value.starts_with(['"', '\'', '|', '>', '&', '*']);
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let is_scalar = is_number || matches!(value, "true" | "false");
        if !is_key || is_list || !is_plain || is_scalar {
            return line.to_owned();
        }
        format!("{key}: '{}'", value.replace('\'', "''"))
    };
    let lines: Vec<String> = front.lines().map(quote).collect();
    lines.join("\n")
}

/// Names of skills and agent types become parts of paths, rules and lists, so they are plain.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_fine) {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        return Err(format!(
            "`{shown}` is no name of up to 64 small letters, digits and hyphens"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn items_are_read_from_texts_and_lists() {
        let items = |text: &str| {
            let words: Words = serde_saphyr::from_str(text).unwrap();
            words.items()
        };
        for text in ["Read, Agent(a, b),Bash", "[Read, 'Agent(a, b)', Bash]"] {
            assert_eq!(items(text), ["Read", "Agent(a, b)", "Bash"], "{text}");
        }
        assert_eq!(items("Read Bash"), ["Read", "Bash"]);
        assert_eq!(items("x) , y"), ["x)", "y"]);
        assert!(items("''").is_empty() && items("[]").is_empty());
    }
}
