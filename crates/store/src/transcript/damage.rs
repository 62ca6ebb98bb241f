//! What was wrong with a transcript, in words for a person.

use std::fmt;
use std::path::{Path, PathBuf};

/// So many places are named; the rest is counted.
const NAMED: usize = 8;

/// What could not be read of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// The first places, from a line to a line.
    places: Vec<(usize, usize)>,
    more_places: usize,
    lines: usize,
    bytes: u64,
    gaps: usize,
    kept: Option<PathBuf>,
}

impl Damage {
    /// Whether all could be read and nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.lines == 0 && self.gaps == 0
    }

    /// How many lines could not be read, or not wholly.
    pub fn len(&self) -> usize {
        self.lines
    }

    /// How many bytes of those lines say nothing any more.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// In how many places the rest shows that something else is missing.
    pub fn gaps(&self) -> usize {
        self.gaps
    }

    /// Where the file is kept as it was before it was repaired.
    pub fn kept(&self) -> Option<&Path> {
        self.kept.as_deref()
    }

    pub(super) fn add_line(&mut self, number: usize, bytes: u64) {
        self.lines += 1;
        self.bytes += bytes;
        let is_named = self.places.len() < NAMED;
        match self.places.last_mut() {
            Some(place) if self.more_places == 0 && place.1 + 1 == number => place.1 = number,
            _ if is_named => self.places.push((number, number)),
            _ => self.more_places += 1,
        }
    }

    pub(super) fn add_gap(&mut self) {
        self.gaps += 1;
    }

    pub(super) fn keep(&mut self, kept: PathBuf) {
        self.kept = Some(kept);
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing is damaged");
        }
        if self.lines > 0 {
            let places: Vec<String> = self
                .places
                .iter()
                .map(|(from, to)| match from == to {
                    true => from.to_string(),
                    false => format!("{from}-{to}"),
                })
                .collect();
            let noun = if self.lines == 1 { "line" } else { "lines" };
            write!(f, "{noun} {}", places.join(", "))?;
            if self.more_places > 0 {
                write!(f, " and {} more", self.more_places)?;
            }
            let noun = if self.bytes == 1 { "byte" } else { "bytes" };
            write!(f, " could not be read ({} {noun})", self.bytes)?;
        }
        if self.gaps > 0 {
            let and = if self.lines > 0 { ", and " } else { "" };
            let noun = if self.gaps == 1 { "place" } else { "places" };
            write!(f, "{and}records are missing in {} {noun}", self.gaps)?;
        }
        if let Some(kept) = &self.kept {
            write!(
                f,
                "; the rest is repaired, and the file as it was is kept as {}",
                kept.display()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_in_one_sentence_however_much_there_is() {
        let mut damage = Damage::default();
        assert!(damage.is_empty());
        for number in [3, 5, 6, 7] {
            damage.add_line(number, 10);
        }
        assert_eq!(
            damage.to_string(),
            "lines 3, 5-7 could not be read (40 bytes)"
        );
        damage.add_gap();
        damage.keep("a.jsonl.damaged-1".into());
        assert_eq!(
            damage.to_string(),
            "lines 3, 5-7 could not be read (40 bytes), and records are missing in 1 place; \
             the rest is repaired, and the file as it was is kept as a.jsonl.damaged-1"
        );
        for number in 10..10_000 {
            damage.add_line(number * 2, 1);
        }
        assert_eq!(damage.len(), 9994);
        assert!(damage.to_string().len() < 300, "{damage}");
    }
}
