//! Phrases: what rules look for, written as words. `a (b|c d) e? f* … g`, `^a`: alternatives,
//! what may be missing, beginnings of words, a gap within a sentence, the head of a clause.

use super::tokens::{Token, Vocabulary, is_in_word, plain, stands_alone};
use std::cell::Cell;
use std::collections::BTreeMap;

/// So wide is a gap: six words, or twice as many characters that stand alone.
const WIDEST_GAP: usize = 12;
/// So much work is put into one phrase at one place. Phrases of a project's own may be such that
/// their ways multiply; what takes more than this is not found.
const MOST_WORK: u32 = 5_000;
/// The beginning of a word that stands for all words with it.
const SHORTEST_START: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// A word of the vocabulary, or what a word begins with.
    Word(u32),
    /// One of these, sorted: most alternatives are single words.
    OneOf(Vec<u32>),
    Gap,
    Lead,
    /// One of several; an empty one means that it may be missing.
    Any(Vec<Vec<Part>>),
}

/// Why a phrase cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the phrase `{phrase}` {why}")]
pub struct BadPhrase {
    phrase: String,
    why: &'static str,
}

/// Lists of phrases, found together in one pass.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    words: Vocabulary,
    /// By the words that they can begin with: list and phrase.
    by_first: Vec<Vec<(usize, usize)>>,
    all: Vec<Vec<Part>>,
    lists: BTreeMap<String, usize>,
    /// The list that is looked for in quotes as well.
    in_quotes: Option<usize>,
}

/// Where a phrase of each list stands first, by tokens: the first, and one behind the last.
#[derive(Debug)]
pub(super) struct Hits(Vec<Option<(usize, usize)>>);

impl Hits {
    pub(super) fn of(&self, list: usize) -> Option<(usize, usize)> {
        self.0.get(list).copied().flatten()
    }
}

impl Phrases {
    /// Adds phrases to a list, which is made where there is none of that name.
    pub(super) fn add(&mut self, list: &str, phrases: &[String]) -> Result<usize, BadPhrase> {
        let next = self.lists.len();
        let list = *self.lists.entry(list.to_owned()).or_insert(next);
        for phrase in phrases {
            let bad = |why| BadPhrase {
                phrase: phrase.clone(),
                why,
            };
            let parts = parse(phrase, &mut self.words).map_err(bad)?;
            let mut first = Vec::new();
            if !firsts(&parts, &mut first).map_err(bad)? {
                return Err(bad("may be empty"));
            }
            first.sort_unstable();
            first.dedup();
            for word in first {
                let word = word as usize;
                let most = self.by_first.len().max(word + 1);
                self.by_first.resize_with(most, Vec::new);
                self.by_first[word].push((list, self.all.len()));
            }
            self.all.push(parts);
        }
        Ok(list)
    }

    pub(super) fn list(&self, name: &str) -> Option<usize> {
        self.lists.get(name).copied()
    }

    pub(super) fn words(&self) -> &Vocabulary {
        &self.words
    }

    /// Lets a list be found in quotes as well.
    pub(super) fn read_quotes(&mut self, name: &str) {
        self.in_quotes = self.list(name);
    }

    /// Where each list is found first. What stands behind a phrase of `lead_in` is as good as the
    /// head of a clause.
    pub(super) fn find(&self, tokens: &mut [Token], lead_in: usize) -> Hits {
        let mut hits = vec![None; self.lists.len()];
        for at in 0..tokens.len() {
            let Some(phrases) = self.by_first.get(tokens[at].word as usize) else {
                continue;
            };
            for (list, phrase) in phrases {
                if hits[*list].is_some() && *list != lead_in {
                    continue;
                }
                let work = Cell::new(MOST_WORK);
                let words = Words {
                    work: &work,
                    tokens,
                    from: at,
                    in_quotes: self.in_quotes == Some(*list),
                };
                let Some(end) = words.end(&self.all[*phrase], None, at) else {
                    continue;
                };
                hits[*list].get_or_insert((at, end));
                if *list == lead_in
                    && let Some(token) = tokens.get_mut(end)
                {
                    token.leads = true;
                }
            }
        }
        Hits(hits)
    }
}

/// What a phrase is looked for in.
#[derive(Clone, Copy)]
struct Words<'a> {
    /// How much may still be done.
    work: &'a Cell<u32>,
    tokens: &'a [Token],
    /// Where the phrase begins.
    from: usize,
    in_quotes: bool,
}

/// What must follow behind a part.
#[derive(Clone, Copy)]
struct Rest<'a> {
    parts: &'a [Part],
    rest: Option<&'a Rest<'a>>,
}

impl<'a> Words<'a> {
    /// A word that may belong to the phrase: it is in the same sentence.
    fn at(self, at: usize) -> Option<&'a Token> {
        let token = self.tokens.get(at)?;
        (at == self.from || !token.opens).then_some(token)
    }

    /// The word here, if the order says it itself and a phrase speaks of it.
    fn word(self, at: usize) -> Option<u32> {
        let token = self.at(at)?;
        let is_said = !token.is_glued && (self.in_quotes || !token.is_quoted);
        (is_said && token.word != 0).then_some(token.word)
    }

    /// Where the parts end that begin here, with all that must follow. Phrases are short and gaps
    /// are bounded, and so is the work for each place.
    fn end(self, parts: &[Part], rest: Option<&Rest<'_>>, at: usize) -> Option<usize> {
        self.work.set(self.work.get().checked_sub(1)?);
        let Some((part, parts)) = parts.split_first() else {
            return match rest {
                None => Some(at),
                Some(next) => self.end(next.parts, next.rest, at),
            };
        };
        match part {
            Part::Word(word) => match self.word(at)? == *word {
                true => self.end(parts, rest, at + 1),
                false => None,
            },
            Part::OneOf(all) => match all.binary_search(&self.word(at)?) {
                Ok(_) => self.end(parts, rest, at + 1),
                Err(_) => None,
            },
            Part::Lead => match self.at(at)?.leads {
                true => self.end(parts, rest, at),
                false => None,
            },
            Part::Gap => {
                let mut width = 0;
                for place in at.. {
                    if let Some(end) = self.end(parts, rest, place) {
                        return Some(end);
                    }
                    width += self.at(place)?.width();
                    if width > WIDEST_GAP {
                        return None;
                    }
                }
                None
            }
            Part::Any(ways) => {
                let next = Rest { parts, rest };
                ways.iter().find_map(|way| self.end(way, Some(&next), at))
            }
        }
    }
}

/// The words that a phrase can begin with. Answers whether it must begin with one of them.
fn firsts(parts: &[Part], words: &mut Vec<u32>) -> Result<bool, &'static str> {
    for part in parts {
        match part {
            Part::Word(word) => {
                words.push(*word);
                return Ok(true);
            }
            Part::OneOf(all) => {
                words.extend(all);
                return Ok(true);
            }
            Part::Gap => return Err("begins with a gap"),
            Part::Lead => {}
            Part::Any(ways) => {
                let mut is_certain = true;
                for way in ways {
                    is_certain &= firsts(way, words)?;
                }
                if is_certain {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

fn parse(phrase: &str, words: &mut Vocabulary) -> Result<Vec<Part>, &'static str> {
    let mut reader = Reader {
        letters: phrase.chars().map(plain).collect(),
        at: 0,
        words,
    };
    let mut ways = reader.ways(0)?;
    match (reader.at == reader.letters.len(), ways.len()) {
        (false, _) => Err("has a bracket too many"),
        (true, 1) => Ok(ways.remove(0)),
        _ => Ok(vec![any(ways)]),
    }
}

/// Alternatives, with those that are single words as one.
fn any(ways: Vec<Vec<Part>>) -> Part {
    let mut words = Vec::new();
    let mut others = Vec::new();
    for way in ways {
        match way.as_slice() {
            [Part::Word(word)] => words.push(*word),
            _ => others.push(way),
        }
    }
    words.sort_unstable();
    words.dedup();
    match (words.is_empty(), others.is_empty()) {
        (false, true) => Part::OneOf(words),
        (true, _) => Part::Any(others),
        (false, false) => {
            // What is longer is tried first: it is the better excerpt.
            let at = others.iter().position(Vec::is_empty);
            others.insert(at.unwrap_or(others.len()), vec![Part::OneOf(words)]);
            Part::Any(others)
        }
    }
}

struct Reader<'a> {
    letters: Vec<char>,
    at: usize,
    words: &'a mut Vocabulary,
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    /// Alternatives, up to the end of a bracket.
    fn ways(&mut self, depth: u32) -> Result<Vec<Vec<Part>>, &'static str> {
        if depth > 8 {
            return Err("has too many brackets in each other");
        }
        let mut ways = vec![Vec::new()];
        while let Some(letter) = self.next() {
            let parts = ways.last_mut().ok_or("is empty")?;
            match letter {
                ')' => break,
                '|' => {
                    self.at += 1;
                    ways.push(Vec::new());
                }
                ' ' => self.at += 1,
                '(' => {
                    self.at += 1;
                    let inner = self.ways(depth + 1)?;
                    if self.next() != Some(')') {
                        return Err("has a bracket that is not closed");
                    }
                    self.at += 1;
                    parts.push(any(inner));
                }
                '?' => {
                    self.at += 1;
                    let last = parts.pop().ok_or("has a `?` behind nothing")?;
                    parts.push(Part::Any(vec![vec![last], Vec::new()]));
                }
                '^' => {
                    self.at += 1;
                    parts.push(Part::Lead);
                }
                '…' => {
                    self.at += 1;
                    parts.push(Part::Gap);
                }
                _ => parts.push(self.word()?),
            }
        }
        Ok(ways)
    }

    fn word(&mut self) -> Result<Part, &'static str> {
        let mut word = String::new();
        while let Some(letter) = self.next().filter(|letter| is_in_word(*letter)) {
            if stands_alone(letter) && !word.is_empty() {
                break;
            }
            word.push(letter);
            self.at += 1;
            if stands_alone(letter) {
                return Ok(Part::Word(self.words.add(&word)));
            }
        }
        if word.is_empty() {
            return Err("has a character that is neither of a word nor a sign");
        }
        if self.next() != Some('*') {
            return Ok(Part::Word(self.words.add(&word)));
        }
        self.at += 1;
        match word.chars().count() >= SHORTEST_START {
            true => Ok(Part::Word(self.words.add_start(&word))),
            false => Err("has a `*` behind less than three letters"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn found(phrase: &str, text: &str) -> Option<String> {
        let mut phrases = Phrases::default();
        let lead = phrases.add("lead", &["please".to_owned()]).unwrap();
        let list = phrases.add("list", &[phrase.to_owned()]).unwrap();
        let mut tokens = tokens(text, phrases.words());
        let hits = phrases.find(&mut tokens, lead);
        let show = |(first, last): (usize, usize)| {
            text[tokens[first].start..tokens[last - 1].end].to_owned()
        };
        hits.of(list).map(show)
    }

    #[test]
    fn phrases_find_what_they_say() {
        let phrase = "based on (your|the) (findings|own research)";
        assert_eq!(
            found(phrase, "Fix it Based on\nyour findings."),
            Some("Based on\nyour findings".to_owned())
        );
        assert_eq!(
            found(phrase, "based on the own research"),
            Some("based on the own research".to_owned())
        );
        assert_eq!(found(phrase, "based on `your findings`"), None);
        assert_eq!(
            found("^fix…it", "Please fix all of it"),
            Some("fix all of it".to_owned())
        );
        assert_eq!(found("^fix", "A fix"), None);
        assert_eq!(found("fix…it", "fix. Now it"), None);
        assert_eq!(
            found("根据(你|您)的?(发现|调查)", "请根据你的发现修改"),
            Some("根据你的发现".to_owned())
        );
        assert_eq!(
            found("implement* it?", "implementing it"),
            Some("implementing it".to_owned())
        );
        assert_eq!(found("don't", "Don’t"), Some("Don’t".to_owned()));
    }

    #[test]
    fn a_phrase_whose_ways_multiply_ends_all_the_same() {
        let phrase = format!("{}z", "(a b|a (b|b b)|a b?) … ".repeat(12));
        assert_eq!(found(&phrase, &"a b ".repeat(300)), None);
    }

    #[test]
    fn what_is_no_phrase_is_refused() {
        for bad in ["", "(a", "a)", "…a", "a?", "?", "ab*", "a, b", "(a|)"] {
            let mut phrases = Phrases::default();
            assert!(phrases.add("list", &[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
