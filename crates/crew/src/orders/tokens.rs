//! An order as words: where sentences begin, what is quoted. One pass, no copies of the text.

use std::collections::HashMap;

/// Quotes that are not closed within so many bytes are none.
const LONGEST_QUOTE: usize = 300;

/// One word, or one character of a script that writes no spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its number in the vocabulary; 0 for words of which no phrase speaks.
    pub(super) word: u32,
    /// A sentence, or a line of a list, begins with it.
    pub(super) opens: bool,
    /// A part of a sentence begins with it: behind a comma, a colon, a dash.
    pub(super) leads: bool,
    /// What somebody else said, or code: it is named by the order and not said by it.
    pub(super) is_quoted: bool,
    /// A part of a path or of a dotted name: `src/report.rs` does not say to report.
    pub(super) is_glued: bool,
    stands_alone: bool,
}

impl Token {
    /// A word is worth two characters that stand alone.
    pub(super) fn width(&self) -> usize {
        match self.stands_alone {
            true => 1,
            false => 2,
        }
    }
}

/// A longer word is in no phrase.
const LONGEST_WORD: usize = 32;

/// The words of all phrases, numbered from 1. To compare two words is to compare their numbers.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    words: HashMap<String, u32>,
    /// What some words begin with. Whatever begins so is no other word.
    starts: Vec<(String, u32)>,
    count: u32,
}

impl Vocabulary {
    pub(super) fn add(&mut self, word: &str) -> u32 {
        if let Some(number) = self.number(word) {
            return number;
        }
        self.count += 1;
        self.words.insert(word.to_owned(), self.count);
        self.count
    }

    pub(super) fn add_start(&mut self, start: &str) -> u32 {
        self.count += 1;
        self.starts.push((start.to_owned(), self.count));
        self.count
    }

    fn number(&self, word: &str) -> Option<u32> {
        if let Some(number) = self.words.get(word) {
            return Some(*number);
        }
        let start = self.starts.iter().find(|(it, _)| word.starts_with(it));
        start.map(|(_, number)| *number)
    }

    /// The number of a word as it is written.
    fn find(&self, word: &str, letters: &mut String) -> u32 {
        if word.len() > LONGEST_WORD {
            return 0;
        }
        letters.clear();
        letters.extend(word.chars().map(plain));
        self.number(letters).unwrap_or(0)
    }
}

/// A letter as it is compared.
pub(super) fn plain(letter: char) -> char {
    match letter {
        '’' => '\'',
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => letter,
    }
}

/// Whether words in this script are written without spaces between them.
pub(super) fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

pub(super) fn is_in_word(letter: char) -> bool {
    letter == '_' || letter == '\'' || letter == '’' || letter.is_alphanumeric()
}

/// What stands between two words.
#[derive(Default)]
struct Between {
    opens: bool,
    leads: bool,
    breaks: u32,
}

pub(super) fn tokens(text: &str, words: &Vocabulary) -> Vec<Token> {
    let mut letters = String::new();
    let mut all = Vec::with_capacity(text.len() / 5);
    let mut between = Between {
        opens: true,
        leads: true,
        breaks: 0,
    };
    let mut quoted_until = 0;
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let next = at + letter.len_utf8();
        if at >= quoted_until
            && let Some(end) = quote(text, at, letter)
        {
            quoted_until = end;
        }
        if !is_in_word(letter) {
            between.see(letter, text[next..].chars().next());
            at = next;
            continue;
        }
        let stands_alone = stands_alone(letter);
        let end = match stands_alone {
            true => next,
            false => end_of_word(text, at),
        };
        all.push(Token {
            start: at,
            end,
            word: words.find(&text[at..end], &mut letters),
            opens: between.opens,
            leads: between.opens || between.leads,
            is_quoted: at < quoted_until,
            is_glued: is_glued(text, at, end),
            stands_alone,
        });
        between = Between::default();
        at = end;
    }
    all
}

fn is_glued(text: &str, start: usize, end: usize) -> bool {
    let glues = |byte: u8| matches!(byte, b'/' | b'.' | b'\\');
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let before = start.checked_sub(1).map(|at| bytes[at]);
    before.is_some_and(glues) || (bytes.get(end).copied().is_some_and(glues) && is_word(end + 1))
}

fn end_of_word(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let ends = |letter: char| !is_in_word(letter) || stands_alone(letter);
    rest.find(ends).map_or(text.len(), |length| start + length)
}

impl Between {
    fn see(&mut self, letter: char, next: Option<char>) {
        let is_spaced = next.is_none_or(char::is_whitespace);
        match letter {
            '\n' => {
                self.breaks += 1;
                // One line break may stand inside of a sentence; a list's line begins with a mark.
                self.opens |= self.breaks > 1;
            }
            '。' | '！' | '？' => self.opens = true,
            '.' | '!' | '?' if is_spaced => self.opens = true,
            '-' | '*' | '#' | '•' if self.breaks > 0 => self.opens = true,
            ')' | '.' if self.breaks > 0 => self.opens = true,
            ',' | ':' | ';' if is_spaced => self.leads = true,
            '，' | '：' | '；' | '、' | '—' | '–' | '→' | '(' | '（' => {
                self.leads = true;
            }
            _ => {}
        }
    }
}

/// Where a quote ends that begins here.
fn quote(text: &str, at: usize, letter: char) -> Option<usize> {
    let close = match letter {
        '`' => '`',
        '"' => '"',
        '“' => '”',
        '「' => '」',
        '《' => '》',
        _ => return None,
    };
    let rest = &text[at..];
    if let Some(code) = rest.strip_prefix("```") {
        let end = code.find("```").map(|length| at + 6 + length);
        return Some(end.unwrap_or(text.len()));
    }
    let inside = &rest[letter.len_utf8()..];
    let mut length = 0;
    for other in inside.chars() {
        if other == close {
            return Some(at + letter.len_utf8() + length + close.len_utf8());
        }
        if length > LONGEST_QUOTE || other == '\n' {
            return None;
        }
        length += other.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(&str, bool, bool, bool)> {
        let all = tokens(text, &Vocabulary::default()).into_iter();
        all.map(|it| (&text[it.start..it.end], it.opens, it.leads, it.is_quoted))
            .collect()
    }

    #[test]
    fn sentences_lists_and_quotes_are_told_apart() {
        assert_eq!(
            words("Fix a.rs, then `run it`.\n- Don’t \"push\""),
            [
                ("Fix", true, true, false),
                ("a", false, false, false),
                ("rs", false, false, false),
                ("then", false, true, false),
                ("run", false, false, true),
                ("it", false, false, true),
                ("Don’t", true, true, false),
                ("push", false, false, true),
            ]
        );
        assert_eq!(
            words("请改x，再测。好"),
            [
                ("请", true, true, false),
                ("改", false, false, false),
                ("x", false, false, false),
                ("再", false, true, false),
                ("测", false, false, false),
                ("好", true, true, false),
            ]
        );
    }

    #[test]
    fn a_quote_that_is_not_closed_hides_nothing() {
        let open = words("5\" pipe and `more\nwords");
        assert!(open.iter().all(|(.., is_quoted)| !is_quoted));
        assert!(words("```\nfix it").iter().all(|(.., quoted)| *quoted));
    }
}
