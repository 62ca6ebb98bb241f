//! Code, strong and stressed words within a line of Markdown.

use super::markup::escape;

/// What is not closed so many marks on is not meant to be. It also bounds what a text of nothing but
/// marks can cost.
const FARTHEST: usize = 32;
/// Stress within stress goes so deep.
const DEEPEST: usize = 3;

pub(super) fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    write(text, 0, &mut out);
    out
}

fn write(text: &str, depth: usize, out: &mut String) {
    let (mut done, mut at) = (0, 0);
    while let Some(found) = text[at..].find(['`', '*', '_']) {
        let start = at + found;
        let Some(span) = span(text, start).filter(|_| depth < DEEPEST) else {
            at = start + marks(text, start);
            continue;
        };
        let inside = &text[span.inside.0..span.inside.1];
        let tag = span.tag;
        out.push_str(&escape(&text[done..start]));
        out.push_str(&format!("<{tag}>"));
        match tag {
            "code" => out.push_str(&escape(inside.trim())),
            _ => write(inside, depth + 1, out),
        }
        out.push_str(&format!("</{tag}>"));
        (done, at) = (span.end, span.end);
    }
    out.push_str(&escape(&text[done..]));
}

/// Something that is marked, and where it is.
struct Span {
    tag: &'static str,
    inside: (usize, usize),
    end: usize,
}

fn span(text: &str, start: usize) -> Option<Span> {
    let count = marks(text, start);
    let first = start + count;
    let mark = text.as_bytes()[start];
    if mark == b'`' {
        let close = code_end(text, first, count)?;
        return Some(Span {
            tag: "code",
            inside: (first, close),
            end: close + count,
        });
    }
    let tag = match count {
        1 => "em",
        2 => "strong",
        _ => return None,
    };
    let is_word = |c: char| c.is_alphanumeric();
    let before = text[..start].chars().next_back();
    // A name with underscores is a name.
    if text[first..].starts_with(char::is_whitespace)
        || (mark == b'_' && before.is_some_and(is_word))
    {
        return None;
    }
    let mut at = first;
    for _ in 0..FARTHEST {
        let next = at + text[at..].find(['`', char::from(mark)])?;
        let run = marks(text, next);
        if text.as_bytes()[next] == b'`' {
            // Marks in code close nothing.
            at = code_end(text, next + run, run).unwrap_or(next) + run;
            continue;
        }
        let is_behind_space = text[..next].ends_with(char::is_whitespace);
        let is_in_word = mark == b'_' && text[next + run..].starts_with(is_word);
        if run == count && next > first && !is_behind_space && !is_in_word {
            return Some(Span {
                tag,
                inside: (first, next),
                end: next + run,
            });
        }
        at = next + run;
    }
    None
}

/// How many of the same mark stand here.
fn marks(text: &str, at: usize) -> usize {
    let bytes = &text.as_bytes()[at..];
    bytes.iter().take_while(|byte| **byte == bytes[0]).count()
}

/// Where the backticks begin that close these.
fn code_end(text: &str, from: usize, count: usize) -> Option<usize> {
    let mut at = from;
    for _ in 0..FARTHEST {
        let next = at + text[at..].find('`')?;
        let run = marks(text, next);
        if run == count {
            return Some(next);
        }
        at = next + run;
    }
    None
}
