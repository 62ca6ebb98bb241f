//! The lines of a file, one at a time: only one is in memory, and of one that is too long only its
//! beginning.

use std::io::{self, BufRead, ErrorKind};

/// What the buffer may keep between two lines.
const KEPT: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// How long a line may be.
    most: usize,
    count: usize,
}

#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    /// Without its end.
    pub(super) bytes: &'a [u8],
    /// How long it is on disk, without its end.
    pub(super) len: u64,
    /// Whether a newline ends it.
    pub(super) is_ended: bool,
}

impl Line<'_> {
    /// Whether `bytes` is all of it.
    pub(super) fn is_whole(&self) -> bool {
        self.len == self.bytes.len() as u64
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            most,
            count: 0,
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        let mut len = 0;
        let mut is_ended = false;
        while !is_ended {
            let chunk = match self.reader.fill_buf() {
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            is_ended = end.is_some();
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            let room = self.most.saturating_sub(self.buffer.len());
            self.buffer
                .extend_from_slice(&piece[..piece.len().min(room)]);
            len += piece.len() as u64;
            let used = piece.len() + usize::from(is_ended);
            self.reader.consume(used);
        }
        if len == 0 && !is_ended {
            return Ok(None);
        }
        self.count += 1;
        Ok(Some(Line {
            number: self.count,
            bytes: &self.buffer,
            len,
            is_ended,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn all(text: &[u8], most: usize, chunk: usize) -> Vec<(usize, Vec<u8>, u64, bool)> {
        let mut lines = Lines::new(BufReader::with_capacity(chunk, text), most);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.bytes.to_vec(), line.len, line.is_ended));
        }
        all
    }

    #[test]
    fn however_it_is_read_the_lines_are_the_same() {
        let text = b"one\n\nthree is longer\nlast";
        for chunk in 1..30 {
            assert_eq!(
                all(text, 8, chunk),
                [
                    (1, b"one".to_vec(), 3, true),
                    (2, b"".to_vec(), 0, true),
                    (3, b"three is".to_vec(), 15, true),
                    (4, b"last".to_vec(), 4, false),
                ]
            );
        }
        assert_eq!(all(b"", 8, 4), []);
    }
}
