//! Whether a shell command may run unasked.

use super::command::Part;
use super::matching::Ground;
use super::mode::Mode;
use super::paths::{is_inside, protected};
use super::readonly::only_reads;
use super::reason::Reason;
use super::request::{Request, Shell};
use super::rule::{Rule, Specifier};
use super::source::{Kind, Level, Ruled};
use super::touch::{Touch, is_edit};
use super::{Policy, command};
use std::path::{Path, PathBuf};

/// Everything that a decision on one command needs.
pub(super) struct Judge<'a> {
    pub(super) policy: &'a Policy,
    pub(super) request: &'a Request<'a>,
    pub(super) shell: &'a Shell,
    pub(super) ground: &'a Ground<'a>,
    pub(super) mode: Mode,
}

impl Judge<'_> {
    /// Why it may run, or why it must be asked about.
    pub(super) fn allows(&self) -> Result<Reason, Reason> {
        if let Some(path) = self.protected() {
            return Err(Reason::Protected(path.to_owned()));
        }
        let script = &self.shell.script;
        let is_whole = |rule: &Rule| match &rule.specifier {
            Specifier::Any => true,
            // A text without stars is just this command, however many parts it has.
            Specifier::Command(pattern) => {
                script.unclear.is_none() && !pattern.has_stars() && pattern.matches(&script.text)
            }
            _ => false,
        };
        let mut rules = self.rules("Bash");
        if let Some(ruled) = rules.find(|ruled| is_whole(&ruled.rule)) {
            return Ok(allowed(ruled, &script.text));
        }
        if self.policy.sandboxed && !self.leaves() {
            return Ok(Reason::Sandboxed);
        }
        if let Some(why) = script.unclear {
            return Err(Reason::Unclear(why));
        }
        let mut reason = Reason::ReadOnly;
        for (place, part) in script.parts.iter().enumerate() {
            let by = self.part_allows(place, part)?;
            if self.leaves() && matches!(by, Reason::Mode(_)) {
                return Err(Reason::Leaves);
            }
            // Of several reasons a rule says most, then the mode.
            if !matches!(by, Reason::ReadOnly) && !matches!(reason, Reason::Rule { .. }) {
                reason = by;
            }
        }
        // Outside the sandbox nothing runs that nobody has spoken of.
        match reason {
            Reason::ReadOnly if self.leaves() => Err(Reason::Leaves),
            reason => Ok(reason),
        }
    }

    /// Whether the command asks to run outside the sandbox that it would have.
    fn leaves(&self) -> bool {
        self.policy.sandboxed && self.shell.leaves_sandbox
    }

    /// Whether it asks for that and may not, in whatever mode.
    pub(super) fn must_stay(&self) -> bool {
        self.leaves() && !self.policy.chain().all(|policy| policy.may_leave)
    }

    /// Whether every part only reads.
    pub(super) fn only_reads(&self) -> bool {
        let script = &self.shell.script;
        let mut parts = script.parts.iter().enumerate();
        script.unclear.is_none()
            && self.shell.trace.writes().next().is_none()
            && parts.all(|(place, part)| self.part_only_reads(place, part))
    }

    fn part_only_reads(&self, place: usize, part: &Part) -> bool {
        if part.words.is_empty() {
            let mut names = part.assignments.iter().map(command::Word::assigned);
            return names.all(|name| name.is_some_and(command::is_private_variable));
        }
        let at_home = self.shell.trace.at_home.get(place).copied();
        part.has_safe_assignments() && only_reads(part.innermost(), at_home.unwrap_or(false))
    }

    fn part_allows(&self, place: usize, part: &Part) -> Result<Reason, Reason> {
        let uncovered = |what: String| Reason::Uncovered {
            what,
            mode: self.mode,
        };
        let writes: Vec<&Touch> = self
            .shell
            .trace
            .writes()
            .filter(|touch| touch.part == place)
            .collect();
        let offered = part.offered();
        let rule = self
            .rules("Bash")
            .find(|ruled| match &ruled.rule.specifier {
                Specifier::Command(pattern) => offered.iter().any(|text| pattern.matches(text)),
                _ => false,
            });
        let mut by = match rule {
            Some(ruled) => allowed(ruled, &part.text()),
            None if self.part_only_reads(place, part) => Reason::ReadOnly,
            None if self.is_accepted_edit(part, &writes) => Reason::Mode(self.mode),
            None => return Err(uncovered(part.text())),
        };
        // What a command writes is its own business once it is allowed; where its output goes is
        // not.
        for touch in writes.iter().filter(|touch| touch.redirected) {
            match self.write_allows(touch) {
                Some(_) if matches!(by, Reason::Rule { .. }) => {}
                Some(reason) => by = reason,
                None => {
                    let path = touch.path.as_deref().unwrap_or(Path::new("…"));
                    return Err(uncovered(format!("> {}", path.display())));
                }
            }
        }
        Ok(by)
    }

    /// Whether a redirection may write a file.
    fn write_allows(&self, touch: &Touch) -> Option<Reason> {
        self.links_allow()
            .then(|| self.path_allows(touch.path.as_deref()?))?
    }

    fn path_allows(&self, path: &Path) -> Option<Reason> {
        let mut edits = self.rules("Edit").chain(self.rules("Write"));
        if let Some(ruled) = edits.find(|ruled| ruled.permits_path(path, self.ground)) {
            return Some(allowed(ruled, &path.display().to_string()));
        }
        self.is_accepted(path).then_some(Reason::Mode(self.mode))
    }

    /// Whether the files that links lead to may be written as well.
    fn links_allow(&self) -> bool {
        let is_linked = |path: &&PathBuf| {
            let mut writes = self.shell.trace.writes();
            !writes.any(|touch| touch.path.as_ref() == Some(path))
        };
        let mut linked = self.request.paths.iter().filter(is_linked);
        linked.all(|path| self.path_allows(path).is_some())
    }

    /// Whether the mode approves of an edit there. The roots themselves stay.
    fn is_accepted(&self, path: &Path) -> bool {
        let roots = &self.policy.roots;
        let is_root = roots.iter().any(|root| root.starts_with(path));
        self.mode == Mode::AcceptEdits && is_inside(path, roots) && !is_root
    }

    fn is_accepted_edit(&self, part: &Part, writes: &[&Touch]) -> bool {
        let mut paths = writes.iter().map(|touch| touch.path.as_deref());
        self.mode == Mode::AcceptEdits
            && part.has_safe_assignments()
            && is_edit(part.innermost())
            && paths.all(|path| path.is_some_and(|path| self.is_accepted(path)))
            && self.links_allow()
    }

    /// A protected file that is written and that no allow rule names.
    fn protected(&self) -> Option<&Path> {
        let touched = self.shell.trace.writes().filter_map(|touch| {
            let path = touch.path.as_deref()?;
            Some((path, self.shell.script.parts.get(touch.part)))
        });
        let given = self.request.paths.iter().map(|path| (path.as_path(), None));
        let mut all = touched.chain(given);
        all.find(|(path, part)| {
            protected(path, &self.policy.roots)
                .is_some_and(|name| !self.is_named(name, path, *part))
        })
        .map(|(path, _)| path)
    }

    /// Whether an allow rule that covers a write also spells out the protected name.
    fn is_named(&self, name: &str, path: &Path, part: Option<&Part>) -> bool {
        let mut edits = self.rules("Edit").chain(self.rules("Write"));
        if edits.any(|ruled| ruled.names(name) && ruled.permits_path(path, self.ground)) {
            return true;
        }
        let Some(part) = part else { return false };
        let offered = part.offered();
        self.rules("Bash").any(|ruled| match &ruled.rule.specifier {
            Specifier::Command(pattern) => {
                ruled.names(name) && offered.iter().any(|text| pattern.matches(text))
            }
            _ => false,
        })
    }

    fn rules(&self, tool: &'static str) -> impl Iterator<Item = &Ruled> {
        let rules = self.policy.allow.iter();
        // A project can be anybody's: it does not let its own commands out.
        let leaves = self.leaves();
        let counts = move |ruled: &&Ruled| {
            let level = ruled.source.level;
            !leaves || !matches!(level, Level::Project | Level::Local | Level::Role)
        };
        rules
            .filter(move |ruled| ruled.rule.tool == tool)
            .filter(counts)
    }
}

impl Ruled {
    /// Whether the rule's text holds a protected name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.rule.as_str().contains(name)
    }
}

pub(super) fn allowed(ruled: &Ruled, what: &str) -> Reason {
    Reason::Rule {
        kind: Kind::Allow,
        rule: Box::new(ruled.rule.clone()),
        level: ruled.source.level,
        what: what.to_owned(),
    }
}
