//! Whether a rule speaks of a call. Rules that forbid are read widely, rules that allow narrowly.

use super::paths::{PathPattern, Start};
use super::pattern::Pattern;
use super::request::{Files, Shell, Subject, What, covers};
use super::rule::Specifier;
use super::source::{Level, Ruled, Source};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The places that patterns start from.
pub(super) struct Ground<'a> {
    pub(super) cwd: &'a Path,
    pub(super) home: &'a Path,
    /// The agent's own roots, then those of the agents above it.
    pub(super) roots: Vec<&'a Path>,
}

impl Ruled {
    /// What a deny or ask rule matches in a call.
    pub(super) fn binds(
        &self,
        subject: &Subject<'_>,
        paths: &[PathBuf],
        ground: &Ground<'_>,
    ) -> Option<String> {
        if let Specifier::Parameter { key, value } = &self.rule.specifier {
            let is_it = covers_name(&self.rule.tool, subject.tool)
                && subject
                    .input
                    .get(key)
                    .is_some_and(|given| value.matches(&shown(given)));
            return is_it.then(|| format!("{key}:{}", value_text(subject.input, key)));
        }
        if let What::Shell(shell) = &subject.what {
            return self.binds_shell(shell, paths, ground);
        }
        if !covers_name(&self.rule.tool, subject.tool) {
            return None;
        }
        match (&self.rule.specifier, &subject.what) {
            (Specifier::Any, _) => Some(subject.tool.to_owned()),
            (Specifier::Path(pattern), What::Files(files)) => {
                let mut all = files.all.iter();
                let path = all.find(|path| self.reaches(pattern, path, files.below, ground))?;
                Some(path.display().to_string())
            }
            (Specifier::Domain(pattern), What::Web { host }) => {
                pattern.matches(host).then(|| host.clone())
            }
            (Specifier::Name(pattern), What::Skill { name, arguments }) => {
                let whole = format!("{name} {arguments}");
                (pattern.matches(name) || pattern.matches(whole.trim())).then(|| name.clone())
            }
            (Specifier::Name(pattern), What::Agent { types }) => {
                types.iter().find(|name| pattern.matches(name)).cloned()
            }
            _ => None,
        }
    }

    /// Rules about commands, and rules about files for the files that a command names.
    fn binds_shell(&self, shell: &Shell, paths: &[PathBuf], ground: &Ground<'_>) -> Option<String> {
        match (self.rule.tool.as_str(), &self.rule.specifier) {
            ("Bash", Specifier::Any) => Some(shell.script.text.clone()),
            ("Bash", Specifier::Command(pattern)) => {
                let mut texts = shell.watched.iter();
                texts.find(|text| pattern.matches(text)).cloned()
            }
            (tool @ ("Edit" | "Write" | "Read"), specifier) => {
                let writes = tool != "Read";
                let touches = shell.trace.touches.iter();
                let touched = touches
                    .filter(|touch| touch.writes == writes)
                    .filter_map(|touch| touch.path.as_ref());
                let given = paths.iter().filter(|_| writes);
                let mut all = touched.chain(given);
                let path = all.find(|path| match specifier {
                    Specifier::Path(pattern) => self.reaches(pattern, path, true, ground),
                    _ => true,
                })?;
                Some(path.display().to_string())
            }
            ("Cd", specifier) => {
                let mut entered = shell.trace.entered.iter();
                let path = entered.find(|path| match specifier {
                    Specifier::Path(pattern) => self.reaches(pattern, path, true, ground),
                    _ => true,
                })?;
                Some(path.display().to_string())
            }
            _ => None,
        }
    }

    /// Whether a forbidding pattern fits a path, or all that is in it.
    fn reaches(
        &self,
        pattern: &PathPattern,
        path: &Path,
        below: bool,
        ground: &Ground<'_>,
    ) -> bool {
        let starts = starts(pattern, &self.source, ground, true);
        let fits = |path: &Path| pattern.matches(path, starts.iter().copied(), true);
        fits(path) || below && fits(&path.join("_"))
    }

    /// Whether an allow rule covers a call of any tool but Bash.
    pub(super) fn permits(&self, subject: &Subject<'_>, ground: &Ground<'_>) -> bool {
        if !covers_name(&self.rule.tool, subject.tool) {
            return false;
        }
        match (&self.rule.specifier, &subject.what) {
            (Specifier::Any, _) => true,
            (Specifier::Path(_), What::Files(Files { real, .. })) => {
                real.iter().all(|path| self.permits_path(path, ground))
            }
            (Specifier::Domain(pattern), What::Web { host }) => pattern.matches(host),
            (Specifier::Name(pattern), What::Skill { name, arguments }) => {
                pattern.matches(format!("{name} {arguments}").trim())
            }
            (Specifier::Name(pattern), What::Agent { types }) => {
                types.iter().all(|name| pattern.matches(name))
            }
            _ => false,
        }
    }

    pub(super) fn covers_tool(&self, tool: &str) -> bool {
        covers_name(&self.rule.tool, tool)
    }

    /// Whether the rule's pattern covers a path.
    pub(super) fn permits_path(&self, path: &Path, ground: &Ground<'_>) -> bool {
        match &self.rule.specifier {
            Specifier::Any => true,
            Specifier::Path(pattern) => {
                let starts = starts(pattern, &self.source, ground, false);
                pattern.matches(path, starts, false)
            }
            _ => false,
        }
    }
}

/// Where a pattern starts. A forbidding pattern of a project holds in every checkout of it that
/// an agent works in, and a relative one wherever the agent is; an allowing one starts where it
/// was written for.
pub(super) fn starts<'g>(
    pattern: &PathPattern,
    source: &'g Source,
    ground: &Ground<'g>,
    wide: bool,
) -> Vec<&'g Path> {
    match pattern.start {
        Start::Root => vec![Path::new("/")],
        Start::Home => vec![ground.home],
        Start::Settings => {
            let mut starts = vec![source.folder.as_path()];
            if wide && matches!(source.level, Level::Project | Level::Local) {
                let other = |root: &&&Path| !root.starts_with(&source.folder);
                starts.extend(ground.roots.iter().filter(other).copied());
            }
            starts
        }
        Start::Folder if wide => {
            let mut starts = ground.roots.clone();
            starts.push(ground.cwd);
            starts
        }
        Start::Folder => vec![ground.roots.first().copied().unwrap_or(ground.cwd)],
    }
}

/// Whether a rule's tool is a call's tool: a server of MCP stands for all of its tools.
fn covers_name(rule: &str, tool: &str) -> bool {
    let Some(name) = rule.strip_prefix("mcp__") else {
        return covers(rule, tool);
    };
    let is_server = !name.contains("__");
    let of_server = || {
        tool.strip_prefix(rule)
            .is_some_and(|rest| rest.starts_with("__"))
    };
    rule == tool
        || is_server && of_server()
        || rule.contains('*') && Pattern::new(rule).matches(tool)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn value_text(input: &Value, key: &str) -> String {
    input.get(key).map(shown).unwrap_or_default()
}
