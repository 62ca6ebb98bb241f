//! Keys of providers are left out of what is written.
//!
//! It works on a serialised line: a key has no character that JSON escapes, so it lies within one
//! string, and a marker in its place leaves the line valid. Only the record is changed; the model
//! saw the text, and the conversation in memory keeps it.
//!
//! A line also holds signatures and encrypted reasoning, which must go back to their provider
//! unchanged. So a key is only what has a word's boundary before it, a known beginning, and the
//! length and letters of a key up to the next boundary. Inside base64 there is no boundary before
//! a letter, and a long piece of it at the start of a string is longer than any key.

use std::ops::Range;

/// How a marker begins.
pub(super) const MARKER: &str = "[a secret was left out: ";

/// No key is longer.
const MOST: usize = 256;

struct Found {
    place: Range<usize>,
    /// What kind of key it was.
    shown: &'static str,
}

/// Replaces the keys in `line` from `start` on by markers; answers how many there were.
pub(super) fn leave_out(line: &mut Vec<u8>, start: usize) -> usize {
    let found = find(&line[start..]);
    if found.is_empty() {
        return 0;
    }
    let old = line.split_off(start);
    let mut at = 0;
    for Found { place, shown } in &found {
        line.extend_from_slice(&old[at..place.start]);
        line.extend_from_slice(MARKER.as_bytes());
        line.extend_from_slice(shown.as_bytes());
        line.extend_from_slice("…]".as_bytes());
        at = place.end;
    }
    line.extend_from_slice(&old[at..]);
    found.len()
}

/// Every key's beginning has one of three bytes that a vector search finds; all else is skipped.
fn find(line: &[u8]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut seen = 0;
    for at in memchr::memchr3_iter(b'-', b'_', b'A', line) {
        if at < seen {
            continue;
        }
        let Some((begin, kind)) = beginning(line, at) else {
            continue;
        };
        if !is_boundary(line, begin, kind) {
            continue;
        }
        // No byte is looked at twice, however many beginnings there are.
        let end = begin + word(&line[begin..]);
        seen = end;
        if let Some(shown) = kind.of(&line[begin..end])
            && !(kind.is_plain() && matches!(line.get(end), Some(b'+' | b'/' | b'=')))
        {
            let place = begin..end;
            found.push(Found { place, shown });
        }
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `sk-…`, of many providers.
    Sk,
    Slack,
    GitHub,
    GitHubFine,
    Aws,
    Google,
}

/// The beginning that has its telling byte at `at`.
fn beginning(line: &[u8], at: usize) -> Option<(usize, Kind)> {
    let (before, from) = line.split_at(at);
    match from[0] {
        b'-' if before.ends_with(b"sk") => Some((at - 2, Kind::Sk)),
        b'-' => match before {
            [
                ..,
                b'x',
                b'o',
                b'x',
                b'a' | b'b' | b'e' | b'p' | b'r' | b's',
            ] => Some((at - 4, Kind::Slack)),
            _ => None,
        },
        b'_' => match before {
            [.., b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r'] => Some((at - 3, Kind::GitHub)),
            _ if before.ends_with(b"github") && from.starts_with(b"_pat_") => {
                Some((at - 6, Kind::GitHubFine))
            }
            _ => None,
        },
        _ if from.starts_with(b"AKIA") || from.starts_with(b"ASIA") => Some((at, Kind::Aws)),
        _ if from.starts_with(b"AIza") => Some((at, Kind::Google)),
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// How long the word is that `text` begins with.
fn word(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !is_word(*byte));
    end.unwrap_or(text.len())
}

/// Whether a word begins at `at`.
fn is_boundary(line: &[u8], at: usize, kind: Kind) -> bool {
    match &line[..at] {
        [] => true,
        // An escaped line break or tab; its letter is not the word's.
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
        [.., b'\\', b'u', a, b, c, d]
            if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            true
        }
        // An escaped character in an address.
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        before if ends_with_colour(before) => true,
        // The user's part of an address.
        [.., b'/', b'/'] => true,
        // Plain base64 has these, but no `-` and no `_`.
        [.., b'+' | b'/'] => !kind.is_plain(),
        // Between the parts of a token.
        [.., b'.'] => false,
        [.., last] => !is_word(*last),
    }
}

/// Whether a terminal's sequence stands at the end, such as what colours a match.
fn ends_with_colour(before: &[u8]) -> bool {
    let Some((b'm' | b'K', before)) = before.split_last() else {
        return false;
    };
    let is_figure = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    let figures = before.iter().rev().take(16).take_while(is_figure).count();
    before[..before.len() - figures].ends_with(b"\\u001b[")
}

impl Kind {
    /// Whether it consists of letters and digits alone, and could so stand in plain base64.
    fn is_plain(self) -> bool {
        matches!(self, Self::Aws | Self::Google)
    }

    /// What to show of a word that begins like a key, if it is one.
    fn of(self, word: &[u8]) -> Option<&'static str> {
        if word.len() > MOST {
            return None;
        }
        let alphanumeric = |text: &[u8]| text.iter().all(u8::is_ascii_alphanumeric);
        match self {
            Self::Sk => of_sk(word),
            Self::Slack => {
                let body = &word[5..];
                let is_key = body.len() >= 20
                    && body.iter().any(u8::is_ascii_digit)
                    && longest_run(body) >= 8;
                is_key.then_some("xox")
            }
            Self::GitHub => {
                let body = &word[4..];
                (body.len() >= 36 && alphanumeric(body)).then_some("gh_")
            }
            Self::GitHubFine => (word.len() >= 11 + 40).then_some("github_pat_"),
            Self::Aws => {
                let is_key = word.len() == 20
                    && word[4..]
                        .iter()
                        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
                is_key.then_some("AWS")
            }
            Self::Google => (word.len() == 39).then_some("AIza"),
        }
    }
}

fn of_sk(word: &[u8]) -> Option<&'static str> {
    const NAMED: [(&str, &str); 5] = [
        ("sk-ant-", "sk-ant-"),
        ("sk-proj-", "sk-proj-"),
        ("sk-svcacct-", "sk-svcacct-"),
        ("sk-admin-", "sk-admin-"),
        ("sk-or-v1-", "sk-or-"),
    ];
    for (named, shown) in NAMED {
        if let Some(body) = word.strip_prefix(named.as_bytes()) {
            // Names of things may begin like this too; they are words with hyphens.
            let is_key = body.len() >= 20
                && (body.iter().any(u8::is_ascii_digit) || longest_run(body) >= 20);
            return is_key.then_some(shown);
        }
    }
    let body = &word[3..];
    let run = longest_run(body);
    let has_digit = body.iter().any(u8::is_ascii_digit);
    (body.len() >= 20 && (run >= 20 || (run >= 16 && has_digit))).then_some("sk-")
}

/// The length of the longest part between hyphens and underscores.
fn longest_run(text: &[u8]) -> usize {
    let parts = text.split(|byte| matches!(byte, b'-' | b'_'));
    parts.map(<[u8]>::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
