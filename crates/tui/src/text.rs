//! Text on its way to the terminal: made harmless, measured, cut and wrapped.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A tab is so many spaces: where its stop would be is not known before the text is wrapped.
const TAB: &str = "    ";
/// No letter that anybody reads is longer, with all its marks.
const LONGEST_LETTER: usize = 48;

/// Text in which nothing can reach the terminal as a command, hide, or turn the line around.
/// Line breaks stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || is_harmless(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\t' => out.push_str(TAB),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            c if c == '\n' || is_harmless(c) => out.push(c),
            // The picture of a control character says that it was there.
            '\0'..='\u{1f}' => out.push(picture(c)),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => {}
            _ => out.push('\u{fffd}'),
        }
    }
    Cow::Owned(out)
}

fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')
}

fn is_harmless(c: char) -> bool {
    let hides_or_turns = matches!(c,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{061c}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !hides_or_turns
}

/// Harmless, and on one line.
pub(crate) fn flat(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(columns).sum()
}

/// How many columns one letter takes.
pub(crate) fn columns(letter: &str) -> usize {
    letter.width()
}

/// A length as the terminal counts.
pub(crate) fn cells(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// As much as fits in so many columns, with a mark where something is left out.
pub(crate) fn fit(text: &str, most: usize) -> String {
    let text = flat(text);
    if width(&text) <= most {
        return text;
    }
    let mut cut = String::new();
    let mut taken = 0;
    for letter in text.graphemes(true) {
        taken += columns(letter);
        // The last column is for the mark.
        if taken >= most {
            break;
        }
        cut.push_str(letter);
    }
    if most > 0 {
        cut.push('…');
    }
    cut
}

/// The same, filled with spaces to exactly so many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut text = fit(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// A text on as many lines as it needs, broken between words where it can be.
pub(crate) fn wrap(
    spans: &[Span<'_>],
    width: usize,
    first: &Span<'_>,
    next: &Span<'_>,
) -> Vec<Line<'static>> {
    let mut wrapped = Wrapped::new(width, first, next);
    for span in spans {
        for letter in span.content.graphemes(true) {
            wrapped.take(Cow::Borrowed(letter), span.style);
        }
    }
    wrapped.finish()
}

/// One style, no margin.
pub(crate) fn wrap_plain(text: &str, style: Style, width: usize) -> Vec<Line<'static>> {
    let none = Span::raw("");
    clean(text)
        .split('\n')
        .flat_map(|line| wrap(&[Span::styled(line, style)], width, &none, &none))
        .collect()
}

struct Wrapped<'a> {
    lines: Vec<Line<'static>>,
    width: usize,
    margin: Span<'a>,
    next: Span<'a>,
    line: Vec<(Cow<'a, str>, usize, Style)>,
    taken: usize,
    /// Behind the last space of the line.
    break_at: Option<usize>,
}

impl<'a> Wrapped<'a> {
    fn new(width: usize, first: &Span<'a>, next: &Span<'a>) -> Self {
        // A margin that leaves no room for two columns of text is left out.
        let fitting = |margin: &Span<'a>| {
            if margin.width() + 2 > width {
                Span::raw("")
            } else {
                margin.clone()
            }
        };
        Self {
            lines: Vec::new(),
            width: width.max(1),
            margin: fitting(first),
            next: fitting(next),
            line: Vec::new(),
            taken: 0,
            break_at: None,
        }
    }

    fn take(&mut self, mut letter: Cow<'a, str>, style: Style) {
        let room = self.width - self.margin.width().min(self.width - 1);
        if letter.len() > LONGEST_LETTER {
            letter = letter.chars().take(1).collect::<String>().into();
        }
        let mut size = columns(&letter);
        if size > room {
            (letter, size) = (Cow::Borrowed("…"), 1);
        }
        let is_space = letter == " ";
        if self.taken + size > room {
            let rest = match self.break_at {
                Some(at) if !is_space => self.line.split_off(at),
                _ => Vec::new(),
            };
            self.end_line();
            if is_space {
                return;
            }
            // It has no space in it, and the next line may be narrower than this one was.
            for (letter, _, style) in rest {
                self.take(letter, style);
            }
            return self.take(letter, style);
        }
        self.line.push((letter, size, style));
        self.taken += size;
        if is_space {
            self.break_at = Some(self.line.len());
        }
    }

    fn end_line(&mut self) {
        let mut spans: Vec<Span<'static>> = Vec::new();
        if !self.margin.content.is_empty() {
            let margin = self.margin.content.clone().into_owned();
            spans.push(Span::styled(margin, self.margin.style));
        }
        let mut text = String::new();
        let mut last = Style::default();
        for (letter, _, style) in self.line.drain(..) {
            if style != last && !text.is_empty() {
                spans.push(Span::styled(std::mem::take(&mut text), last));
            }
            last = style;
            text.push_str(&letter);
        }
        if !text.is_empty() {
            spans.push(Span::styled(text, last));
        }
        self.lines.push(Line::from(spans));
        self.margin = self.next.clone();
        self.taken = 0;
        self.break_at = None;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if !self.line.is_empty() || self.lines.is_empty() {
            self.end_line();
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        assert_eq!(clean("a\x1b[31mred\x07"), "a␛[31mred␇");
        assert_eq!(clean("\u{9b}2J\u{202e}x"), "\u{fffd}2J\u{fffd}x");
        assert_eq!(clean("one\r\ntwo\tthree"), "one\ntwo    three");
        assert_eq!(clean("hid\u{200b}den\u{e0041}"), "hidden");
    }

    #[test]
    fn letters_that_people_use_stay() {
        let family = "👨\u{200d}👩\u{200d}👧 日本 e\u{301} ❤\u{fe0f}";
        assert_eq!(clean(family), family);
    }

    #[test]
    fn lines_break_between_words_and_by_columns() {
        let lines = wrap_plain("one two three", Style::default(), 8);
        assert_eq!(shown(&lines), ["one two ", "three"]);
        let lines = wrap_plain("日本語日本", Style::default(), 5);
        assert_eq!(shown(&lines), ["日本", "語日", "本"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_it_may_be(text: String, most in 1usize..90, margin in 0usize..6) {
            let margin = Span::raw(" ".repeat(margin));
            let text = clean(&text);
            let lines = wrap(&[Span::raw(&*text)], most, &margin, &margin);
            prop_assert!(lines.iter().all(|line| width(&line.to_string()) <= most));
            prop_assert!(width(&fit(&text, most)) <= most);
            prop_assert_eq!(width(&pad(&text, most)), most);
        }
    }
}
