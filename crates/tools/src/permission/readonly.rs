//! Commands that only read and so run without a question.

mod git;
pub(super) mod sed;

use super::command::{Level, Word, is_name, is_private_variable, system_name};

/// Commands that write nothing and run nothing, whatever their arguments.
const HARMLESS: [&str; 59] = [
    ":",
    "arch",
    "b2sum",
    "basename",
    "break",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "continue",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "exit",
    "expand",
    "false",
    "fold",
    "free",
    "grep",
    "groups",
    "head",
    "hexdump",
    "id",
    "join",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printenv",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "tr",
    "true",
    "type",
    "uname",
    "uptime",
    "wc",
    "which",
    "whoami",
];

/// Commands that only read unless they are given one of these options: letters, then long ones.
const HARMLESS_BUT: [(&str, &str, &[&str]); 5] = [
    ("file", "C", &["compile"]),
    (
        "rg",
        "z",
        &["pre", "pre-glob", "hostname-bin", "search-zip"],
    ),
    ("sort", "o", &["output", "compress-program"]),
    ("tree", "oR", &["output"]),
    ("uniq", "", &[]),
];

/// Whether a command only reads. `at_home` says that every folder it could run in is one of the
/// agent's own: git runs what a foreign repository's settings name.
pub(super) fn only_reads(level: Level<'_>, at_home: bool) -> bool {
    let Some((name, rest)) = level.words.split_first() else {
        return false;
    };
    if !name.is_plain() {
        return false;
    }
    let name = system_name(&name.text);
    if HARMLESS.contains(&name) {
        return true;
    }
    // Its first argument can set a variable; the others are text.
    if name == "printf" {
        let format = rest.first();
        return format.is_some_and(|word| word.is_plain() && !word.text.starts_with("-v"));
    }
    // From here on arguments matter, so they must be known.
    if level.more || !rest.iter().all(|word| word.is_plain() || word.is_operand()) {
        return false;
    }
    if let Some((_, letters, longs)) = HARMLESS_BUT.iter().find(|row| row.0 == name) {
        let operands = rest.iter().filter(|word| word.is_operand()).count();
        // uniq writes to its second operand.
        let is_over = name == "uniq" && (operands > 1 || rest.iter().any(|word| word.globs));
        return !is_over && !rest.iter().any(|word| has_option(word, letters, longs));
    }
    match name {
        "find" => !rest.iter().any(|word| is_find_action(&word.text)),
        "date" => is_date(rest),
        "env" => rest.is_empty(),
        "test" | "[" => !rest.iter().any(|word| matches!(&*word.text, "-v" | "-R")),
        "command" => matches!(rest, [option, _] if matches!(&*option.text, "-v" | "-V")),
        "read" => rest
            .iter()
            .all(|word| word.raw == "-r" || is_name(&word.raw) && is_private_variable(&word.raw)),
        "sed" => sed::parse(rest).is_some_and(|sed| !sed.in_place),
        "git" => at_home && git::only_reads(rest),
        _ => false,
    }
}

/// Whether a word is one of these options, also in a cluster of letters or cut short.
fn has_option(word: &Word, letters: &str, longs: &[&str]) -> bool {
    let Some(option) = word.text.strip_prefix('-') else {
        return false;
    };
    match option.strip_prefix('-') {
        None => option.contains(|c| letters.contains(c)),
        Some("") => false,
        Some(long) => {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            longs.iter().any(|long| long.starts_with(name))
        }
    }
}

fn is_find_action(text: &str) -> bool {
    let starts = ["-exec", "-ok", "-fprint", "-fls", "-delete"];
    starts.iter().any(|start| text.starts_with(start))
}

/// A date that is shown and not set: options that are known, and a format.
fn is_date(words: &[Word]) -> bool {
    let mut words = words.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        match word {
            "-d" | "--date" | "-r" | "--reference" => drop(words.next()),
            "-u" | "--utc" | "-R" | "-I" | "--rfc-email" => {}
            _ if word.starts_with('+') || word.starts_with("-I") => {}
            _ if ["--date=", "--reference=", "--iso-8601", "--rfc-3339"]
                .iter()
                .any(|start| word.starts_with(start)) => {}
            _ => return false,
        }
    }
    true
}
