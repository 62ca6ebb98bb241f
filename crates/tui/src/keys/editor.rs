//! The line, or lines, that the user writes.

use crate::text::{columns, flat};
use crate::words::count;
use unicode_segmentation::UnicodeSegmentation;

/// What is pasted and larger than this is shown as a mark.
const LARGE_LINES: usize = 10;
const LARGE_BYTES: usize = 1 << 10;

#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// The cursor, in bytes.
    at: usize,
    pastes: Vec<Paste>,
    killed: String,
}

#[derive(Debug)]
struct Paste {
    mark: String,
    text: String,
}

/// The editor's text as it lies on the screen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<String>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn before(&self) -> &str {
        &self.text[..self.at]
    }

    pub(crate) fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.at = self.text.len();
    }

    /// Empties it, and gives back the whole text, with what was pasted.
    pub(crate) fn take(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        self.at = 0;
        for paste in self.pastes.drain(..) {
            text = text.replacen(&paste.mark, &paste.text, 1);
        }
        text
    }

    pub(crate) fn clear(&mut self) {
        // What was pasted is kept: the text can be put back.
        self.killed = std::mem::take(&mut self.text);
        self.at = 0;
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines <= LARGE_LINES && text.len() <= LARGE_BYTES {
            self.insert(&text);
            return;
        }
        let size = match lines {
            0 | 1 => count(text.chars().count(), "character"),
            lines => count(lines, "line"),
        };
        let mut mark = format!("[pasted {size}]");
        let mut n = 2;
        let is_used =
            |mark: &str| self.text.contains(mark) || self.pastes.iter().any(|it| it.mark == mark);
        while is_used(&mark) {
            mark = format!("[pasted {size} #{n}]");
            n += 1;
        }
        self.insert(&mark);
        self.pastes.push(Paste { mark, text });
    }

    /// Puts a text in the place of what stands before the cursor.
    pub(crate) fn complete(&mut self, from: usize, text: &str) {
        self.text.replace_range(from..self.at, text);
        self.at = from + text.len();
    }

    fn place(&self, to: To) -> usize {
        let (before, after) = self.text.split_at(self.at);
        let letter = |text: &str| text.graphemes(true).next().map_or(0, str::len);
        match to {
            To::Left => {
                let last = before.graphemes(true).next_back().map_or(0, str::len);
                self.at - last
            }
            To::Right => self.at + letter(after),
            To::WordLeft => {
                let trimmed = before.trim_end_matches(|c| !in_word(c));
                let rest = trimmed.trim_end_matches(in_word);
                rest.len()
            }
            To::WordRight => {
                let rest = after.trim_start_matches(|c| !in_word(c));
                let rest = rest.trim_start_matches(in_word);
                self.text.len() - rest.len()
            }
            To::Home => before.rfind('\n').map_or(0, |at| at + 1),
            To::End => self.at + after.find('\n').unwrap_or(after.len()),
        }
    }

    pub(crate) fn go(&mut self, to: To) {
        self.at = self.place(to);
    }

    /// Moves a line up or down; false where there is none.
    pub(crate) fn go_line(&mut self, is_up: bool) -> bool {
        let begin = self.place(To::Home);
        let column = self.text[begin..self.at].graphemes(true).count();
        let line = if is_up {
            let Some(end) = begin.checked_sub(1) else {
                return false;
            };
            let from = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
            from..end
        } else {
            let end = self.place(To::End);
            if end == self.text.len() {
                return false;
            }
            let from = end + 1;
            let size = self.text[from..].find('\n');
            from..size.map_or(self.text.len(), |size| from + size)
        };
        let letters = self.text[line.clone()].graphemes(true).take(column);
        self.at = line.start + letters.map(str::len).sum::<usize>();
        true
    }

    /// Deletes up to a place. What is more than a letter can be put back.
    pub(crate) fn delete(&mut self, to: To) {
        let mark = self.pastes.iter().map(|paste| paste.mark.as_str());
        let mark = mark.filter(|mark| self.before().ends_with(mark)).max();
        let there = match (to, mark) {
            // A mark goes as a whole.
            (To::Left, Some(mark)) => self.at - mark.len(),
            // At its end, the line is joined with the next one.
            (To::End, _) if self.place(To::End) == self.at => self.place(To::Right),
            (To::Home, _) if self.place(To::Home) == self.at => self.place(To::Left),
            (to, _) => self.place(to),
        };
        let range = there.min(self.at)..there.max(self.at);
        self.at = range.start;
        let gone: String = self.text.drain(range).collect();
        if !matches!(to, To::Left | To::Right) {
            self.killed = gone;
        }
    }

    pub(crate) fn put_back(&mut self) {
        let killed = self.killed.clone();
        self.insert(&killed);
    }

    /// A backslash before the cursor becomes a line break; false if there is none.
    pub(crate) fn breaks_line(&mut self) -> bool {
        let is_last = self.at == self.text.len() || self.text[self.at..].starts_with('\n');
        let has = is_last && self.before().ends_with('\\');
        if has {
            self.text.replace_range(self.at - 1..self.at, "\n");
        }
        has
    }

    pub(crate) fn rows(&self, width: usize) -> Rows {
        let width = width.max(1);
        let mut rows = vec![String::new()];
        let (mut column, mut cursor, mut seen) = (0, None, 0);
        for letter in self.text.graphemes(true) {
            if seen >= self.at && cursor.is_none() {
                cursor = Some((rows.len() - 1, column));
            }
            seen += letter.len();
            if letter == "\n" {
                rows.push(String::new());
                column = 0;
                continue;
            }
            let shown = flat(letter);
            let shown = if columns(&shown) > width {
                "…".to_owned()
            } else {
                shown
            };
            let size = crate::text::width(&shown);
            if column + size > width {
                rows.push(String::new());
                column = 0;
                if cursor.is_some_and(|(_, at)| at >= width) {
                    cursor = Some((rows.len() - 1, 0));
                }
            }
            if let Some(row) = rows.last_mut() {
                row.push_str(&shown);
            }
            column += size;
        }
        let mut cursor = cursor.unwrap_or((rows.len() - 1, column));
        if cursor.1 >= width {
            cursor = (cursor.0 + 1, 0);
            if cursor.0 == rows.len() {
                rows.push(String::new());
            }
        }
        Rows { rows, cursor }
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn words_are_crossed_and_deleted() {
        let mut editor = with("one two-three");
        editor.delete(To::WordLeft);
        assert_eq!(editor.text(), "one two-");
        editor.go(To::WordLeft);
        assert_eq!(editor.before(), "one ");
        editor.put_back();
        assert_eq!(editor.text(), "one threetwo-");
    }

    #[test]
    fn a_letter_of_several_characters_goes_as_one() {
        let mut editor = with("a👩\u{200d}👧e\u{301}");
        editor.delete(To::Left);
        assert_eq!(editor.text(), "a👩\u{200d}👧");
        editor.delete(To::Left);
        assert_eq!(editor.text(), "a");
    }

    #[test]
    fn a_large_paste_is_a_mark_until_it_is_sent() {
        let mut editor = with("look: ");
        let text = "line\n".repeat(120);
        editor.paste(&text);
        assert_eq!(editor.text(), "look: [pasted 120 lines]");
        assert_eq!(editor.take(), format!("look: {text}"));
        editor.paste(&text);
        editor.delete(To::Left);
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn a_backslash_before_enter_breaks_the_line() {
        let mut editor = with("one\\");
        assert!(editor.breaks_line());
        assert_eq!(editor.text(), "one\n");
        assert!(!editor.breaks_line());
    }

    #[test]
    fn up_and_down_stay_in_the_column() {
        let mut editor = with("first\nse\nthird");
        assert!(editor.go_line(true));
        assert_eq!(editor.before(), "first\nse");
        assert!(editor.go_line(true));
        assert_eq!(editor.before(), "fi");
        assert!(!editor.go_line(true));
    }

    proptest! {
        #[test]
        fn every_row_fits_and_has_the_cursor(
            text in "([a-z \n\t\u{7}]|日|👩\u{200d}👧){0,60}",
            width in 1usize..20,
            left in 0usize..30,
        ) {
            let mut editor = with(&text);
            for _ in 0..left {
                editor.go(To::Left);
            }
            let rows = editor.rows(width);
            prop_assert!(rows.rows.iter().all(|row| crate::text::width(row) <= width.max(4)));
            prop_assert!(rows.cursor.0 < rows.rows.len());
            prop_assert!(rows.cursor.1 < width.max(4));
        }
    }
}
