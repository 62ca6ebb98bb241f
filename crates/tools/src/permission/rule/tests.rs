//! Rules as text: what is read, what is refused and with which words.

use super::*;
use proptest::prelude::*;

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let rows = [
        ("", 1, "the name of a tool"),
        ("(x)", 1, "the name of a tool"),
        ("Bash(ls", 8, "`)` at the end"),
        ("Bash(ls) x", 11, "`)` at the end"),
        ("Bash()", 6, "something between the parentheses"),
        ("Bash( )", 6, "something between the parentheses"),
        ("Bash(:*)", 6, "a command before `:*`"),
        ("Bäsh", 2, "a letter"),
        ("B*", 2, "only names of MCP tools take `*`"),
        ("*", 1, "only names of MCP tools take `*`"),
        ("mcp__", 6, "the name of an MCP server"),
        ("WebFetch(example.com)", 10, "`domain:`"),
        ("WebFetch(domain:)", 10, "`domain:`"),
        (
            "WebSearch(cats)",
            11,
            "`name:value` for a member of WebSearch's input",
        ),
        ("mcp__a__b(x)", 11, "`name:value`"),
        ("Read(!x)", 6, "no `!`"),
        ("Read(a/../b)", 6, "`..` only at the start"),
        ("Read([z-a])", 6, "a pattern as in .gitignore"),
    ];
    for (text, at, expected) in rows {
        let error = Rule::parse(text).unwrap_err();
        assert_eq!(error.at, at, "{error}");
        assert!(error.expected.contains(expected), "{error}");
        assert!(error.to_string().contains(text));
    }
}

#[test]
fn parameters_can_deny_and_ask_but_not_allow() {
    for text in [
        "Agent(model:opus)",
        "Agent(isolation:worktree)",
        "Bash(run_in_background:true)",
        "Monitor(persistent:true)",
    ] {
        let rule = Rule::parse(text).unwrap();
        assert!(
            matches!(rule.specifier, Specifier::Parameter { .. }),
            "{text}"
        );
        assert!(Rule::parse_for(Kind::Deny, text).is_ok());
        assert!(Rule::parse_for(Kind::Ask, text).is_ok());
        let error = Rule::parse_for(Kind::Allow, text).unwrap_err().to_string();
        assert!(error.contains("can only deny or ask"), "{error}");
    }
    // What looks like one but is a command, a type, a skill.
    for text in [
        "Bash(timeout:*)",
        "Bash(npm run test:unit)",
        "Agent(plugin:reviewer)",
        "Skill(plugin:deploy)",
    ] {
        assert!(Rule::parse_for(Kind::Allow, text).is_ok(), "{text}");
    }
}

#[test]
fn a_star_alone_is_the_whole_tool() {
    for text in [
        "Bash",
        "Bash(*)",
        "Bash(**)",
        "Edit(*)",
        "WebFetch(domain:*)",
        "mcp__a(*)",
        "Agent(*)",
    ] {
        assert!(Rule::parse(text).unwrap().is_whole_tool(), "{text}");
    }
    assert!(!Rule::parse("Bash(a*)").unwrap().is_whole_tool());
    assert_eq!(Rule::parse("Task(x)").unwrap().tool(), "Agent");
}

#[test]
fn a_list_is_cut_at_commas_and_spaces_outside_parentheses() {
    let list = "Bash(git log *), Edit Read(a b), Bash(echo (x, y))";
    let rules = Rule::parse_list(Kind::Allow, list).unwrap();
    let texts: Vec<&str> = rules.iter().map(Rule::as_str).collect();
    assert_eq!(
        texts,
        ["Bash(git log *)", "Edit", "Read(a b)", "Bash(echo (x, y))"]
    );
    assert!(Rule::parse_list(Kind::Allow, "Edit, (x)").is_err());
    assert_eq!(Rule::parse_list(Kind::Allow, " , ").unwrap(), []);
}

/// Texts that are rules.
fn rules() -> impl Strategy<Value = String> {
    let command = "[a-z*][a-z0-9 *.:/\"'()-]{0,12}";
    let path = "(//|~/|/|./|../)?[a-z*]{1,4}(/[a-z*]{1,4}){0,3}";
    prop_oneof![
        "[A-Z][A-Za-z]{0,8}",
        command.prop_map(|text| format!("Bash({text})")),
        path.prop_map(|text| format!("Read({text})")),
        path.prop_map(|text| format!("Edit({text})")),
        path.prop_map(|text| format!("Cd({text})")),
        "(\\*\\.)?[a-z]{1,6}\\.[a-z]{2,3}".prop_map(|text| format!("WebFetch(domain:{text})")),
        "mcp__[a-z_-]{1,8}(__[a-z*]{1,8})?",
        "[a-z-]{1,8}( \\*)?".prop_map(|text| format!("Skill({text})")),
        "[A-Za-z-]{1,8}".prop_map(|text| format!("Agent({text})")),
        "[a-z]{1,8}".prop_map(|text| format!("Agent(model:{text})")),
    ]
}

proptest! {
    #[test]
    fn a_rule_given_back_is_the_same_rule(text in rules()) {
        let rule = Rule::parse(&text);
        prop_assume!(rule.is_ok() || text.contains(":*"));
        if let Ok(rule) = rule {
            let again = Rule::parse(&rule.to_string()).unwrap();
            prop_assert_eq!(&again, &rule);
            prop_assert_eq!(format!("{:?}", again.specifier), format!("{:?}", rule.specifier));
            prop_assert_eq!(rule.to_string(), text.trim());
        }
    }

    #[test]
    fn whatever_is_read_as_a_rule_is_never_a_panic(text in any::<String>(), tool in "[A-Za-z_]{1,8}") {
        for text in [text.clone(), format!("{tool}({text})"), format!("Read({text})"), format!("Bash({text})")] {
            if let Ok(rule) = Rule::parse(&text) {
                prop_assert_eq!(Rule::parse(&rule.to_string()).unwrap(), rule);
            }
            drop(Rule::parse_list(Kind::Deny, &text));
        }
    }
}
