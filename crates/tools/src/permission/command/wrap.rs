//! Programs that run another program which stands in their arguments.

use super::word::{Level, Word};

/// How many wrappers around one command are looked through.
pub(super) const MOST_LEVELS: usize = 8;

/// How a wrapper's arguments end and its command begins.
struct Wrapper {
    name: &'static str,
    /// Letters of options that stand alone.
    flags: &'static str,
    /// Letters of options that take a value.
    takes: &'static str,
    /// Long options that stand alone.
    longs: &'static [&'static str],
    /// Long options that take a value.
    long_takes: &'static [&'static str],
    /// Arguments before the command.
    operands: usize,
    strict: Strict,
}

/// Whether an allow rule for what it runs covers it.
#[derive(PartialEq, Eq)]
enum Strict {
    /// It changes nothing about what it runs.
    Yes,
    /// Only without options.
    Bare,
    /// No: deny and ask rules alone look through it.
    No,
}

const PLAIN: Wrapper = Wrapper {
    name: "",
    flags: "",
    takes: "",
    longs: &[],
    long_takes: &[],
    operands: 0,
    strict: Strict::No,
};

const WRAPPERS: [Wrapper; 18] = [
    Wrapper {
        name: "timeout",
        flags: "fpv",
        takes: "ks",
        longs: &["foreground", "preserve-status", "verbose"],
        long_takes: &["kill-after", "signal"],
        operands: 1,
        strict: Strict::Yes,
    },
    Wrapper {
        name: "time",
        flags: "p",
        takes: "fo",
        strict: Strict::Bare,
        ..PLAIN
    },
    Wrapper {
        name: "nice",
        flags: "0123456789",
        takes: "n",
        long_takes: &["adjustment"],
        strict: Strict::Yes,
        ..PLAIN
    },
    Wrapper {
        name: "nohup",
        strict: Strict::Bare,
        ..PLAIN
    },
    Wrapper {
        name: "stdbuf",
        takes: "ioe",
        long_takes: &["input", "output", "error"],
        strict: Strict::Yes,
        ..PLAIN
    },
    Wrapper {
        name: "command",
        flags: "pvV",
        strict: Strict::Bare,
        ..PLAIN
    },
    Wrapper {
        name: "builtin",
        strict: Strict::Bare,
        ..PLAIN
    },
    Wrapper {
        name: "noglob",
        strict: Strict::Bare,
        ..PLAIN
    },
    Wrapper {
        name: "xargs",
        takes: "adEIJLnPRs",
        long_takes: &[
            "arg-file",
            "delimiter",
            "max-args",
            "max-chars",
            "max-lines",
            "max-procs",
            "process-slot-var",
            "replace",
        ],
        strict: Strict::Bare,
        ..PLAIN
    },
    Wrapper {
        name: "env",
        takes: "uC",
        long_takes: &["unset", "chdir"],
        ..PLAIN
    },
    Wrapper {
        name: "sudo",
        takes: "CDRTUghprtu",
        long_takes: &["user", "group", "host", "chdir", "prompt"],
        ..PLAIN
    },
    Wrapper {
        name: "doas",
        takes: "Cu",
        ..PLAIN
    },
    Wrapper {
        name: "exec",
        takes: "a",
        ..PLAIN
    },
    Wrapper {
        name: "setsid",
        ..PLAIN
    },
    Wrapper {
        name: "ionice",
        takes: "cnpPu",
        long_takes: &["class", "classdata"],
        ..PLAIN
    },
    Wrapper {
        name: "strace",
        takes: "abeEIoOpPsSuUX",
        ..PLAIN
    },
    Wrapper {
        name: "busybox",
        ..PLAIN
    },
    Wrapper {
        name: "coproc",
        ..PLAIN
    },
];

/// The command and what it runs, one wrapper after the other. Strictly: only where a wrapper
/// changes nothing and every one of its options is known.
pub(super) fn levels(words: &[Word], strict: bool) -> Vec<Level<'_>> {
    let mut levels = Vec::new();
    let mut next = Some(Level { words, more: false });
    while let Some(level) = next.filter(|level| !level.words.is_empty()) {
        levels.push(level);
        if levels.len() > MOST_LEVELS {
            break;
        }
        next = inside(level, strict);
    }
    levels
}

fn inside(level: Level<'_>, strict: bool) -> Option<Level<'_>> {
    let (name, arguments) = level.words.split_first()?;
    let name = match strict {
        true if !name.is_plain() => return None,
        true => name.text.as_str(),
        false => base_name(&name.text),
    };
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    if strict && wrapper.strict == Strict::No {
        return None;
    }
    let skip = options(wrapper, arguments, strict)? + wrapper.operands;
    Some(Level {
        words: arguments.get(skip..)?,
        more: level.more || wrapper.name == "xargs",
    })
}

/// How many words a wrapper's options take.
fn options(wrapper: &Wrapper, arguments: &[Word], strict: bool) -> Option<usize> {
    let mut skip = 0;
    while let Some(word) = arguments.get(skip) {
        let assigns = wrapper.name == "env" || wrapper.name == "time" && !strict;
        if assigns && word.assigned().is_some() {
            skip += 1;
            continue;
        }
        let option = word.text.strip_prefix('-').filter(|text| !text.is_empty());
        let Some(option) = option else { break };
        if strict && (wrapper.strict == Strict::Bare || !word.is_plain()) {
            return None;
        }
        skip += 1;
        match option.strip_prefix('-') {
            Some("") => break,
            Some(long) => {
                let (name, value) = long.split_once('=').unzip();
                let name = name.unwrap_or(long);
                let takes = wrapper.long_takes.contains(&name);
                if strict && !takes && !wrapper.longs.contains(&name) {
                    return None;
                }
                skip += usize::from(takes && value.is_none());
            }
            None => skip += cluster(wrapper, option, strict)?,
        }
    }
    // A value that is not known might be none at all, and the command another word.
    let known = arguments.get(..skip + wrapper.operands).unwrap_or_default();
    if strict && !known.iter().all(Word::is_plain) {
        return None;
    }
    Some(skip)
}

/// How many further words short options take.
fn cluster(wrapper: &Wrapper, letters: &str, strict: bool) -> Option<usize> {
    for (at, letter) in letters.char_indices() {
        if wrapper.takes.contains(letter) {
            return Some(usize::from(at + letter.len_utf8() == letters.len()));
        }
        if strict && !wrapper.flags.contains(letter) {
            return None;
        }
    }
    Some(0)
}

/// The name of a program that stands in a folder for programs: for what must not be missed.
pub(crate) fn base_name(text: &str) -> &str {
    match text.rsplit_once('/') {
        Some((folder, name)) if folder.starts_with('/') && folder.ends_with("bin") => name,
        _ => text,
    }
}

/// The name of a program that stands in one of the system's own folders, or nowhere special.
pub(crate) fn system_name(text: &str) -> &str {
    match text.rsplit_once('/') {
        Some(("/bin" | "/usr/bin", name)) => name,
        _ => text,
    }
}
