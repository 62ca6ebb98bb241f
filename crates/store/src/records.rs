//! Reads a transcript record by record, without holding more of it than one line.

use crate::session::SessionFolder;
use crate::transcript::Record;
use gaffer_protocol::AgentId;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// A longer line is passed over: its memory would be the reader's.
const LONGEST: u64 = 64 << 20;

/// One line of a transcript.
#[derive(Debug)]
pub enum Line {
    Record(Box<Record>),
    /// A line that could not be read.
    Damaged,
}

/// The lines of a transcript, in their order.
#[derive(Debug)]
pub struct Records<R> {
    reader: R,
    line: Vec<u8>,
    longest: u64,
}

impl SessionFolder {
    /// What an agent's transcript says, from its beginning.
    pub fn records(&self, agent: AgentId) -> io::Result<Records<BufReader<File>>> {
        let file = File::open(self.transcript(agent))?;
        Ok(Records::new(BufReader::with_capacity(64 << 10, file)))
    }
}

impl<R: BufRead> Records<R> {
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
            longest: LONGEST,
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            self.line.clear();
            // One large result must not hold its memory to the end.
            self.line.shrink_to(1 << 20);
            let mut part = self.reader.by_ref().take(self.longest);
            if part.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            if self.line.last() != Some(&b'\n') && self.line.len() as u64 == self.longest {
                self.reader.skip_until(b'\n')?;
                return Ok(Some(Line::Damaged));
            }
            let line = self.line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            return Ok(Some(match serde_json::from_slice(line) {
                Ok(record) => Line::Record(Box::new(record)),
                Err(_) => Line::Damaged,
            }));
        }
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = r#"{"at":"2026-11-15T09:00:00.000Z","entry":{"end":"done"}}"#;

    fn kinds(text: &str, longest: u64) -> Vec<bool> {
        let mut records = Records::new(text.as_bytes());
        records.longest = longest;
        let is_record = |line: io::Result<Line>| matches!(line.unwrap(), Line::Record(_));
        records.map(is_record).collect()
    }

    #[test]
    fn damage_is_one_line_and_the_rest_is_read() {
        let text = format!("{END}\n\n{{\"at\":\n{END}\n{{\"torn");
        assert_eq!(kinds(&text, LONGEST), [true, false, true, false]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let text = format!("{}\n{END}\n{}", "x".repeat(500), "y".repeat(500));
        assert_eq!(kinds(&text, 100), [false, true, false]);
    }
}
