//! Sed, as far as its scripts are plain: it can also run programs and write files.

use super::super::command::Word;

/// A call of sed that does nothing but edit text.
pub(crate) struct Sed<'a> {
    pub(crate) in_place: bool,
    pub(crate) files: Vec<&'a Word>,
}

/// Reads sed's arguments; nothing for what is not certainly plain.
pub(crate) fn parse(words: &[Word]) -> Option<Sed<'_>> {
    let mut sed = Sed {
        in_place: false,
        files: Vec::new(),
    };
    let mut has_script = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-n" | "-E" | "-r" | "-u" | "--quiet" | "--silent" | "--regexp-extended" => {}
            "-e" | "--expression" => {
                check(words.next()?)?;
                has_script = true;
            }
            option if option.starts_with("-i") || option.starts_with("--in-place") => {
                let suffix = match option.strip_prefix("--in-place") {
                    Some(suffix) => suffix.strip_prefix('=').unwrap_or(suffix),
                    None => &option[2..],
                };
                let is_plain = suffix
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'~');
                if !is_plain {
                    return None;
                }
                sed.in_place = true;
            }
            option if option.starts_with('-') => return None,
            _ if !has_script => {
                check(word)?;
                has_script = true;
            }
            _ => sed.files.push(word),
        }
    }
    has_script.then_some(sed)
}

/// One command: an address, then `p`, `d`, `q`, `=`, or `s` with flags that run and write nothing.
fn check(script: &Word) -> Option<()> {
    if !script.is_plain() {
        return None;
    }
    let mut rest = script.text.as_str();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "$, +~!".contains(c));
        match rest.strip_prefix('/') {
            Some(pattern) => rest = delimited(pattern, '/')?,
            None => break,
        }
    }
    if matches!(rest, "p" | "d" | "q" | "=") {
        return Some(());
    }
    let rest = rest.strip_prefix('s')?;
    let delimiter = rest.chars().next()?;
    if delimiter.is_alphanumeric() || delimiter.is_whitespace() || delimiter == '\\' {
        return None;
    }
    let rest = rest.get(delimiter.len_utf8()..)?;
    let flags = delimited(delimited(rest, delimiter)?, delimiter)?;
    flags
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"gpiI".contains(&byte))
        .then_some(())
}

/// What follows the next delimiter that is not escaped.
fn delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            // A line's end would begin another command.
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == delimiter => return text.get(at + c.len_utf8()..),
            _ => {}
        }
    }
    None
}
