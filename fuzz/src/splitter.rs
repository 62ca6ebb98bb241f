//! Shell commands taken apart.
//!
//! An input is one byte that chooses a mode and rules, a command, and after a NUL byte another
//! one. Nothing here knows how commands are parsed: what is seen in them shows in decisions.

use crate::calls::{FOLDER, command, policy, request, strictness, with, with_text};
use gaffer_tools::permission::{Kind, Mode, Outcome, Policy, Reason, Rule};
use serde_json::json;
use std::path::Path;

/// Lists of rules to choose from: `+` allows, `?` asks, `-` denies. None is a whole compound
/// command, which would allow what its parts are not.
const RULES: [&[&str]; 8] = [
    &[],
    &["-Bash(rm *)"],
    &["+Bash(make *)", "?Bash(git push *)"],
    &["+Bash", "-Bash(curl *)"],
    &["+Bash(npm *)", "-Read(.env)", "-Edit(src/**)"],
    &["+Edit(out/**)", "?Bash(* --force)"],
    &["-Cd(//etc)", "+Bash(git *)"],
    &["?Edit", "+Bash(cat*)", "-Bash(sh *)"],
];

/// A program that inputs do not name by chance.
const FORBIDDEN: &str = "zap";

/// Words that mean something to the shell where a command could stand, and programs that run
/// others: what stands behind them is the command, or nobody knows.
const NOT_PLAIN: [&str; 43] = [
    "ash", "bash", "builtin", "busybox", "case", "command", "coproc", "dash", "do", "doas", "done",
    "elif", "else", "env", "esac", "eval", "exec", "fi", "find", "fish", "for", "function", "if",
    "in", "ionice", "ksh", "nice", "noglob", "nohup", "select", "setsid", "sh", "stdbuf", "strace",
    "su", "sudo", "then", "time", "timeout", "until", "while", "xargs", "zsh",
];

pub(crate) fn run(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let (first, second) = text.split_once('\0').unwrap_or((&text, "ls"));
    let policy = chosen(*choice);
    if first.trim().is_empty() || second.trim().is_empty() {
        return;
    }
    reading_writes_nothing(first);
    edits_stay_in_the_folder(first);
    what_cannot_be_seen_is_not_allowed(first);
    suggestions_allow(&policy, first);
    plain_text_is_split_as_anybody_would(first);
    what_is_denied_is_found(first);
    together_is_as_strict_as_the_stricter(&policy, first, second);
}

fn chosen(choice: u8) -> Policy {
    let choice = usize::from(choice);
    let mode = Mode::ALL[choice % Mode::ALL.len()];
    let rules = RULES[choice / Mode::ALL.len() % RULES.len()];
    rules.iter().fold(policy(mode), |policy, rule| {
        let (sign, text) = rule.split_at(1);
        let kind = match sign {
            "+" => Kind::Allow,
            "?" => Kind::Ask,
            _ => Kind::Deny,
        };
        with_text(&policy, kind, text)
    })
}

/// Whether it is certain what a command runs, and what is written behind it is another command.
fn is_clear(text: &str) -> bool {
    let decision = command(&policy(Mode::Default), text);
    let is_known = !matches!(
        decision.reason,
        Reason::Unclear(_) | Reason::Protected(_) | Reason::Broken(_)
    );
    // A backslash at the end takes the line's end with it.
    is_known && !text.trim_end().ends_with('\\')
}

/// Whether other commands can stand on the same line behind it: no comment and no here-document
/// takes them in.
fn is_one_line(text: &str) -> bool {
    !text.contains(['#', '\n']) && !text.contains("<<")
}

/// What runs unasked because it only reads, writes no file that can be told from its text; and
/// such commands are the same where nothing may be written.
fn reading_writes_nothing(text: &str) {
    let reads = policy(Mode::Default);
    let outcome = command(&reads, text).outcome;
    if outcome == Outcome::Allow {
        let written = reads.writes(text, Path::new(FOLDER));
        assert!(written.is_empty(), "`{text}` reads and writes {written:?}");
    }
    let planned = command(&policy(Mode::Plan), text).outcome;
    assert_eq!(
        outcome == Outcome::Allow,
        planned == Outcome::Allow,
        "`{text}` only reads in one of the modes default and plan"
    );
}

fn edits_stay_in_the_folder(text: &str) {
    let edits = policy(Mode::AcceptEdits);
    if command(&edits, text).outcome != Outcome::Allow {
        return;
    }
    for path in edits.writes(text, Path::new(FOLDER)) {
        let is_below = path.starts_with(FOLDER) && path != Path::new(FOLDER);
        let is_odd = path.components().any(|part| part.as_os_str() == "..");
        assert!(is_below && !is_odd, "`{text}` writes {}", path.display());
    }
}

/// Characters that a terminal does not show could make another program of what a person reads.
fn what_cannot_be_seen_is_not_allowed(text: &str) {
    let is_hidden = |c: char| {
        let is_space = matches!(c, ' ' | '\t' | '\n');
        !is_space && (c.is_control() || c.is_whitespace()) || matches!(c, '\u{200b}' | '\u{202e}')
    };
    if text.contains(is_hidden) {
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
            let outcome = command(&policy(mode), text).outcome;
            assert_ne!(outcome, Outcome::Allow, "{text:?} in the mode {mode}");
        }
    }
}

/// Rules that are offered for a question answer it.
fn suggestions_allow(policy: &Policy, text: &str) {
    let input = json!({ "command": text });
    let suggested = policy.suggest(&request("Bash", &input));
    if suggested.is_empty() {
        return;
    }
    // In the mode dontAsk the question is a denial.
    assert_ne!(command(policy, text).outcome, Outcome::Allow, "`{text}`");
    let names: Vec<String> = suggested.iter().map(Rule::to_string).collect();
    let wider = suggested.into_iter().fold(policy.clone(), |policy, rule| {
        with(&policy, Kind::Allow, rule)
    });
    let outcome = command(&wider, text).outcome;
    assert_eq!(outcome, Outcome::Allow, "`{text}` with {names:?}");
}

/// In texts of letters, digits, spaces and separators anybody can tell where commands begin.
fn plain_text_is_split_as_anybody_would(text: &str) {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || " \n;&|".contains(c);
    if !text.chars().all(is_plain) || text.len() > 200 {
        return;
    }
    let segments = text.split([';', '&', '|', '\n']);
    let names: Vec<&str> = segments
        .filter_map(|segment| segment.split_whitespace().next())
        .collect();
    let may_do_anything = policy(Mode::BypassPermissions);
    for name in names.iter().filter(|name| !NOT_PLAIN.contains(name)) {
        let denying = with_text(&may_do_anything, Kind::Deny, &format!("Bash({name} *)"));
        let outcome = command(&denying, text).outcome;
        assert_eq!(outcome, Outcome::Deny, "`{name}` in `{text}`");
        let quoted = text.replace(name, &format!("'{name}'"));
        let outcome = command(&denying, &quoted).outcome;
        assert_eq!(outcome, Outcome::Deny, "`{name}` in `{quoted}`");
    }
    // `;;` and `;&` belong to `case`, which is not followed.
    let is_case = text.contains(";;") || text.contains(";&");
    if is_case || names.iter().any(|name| NOT_PLAIN.contains(name)) {
        return;
    }
    let allowing = names.iter().fold(policy(Mode::Default), |policy, name| {
        with_text(&policy, Kind::Allow, &format!("Bash({name} *)"))
    });
    let decision = command(&allowing, text);
    let is_allowed = decision.outcome == Outcome::Allow;
    assert!(is_allowed, "`{text}`: {}", decision.reason);
}

/// A denied command is seen before anything, and behind and inside of what is clear.
fn what_is_denied_is_found(text: &str) {
    let rule = format!("Bash({FORBIDDEN} *)");
    let denying = with_text(&policy(Mode::BypassPermissions), Kind::Deny, &rule);
    let mut places = vec![
        format!("{FORBIDDEN} x\n{text}"),
        format!("{FORBIDDEN}; {text}"),
        format!("(/usr/bin/{FORBIDDEN})\n{text}"),
        format!("x=$(sudo {FORBIDDEN})\n{text}"),
    ];
    if is_clear(text) {
        places.extend([
            format!("{text}\n{FORBIDDEN} x"),
            format!("(\n{text}\n{FORBIDDEN} x)"),
            format!("echo \"$(\n{text}\n'{FORBIDDEN}' x)\""),
        ]);
        // What begins like an option is one to a shell, and an unknown one ends it.
        if !text.contains('\'') && !text.starts_with('-') {
            places.push(format!("sh -c '{text}\n{FORBIDDEN} x'"));
        }
        if is_one_line(text) {
            places.extend([
                format!("{text} && {FORBIDDEN} x"),
                format!("{text} | {FORBIDDEN}"),
                format!("if {text}; then {FORBIDDEN}; fi"),
            ]);
        }
    }
    for place in places {
        let outcome = command(&denying, &place).outcome;
        assert_eq!(outcome, Outcome::Deny, "`{place}`");
    }
}

fn together_is_as_strict_as_the_stricter(policy: &Policy, first: &str, second: &str) {
    if !is_clear(first) {
        return;
    }
    let mut joins = vec!["\n"];
    let begins_plainly = second.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_one_line(first) && begins_plainly {
        joins.extend([" ; ", " && ", " || ", " | ", " & "]);
    }
    let alone = [first, second].map(|text| strictness(command(policy, text).outcome));
    for join in joins {
        let both = format!("{first}{join}{second}");
        let decision = command(policy, &both);
        assert!(
            strictness(decision.outcome) >= alone[0].max(alone[1]),
            "`{both}` is freer than its parts ({alone:?}): {}",
            decision.reason
        );
    }
}
