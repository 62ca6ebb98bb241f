//! The guard: holds an agent's policy, whom it can ask, and a list of what was turned away.

use crate::bash::Bash;
use crate::context::Context;
use crate::permission::{Decision, Denial, Kind, Level, Policy, Request, Rule, Ruled, Source};
use crate::question::Questions;
use crate::standing::Standing;
use crate::tool::{Run, Tool};
use gaffer_protocol::AgentId;
use gaffer_workspace::fence::destination;
use serde_json::Value;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Clones share their state: they guard the same agent.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: Arc<Policy>,
    /// What the user has said since, and says from now on.
    standing: Standing,
    denials: Arc<Mutex<Vec<Denial>>>,
    asking: Option<(AgentId, Questions)>,
}

/// Members of inputs that name files.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

impl Guard {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            standing: Standing::default(),
            denials: Arc::default(),
            asking: None,
        }
    }

    /// The same for an agent whose questions reach somebody.
    pub fn asking(self, agent: AgentId, questions: Questions) -> Self {
        Self {
            asking: Some((agent, questions)),
            ..self
        }
    }

    /// The same for an agent that shares with others what the user says.
    pub fn heeding(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.standing.over(&self.policy)
    }

    /// Everything that was turned away so far.
    pub fn denials(&self) -> Vec<Denial> {
        let denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        denials.clone()
    }

    /// Changes whenever the user has said something that may make a decision another.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.standing.changes()
    }

    pub(crate) fn whom_to_ask(&self) -> Option<&(AgentId, Questions)> {
        self.asking.as_ref()
    }

    /// What the policy says of a call. None where there is nothing to decide.
    pub(crate) fn decide(
        &self,
        tool: &dyn Tool,
        input: &Value,
        context: &Context,
    ) -> Option<Decision> {
        // Without a command Bash starts nothing: it looks at a job of the agent's own, or at none.
        if tool.spec().name == Bash::NAME && input.get("command").is_none_or(Value::is_null) {
            return None;
        }
        let paths = self.paths(tool, input, context);
        let request = |request: &Request<'_>| self.policy().decide(request);
        Some(with_request(tool, input, context, &paths, request))
    }

    /// Rules that would let a call run unasked.
    pub(crate) fn suggest(&self, tool: &dyn Tool, input: &Value, context: &Context) -> Vec<Rule> {
        let paths = self.paths(tool, input, context);
        let suggest = |request: &Request<'_>| self.policy().suggest(request);
        with_request(tool, input, context, &paths, suggest)
    }

    /// Lists a call as turned away.
    pub(crate) fn turned_away(
        &self,
        tool: &dyn Tool,
        input: &Value,
        context: &Context,
        reason: &dyn Display,
    ) {
        let denial = |request: &Request<'_>| Denial::new(request, reason);
        let denial = with_request(tool, input, context, &[], denial);
        self.denials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(denial);
    }

    /// Allows what these rules speak of until the session ends. What is no rule is left out: the
    /// next such call is asked about again.
    pub(crate) fn allow(&self, rules: &[String], folder: PathBuf) {
        let rules = rules
            .iter()
            .filter_map(|text| Rule::parse_for(Kind::Allow, text).ok());
        let source = Source::new(Level::Session, folder);
        self.standing.allow(rules.map(|rule| Ruled {
            rule,
            source: source.clone(),
        }));
    }

    /// The files that a call names, as they really are: rules are not fooled by links.
    fn paths(&self, tool: &dyn Tool, input: &Value, context: &Context) -> Vec<PathBuf> {
        let cwd = context.cwd.get();
        if tool.spec().name == Bash::NAME {
            let command = input.get("command").and_then(Value::as_str);
            let written = self.policy().writes(command.unwrap_or_default(), &cwd);
            return written.iter().map(|path| destination(path)).collect();
        }
        let named = PATHS
            .iter()
            .filter_map(|member| input.get(member)?.as_str());
        let located = named.filter_map(|path| context.fence.locate(&cwd, path).ok());
        located.map(|fenced| fenced.path()).collect()
    }
}

fn with_request<T>(
    tool: &dyn Tool,
    input: &Value,
    context: &Context,
    paths: &[PathBuf],
    then: impl FnOnce(&Request<'_>) -> T,
) -> T {
    let cwd = context.cwd.get();
    then(&Request {
        tool: &tool.spec().name,
        input,
        access: tool.access(),
        cwd: &cwd,
        paths,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::erase;
    use crate::permission::{Mode, Outcome};
    use serde_json::json;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// A project with links into a folder that must not be edited.
    fn place() -> (tempfile::TempDir, Context, Guard) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let project = root.join("project");
        for folder in ["project/secret/inner", "project/sub", "outside", "tmp"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink("secret", project.join("link")).unwrap();
        symlink("secret/new", project.join("dangling")).unwrap();
        symlink("dangling", project.join("twice")).unwrap();
        symlink("../secret/inner", project.join("sub/deep")).unwrap();
        symlink("../outside", project.join("out")).unwrap();
        let mut policy = Policy::new(Mode::AcceptEdits, vec![project.clone()], root.join("home"));
        policy.sandboxed = true;
        policy.deny = ["Edit(/secret/**)", "Edit(//**/outside/**)"]
            .map(|text| Ruled {
                rule: Rule::parse_for(Kind::Deny, text).unwrap(),
                source: Source::new(Level::Project, &project),
            })
            .into();
        let tmp = root.join("tmp");
        let context = Context::in_folder(&project, &tmp, &tmp, Path::new("/none"));
        (temp, context, Guard::new(Arc::new(policy)))
    }

    #[test]
    fn what_a_command_writes_is_followed_through_links() {
        let (_temp, context, guard) = place();
        let check = |command: &str| {
            let input = json!({ "command": command });
            let decision = guard.decide(&*erase(Bash), &input, &context).unwrap();
            match decision.outcome {
                Outcome::Allow => Ok(()),
                _ => Err(decision.reason.to_string()),
            }
        };
        for denied in [
            "echo x > secret/a",
            "echo x > link/a",
            "echo x >> ./sub/../link/a",
            "make | tee link/a",
            "echo x > dangling",
            "touch twice",
            "touch sub/deep/../a",
            "cd sub && rm ../link/a",
            "cd sub/deep && touch b",
            "cp a link",
            "mv -t link a",
            "cp --target-directory=link a",
            "sed -i s/a/b/ link/a",
            "sed -Ei s/a/b/ link/a",
            "sed --in-place s/a/b/ link/a",
            "dd if=/dev/zero of=link/a",
            "sort -o link/a b",
            "curl -olink/a http://x.example",
            "rm -rf secret",
            "ln -s b link/c",
            "echo x > out/file",
            "cp a ../outside/",
        ] {
            let why = check(denied).expect_err(denied);
            assert!(why.contains("The deny rule `Edit("), "{denied}: {why}");
        }
        for allowed in [
            "echo x > sub/a",
            "cat link/a > sub/b",
            "cd sub && touch ../a",
            "sed s/i/j/ link/a",
        ] {
            assert_eq!(check(allowed), Ok(()), "{allowed}");
        }
    }
}
