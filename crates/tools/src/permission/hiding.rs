//! Files that a search leaves out, because a rule denies them. A search asks about very many of
//! them, so what is the same for all is worked out once.

use super::matching::starts;
use super::paths::PathPattern;
use super::rule::Specifier;
use super::{Policy, Ruled};
use std::path::Path;

/// The deny rules of a policy that speak of single files, for one tool in one working folder.
#[derive(Debug)]
pub struct Hiding<'a> {
    patterns: Vec<(&'a PathPattern, Vec<&'a Path>)>,
    /// Whether the tool is denied altogether.
    all: bool,
}

impl Policy {
    /// What is hidden from a tool that looks through folders; `None` if nothing is.
    pub fn hiding<'a>(&'a self, tool: &str, cwd: &'a Path) -> Option<Hiding<'a>> {
        let denied = self.chain().flat_map(|policy| &policy.deny);
        let rules: Vec<&Ruled> = denied.filter(|ruled| ruled.covers_tool(tool)).collect();
        if rules.is_empty() {
            return None;
        }
        let ground = self.ground(cwd);
        let mut hiding = Hiding {
            patterns: Vec::new(),
            all: false,
        };
        for ruled in rules {
            match &ruled.rule.specifier {
                Specifier::Path(pattern) => {
                    let mut starts = starts(pattern, &ruled.source, &ground, true);
                    starts.sort();
                    starts.dedup();
                    hiding.patterns.push((pattern, starts));
                }
                _ => hiding.all = true,
            }
        }
        Some(hiding)
    }

    /// Whether reading a file is denied by a rule.
    pub fn hides(&self, path: &Path, cwd: &Path) -> bool {
        let hiding = self.hiding("Read", cwd);
        hiding.is_some_and(|hiding| hiding.hides(path))
    }
}

impl Hiding<'_> {
    /// Whether a file is hidden; its path is absolute and without links.
    pub fn hides(&self, path: &Path) -> bool {
        let mut patterns = self.patterns.iter();
        self.all
            || patterns.any(|(pattern, starts)| pattern.matches(path, starts.iter().copied(), true))
    }
}
