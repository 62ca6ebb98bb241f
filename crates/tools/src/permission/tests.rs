//! Decisions: the table, the matrix of agents above and below, and what must hold for any call.

mod crew;
mod laws;

use super::*;
use serde_json::{Value, json};

const TABLE: &str = include_str!("table.txt");

pub(super) fn source(level: Level) -> Source {
    let folder = match level {
        Level::User => "/h/.claude",
        _ => "/p",
    };
    Source::new(level, folder)
}

pub(super) fn ruled(kind: Kind, level: Level, text: &str) -> Ruled {
    Ruled {
        rule: Rule::parse_for(kind, text).unwrap(),
        source: source(level),
    }
}

/// A policy for an agent in /p. Rules as in the table.
pub(super) fn policy(mode: Mode, rules: &str) -> Policy {
    let mut policy = Policy::new(mode, vec!["/p".into()], "/h".into());
    for rule in rules
        .split(" , ")
        .map(str::trim)
        .filter(|rule| !rule.is_empty())
    {
        let (sign, rest) = rule.split_at(1);
        let (level, text) = match rest.strip_prefix("u:") {
            Some(text) => (Level::User, text),
            None => (Level::Project, rest),
        };
        let (kind, list) = match sign {
            "+" => (Kind::Allow, &mut policy.allow),
            "?" => (Kind::Ask, &mut policy.ask),
            "-" => (Kind::Deny, &mut policy.deny),
            _ => panic!("{rule}"),
        };
        list.push(ruled(kind, level, text));
    }
    policy
}

/// A call's input, from JSON or from its main member.
pub(super) fn input(tool: &str, text: &str) -> Value {
    if text.starts_with('{') && !text.starts_with("{npm") || text.starts_with('[') {
        return serde_json::from_str(text).unwrap();
    }
    let key = match tool {
        "Bash" => "command",
        "NotebookEdit" => "notebook_path",
        "WebFetch" => "url",
        "Skill" => "skill",
        "Agent" | "Task" => "subagent_type",
        _ => "file_path",
    };
    json!({ key: text.replace("\\n", "\n") })
}

pub(super) fn decide(policy: &Policy, tool: &str, input: &Value) -> Decision {
    let reads = ["Read", "Grep", "Glob", "WebFetch", "Skill"];
    let access = match reads.contains(&tool) || tool.starts_with("get") {
        true => Access::Reads,
        false => Access::Writes,
    };
    policy.decide(&Request {
        tool,
        input,
        access,
        cwd: Path::new("/p"),
        paths: &[],
    })
}

#[test]
fn the_table_holds() {
    let mut rows = 0;
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(TABLE.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.splitn(5, " ~ ").map(str::trim).collect();
        let [outcome, mode, rules, tool, text] = columns[..] else {
            panic!("line {number} has not five columns: {line}");
        };
        let mut mode = mode.split_whitespace();
        let mut policy = policy(mode.next().unwrap().parse().unwrap(), rules);
        for flag in mode {
            match flag {
                "sandboxed" => policy.sandboxed = true,
                "headless" => policy.headless = true,
                "leaving" => policy.may_leave = true,
                _ => panic!("line {number}: {flag}"),
            }
        }
        let outcome = match outcome {
            "allow" => Outcome::Allow,
            "ask" => Outcome::Ask,
            "deny" => Outcome::Deny,
            _ => panic!("line {number}: {outcome}"),
        };
        let decision = decide(&policy, tool, &input(tool, text));
        if decision.outcome != outcome {
            wrong.push(format!(
                "{number}: {line}\n    {:?}: {}",
                decision.outcome, decision.reason
            ));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 160, "{rows}");
}

/// mode ~ rules ~ tool ~ input ~ reason
const REASONS: &str = "
default ~ -Bash(rm *) ~ Bash ~ ls && rm x ~ The deny rule `Bash(rm *)` from the project's settings matches `rm x`.
default ~ +u:Bash(make *) ~ Bash ~ make a ~ The allow rule `Bash(make *)` from the user's settings matches `make a`.
default ~ -Read(.env) ~ Read ~ .env ~ The deny rule `Read(.env)` from the project's settings matches `/p/.env`.
default ~  ~ Bash ~ ls; make\\nx ~ No rule allows `make`, and the mode default asks.
default ~  ~ Bash ~ ls > a ~ No rule allows `> /p/a`, and the mode default asks.
dontAsk ~  ~ Edit ~ a ~ No rule allows `a`, and the mode dontAsk denies what would be asked.
acceptEdits ~  ~ Edit ~ .git/x ~ Writing to /p/.git/x is never approved unasked.
acceptEdits ~  ~ Edit ~ a ~ The mode acceptEdits allows it.
plan ~  ~ Edit ~ a ~ Nothing is written in the mode plan.
default ~  ~ Bash ~ eval x ~ It is not certain what would run: it uses eval or exec.
default ~  ~ Bash ~ {} ~ The call cannot be judged: Bash: its input has no `command`.
default ~  ~ Read ~ a ~ It only reads.
";

#[test]
fn reasons_are_sentences_that_say_which_rule_or_what_else() {
    for line in REASONS.lines().filter(|line| !line.is_empty()) {
        let columns: Vec<&str> = line.splitn(5, " ~ ").map(str::trim).collect();
        let [mode, rules, tool, text, want] = columns[..] else {
            panic!("{line}");
        };
        let policy = policy(mode.parse().unwrap(), rules);
        let decision = decide(&policy, tool, &input(tool, text));
        assert_eq!(decision.reason.to_string(), want);
    }
}

#[test]
fn what_is_denied_can_be_listed() {
    let mut policy = policy(Mode::Default, "");
    policy.headless = true;
    let input = json!({ "command": format!("make\n{}", "x".repeat(300)) });
    let request = Request {
        tool: "Bash",
        input: &input,
        access: Access::Writes,
        cwd: Path::new("/p"),
        paths: &[],
    };
    let decision = policy.decide(&request);
    assert_eq!(decision.outcome, Outcome::Deny);
    let denial = Denial::new(&request, &decision.reason);
    assert_eq!(denial.tool, "Bash");
    assert!(denial.input.starts_with("make xxx") && denial.input.chars().count() == 201);
    let want = "No rule allows `make`, and nobody can be asked here.";
    assert_eq!(denial.reason, want);
    assert!(
        serde_json::to_string(&denial)
            .unwrap()
            .starts_with(r#"{"tool":"Bash","#)
    );
}

#[test]
fn paths_that_the_caller_resolved_count_more_than_their_text() {
    let policy = policy(Mode::AcceptEdits, "-Edit(/secret/**)");
    let decide = |tool: &str, text: &str, paths: &[&str]| {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let request = Request {
            tool,
            input: &input(tool, text),
            access: Access::Writes,
            cwd: Path::new("/p"),
            paths: &paths,
        };
        policy.decide(&request).outcome
    };
    assert_eq!(decide("Edit", "link/a", &[]), Outcome::Allow);
    assert_eq!(decide("Edit", "link/a", &["/elsewhere/a"]), Outcome::Ask);
    assert_eq!(decide("Edit", "link/a", &["/p/secret/a"]), Outcome::Deny);
    assert_eq!(decide("Edit", "link/a", &["/p/.git/a"]), Outcome::Ask);
    assert_eq!(decide("Edit", "/elsewhere/a", &["/p/a"]), Outcome::Allow);
    assert_eq!(decide("Edit", "secret/a", &["/p/a"]), Outcome::Deny);
    assert_eq!(
        policy.writes("rm a; ls > b; cat c", Path::new("/p")),
        ["/p/a", "/p/b"].map(PathBuf::from)
    );
    assert_eq!(decide("Bash", "rm link/a", &["/p/link/a"]), Outcome::Allow);
    assert_eq!(decide("Bash", "rm link/a", &["/elsewhere/a"]), Outcome::Ask);
    assert_eq!(
        decide("Bash", "ls > link/a", &["/elsewhere/a"]),
        Outcome::Ask
    );
    assert_eq!(
        decide("Bash", "ls > link/a", &["/p/secret/a"]),
        Outcome::Deny
    );
    assert_eq!(decide("Bash", "ls > link/a", &["/p/.git/a"]), Outcome::Ask);
}

#[test]
fn a_relative_rule_that_forbids_holds_wherever_the_agent_has_gone() {
    let policy = policy(Mode::AcceptEdits, "-Read(secrets/**) , +Edit(out/**)");
    let decide = |tool: &str, text: &str| {
        let request = Request {
            tool,
            input: &input(tool, text),
            access: Access::Reads,
            cwd: Path::new("/p/sub"),
            paths: &[],
        };
        policy.decide(&request).outcome
    };
    assert_eq!(decide("Read", "../secrets/a"), Outcome::Deny);
    assert_eq!(decide("Read", "secrets/a"), Outcome::Deny);
    assert_eq!(decide("Read", "/elsewhere/secrets/a"), Outcome::Allow);
}

#[test]
fn whole_tools_are_removed_and_single_files_hidden() {
    let policy = policy(
        Mode::Default,
        "-WebFetch , -mcp__git , -Edit , -Bash(rm *) , -Read(.env)",
    );
    for tool in [
        "WebFetch",
        "mcp__git__push",
        "Write",
        "Edit",
        "NotebookEdit",
    ] {
        assert!(policy.removes(tool).is_some(), "{tool}");
    }
    for tool in ["Bash", "Read", "mcp__github__push"] {
        assert!(policy.removes(tool).is_none(), "{tool}");
    }
    let cwd = Path::new("/p");
    assert!(policy.hides(Path::new("/p/a/.env"), cwd));
    assert!(!policy.hides(Path::new("/p/a/env"), cwd));
}

#[test]
fn a_file_is_hidden_exactly_where_reading_it_is_denied() {
    let rules = "-Read(secrets/**) , -Read(*.pem) , -Read(/top) , -u:Read(~/keys/) , -Read(//etc/x) , -Edit(a)";
    let above = Arc::new(policy(Mode::Default, rules));
    let below = above.child(Role {
        deny: vec![ruled(Kind::Deny, Level::Role, "Read(own)")],
        ..Role::default()
    });
    let cwd = Path::new("/p/sub");
    let mut hidden = 0;
    for path in [
        "/p/a",
        "/p/own",
        "/p/x.pem",
        "/p/sub/secrets/a/b",
        "/p/secrets/a",
        "/p/other/secrets/a",
        "/p/top",
        "/p/sub/top",
        "/h/keys/a",
        "/p/keys/a",
        "/etc/x",
        "/etc/y",
        "/q/secrets/a",
    ] {
        for policy in [&*above, &below] {
            let input = json!({ "file_path": path });
            let request = Request {
                tool: "Read",
                input: &input,
                access: Access::Reads,
                cwd,
                paths: &[],
            };
            let is_denied = policy.decide(&request).outcome == Outcome::Deny;
            assert_eq!(policy.hides(Path::new(path), cwd), is_denied, "{path}");
            hidden += usize::from(is_denied);
        }
    }
    assert_eq!(hidden, 13);
    // Where no rule speaks of reading, nothing is asked.
    let free = policy(Mode::Default, "-Edit(*) , -Bash(rm *) , ?Read(a)");
    assert!(free.hiding("Grep", cwd).is_none());
}
