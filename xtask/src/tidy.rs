//! Checks of the tree that no compiler makes: reads all files git knows and collects the findings.

mod links;
mod manifests;
mod rust;
mod table;
mod tests_named;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use crate::process::{Invocation, root};
use crate::say;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Inputs for fuzzing: bytes to the last, even where they happen to be text.
const INPUTS: [&str; 2] = ["fuzz/corpus/", "fuzz/crashes/"];

/// Something to put right, at a line counted from 1.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// The files of the work tree, by paths relative to the root with `/` between the parts.
#[derive(Default)]
struct Tree {
    /// What a link may point to: every file, and every folder that holds one.
    known: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

/// Prints all findings; fails if there are any.
pub(crate) fn run() -> Result<(), String> {
    let findings = findings(&read(&root())?);
    for finding in &findings {
        say::out(&finding.to_string());
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err("tidy found 1 thing to put right".to_owned()),
        count => Err(format!("tidy found {count} things to put right")),
    }
}

fn read(root: &Path) -> Result<Tree, String> {
    let list = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let list = Invocation::new("git", &list).output()?;
    let mut tree = Tree::default();
    for path in String::from_utf8_lossy(&list).split_terminator('\0') {
        let file = root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&file) else {
            continue; // deleted in the work tree, still in the index
        };
        let ancestors = Path::new(path).ancestors();
        tree.known
            .extend(ancestors.map(|part| part.to_string_lossy().into_owned()));
        if !metadata.is_file() {
            continue; // the target of a symbolic link is judged under its own name
        }
        let bytes = fs::read(&file).map_err(|error| format!("cannot read {path}: {error}"))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            tree.texts.insert(path.to_owned(), text);
        }
    }
    Ok(tree)
}

fn findings(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in &tree.texts {
        if INPUTS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        findings.extend(text::check(path, text));
        match extension(path) {
            "rs" => findings.extend(rust::check(path, text)),
            "md" => {
                findings.extend(links::check(path, text, &tree.known));
                findings.extend(tests_named::check(path, text, &tree.texts));
            }
            _ => {}
        }
    }
    match (
        manifests::members(&tree.texts),
        tree.texts.get(ARCHITECTURE),
    ) {
        (Ok(members), Some(text)) => findings.extend(table::check(ARCHITECTURE, text, &members)),
        (Ok(_), None) => findings.push(Finding::new(ARCHITECTURE, 1, "the file is missing")),
        (Err(finding), _) => findings.push(finding),
    }
    findings.sort();
    findings
}

fn extension(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The lines of a text with their numbers.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

/// For each place where `needle` stands in `line`: what comes before it and what after.
fn around<'a>(line: &'a str, needle: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    line.match_indices(needle)
        .filter_map(move |(at, _)| Some((line.get(..at)?, line.get(at + needle.len()..)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let texts = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()));
        Tree {
            known: files.iter().map(|&(path, _)| path.to_owned()).collect(),
            texts: texts.collect(),
        }
    }

    #[test]
    fn every_kind_of_file_gets_its_checks_in_order_of_path() {
        let tree = tree(&[
            ("notes.txt", "no newline"),
            ("fuzz/corpus/rules/one", "no newline"),
            ("a.rs", "fn main() {}\n"),
            ("b.md", "[gone](gone.md)\n"),
            ("Cargo.toml", "[workspace]\nmembers = []\n"),
        ]);
        let lines: Vec<String> = findings(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "ARCHITECTURE.md:1: the file is missing",
                "a.rs:1: the first line is no `//!` line that says what lives here",
                "b.md:1: link to gone.md, which is not in the tree",
                "notes.txt:1: no newline at the end of the file",
            ]
        );
    }

    #[test]
    fn the_extension_is_that_of_the_file_name() {
        assert_eq!(extension("a.d/b.tar.gz"), "gz");
        assert_eq!(extension("a.d/LICENSE"), "");
    }

    #[test]
    fn around_splits_at_each_place() {
        let parts: Vec<_> = around("a-b-c", "-").collect();
        assert_eq!(parts, [("a", "b-c"), ("a-b", "c")]);
    }
}
