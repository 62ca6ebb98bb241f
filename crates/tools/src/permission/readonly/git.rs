//! Git commands that only read.

use super::super::command::Word;
use super::has_option;

/// Subcommands that only read, with any arguments but those in [`REFUSED`].
const READS: [&str; 24] = [
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];

/// Options of these that write a file or run a program.
const REFUSED: [&str; 8] = [
    "output",
    "ext-diff",
    "textconv",
    "filters",
    "open-files-in-pager",
    "show-signature",
    "exec",
    "exec-path",
];

/// Options of `branch` and `tag` that list, and so let names be patterns.
const LISTS: [&str; 9] = [
    "-l",
    "--list",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "--sort",
    "--format",
];

/// Options of `branch` and `tag` that change how a list looks.
const LOOKS: [&str; 12] = [
    "-a",
    "-r",
    "-v",
    "-vv",
    "--all",
    "--remotes",
    "--verbose",
    "--show-current",
    "--color",
    "--no-color",
    "--column",
    "--ignore-case",
];

/// Whether git's arguments make it read and nothing else.
pub(super) fn only_reads(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    // Of git's own options only those that quieten it: the others name settings, folders or
    // programs.
    let own = texts
        .iter()
        .take_while(|text| matches!(**text, "--no-pager" | "-P" | "--no-optional-locks"))
        .count();
    let Some((subcommand, rest)) = texts.get(own..).unwrap_or_default().split_first() else {
        return false;
    };
    let words = words.get(own + 1..).unwrap_or_default();
    if words.iter().any(|word| has_option(word, "", &REFUSED)) {
        return false;
    }
    match *subcommand {
        "--version" => rest.is_empty(),
        "grep" => !words.iter().any(|word| has_option(word, "O", &[])),
        "branch" | "tag" => lists(rest),
        "remote" => matches!(rest, [] | ["-v" | "--verbose"] | ["get-url", _]),
        "stash" => matches!(rest, ["list" | "show", ..]),
        "reflog" => matches!(rest, [] | ["show", ..]),
        "worktree" => matches!(rest, ["list", ..]),
        "config" => matches!(
            rest,
            ["--list" | "-l" | "list"] | ["--get" | "--get-all" | "--get-regexp" | "get", _]
        ),
        subcommand => READS.contains(&subcommand),
    }
}

/// `branch` and `tag` list when they are told to or have nothing to make.
fn lists(arguments: &[&str]) -> bool {
    let name = |text: &str| {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        name.to_owned()
    };
    let is_list = arguments.iter().any(|text| LISTS.contains(&&*name(text)));
    arguments.iter().all(|text| {
        let option = name(text);
        let is_known = LISTS.contains(&&*option) || LOOKS.contains(&&*option);
        let is_lines = text
            .strip_prefix("-n")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        is_known || is_lines || is_list && !text.starts_with('-')
    })
}
