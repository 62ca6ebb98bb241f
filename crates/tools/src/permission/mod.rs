//! Permissions: one function decides whether a call runs, is asked about or is denied.
//!
//! Deny rules come first, then ask rules, then allow rules and the mode; which rule is the more
//! specific does not matter. Rules that forbid are read widely and hold for every agent below the
//! one that has them; rules that allow are read narrowly. What cannot be judged is denied.

mod command;
mod hiding;
mod matching;
mod mode;
mod paths;
mod pattern;
mod readonly;
mod reason;
mod request;
mod rule;
mod shell;
mod source;
mod suggest;
mod touch;

pub use hiding::Hiding;
pub use mode::{Mode, UnknownMode};
pub use reason::{Decision, Denial, Outcome, Reason, Silent};
pub use request::Request;
pub use rule::{Rule, RuleError};
pub use source::{Kind, Level, Ruled, Source};

use crate::Access;
use matching::Ground;
use request::{Subject, What};
use serde_json::Value;
use shell::{Judge, allowed};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What one agent may do.
#[derive(Debug, Clone)]
pub struct Policy {
    pub mode: Mode,
    pub allow: Vec<Ruled>,
    pub ask: Vec<Ruled>,
    pub deny: Vec<Ruled>,
    /// The folders that the agent works in, its own first; absolute and without links.
    pub roots: Vec<PathBuf>,
    pub home: PathBuf,
    /// The crew's scratchpad, where agents write unasked; absolute and without links.
    pub scratchpad: Option<PathBuf>,
    /// Whether its shell commands run in a sandbox.
    pub sandboxed: bool,
    /// Whether a shell command may ask to run outside the sandbox.
    pub may_leave: bool,
    /// Whether there is nobody to ask.
    pub headless: bool,
    /// The mode that its type asks for.
    asked: Option<Mode>,
    /// The agent above: what is denied there is denied here.
    ceiling: Option<Arc<Policy>>,
}

/// What an agent type asks for itself.
#[derive(Debug, Clone, Default)]
pub struct Role {
    /// Without one: `acceptEdits`, or `bypassPermissions` where the agent above has it.
    pub mode: Option<Mode>,
    pub allow: Vec<Ruled>,
    pub ask: Vec<Ruled>,
    pub deny: Vec<Ruled>,
    /// Without any: those of the agent above.
    pub roots: Vec<PathBuf>,
    pub sandboxed: bool,
}

impl Policy {
    /// A policy without rules.
    pub fn new(mode: Mode, roots: Vec<PathBuf>, home: PathBuf) -> Self {
        Self {
            mode,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            roots,
            home,
            scratchpad: None,
            sandboxed: false,
            may_leave: false,
            headless: false,
            asked: None,
            ceiling: None,
        }
    }

    /// The policy of an agent below: its role within this ceiling. Whatever is denied or asked
    /// here is so there; what the user allows is allowed there too; what only this agent's type
    /// allows is not.
    pub fn child(self: &Arc<Self>, role: Role) -> Self {
        let inherited = self.allow.iter();
        let inherited = inherited.filter(|ruled| ruled.source.level != Level::Role);
        let mut allow: Vec<Ruled> = inherited.cloned().collect();
        allow.extend(role.allow);
        Self {
            mode: self.mode_below(role.mode),
            asked: role.mode,
            allow,
            ask: role.ask,
            deny: role.deny,
            roots: match role.roots.is_empty() {
                true => self.roots.clone(),
                false => role.roots,
            },
            home: self.home.clone(),
            scratchpad: self.scratchpad.clone(),
            sandboxed: role.sandboxed,
            may_leave: self.may_leave,
            headless: self.headless,
            ceiling: Some(Arc::clone(self)),
        }
    }

    /// The mode of an agent below that asks for this one, or for none.
    fn mode_below(&self, asked: Option<Mode>) -> Mode {
        asked.unwrap_or(match self.effective_mode() {
            Mode::BypassPermissions => Mode::BypassPermissions,
            _ => Mode::AcceptEdits,
        })
    }

    /// The same as it would be had the session's own agent this mode.
    pub fn with_top_mode(&self, mode: Mode) -> Self {
        let mut changed = self.clone();
        match &self.ceiling {
            None => changed.mode = mode,
            Some(above) => {
                let above = above.with_top_mode(mode);
                changed.mode = above.mode_below(self.asked);
                changed.ceiling = Some(Arc::new(above));
            }
        }
        changed
    }

    /// The mode within the ceiling.
    pub fn effective_mode(&self) -> Mode {
        match &self.ceiling {
            Some(above) => self.mode.below(above.effective_mode()),
            None => self.mode,
        }
    }

    /// Decides on a call. This is the only place where that is done.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        let subject = match Subject::read(request, &self.home, &self.roots) {
            Ok(subject) => subject,
            Err(why) => {
                let why = format!("{}: {why}", request.tool);
                return Decision::new(Outcome::Deny, Reason::Broken(why));
            }
        };
        let decision = self.judge(&subject, request);
        match (decision.outcome, self.silent()) {
            (Outcome::Ask, Some(silent)) => {
                let why = Box::new(decision.reason);
                Decision::new(Outcome::Deny, Reason::NobodyToAsk { why, silent })
            }
            _ => decision,
        }
    }

    fn judge(&self, subject: &Subject<'_>, request: &Request<'_>) -> Decision {
        let ground = self.ground(request.cwd);
        let mode = self.effective_mode();
        if let Some(reason) = self.bound(Kind::Deny, subject, request, &ground) {
            return Decision::new(Outcome::Deny, reason);
        }
        let judge = match &subject.what {
            What::Shell(shell) => Some(Judge {
                policy: self,
                request,
                shell,
                ground: &ground,
                mode,
            }),
            _ => None,
        };
        if judge.as_ref().is_some_and(Judge::must_stay) {
            return Decision::new(Outcome::Deny, Reason::MustStay);
        }
        if mode == Mode::Plan && !is_reading(subject, request, judge.as_ref()) {
            return Decision::new(Outcome::Deny, Reason::Mode(mode));
        }
        if let Some(reason) = self.bound(Kind::Ask, subject, request, &ground) {
            return Decision::new(Outcome::Ask, reason);
        }
        if mode == Mode::BypassPermissions {
            return Decision::new(Outcome::Allow, Reason::Mode(mode));
        }
        let allowed = match judge {
            Some(judge) => judge.allows(),
            None => self.allows(subject, request, &ground, mode),
        };
        match allowed {
            Ok(reason) => Decision::new(Outcome::Allow, reason),
            Err(reason) => Decision::new(Outcome::Ask, reason),
        }
    }

    /// The first deny or ask rule that speaks of a call, here or above.
    fn bound(
        &self,
        kind: Kind,
        subject: &Subject<'_>,
        request: &Request<'_>,
        ground: &Ground<'_>,
    ) -> Option<Reason> {
        self.chain().find_map(|policy| {
            let rules = match kind {
                Kind::Deny => &policy.deny,
                Kind::Ask => &policy.ask,
                Kind::Allow => return None,
            };
            rules.iter().find_map(|ruled| {
                Some(Reason::Rule {
                    kind,
                    rule: Box::new(ruled.rule.clone()),
                    level: ruled.source.level,
                    what: ruled.binds(subject, request.paths, ground)?,
                })
            })
        })
    }

    /// Whether a call of any tool but Bash may run unasked.
    fn allows(
        &self,
        subject: &Subject<'_>,
        request: &Request<'_>,
        ground: &Ground<'_>,
        mode: Mode,
    ) -> Result<Reason, Reason> {
        let mut permitting = self
            .allow
            .iter()
            .filter(|ruled| ruled.permits(subject, ground));
        let what = reason::summary(request);
        if let What::Files(files) = &subject.what
            && files.writes
        {
            let guarded = files.all.iter();
            let mut guarded =
                guarded.filter_map(|path| Some((path, paths::protected(path, &self.roots)?)));
            let first = guarded.next();
            let others: Vec<&str> = guarded.map(|(_, name)| name).collect();
            if let Some((path, name)) = first {
                let is_named = |ruled: &&Ruled| {
                    ruled.names(name) && others.iter().all(|other| ruled.names(other))
                };
                return match permitting.find(is_named) {
                    Some(ruled) => Ok(allowed(ruled, &what)),
                    None => Err(Reason::Protected(path.clone())),
                };
            }
        }
        if let Some(ruled) = permitting.next() {
            return Ok(allowed(ruled, &what));
        }
        if subject.is_unasked() {
            return Ok(Reason::Unasked);
        }
        match &subject.what {
            What::Files(files) if !files.writes => Ok(Reason::ReadOnly),
            What::Files(files) if files.real.iter().all(|path| self.is_shared(path)) => {
                Ok(Reason::Unasked)
            }
            What::Files(files) => {
                let mut paths = files.real.iter();
                let is_accepted = mode == Mode::AcceptEdits
                    && paths.all(|path| paths::is_inside(path, &self.roots));
                match is_accepted {
                    true => Ok(Reason::Mode(mode)),
                    false => Err(Reason::Uncovered { what, mode }),
                }
            }
            _ if request.access == Access::Reads => Ok(Reason::ReadOnly),
            _ => Err(Reason::Uncovered { what, mode }),
        }
    }

    /// Whether a path is in the scratchpad, and not the folder itself.
    fn is_shared(&self, path: &Path) -> bool {
        let scratchpad = self.scratchpad.as_ref();
        scratchpad.is_some_and(|folder| path.starts_with(folder) && path != folder)
    }

    /// The rule that takes a whole tool away, here or above: an agent need not see the tool.
    pub fn removes(&self, tool: &str) -> Option<&Ruled> {
        let mut denied = self.chain().flat_map(|policy| &policy.deny);
        denied.find(|ruled| ruled.rule.is_whole_tool() && ruled.covers_tool(tool))
    }

    /// Whether a rule speaks of a call, read widely, as rules that forbid are. Settings name calls
    /// this way where they mean something else than permission.
    pub fn is_about(&self, rule: &str, tool: &str, input: &Value) -> Result<bool, String> {
        let rule = Rule::parse_for(Kind::Deny, rule).map_err(|error| error.to_string())?;
        let cwd = self.roots.first().map(PathBuf::as_path);
        let cwd = cwd.unwrap_or(Path::new("/"));
        let request = Request {
            tool,
            input,
            access: Access::Writes,
            cwd,
            paths: &[],
        };
        let subject = Subject::read(&request, &self.home, &self.roots)?;
        let source = Source::new(Level::Session, cwd);
        let ruled = Ruled { rule, source };
        let ground = self.ground(cwd);
        Ok(ruled.binds(&subject, &[], &ground).is_some())
    }

    /// The files that a shell command would write, as far as its text tells, with links and `..`
    /// in them. Whoever can look at the disk follows the links and gives them back in
    /// [`Request::paths`].
    pub fn writes(&self, command: &str, cwd: &Path) -> Vec<PathBuf> {
        let script = command::Script::parse(command);
        let trace = touch::Trace::of(&script, cwd, &self.home, &self.roots);
        let mut paths: Vec<PathBuf> = trace
            .writes()
            .filter_map(|touch| touch.raw.clone())
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// This policy and those above it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |policy| policy.ceiling.as_deref())
    }

    fn ground<'a>(&'a self, cwd: &'a Path) -> Ground<'a> {
        let mut roots: Vec<&Path> = Vec::new();
        for root in self.chain().flat_map(|policy| &policy.roots) {
            if !roots.contains(&root.as_path()) {
                roots.push(root);
            }
        }
        Ground {
            cwd,
            home: &self.home,
            roots,
        }
    }

    /// Why nobody is asked, if so.
    fn silent(&self) -> Option<Silent> {
        if self.effective_mode() == Mode::DontAsk {
            return Some(Silent::DontAsk);
        }
        let headless = self.chain().any(|policy| policy.headless);
        headless.then_some(Silent::Headless)
    }
}

/// Whether a call certainly writes nothing.
fn is_reading(subject: &Subject<'_>, request: &Request<'_>, judge: Option<&Judge<'_>>) -> bool {
    match (&subject.what, judge) {
        (What::Shell(_), judge) => judge.is_some_and(Judge::only_reads),
        (What::Files(files), _) => !files.writes,
        _ => subject.is_unasked() || request.access == Access::Reads,
    }
}

#[cfg(test)]
mod tests;
