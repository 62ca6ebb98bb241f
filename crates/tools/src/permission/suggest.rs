//! Rules that would allow a call: what "don't ask again" saves.

use super::Policy;
use super::command::Part;
use super::paths::{PathPattern, protected};
use super::pattern::Pattern;
use super::reason::Outcome;
use super::request::{Request, Subject, What};
use super::rule::Rule;
use super::source::{Kind, Level, Ruled, Source};
use std::path::Path;

/// More rules than these nobody reads.
const MOST_RULES: usize = 5;

/// Programs whose next word says what they do.
const WITH_SUBCOMMANDS: [&str; 26] = [
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gh",
    "git",
    "glab",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "terraform",
    "uv",
    "yarn",
];

/// Words after which the next one still says what is done.
const RUNNERS: [&str; 4] = ["compose", "exec", "run", "x"];

impl Policy {
    /// At most five rules with which, all together, the call would run unasked. None where no
    /// rules can do that: something denies it or always asks, or it would take more of them.
    pub fn suggest(&self, request: &Request<'_>) -> Vec<Rule> {
        let Ok(subject) = Subject::read(request, &self.home, &self.roots) else {
            return Vec::new();
        };
        let mut trial = self.clone();
        let folder = self
            .roots
            .first()
            .map_or(request.cwd, |root| root.as_path());
        let mut rules: Vec<Rule> = Vec::new();
        for text in self.wanted(&subject, request, folder) {
            let Ok(rule) = Rule::parse_for(Kind::Allow, &text) else {
                continue;
            };
            if !rules.contains(&rule) {
                let source = Source::new(Level::Session, folder);
                trial.allow.push(Ruled {
                    rule: rule.clone(),
                    source,
                });
                rules.push(rule);
            }
        }
        let works = rules.len() <= MOST_RULES && trial.decide(request).outcome == Outcome::Allow;
        match works && self.decide(request).outcome != Outcome::Allow {
            true => rules,
            false => Vec::new(),
        }
    }

    /// The texts of rules that the call wants.
    fn wanted(&self, subject: &Subject<'_>, request: &Request<'_>, folder: &Path) -> Vec<String> {
        let edit = |path: &Path| Some(format!("Edit({})", PathPattern::exactly(path, folder)?));
        match &subject.what {
            What::Shell(shell) => {
                let mut texts = Vec::new();
                for (place, part) in shell.script.parts.iter().enumerate() {
                    if !self.part_runs(request, part) {
                        texts.push(format!("Bash({})", command_pattern(part)));
                    }
                    let touches = shell.trace.writes();
                    let targets = touches.filter(|touch| touch.part == place && touch.redirected);
                    texts.extend(targets.filter_map(|touch| edit(touch.path.as_deref()?)));
                }
                let given = shell
                    .trace
                    .writes()
                    .filter_map(|touch| touch.path.as_deref());
                let guarded = given.filter(|path| protected(path, &self.roots).is_some());
                texts.extend(guarded.filter_map(edit));
                texts
            }
            What::Files(files) if files.writes => {
                let mut texts = Vec::new();
                for path in &files.real {
                    // A folder of ordinary files; the one file where more would be too much.
                    let parent = path.parent().filter(|parent| {
                        protected(path, &self.roots).is_none()
                            && parent.starts_with(folder)
                            && *parent != folder
                    });
                    let whole = parent.and_then(|parent| PathPattern::exactly(parent, folder));
                    match whole {
                        Some(parent) => texts.push(format!("Edit({parent}/**)")),
                        None => texts.extend(edit(path)),
                    }
                }
                texts
            }
            What::Files(_) => vec![subject.tool.to_owned()],
            What::Web { host } => vec![format!("WebFetch(domain:{host})")],
            What::Skill { name, arguments } => match arguments.trim() {
                "" => vec![format!("Skill({name})")],
                _ => vec![format!("Skill({name} *)")],
            },
            What::Agent { types } => types.iter().map(|name| format!("Agent({name})")).collect(),
            What::Other => vec![subject.tool.to_owned()],
        }
    }

    /// Whether a part would run unasked if it stood alone.
    fn part_runs(&self, request: &Request<'_>, part: &Part) -> bool {
        let input = serde_json::json!({ "command": part.text() });
        let alone = Request {
            input: &input,
            paths: &[],
            ..*request
        };
        part.words.is_empty() && part.assignments.is_empty()
            || self.decide(&alone).outcome == Outcome::Allow
    }
}

/// A pattern for a command: its subcommand with any arguments where it has one, else itself.
fn command_pattern(part: &Part) -> String {
    let level = part.innermost();
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_:".contains(c))
    };
    let words: Vec<&str> = level.words.iter().map(|word| word.raw.as_str()).collect();
    let kept = match words.as_slice() {
        _ if !part.has_safe_assignments() => 0,
        [name, runner, what, ..]
            if WITH_SUBCOMMANDS.contains(name) && RUNNERS.contains(runner) && is_word(what) =>
        {
            3
        }
        [name, runner, ..] if WITH_SUBCOMMANDS.contains(name) && RUNNERS.contains(runner) => 0,
        [name, what, ..] if WITH_SUBCOMMANDS.contains(name) && is_word(what) => 2,
        _ => 0,
    };
    match words.get(..kept) {
        Some(kept) if !kept.is_empty() => format!("{} *", kept.join(" ")),
        _ => Pattern::escape(&part.text()),
    }
}
