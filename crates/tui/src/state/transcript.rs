//! What one agent said and did, as pieces with a limit on how many are kept.

use gaffer_protocol::diff::diff;
use gaffer_protocol::{Answer, Block, ResultPart};
use ratatui::text::Line;
use serde_json::Value;
use std::collections::VecDeque;

/// So much of one agent's transcript is kept.
const MOST_BYTES: usize = 384 << 10;
const MOST_PIECES: usize = 4000;
/// So much of one text is kept: its end, which is news.
/// Of so many starts or ends in a row each has its line; of the rest the last alone.
const LONGEST_RUN: usize = 8;
const LONGEST: usize = 128 << 10;
/// So much of a call's result is shown: its beginning.
const RESULT_LINES: usize = 6;
const RESULT_BYTES: usize = 2000;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Notice,
    Started,
    Ended,
    Trouble,
    Retry,
    Question,
    Mail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    Runs,
    Done(u64),
    Failed(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    User(String),
    /// What the model said: Markdown.
    Words(String),
    Reasoning(String),
    Call {
        what: String,
        /// What an edit changes: lines of a diff.
        change: Vec<String>,
        state: CallState,
        result: String,
        /// Lines of the result that are not kept.
        more: usize,
    },
    Line(Mark, String),
    /// The last of several lines of one kind, and how many it stands for.
    More(Mark, usize, String),
}

impl Body {
    /// Words to be read, and not a line about what happened.
    fn is_talk(&self) -> bool {
        matches!(self, Self::User(_) | Self::Words(_))
    }

    fn size(&self) -> usize {
        64 + match self {
            Self::User(text)
            | Self::Words(text)
            | Self::Reasoning(text)
            | Self::Line(_, text)
            | Self::More(_, _, text) => text.len(),
            Self::Call {
                what,
                change,
                result,
                ..
            } => what.len() + result.len() + change.iter().map(String::len).sum::<usize>(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) body: Body,
    /// It has space above it.
    pub(crate) is_apart: bool,
    /// How it was drawn last, at which width.
    pub(crate) drawn: Option<(usize, Vec<Line<'static>>)>,
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pieces: VecDeque<Piece>,
    /// The number of the first piece that is kept.
    first: u64,
    bytes: usize,
    /// What streams in now.
    words: String,
    thoughts: String,
    next_call: Option<String>,
    streamed: usize,
    /// Starts or ends at the end of it.
    run: Option<(Mark, usize)>,
}

impl Transcript {
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number behind the last piece.
    pub(crate) fn end(&self) -> u64 {
        self.first + u64::try_from(self.pieces.len()).unwrap_or(0)
    }

    pub(crate) fn piece_mut(&mut self, number: u64) -> Option<&mut Piece> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.pieces.get_mut(at)
    }

    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    pub(crate) fn thoughts(&self) -> &str {
        &self.thoughts
    }

    pub(crate) fn next_call(&self) -> Option<&str> {
        self.next_call.as_deref()
    }

    /// Bytes of the answer that streams in now.
    pub(crate) fn streamed(&self) -> usize {
        self.streamed
    }

    pub(crate) fn push(&mut self, body: Body) {
        let body = match body {
            Body::User(text) => Body::User(last_part(text)),
            Body::Words(text) => Body::Words(last_part(text)),
            Body::Reasoning(text) => Body::Reasoning(last_part(text)),
            Body::Line(mark, text) => Body::Line(mark, last_part(text)),
            other => other,
        };
        let Some(body) = self.in_run(body) else {
            return;
        };
        self.bytes += body.size();
        let last = self.pieces.back();
        let is_apart = last.is_some_and(|last| body.is_talk() || last.body.is_talk());
        self.pieces.push_back(Piece {
            body,
            is_apart,
            drawn: None,
        });
        while self.pieces.len() > MOST_PIECES || (self.bytes > MOST_BYTES && self.pieces.len() > 1)
        {
            self.drop_first();
        }
    }

    /// Joins it with what stands last, if that is one of many of its kind.
    fn in_run(&mut self, body: Body) -> Option<Body> {
        let Body::Line(mark @ (Mark::Started | Mark::Ended), text) = body else {
            self.run = None;
            return Some(body);
        };
        let length = match self.run {
            Some((last, length)) if last == mark => length + 1,
            _ => 1,
        };
        self.run = Some((mark, length));
        if length <= LONGEST_RUN {
            return Some(Body::Line(mark, text));
        }
        let last = self.pieces.back_mut();
        if let Some(last) = last
            && let Body::More(_, count, shown) = &mut last.body
        {
            self.bytes = (self.bytes + text.len()).saturating_sub(shown.len());
            *count += 1;
            *shown = text;
            last.drawn = None;
            return None;
        }
        Some(Body::More(mark, 1, text))
    }

    fn drop_first(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes = self.bytes.saturating_sub(piece.body.size());
            self.first += 1;
        }
    }

    /// Keeps nothing; that there was something is still known.
    pub(crate) fn forget(&mut self) {
        while !self.pieces.is_empty() {
            self.drop_first();
        }
        self.void();
    }

    /// Forgets how it was drawn: it is not looked at any more.
    pub(crate) fn forget_lines(&mut self) {
        for piece in &mut self.pieces {
            piece.drawn = None;
        }
    }

    pub(crate) fn stream(&mut self, text: &str) {
        self.streamed += text.len();
        append(&mut self.words, text);
    }

    pub(crate) fn think(&mut self, text: &str) {
        self.streamed += text.len();
        append(&mut self.thoughts, text);
    }

    pub(crate) fn writes_call(&mut self, tool: &str) {
        self.next_call = Some(tool.to_owned());
    }

    /// What was streamed does not count.
    pub(crate) fn void(&mut self) {
        self.words.clear();
        self.thoughts.clear();
        self.next_call = None;
        self.streamed = 0;
    }

    /// What was streamed will not become an answer; it stays as it is.
    pub(crate) fn settle(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.void();
        if !words.trim().is_empty() {
            self.push(Body::Words(words));
            self.push(Body::Line(Mark::Notice, "broken off here".to_owned()));
        }
    }

    pub(crate) fn answered(&mut self, answer: &Answer) {
        self.void();
        for block in &answer.blocks {
            match block {
                Block::Text(text) if !text.text.trim().is_empty() => {
                    self.push(Body::Words(text.text.clone()));
                }
                Block::Reasoning(reasoning) if !reasoning.text.trim().is_empty() => {
                    self.push(Body::Reasoning(reasoning.text.clone()));
                }
                _ => {}
            }
        }
    }

    pub(crate) fn push_call(&mut self, tool: &str, what: &str, input: &Value) -> u64 {
        self.push(Body::Call {
            what: what.to_owned(),
            change: change(tool, input, 40),
            state: CallState::Runs,
            result: String::new(),
            more: 0,
        });
        self.end() - 1
    }

    pub(crate) fn end_call(&mut self, number: u64, how: CallState, parts: &[ResultPart]) {
        let (text, left) = beginning(parts);
        let size = text.len();
        let Some(piece) = self.piece_mut(number) else {
            return;
        };
        piece.drawn = None;
        if let Body::Call {
            state,
            result,
            more,
            ..
        } = &mut piece.body
        {
            (*state, *result, *more) = (how, text, left);
            self.bytes += size;
        }
    }
}

/// What a call would change in a file, as lines of a diff; nothing for other calls.
pub(crate) fn change(tool: &str, input: &Value, most: usize) -> Vec<String> {
    let mut lines = match tool {
        "Edit" => edited(input),
        "Write" => {
            let content = input.get("content").and_then(Value::as_str);
            let content = content.unwrap_or_default();
            let all = content.lines().count();
            let lines = content.lines().take(most);
            let mut lines: Vec<String> = lines.map(|line| format!("+{line}")).collect();
            if all > most {
                lines.push(format!("… {} more lines", all - most));
            }
            return lines;
        }
        "MultiEdit" => {
            let edits = input.get("edits").and_then(Value::as_array);
            edits.into_iter().flatten().flat_map(edited).collect()
        }
        _ => return Vec::new(),
    };
    if lines.len() > most {
        let more = lines.len() - most;
        lines.truncate(most);
        lines.push(format!("… {more} more lines"));
    }
    lines
}

fn edited(edit: &Value) -> Vec<String> {
    let text = |key: &str| edit.get(key).and_then(Value::as_str).unwrap_or_default();
    diff(text("old_string"), text("new_string"))
}

/// The first lines of a result, and how many there are more.
fn beginning(parts: &[ResultPart]) -> (String, usize) {
    let mut kept = String::new();
    let (mut lines, mut more) = (0, 0);
    for part in parts {
        let text = match part {
            ResultPart::Text(text) => text.trim_end(),
            ResultPart::Image(_) => "[image]",
        };
        for line in text.lines() {
            if lines >= RESULT_LINES || kept.len() + line.len() > RESULT_BYTES {
                more += 1;
                continue;
            }
            lines += 1;
            kept.push_str(line);
            kept.push('\n');
        }
    }
    (kept, more)
}

/// The end of a text that is too long.
fn last_part(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - LONGEST);
    format!("… (the beginning is left out)\n\n{}", &text[from..])
}

/// Cuts half of it when it is too long, so that appending stays cheap.
fn append(all: &mut String, text: &str) {
    all.push_str(text);
    if all.len() > LONGEST {
        let from = all.ceil_char_boundary(all.len() - LONGEST / 2);
        all.drain(..from);
    }
}
