//! From an open file to a sink: reading, binary files, line ends.

use super::Style;
use crate::walk::Stop;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink};
use std::fs::File;
use std::io::{self, Read};

/// What may be held of one file: all of it if matches span lines, else its longest line.
const MOST_HELD: usize = 256 << 20;
/// Files up to this size, which are nearly all, are read at once: that saves the searcher's own
/// reads, of which there are three for the smallest file.
const AT_ONCE: usize = 64 << 10;

/// Searches files one after another, with buffers that stay.
#[derive(Debug)]
pub(super) struct Feeder {
    searcher: Searcher,
    buffer: Vec<u8>,
}

impl Feeder {
    pub(super) fn new(matcher: &RegexMatcher, style: Style, line_numbers: bool) -> Self {
        let line_end = matcher.line_terminator();
        let mut searcher = SearcherBuilder::new();
        searcher
            .line_terminator(line_end.unwrap_or(LineTerminator::crlf()))
            .line_number(line_numbers)
            .multi_line(style.multiline)
            .before_context(style.before)
            .after_context(style.after)
            .heap_limit(Some(MOST_HELD))
            .binary_detection(BinaryDetection::quit(0));
        Self {
            searcher: searcher.build(),
            buffer: vec![0; AT_ONCE],
        }
    }

    /// Takes NUL bytes for text, so that a file of them has no end in sight.
    #[cfg(test)]
    pub(super) fn read_all_as_text(&mut self) {
        self.searcher
            .set_binary_detection(BinaryDetection::convert(0));
    }

    pub(super) fn feed(
        &mut self,
        file: &File,
        matcher: &RegexMatcher,
        stop: &Stop,
        sink: impl Sink<Error = io::Error>,
    ) -> io::Result<()> {
        let mut reader = Watched { file, stop };
        let mut length = 0;
        while length < self.buffer.len() {
            match reader.read(&mut self.buffer[length..])? {
                0 => break,
                read => length += read,
            }
        }
        let start = &self.buffer[..length];
        if length < self.buffer.len() {
            self.searcher.search_slice(matcher, start, sink)
        } else {
            let reader = start.chain(reader);
            self.searcher.search_reader(matcher, reader, sink)
        }
    }
}

/// A file that ends in an error when nobody waits for the search any more.
struct Watched<'a> {
    file: &'a File,
    stop: &'a Stop,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}
