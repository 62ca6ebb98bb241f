//! A session as a document: what there is to say, said by one page or another.

mod change;
mod costs;
mod cover;
pub(crate) mod html;
mod inline;
pub(crate) mod markdown;
mod markup;
mod scale;
mod timeline;

use crate::show::{Account, Member};
use crate::system::plain;
use crate::tracks::Story;
use gaffer_protocol::{End, Image, Origin, Status, Timestamp, ToolResult, ToolUse};
use gaffer_store::About;
use markup::escape;
use serde_json::{Map, Value};
use std::io;

/// What stands at the beginning.
#[derive(Debug)]
pub(crate) struct Cover<'a> {
    pub(crate) account: &'a Account,
    pub(crate) about: Option<&'a About>,
    pub(crate) story: &'a Story,
}

/// One thing that an agent heard, said or did.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// Told to the agent.
    Words {
        at: Timestamp,
        origin: Option<Origin>,
        /// Whether the agent was started with it.
        is_order: bool,
        text: &'a str,
    },
    Image {
        at: Timestamp,
        image: &'a Image,
    },
    /// Said by the agent.
    Answer {
        at: Timestamp,
        text: &'a str,
        /// Whether its run ends with it.
        is_last: bool,
    },
    Thought(&'a str),
    Call {
        call: &'a ToolUse,
        result: Option<&'a ToolResult>,
    },
    /// The answer is not whole, and why.
    Cut(&'static str),
    /// The conversation was made shorter: tokens before and after.
    Compacted {
        at: Timestamp,
        before: u64,
        after: u64,
    },
    /// A process took the session up.
    TakenUp(Timestamp),
    End {
        at: Timestamp,
        end: &'a End,
    },
    /// A line of the transcript could not be read.
    Damaged,
}

/// A document that is written from its beginning to its end.
pub(crate) trait Page {
    fn begin(&mut self, cover: &Cover<'_>) -> io::Result<()>;
    fn agent(&mut self, member: &Member) -> io::Result<()>;
    fn item(&mut self, item: &Item<'_>) -> io::Result<()>;
    fn agent_ends(&mut self) -> io::Result<()>;
    fn close(&mut self) -> io::Result<()>;
}

/// So many characters of a text are shown, and of a result or the arguments of a call.
const LONGEST_TEXT: usize = 200_000;
const LONGEST_RESULT: usize = 20_000;

/// Text without what only a terminal understands: escape sequences are gone, and so are other
/// control characters.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next_if(|c| *c != '\n') {
                // CSI: its figures and its final letter, and nothing else that follows.
                Some('[') => {
                    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
                    chars.next_if(|c| ('@'..='~').contains(c));
                }
                // OSC: up to a bell, or an escape with its backslash.
                Some(']') => {
                    let is_inside = |c: &char| !matches!(c, '\u{7}' | '\u{1b}' | '\n');
                    while chars.next_if(is_inside).is_some() {}
                    if chars.next_if_eq(&'\u{1b}').is_some() {
                        chars.next_if_eq(&'\\');
                    }
                }
                // A set of characters: the one behind it names it.
                Some('(' | ')') => drop(chars.next_if(char::is_ascii_alphanumeric)),
                _ => {}
            },
            // Progress that was drawn over itself stands line by line.
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            '\r' => {}
            c => out.push(c),
        }
    }
    plain(&out)
}

/// The same as one line.
fn one_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// The beginning of a text, and how many characters are left out.
fn bounded(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], text[end..].chars().count()),
        None => (text, 0),
    }
}

/// Text as it was written, its line breaks kept.
fn verbatim(text: &str) -> String {
    let (text, more) = bounded(text, LONGEST_TEXT);
    let text = escape(clean(text).trim());
    format!("<p class=\"words\">{text}</p>{}", rest(more))
}

fn rendered(text: &str) -> String {
    let (text, more) = bounded(text, LONGEST_TEXT);
    let text = markup::html(clean(text).trim());
    format!("{text}{}", rest(more))
}

fn pre(text: &str, most: usize) -> String {
    let (text, more) = bounded(text, most);
    // A line break right behind the tag would be lost.
    let text = escape(clean(text).trim_end());
    format!("<pre>\n{text}</pre>{}", rest(more))
}

fn rest(count: usize) -> String {
    match count {
        0 => String::new(),
        _ => format!("<p class=\"soft\">{}</p>", left_out(count)),
    }
}

fn left_out(count: usize) -> String {
    format!("… {count} more characters are in the transcript")
}

/// Who speaks to an agent.
fn speaker(origin: Option<Origin>) -> &'static str {
    match origin {
        Some(Origin::Human) => "User",
        Some(Origin::Context) => "Context",
        Some(Origin::TaskNotification) => "Notification",
        Some(Origin::Agent) => "Mail from an agent",
        Some(Origin::Hook) => "Hook",
        Some(Origin::Compacted) => "What was kept",
        None => "Unknown origin",
    }
}

/// The arguments of a call, as people read them: texts of several lines stand as they are.
fn arguments(call: &ToolUse) -> String {
    let text = call.input.as_text();
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else {
        return clean(text);
    };
    let mut out = String::new();
    for (key, value) in members {
        match value {
            Value::String(text) if text.contains('\n') => {
                let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
                out.push_str(&format!("{key}:\n{}\n", lines.join("\n")));
            }
            Value::String(text) => out.push_str(&format!("{key}: {text}\n")),
            other => out.push_str(&format!("{key}: {other}\n")),
        }
    }
    clean(&out)
}

/// How an agent stands: a word for it, and a class for its looks.
fn standing(member: &Member) -> (String, &'static str) {
    match &member.end {
        None => ("interrupted".to_owned(), "failed"),
        Some(end) => match end.status() {
            Status::Completed => (one_line(&end.to_string()), "completed"),
            Status::Killed => (one_line(&end.to_string()), "killed"),
            Status::Failed => (one_line(&end.to_string()), "failed"),
        },
    }
}

/// The session's name, or else its title, or else its id.
fn title(cover: &Cover<'_>) -> String {
    let about = cover.about;
    let title = about.map(|about| about.name.as_deref().unwrap_or(&about.title));
    let title = title.filter(|title| !title.trim().is_empty());
    match title {
        Some(title) => one_line(title),
        None => format!("Session {}", cover.account.session),
    }
}

/// What is known of the session, by what it is.
fn facts(cover: &Cover<'_>) -> Vec<(&'static str, String)> {
    let account = cover.account;
    let mut all = vec![("Session", account.session.clone())];
    if let Some(start) = account.main() {
        all.push(("Folder", one_line(&start.cwd)));
        all.push(("Mode", one_line(&start.mode)));
        let model = format!("{} ({})", start.model, start.provider);
        all.push(("Model", one_line(&model)));
    }
    if let Some((first, last)) = account.span() {
        let took = super::account::time(last.0.saturating_sub(first.0));
        let from = super::account::minute(first);
        all.push(("Time", format!("{from} · {took}")));
    }
    if let Some(from) = cover.about.and_then(|about| about.forked_from.as_ref()) {
        all.push(("Forked from", from.to_string()));
    }
    all
}

/// The time of day.
fn clock(at: Timestamp) -> String {
    at.to_string()[11..19].to_owned()
}

#[cfg(test)]
mod tests;
