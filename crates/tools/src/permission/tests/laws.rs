//! What holds for any call and any rules, and the rules that are suggested.

use super::*;
use proptest::prelude::*;

fn request<'a>(tool: &'a str, input: &'a Value) -> Request<'a> {
    Request {
        tool,
        input,
        access: Access::Writes,
        cwd: Path::new("/p"),
        paths: &[],
    }
}

fn suggested(policy: &Policy, tool: &str, text: &str) -> Vec<String> {
    let input = input(tool, text);
    let rules = policy.suggest(&request(tool, &input));
    rules.iter().map(ToString::to_string).collect()
}

#[test]
fn suggestions_are_as_wide_as_is_sensible() {
    let default = policy(Mode::Default, "");
    let rows: &[(&str, &str, &[&str])] = &[
        ("Bash", "npm run build --x", &["Bash(npm run build *)"]),
        ("Bash", "cargo test -p a", &["Bash(cargo test *)"]),
        ("Bash", "cargo run", &["Bash(cargo run)"]),
        ("Bash", "timeout 5 git push origin x", &["Bash(git push *)"]),
        ("Bash", "python a.py", &["Bash(python a.py)"]),
        ("Bash", "rm *.o", &["Bash(rm \\*.o)"]),
        ("Bash", "X=1 npm test", &["Bash(X=1 npm test)"]),
        (
            "Bash",
            "ls && make a && make a && make b | head",
            &["Bash(make a *)", "Bash(make b *)"],
        ),
        (
            "Bash",
            "make a > out/log",
            &["Bash(make a *)", "Edit(./out/log)"],
        ),
        (
            "Bash",
            "a; b; c; d; e",
            &["Bash(a)", "Bash(b)", "Bash(c)", "Bash(d)", "Bash(e)"],
        ),
        ("Bash", "a; b; c; d; e; f", &[]),
        ("Bash", "eval x", &[]),
        ("Bash", "ls", &[]),
        (
            "Bash",
            "rm .git/index.lock",
            &["Bash(rm .git/index.lock)", "Edit(./.git/index.lock)"],
        ),
        ("Edit", "src/a/b.rs", &["Edit(./src/a/**)"]),
        ("Edit", "a.rs", &["Edit(./a.rs)"]),
        (
            "Edit",
            "/elsewhere/[a].rs",
            &["Edit(//elsewhere/\\[a\\].rs)"],
        ),
        ("Edit", ".vscode/a.json", &["Edit(./.vscode/a.json)"]),
        ("mcp__git__push", "{}", &["mcp__git__push"]),
        ("Deploy", "{}", &["Deploy"]),
        ("Bash", "{}", &[]),
    ];
    for (tool, text, want) in rows {
        assert_eq!(suggested(&default, tool, text), *want, "{tool} {text}");
    }
    assert!(suggested(&policy(Mode::Default, "-Bash(make *)"), "Bash", "make a").is_empty());
    assert!(suggested(&policy(Mode::Default, "?Bash(make *)"), "Bash", "make a").is_empty());
    assert!(suggested(&policy(Mode::Plan, ""), "Edit", "a").is_empty());
    let asks = policy(Mode::Default, "+Bash(make *)");
    assert_eq!(
        suggested(&asks, "Bash", "make a && cargo build"),
        ["Bash(cargo build *)"]
    );
}

fn commands() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "rm",
        "make",
        "cat",
        "git",
        "status",
        "sudo",
        "timeout 5",
        "-rf",
        "a",
        "/x",
        ".git",
        "$x",
        "*",
        " ",
        " ",
        " ",
        ";",
        "&&",
        "|",
        "\n",
        "(",
        ")",
        "$(",
        "`",
        "'",
        "\"",
        ">",
        "<",
        "{",
        "}",
        "X=1",
        "#",
    ]);
    prop::collection::vec(piece, 1..16).prop_map(|pieces| pieces.concat())
}

fn rules() -> impl Strategy<Value = String> {
    let rule = prop::sample::select(vec![
        "Bash(ls *)",
        "Bash(make *)",
        "Bash(rm *)",
        "Bash(git *)",
        "Bash(* a)",
        "Bash(cat*)",
        "Bash",
        "Edit(/x)",
        "Edit(a)",
        "Edit",
        "Read(a)",
        "Cd(//)",
        "Bash(sudo *)",
    ]);
    let sign = prop::sample::select(vec!["+", "+", "?", "-"]);
    let rule = (sign, rule).prop_map(|(sign, rule)| format!("{sign}{rule}"));
    prop::collection::vec(rule, 0..5).prop_map(|rules| rules.join(" , "))
}

fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(Mode::ALL.to_vec())
}

/// From the freest to the strictest.
fn strictness(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Allow => 0,
        Outcome::Ask => 1,
        Outcome::Deny => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_call_makes_it_panic(tool in "Bash|Edit|Read|Glob|WebFetch|Skill|Agent|mcp__a__b", text in any::<String>(), mode in modes()) {
        let policy = policy(mode, "+Bash(a *) , ?Edit(a) , -Read(/b/**)");
        for key in ["command", "file_path", "pattern", "url", "skill", "subagent_type"] {
            let input = json!({ key: text });
            drop(decide(&policy, &tool, &input).reason.to_string());
            drop(policy.suggest(&request(&tool, &input)));
        }
    }

    #[test]
    fn a_command_put_after_another_never_makes_it_freer(
        command in commands(), other in "(ls|make|rm|cat)( (-rf|a|/x|\\$x|\\*|\\.git))?( (;|&&|\\|) ls)?",
        rules in rules(), mode in modes(),
    ) {
        let policy = policy(mode, &rules);
        let alone = decide(&policy, "Bash", &json!({ "command": command }));
        let both = format!("{other}\n{command}");
        let both = decide(&policy, "Bash", &json!({ "command": both }));
        prop_assume!(!matches!(alone.reason, Reason::Broken(_)));
        prop_assert!(strictness(both.outcome) >= strictness(alone.outcome), "{} / {}", alone.reason, both.reason);
    }

    #[test]
    fn a_deny_rule_more_never_makes_anything_freer(
        command in commands(), rules in rules(), mode in modes(), more in "Bash\\((rm|ls|make) \\*\\)",
    ) {
        let input = json!({ "command": command });
        let before = decide(&policy(mode, &rules), "Bash", &input).outcome;
        let after = decide(&policy(mode, &format!("{rules} , -{more}")), "Bash", &input).outcome;
        prop_assert!(strictness(after) >= strictness(before));
    }

    #[test]
    fn no_child_may_do_what_is_denied_above(
        command in commands(), above in rules(), below in rules(), modes in (modes(), modes()),
    ) {
        let input = json!({ "command": command });
        let rules = policy(modes.1, &below);
        let parent = Arc::new(policy(modes.0, &above));
        let role = Role { mode: Some(modes.1), allow: rules.allow, ..Role::default() };
        let child = parent.child(role);
        let above = decide(&parent, "Bash", &input);
        if matches!(above.reason, Reason::Rule { kind: Kind::Deny, .. }) {
            prop_assert_eq!(decide(&child, "Bash", &input).outcome, Outcome::Deny);
        }
        if matches!(above.reason, Reason::Rule { kind: Kind::Ask, .. }) {
            prop_assert_ne!(decide(&child, "Bash", &input).outcome, Outcome::Allow);
        }
    }

    #[test]
    fn what_is_suggested_allows(command in commands(), rules in rules()) {
        let mut policy = policy(Mode::Default, &rules);
        let input = json!({ "command": command });
        let suggested = policy.suggest(&request("Bash", &input));
        prop_assert!(suggested.len() <= 5);
        if !suggested.is_empty() {
            prop_assert_eq!(decide(&policy, "Bash", &input).outcome, Outcome::Ask);
            let source = source(Level::Local);
            policy.allow.extend(suggested.into_iter().map(|rule| Ruled { rule, source: source.clone() }));
            prop_assert_eq!(decide(&policy, "Bash", &input).outcome, Outcome::Allow);
        }
    }
}
