//! What becomes of the matches in one file: a yes, a count, or lines on a page.

use super::line;
use super::page::Page;
use super::{OutputMode, Style};
use crate::walk::Stop;
use grep_matcher::{Match, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::io;

/// How far behind a match across lines the pattern may look.
const LOOK_AHEAD: usize = 128;

/// Counts what a file will show, without showing it.
#[derive(Debug)]
pub(super) struct Counter<'a> {
    matcher: &'a RegexMatcher,
    style: Style,
    stop: &'a Stop,
    pub(super) count: usize,
    pub(super) is_binary: bool,
}

impl<'a> Counter<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, style: Style, stop: &'a Stop) -> Self {
        Self {
            matcher,
            style,
            stop,
            count: 0,
            is_binary: false,
        }
    }
}

impl Sink for Counter<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let style = self.style;
        match style.mode {
            OutputMode::FilesWithMatches => {
                self.count = 1;
                return Ok(false);
            }
            OutputMode::Count if style.multiline || style.only_matching => {
                each_match(self.matcher, searcher, found, |_| self.count += 1)?;
            }
            OutputMode::Content if style.only_matching => {
                each_match(self.matcher, searcher, found, |part| {
                    self.count += trimmed_lines(part).count();
                })?;
            }
            OutputMode::Content if style.multiline => self.count += found.lines().count(),
            OutputMode::Count | OutputMode::Content => self.count += 1,
        }
        Ok(!self.stop.is_set())
    }

    fn context(&mut self, _: &Searcher, _: &SinkContext<'_>) -> io::Result<bool> {
        self.count += 1;
        Ok(!self.stop.is_set())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.count += 1;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Writes the lines of a file to a page.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) matcher: &'a RegexMatcher,
    pub(super) style: Style,
    pub(super) stop: &'a Stop,
    /// What stands before each line, if anything.
    pub(super) name: Option<&'a str>,
    /// Lines that come before the page.
    pub(super) skip: usize,
    pub(super) page: &'a mut Page,
}

impl Writer<'_> {
    fn push(&mut self, number: Option<u64>, mark: char, text: &str) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        let mut line = String::new();
        if let Some(name) = self.name {
            line.push_str(name);
            line.push(mark);
        }
        if let Some(number) = number {
            line.push_str(&number.to_string());
            line.push(mark);
        }
        line.push_str(text);
        self.page.push(&line);
    }

    fn goes_on(&self) -> bool {
        !self.page.is_full() && !self.stop.is_set()
    }
}

impl Sink for Writer<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let matcher = self.matcher;
        if self.style.only_matching {
            let mut number = found.line_number();
            let mut counted = found.bytes_range_in_buffer().start;
            let buffer = found.buffer();
            each_match_at(matcher, searcher, found, |place| {
                let between = &buffer[counted..place.start()];
                number = number.map(|number| number + newlines(between));
                counted = place.start();
                for (place, part) in (0..).zip(trimmed_lines(&buffer[place])) {
                    let number = number.map(|number| number + place);
                    self.push(number, ':', &line::show(part, || 0));
                }
            })?;
            return Ok(self.goes_on());
        }
        for (place, bytes) in (0..).zip(found.lines()) {
            let bytes = line::trim(bytes);
            let number = found.line_number().map(|number| number + place);
            let first = || match matcher.find(bytes) {
                Ok(Some(first)) => first.start(),
                _ => 0,
            };
            self.push(number, ':', &line::show(bytes, first));
        }
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let text = line::show(line::trim(context.bytes()), || 0);
        self.push(context.line_number(), '-', &text);
        Ok(self.goes_on())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.page.push(super::search::BETWEEN);
        }
        Ok(self.goes_on())
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// The lines of a match, at least one.
fn trimmed_lines(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    part.strip_suffix(b"\n")
        .unwrap_or(part)
        .split(|byte| *byte == b'\n')
        .map(line::trim)
}

fn each_match(
    matcher: &RegexMatcher,
    searcher: &Searcher,
    found: &SinkMatch<'_>,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    each_match_at(matcher, searcher, found, |place| {
        each(&found.buffer()[place]);
    })
}

/// Finds the single matches in lines that are known to hold some, with the surroundings that the
/// search had: they decide what `$` or `\b` match.
fn each_match_at(
    matcher: &RegexMatcher,
    searcher: &Searcher,
    found: &SinkMatch<'_>,
    mut each: impl FnMut(Match),
) -> io::Result<()> {
    let range = found.bytes_range_in_buffer();
    let buffer = found.buffer();
    let buffer = if searcher.multi_line_with_matcher(matcher) {
        &buffer[..buffer.len().min(range.end + LOOK_AHEAD)]
    } else {
        let trimmed = line::trim(&buffer[range.clone()]).len();
        &buffer[..range.start + trimmed]
    };
    let searched = matcher.find_iter_at(buffer, range.start, |place| {
        let is_inside = place.start() < range.end;
        if is_inside {
            each(place);
        }
        is_inside
    });
    searched.map_err(io::Error::other)
}
