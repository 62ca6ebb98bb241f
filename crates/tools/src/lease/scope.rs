//! The files that an order names: globs, which paths they cover, and whether two sets of them can
//! have a file in common.

use globset::{GlobBuilder, GlobMatcher};
use std::path::{Component, Path, PathBuf};

const MOST_GLOBS: usize = 64;
const LONGEST: usize = 1024;
/// Characters that mean something in a glob.
const SIGNS: [char; 6] = ['*', '?', '[', ']', '{', '\\'];

/// The files that one worker may write.
#[derive(Debug, Clone)]
pub struct Scope {
    /// As the order has them.
    globs: Vec<String>,
    root: PathBuf,
    parts: Vec<Part>,
}

/// One glob: a folder or file without links, and what comes below it.
#[derive(Debug, Clone)]
struct Part {
    base: PathBuf,
    rest: Vec<String>,
    matcher: Option<GlobMatcher>,
}

impl Scope {
    /// What is wrong with the globs of an order, if anything is.
    pub fn check(globs: &[String]) -> Result<(), String> {
        if globs.len() > MOST_GLOBS {
            let count = globs.len();
            return Err(format!(
                "`files` has {count} globs, {MOST_GLOBS} is the most: name folders, such as `src/**`"
            ));
        }
        globs.iter().try_for_each(|glob| {
            let parts = expand(glob)?;
            parts.iter().try_for_each(|part| compile(part).map(drop))
        })
    }

    /// Globs below a folder. What is no glob is left out; orders have been checked.
    pub fn new(globs: &[String], root: &Path) -> Self {
        let parts = globs.iter().filter_map(|glob| expand(glob).ok()).flatten();
        Self {
            globs: globs.to_vec(),
            root: root.to_owned(),
            parts: parts.filter_map(|part| Part::new(&part, root)).collect(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// As people read it.
    pub(crate) fn shown(&self) -> String {
        let globs: Vec<String> = self.globs.iter().map(|it| format!("`{it}`")).collect();
        globs.join(", ")
    }

    /// Whether a file, by its real path, is one of them.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.parts.iter().any(|part| part.covers(path))
    }

    /// Whether a file can be in both. False is certain.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let own = self.parts.iter().map(Part::components);
        own.into_iter().any(|one| {
            let mut others = other.parts.iter().map(Part::components);
            others.any(|two| meet(&one, &two))
        })
    }
}

impl Part {
    fn new(glob: &str, root: &Path) -> Option<Self> {
        let is_plain = |part: &&str| !part.contains(SIGNS);
        let all: Vec<&str> = glob
            .split('/')
            .filter(|it| !it.is_empty() && *it != ".")
            .collect();
        let plain = all.iter().take_while(|part| is_plain(part)).count();
        let base = all[..plain]
            .iter()
            .fold(root.to_owned(), |path, part| path.join(part));
        // Files are known by their real paths, so links on the way must not hide them.
        let base = gaffer_workspace::fence::destination(&base);
        let mut rest: Vec<String> = all[plain..].iter().map(|it| (*it).to_owned()).collect();
        if rest.is_empty() && (glob.ends_with('/') || base.is_dir()) {
            rest.push("**".to_owned());
        }
        let matcher = match rest.is_empty() {
            true => None,
            false => Some(compile(&rest.join("/")).ok()?),
        };
        Some(Self {
            base,
            rest,
            matcher,
        })
    }

    fn covers(&self, path: &Path) -> bool {
        match (&self.matcher, path.strip_prefix(&self.base)) {
            (_, Err(_)) => false,
            (None, Ok(below)) => below.as_os_str().is_empty(),
            (Some(matcher), Ok(below)) => !below.as_os_str().is_empty() && matcher.is_match(below),
        }
    }

    fn components(&self) -> Vec<Name> {
        let base = self.base.components().filter_map(|part| match part {
            Component::Normal(name) => Some(Name::Plain(name.to_string_lossy().into_owned())),
            _ => None,
        });
        let rest = self.rest.iter().map(|part| match part.as_str() {
            "**" => Name::Any,
            part if part.contains(SIGNS) => Name::Glob(part.to_owned()),
            part => Name::Plain(part.to_owned()),
        });
        base.chain(rest).collect()
    }
}

/// One part of a path.
enum Name {
    Plain(String),
    Glob(String),
    /// Any number of parts.
    Any,
}

impl Name {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Plain(one), Self::Plain(two)) => one == two,
            (Self::Plain(name), Self::Glob(glob)) | (Self::Glob(glob), Self::Plain(name)) => {
                compile(glob).map_or(true, |it| it.is_match(name))
            }
            // Their plain beginnings and ends tell most of them apart; in doubt they meet.
            (Self::Glob(one), Self::Glob(two)) => {
                let head = |text: &str| text.split(SIGNS).next().unwrap_or_default().to_owned();
                let tail = |text: &str| text.rsplit(SIGNS).next().unwrap_or_default().to_owned();
                let (heads, tails) = ((head(one), head(two)), (tail(one), tail(two)));
                (heads.0.starts_with(&heads.1) || heads.1.starts_with(&heads.0))
                    && (tails.0.ends_with(&tails.1) || tails.1.ends_with(&tails.0))
            }
        }
    }
}

/// Whether one path can fit both: `fits[i][j]` says so of what is left from the parts i and j on.
fn meet(one: &[Name], two: &[Name]) -> bool {
    let mut fits = vec![vec![false; two.len() + 1]; one.len() + 1];
    for i in (0..=one.len()).rev() {
        for j in (0..=two.len()).rev() {
            fits[i][j] = match (one.get(i), two.get(j)) {
                (None, None) => true,
                (Some(Name::Any), _) if fits[i + 1][j] => true,
                (_, Some(Name::Any)) if fits[i][j + 1] => true,
                (Some(Name::Any), Some(_)) => fits[i][j + 1],
                (Some(_), Some(Name::Any)) => fits[i + 1][j],
                (Some(a), Some(b)) => a.meets(b) && fits[i + 1][j + 1],
                _ => false,
            };
        }
    }
    fits[0][0]
}

/// A glob without braces for each of their alternatives.
fn expand(glob: &str) -> Result<Vec<String>, String> {
    let glob = glob.trim();
    let wrong = |why: &str| Err(format!("`files` has `{glob}`, {why}"));
    if glob.is_empty() {
        return wrong("which is empty");
    }
    if glob.len() > LONGEST {
        return wrong("which is too long");
    }
    if glob.starts_with('/') || glob.starts_with('~') {
        return wrong("which is absolute: globs begin at the project's root");
    }
    if glob.starts_with('!') {
        return wrong("and nothing can be taken out again: name what may be written");
    }
    if glob.contains('\0') {
        return wrong("which holds a NUL byte");
    }
    let mut done = Vec::new();
    let mut open = vec![glob.to_owned()];
    while let Some(next) = open.pop() {
        if done.len() + open.len() > MOST_GLOBS {
            return wrong("which stands for too many globs");
        }
        match alternatives(&next) {
            Some(more) => open.extend(more),
            None => done.push(next),
        }
    }
    if done.iter().any(|it| it.split('/').any(|part| part == "..")) {
        return wrong("which goes up: globs stay below the project's root");
    }
    let is_split = |part: &str| part.matches('[').count() != part.matches(']').count();
    if done.iter().any(|it| it.split('/').any(is_split)) {
        return wrong("with a bracket that is not closed");
    }
    done.reverse();
    Ok(done)
}

/// The innermost braces of a glob, each alternative in its place.
fn alternatives(glob: &str) -> Option<Vec<String>> {
    let end = glob.find('}')?;
    let start = glob[..end].rfind('{')?;
    let (before, after) = (&glob[..start], &glob[end + 1..]);
    let inner = glob[start + 1..end].split(',');
    Some(inner.map(|it| format!("{before}{it}{after}")).collect())
}

fn compile(glob: &str) -> Result<GlobMatcher, String> {
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    let wrong =
        |why: globset::Error| format!("`files` has `{glob}`, which is no glob: {}", why.kind());
    built.map(|it| it.compile_matcher()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scope(globs: &[&str], root: &Path) -> Scope {
        let globs: Vec<String> = globs.iter().map(|it| (*it).to_owned()).collect();
        Scope::check(&globs).unwrap();
        Scope::new(&globs, root)
    }

    #[test]
    fn globs_that_are_none_are_refused_with_the_reason() {
        for (glob, why) in [
            ("/etc/*", "absolute"),
            ("../x", "goes up"),
            ("src/{a,../..}/x", "goes up"),
            ("", "empty"),
            ("src/[a", "bracket"),
            ("!src", "taken out"),
        ] {
            let refused = Scope::check(&[glob.to_owned()]).unwrap_err();
            assert!(refused.contains(why), "{glob}: {refused}");
        }
    }

    #[test]
    fn what_a_scope_covers() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::os::unix::fs::symlink("src", root.join("link")).unwrap();
        let it = scope(&["link/*.{rs,toml}", "docs/", "src/deep", "a.txt"], &root);
        for yes in [
            "src/a.rs",
            "src/b.toml",
            "docs/x/y.md",
            "src/deep/z",
            "a.txt",
        ] {
            assert!(it.covers(&root.join(yes)), "{yes}");
        }
        for no in ["src/a.py", "src/other/a.rs", "b.txt", "a.txt/b", "docs"] {
            assert!(!it.covers(&root.join(no)), "{no}");
        }
    }

    #[test]
    fn scopes_that_cannot_meet_are_told_apart() {
        let root = Path::new("/nowhere");
        let meets = |a: &str, b: &str| scope(&[a], root).meets(&scope(&[b], root));
        for (a, b) in [
            ("src/*.rs", "src/*.ts"),
            ("src/**", "tests/**"),
            ("src/a.rs", "src/b.rs"),
            ("src/*.rs", "src/deep/*.rs"),
            ("**/test_*.py", "src/main.py"),
        ] {
            assert!(!meets(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("src/**", "src/a.rs"),
            ("**", "x"),
            ("**/*.rs", "src/deep/*.rs"),
            ("src/a*", "src/*b"),
            ("src/{a,b}.rs", "src/b.*"),
        ] {
            assert!(meets(a, b) && meets(b, a), "{a} {b}");
        }
    }

    proptest! {
        /// Two workers that both may write a file never run at once.
        #[test]
        fn scopes_with_a_common_file_meet(
            one in "(a|b|\\*|\\*\\*|a\\*|\\*b)(/(a|b|\\*|\\*\\*|ab\\?)){0,3}",
            two in "(a|b|\\*|\\*\\*|a\\*|\\*b)(/(a|b|\\*|\\*\\*|ab\\?)){0,3}",
            path in "[ab]{1,3}(/[ab]{1,3}){0,3}",
        ) {
            let root = Path::new("/nowhere");
            let (one, two) = (scope(&[&one], root), scope(&[&two], root));
            let path = root.join(path);
            if one.covers(&path) && two.covers(&path) {
                prop_assert!(one.meets(&two) && two.meets(&one));
            }
        }
    }
}
