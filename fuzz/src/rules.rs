//! Rules read from text and held against calls.
//!
//! An input is one byte that chooses a tool, the text of a rule, and after a NUL byte what the
//! tool is called with.

use crate::calls::{decide, policy, strictness, with};
use gaffer_tools::permission::{Decision, Kind, Mode, Outcome, Policy, Reason, Rule};
use serde_json::{Value, json};

/// Tools, and which member of their input is what rules speak of.
const TOOLS: [(&str, &str); 13] = [
    ("Bash", "command"),
    ("Read", "file_path"),
    ("Edit", "file_path"),
    ("Write", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("Glob", "pattern"),
    ("Grep", "path"),
    ("WebFetch", "url"),
    ("Skill", "skill"),
    ("Agent", "subagent_type"),
    ("Task", "model"),
    ("mcp__git__push", "branch"),
    ("Deploy", "target"),
];

pub(crate) fn run(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let (text, call) = text.split_once('\0').unwrap_or((&text, "a"));
    let rule = match Rule::parse(text) {
        Ok(rule) => rule,
        Err(error) => {
            assert_eq!(error.text, text.trim());
            let places = 1..=error.text.chars().count() + 1;
            assert!(places.contains(&error.at), "{error}");
            assert!(!error.expected.is_empty(), "{error}");
            for kind in [Kind::Deny, Kind::Ask, Kind::Allow] {
                assert_eq!(Rule::parse_for(kind, text).err().as_ref(), Some(&error));
            }
            return;
        }
    };
    reads_as_what_it_is_shown_as(&rule, text);
    lists_hold_what_was_put_in(&rule);
    let (tool, key) = TOOLS[usize::from(*choice) % TOOLS.len()];
    let input = json!({ key: call });
    for mode in Mode::ALL {
        lists_differ_as_they_should(&policy(mode), &rule, tool, &input);
    }
    a_whole_tool_is_all_of_it(&rule, tool, &input);
}

fn reads_as_what_it_is_shown_as(rule: &Rule, text: &str) {
    let shown = rule.to_string();
    assert_eq!(shown, text.trim());
    match shown.parse::<Rule>() {
        Ok(again) => {
            assert_eq!(&again, rule);
            assert_eq!(again.tool(), rule.tool());
            assert_eq!(again.is_whole_tool(), rule.is_whole_tool());
        }
        Err(error) => panic!("shown as `{shown}`: {error}"),
    }
    for kind in [Kind::Deny, Kind::Ask] {
        assert_eq!(Rule::parse_for(kind, text).as_ref(), Ok(rule), "{kind}");
    }
}

fn lists_hold_what_was_put_in(rule: &Rule) {
    // On a command line parentheses hold a rule together; one with a closing one too many in the
    // middle can only stand in a file.
    let mut depth = 0_usize;
    for c in rule.as_str().chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && (c == ',' || c.is_whitespace()) => return,
            _ => {}
        }
    }
    if depth > 0 {
        return;
    }
    for between in [",", " ", ", ", "\n"] {
        let text = format!("{rule}{between}Read(a b){between}{rule}");
        let list: Vec<String> = match Rule::parse_list(Kind::Deny, &text) {
            Ok(list) => list.iter().map(Rule::to_string).collect(),
            Err(error) => panic!("`{text}`: {error}"),
        };
        assert_eq!(list, [rule.as_str(), "Read(a b)", rule.as_str()]);
    }
}

/// Denying is as wide as asking, asking as wide as allowing, and no rule works backwards.
fn lists_differ_as_they_should(without: &Policy, rule: &Rule, tool: &str, input: &Value) {
    let with_it = |kind| decide(&with(without, kind, rule.clone()), tool, input);
    let before = decide(without, tool, input);
    let (denied, asked) = (with_it(Kind::Deny), with_it(Kind::Ask));
    let mode = without.mode;
    let at_least = |after: &Decision, than: &Decision, what: &str| {
        let holds = strictness(after.outcome) >= strictness(than.outcome);
        assert!(holds, "{mode}, `{rule}` for {tool} {input}: {what}");
    };
    at_least(&denied, &asked, "asking is stricter than denying");
    at_least(&asked, &before, "asking is freer than nothing");
    // In the mode plan a denial comes before any question, so only the others show it.
    if mode != Mode::Plan {
        let (denies, asks) = (is_ruled(&denied, Kind::Deny), is_ruled(&asked, Kind::Ask));
        assert_eq!(denies, asks, "`{rule}` for {tool} {input}");
    }
    let Ok(rule) = Rule::parse_for(Kind::Allow, rule.as_str()) else {
        return;
    };
    let allowed = decide(&with(without, Kind::Allow, rule.clone()), tool, input);
    at_least(&before, &allowed, "allowing is stricter than nothing");
    if is_ruled(&allowed, Kind::Allow) {
        let outcome = denied.outcome;
        assert_eq!(
            outcome,
            Outcome::Deny,
            "`{rule}` allows and does not deny {tool} {input}"
        );
    }
}

/// Whether a rule of a kind was the reason.
fn is_ruled(decision: &Decision, kind: Kind) -> bool {
    let reason = match &decision.reason {
        Reason::NobodyToAsk { why, .. } => why,
        reason => reason,
    };
    matches!(reason, Reason::Rule { kind: found, .. } if *found == kind)
}

fn a_whole_tool_is_all_of_it(rule: &Rule, tool: &str, input: &Value) {
    let denying = with(&policy(Mode::BypassPermissions), Kind::Deny, rule.clone());
    if let Some(found) = denying.removes(tool) {
        assert_eq!(&found.rule, rule);
        assert!(rule.is_whole_tool(), "`{rule}`");
        let outcome = decide(&denying, tool, input).outcome;
        assert_eq!(outcome, Outcome::Deny, "`{rule}` for {tool} {input}");
    }
    if rule.is_whole_tool() && rule.tool() == tool {
        assert!(denying.removes(tool).is_some(), "`{rule}`");
    }
}
