//! SKILL.md: what it says about itself in its frontmatter, and its text.

use crate::front::{self, Words};
use serde::Deserialize;
use std::path::Path;

/// The file's name in a skill's folder.
pub(super) const NAME: &str = "SKILL.md";

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

/// Reads a skill's file: its frontmatter and its text.
pub(super) fn read(path: &Path) -> Result<(Front, String), String> {
    let text = front::load(path)?;
    let (front, body) = front::split(&text)?;
    Ok((front::parse(front)?, body.to_owned()))
}

/// The name that a skill goes by: its own, or its folder's.
pub(super) fn name(front: &Front, folder: &Path) -> Result<String, String> {
    let own = front.name.as_deref().map(str::trim);
    let own = own.filter(|name| !name.is_empty()).map(str::to_owned);
    let name = own.or_else(|| Some(folder.file_name()?.to_str()?.to_owned()));
    let name = name.ok_or("its folder's name is no text")?;
    front::check_name(&name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> Front {
        front::parse(text).unwrap()
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
        let error = front::parse::<Front>("name: [secret\nx").unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        assert!(front::parse::<Front>("- a\n- b").is_err());
        let laughs = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                      c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                      e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                      metadata: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
        assert!(front::parse::<Front>(laughs).is_err());
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
