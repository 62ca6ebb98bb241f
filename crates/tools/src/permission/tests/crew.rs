//! Agents below agents: what is denied above is denied below, whatever a role says.

use super::*;

fn role(mode: Option<Mode>, rules: &str) -> Role {
    let rules = policy(Mode::Default, rules);
    let as_role = |rules: Vec<Ruled>| {
        let rules = rules.into_iter();
        let rules = rules.map(|ruled| Ruled {
            source: source(Level::Role),
            ..ruled
        });
        rules.collect::<Vec<_>>()
    };
    Role {
        mode,
        allow: as_role(rules.allow),
        ask: as_role(rules.ask),
        deny: as_role(rules.deny),
        ..Role::default()
    }
}

/// Calls that writing, running and asking differ in.
const OPERATIONS: [(&str, &str); 9] = [
    ("Read", "a"),
    ("Edit", "a"),
    ("Edit", "/elsewhere/a"),
    ("Edit", ".git/config"),
    ("Bash", "ls"),
    ("Bash", "make"),
    ("Bash", "rm a"),
    ("WebFetch", "https://example.com/"),
    ("Deploy", "{}"),
];

/// What a mode does with each operation, without rules.
fn expected(mode: Mode) -> [Outcome; 9] {
    use Outcome::{Allow, Ask, Deny};
    match mode {
        Mode::Default => [Allow, Ask, Ask, Ask, Allow, Ask, Ask, Allow, Ask],
        Mode::AcceptEdits => [Allow, Allow, Ask, Ask, Allow, Ask, Allow, Allow, Ask],
        Mode::Plan => [Allow, Deny, Deny, Deny, Allow, Deny, Deny, Allow, Deny],
        Mode::DontAsk => [Allow, Deny, Deny, Deny, Allow, Deny, Deny, Allow, Deny],
        Mode::BypassPermissions => [Allow; 9],
    }
}

#[test]
fn the_matrix_of_parent_child_and_operation() {
    for above in Mode::ALL {
        for below in Mode::ALL {
            let parent = Arc::new(policy(above, ""));
            let child = parent.child(role(Some(below), ""));
            let mode = match (above, below) {
                (Mode::Plan, _) | (_, Mode::Plan) => Mode::Plan,
                (Mode::DontAsk, _) => Mode::DontAsk,
                (Mode::BypassPermissions, own) => own,
                (_, Mode::BypassPermissions) => Mode::AcceptEdits,
                (_, own) => own,
            };
            assert_eq!(child.effective_mode(), mode, "{above} over {below}");
            for ((tool, text), want) in OPERATIONS.iter().zip(expected(mode)) {
                let got = decide(&child, tool, &input(tool, text));
                assert_eq!(
                    got.outcome, want,
                    "{above} over {below}: {tool} {text}: {}",
                    got.reason
                );
            }
        }
    }
}

#[test]
fn what_is_denied_or_asked_above_is_so_at_every_depth_whatever_roles_say() {
    let rules = [
        "Read",
        "Edit",
        "Bash",
        "WebFetch",
        "Deploy",
        "Read(a)",
        "Edit(a)",
        "Bash(make *)",
        "Bash(ls)",
        "WebFetch(domain:example.com)",
    ];
    let everything = "+Bash , +Edit , +Read , +WebFetch , +Deploy , +Bash(make *) , +Edit(.git/**)";
    for rule in rules {
        for (sign, worst) in [("-", Outcome::Deny), ("?", Outcome::Ask)] {
            for mode in Mode::ALL {
                let parent = Arc::new(policy(Mode::BypassPermissions, &format!("{sign}{rule}")));
                let child = Arc::new(parent.child(role(Some(mode), everything)));
                let grandchild = child.child(role(Some(Mode::BypassPermissions), everything));
                for (tool, text) in OPERATIONS {
                    let input = input(tool, text);
                    let here = decide(&parent, tool, &input).outcome;
                    for below in [&*child, &grandchild] {
                        let got = decide(below, tool, &input).outcome;
                        let holds = match here {
                            Outcome::Deny => got == Outcome::Deny,
                            Outcome::Ask => got != Outcome::Allow,
                            Outcome::Allow => true,
                        };
                        assert!(holds, "{sign}{rule} over {mode}: {tool} {text} is {got:?}");
                    }
                    assert!(here == Outcome::Allow || here == worst);
                }
            }
        }
    }
}

#[test]
fn a_role_is_its_own_within_the_ceiling() {
    let parent = Arc::new(policy(
        Mode::Default,
        "+u:Bash(make *) , -u:Bash(git push *)",
    ));
    // A role narrows itself.
    let reviewer = Arc::new(parent.child(role(None, "-Edit , -Bash(make deploy *)")));
    let row =
        |policy: &Policy, tool: &str, text: &str| decide(policy, tool, &input(tool, text)).outcome;
    assert_eq!(row(&reviewer, "Edit", "a"), Outcome::Deny);
    assert_eq!(row(&reviewer, "Bash", "make test"), Outcome::Allow);
    assert_eq!(row(&reviewer, "Bash", "make deploy"), Outcome::Deny);
    // Its agents cannot widen that again, and the parent is not narrowed by it.
    let helper = reviewer.child(role(Some(Mode::BypassPermissions), "+Edit , +Bash"));
    assert_eq!(row(&helper, "Edit", "a"), Outcome::Deny);
    assert_eq!(row(&helper, "Bash", "git push"), Outcome::Deny);
    assert_eq!(row(&parent, "Edit", "a"), Outcome::Ask);
    // What one role allows itself is not allowed to its agents.
    let builder = Arc::new(parent.child(role(None, "+Bash(cargo *)")));
    assert_eq!(row(&builder, "Bash", "cargo test"), Outcome::Allow);
    assert_eq!(
        row(&builder.child(Role::default()), "Bash", "cargo test"),
        Outcome::Ask
    );
    assert_eq!(
        row(&builder.child(Role::default()), "Bash", "make"),
        Outcome::Allow
    );
}

#[test]
fn a_coordinator_without_tools_starts_workers_with_them() {
    // What a coordinator lacks is not in its set of tools; that is no rule.
    let coordinator = Arc::new(policy(Mode::Default, ""));
    let worker = coordinator.child(Role {
        sandboxed: true,
        roots: vec!["/trees/w".into()],
        ..Role::default()
    });
    assert_eq!(worker.mode, Mode::AcceptEdits);
    let row = |tool: &str, text: &str| decide(&worker, tool, &input(tool, text)).outcome;
    assert_eq!(row("Bash", "make"), Outcome::Allow);
    assert_eq!(row("Edit", "/trees/w/a"), Outcome::Allow);
    assert_eq!(row("Edit", "/p/a"), Outcome::Ask);
}

#[test]
fn a_projects_rules_hold_in_every_checkout_of_it() {
    let rules = "-Edit(/migrations/**) , -u:Edit(/x/**) , -Read(secrets/**)";
    let parent = Arc::new(policy(Mode::Default, rules));
    let worker = parent.child(Role {
        roots: vec!["/trees/w".into()],
        ..Role::default()
    });
    let row = |tool: &str, text: &str| decide(&worker, tool, &input(tool, text)).outcome;
    assert_eq!(row("Edit", "/trees/w/migrations/1.sql"), Outcome::Deny);
    assert_eq!(row("Edit", "/p/migrations/1.sql"), Outcome::Deny);
    assert_eq!(row("Edit", "/trees/w/x/a"), Outcome::Allow);
    assert_eq!(row("Read", "/trees/w/secrets/a"), Outcome::Deny);
    assert_eq!(row("Read", "/p/secrets/a"), Outcome::Deny);
}

#[test]
fn below_an_agent_that_nobody_watches_nobody_is_asked() {
    let mut parent = policy(Mode::Default, "");
    parent.headless = true;
    let parent = Arc::new(parent);
    let mut child = parent.child(Role::default());
    child.headless = false;
    let decision = decide(&child, "Bash", &input("Bash", "make"));
    assert_eq!(decision.outcome, Outcome::Deny);
    assert!(matches!(
        decision.reason,
        Reason::NobodyToAsk {
            silent: Silent::Headless,
            ..
        }
    ));
}

#[test]
fn the_scratchpad_is_written_unasked() {
    for mode in Mode::ALL {
        let mut parent = policy(mode, "-Edit(//pad/private/**)");
        parent.scratchpad = Some("/pad".into());
        let child = Arc::new(parent).child(role(Some(mode), ""));
        let outcome = |path| decide(&child, "Write", &input("Write", path)).outcome;
        let want = match mode {
            Mode::Plan => Outcome::Deny,
            _ => Outcome::Allow,
        };
        assert_eq!(outcome("/pad/notes/a.md"), want, "{mode:?}");
        assert_eq!(outcome("/pad/private/a.md"), Outcome::Deny, "{mode:?}");
        if mode != Mode::BypassPermissions {
            for path in [
                "/pad/.git/config",
                "/pad/../etc/passwd",
                "/padded/a",
                "/pad",
            ] {
                assert_ne!(outcome(path), Outcome::Allow, "{mode:?} {path}");
            }
        }
    }
}
