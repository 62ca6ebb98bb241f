//! Policies and calls for the targets about permissions.

use gaffer_tools::Access;
use gaffer_tools::permission::{
    Decision, Kind, Level, Mode, Outcome, Policy, Request, Rule, Ruled, Source,
};
use serde_json::{Value, json};
use std::path::Path;

/// Where the agent works.
pub(crate) const FOLDER: &str = "/p";

/// A policy for an agent in its folder, without rules.
pub(crate) fn policy(mode: Mode) -> Policy {
    Policy::new(mode, vec![FOLDER.into()], "/h".into())
}

/// The same policy with one rule more.
pub(crate) fn with(policy: &Policy, kind: Kind, rule: Rule) -> Policy {
    let mut policy = policy.clone();
    let list = match kind {
        Kind::Allow => &mut policy.allow,
        Kind::Ask => &mut policy.ask,
        Kind::Deny => &mut policy.deny,
    };
    list.push(Ruled {
        rule,
        source: Source::new(Level::Project, FOLDER),
    });
    policy
}

/// The same policy with a rule that is known to be one.
pub(crate) fn with_text(policy: &Policy, kind: Kind, text: &str) -> Policy {
    match Rule::parse_for(kind, text) {
        Ok(rule) => with(policy, kind, rule),
        Err(why) => panic!("{why}"),
    }
}

pub(crate) fn request<'a>(tool: &'a str, input: &'a Value) -> Request<'a> {
    let reads = matches!(tool, "Read" | "Grep" | "Glob" | "WebFetch" | "Skill");
    Request {
        tool,
        input,
        access: if reads { Access::Reads } else { Access::Writes },
        cwd: Path::new(FOLDER),
        paths: &[],
    }
}

pub(crate) fn decide(policy: &Policy, tool: &str, input: &Value) -> Decision {
    let decision = policy.decide(&request(tool, input));
    // The sentence is shown to people and to models: making it must not fail either.
    assert!(!decision.reason.to_string().is_empty());
    decision
}

/// The decision on a shell command.
pub(crate) fn command(policy: &Policy, text: &str) -> Decision {
    decide(policy, "Bash", &json!({ "command": text }))
}

/// From the freest to the strictest.
pub(crate) fn strictness(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Allow => 0,
        Outcome::Ask => 1,
        Outcome::Deny => 2,
    }
}
