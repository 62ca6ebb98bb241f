//! Server-sent events out of a byte stream, whatever way the bytes are cut.
//!
//! Events are handed out in the order of the bytes and before anything that follows them is
//! looked at, so where the stream was cut never changes what a reader sees. An event has a size
//! limit: a server that sends a line without end costs a bounded amount of memory.

/// One event: its name, where it has one, and its data lines joined by line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    pub name: &'a str,
    pub data: &'a str,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event is over {0} bytes")]
    TooLarge(usize),
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

#[derive(Debug)]
pub struct Parser {
    limit: usize,
    /// The line that has begun and not ended.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// A `\r` ended the last line; a `\n` that follows belongs to it.
    after_cr: bool,
    at_start: bool,
}

impl Parser {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// Takes the next bytes and calls `on_event` for each event that they complete, until it
    /// answers `Some`, which is then the result.
    pub fn feed<T, E: From<SseError>>(
        &mut self,
        mut bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() + self.data.len() > self.limit {
                return Err(SseError::TooLarge(self.limit).into());
            }
            let Some(end) = end else {
                self.line.extend_from_slice(part);
                return Ok(None);
            };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let is_blank = if self.line.is_empty() {
                self.take_line(part)?
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                let is_blank = self.take_line(&line)?;
                line.clear();
                self.line = line;
                is_blank
            };
            if is_blank && let Some(found) = self.dispatch(&mut on_event)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn dispatch<T, E>(
        &mut self,
        on_event: &mut impl FnMut(Event<'_>) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let found = if std::mem::take(&mut self.has_data) {
            on_event(Event {
                name: &self.name,
                data: &self.data,
            })
        } else {
            Ok(None)
        };
        self.name.clear();
        self.data.clear();
        found
    }

    /// Takes a whole line; answers whether it is the blank one that ends an event.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, SseError> {
        let line = std::str::from_utf8(line).map_err(|_| SseError::NotUtf8)?;
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return Ok(true);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => {
                self.name.clear();
                self.name.push_str(value);
            }
            // Comments, `id`, `retry` and fields that nobody knows.
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Seen = Vec<(String, String)>;

    fn read(parser: &mut Parser, bytes: &[u8], seen: &mut Seen) -> Result<(), SseError> {
        parser
            .feed(bytes, |event| {
                seen.push((event.name.to_owned(), event.data.to_owned()));
                Ok::<Option<()>, SseError>(None)
            })
            .map(|_| ())
    }

    fn read_cut(stream: &[u8], cuts: &[usize]) -> (Seen, Result<(), SseError>) {
        let mut parser = Parser::new(1 << 20);
        let mut seen = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([stream.len()]) {
            let cut = cut.clamp(from, stream.len());
            if let Err(error) = read(&mut parser, &stream[from..cut], &mut seen) {
                return (seen, Err(error));
            }
            from = cut;
        }
        (seen, Ok(()))
    }

    #[test]
    fn the_forms_of_the_standard() {
        let stream = "\u{feff}event: a\ndata: 1\r\ndata:2\rdata\n\n: note\nid: 7\n\ndata: x\n\r\nevent: lost\n\nodd\ndata: {\"a\": 1}\n\n";
        let (seen, end) = read_cut(stream.as_bytes(), &[]);
        assert_eq!(end, Ok(()));
        let want = [("a", "1\n2\n"), ("", "x"), ("", "{\"a\": 1}")];
        let want: Seen = want.map(|(n, d)| (n.to_owned(), d.to_owned())).into();
        assert_eq!(seen, want);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut parser = Parser::new(1000);
        let mut seen = Vec::new();
        let mut last = Ok(());
        for _ in 0..20 {
            last = read(&mut parser, &[b'x'; 100], &mut seen);
            if last.is_err() {
                break;
            }
        }
        assert_eq!(last, Err(SseError::TooLarge(1000)));
        assert!(parser.line.len() <= 1000);
    }

    #[test]
    fn many_data_lines_count_as_one_event() {
        let mut parser = Parser::new(1000);
        let flood = b"data: 0123456789\n".repeat(100);
        let end = read(&mut parser, &flood, &mut Vec::new());
        assert_eq!(end, Err(SseError::TooLarge(1000)));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_changes_nothing(
            stream in "((data|event|id|odd)?:? ?[a-zé\u{1F600}]{0,6}(\n|\r\n|\r|\n\n)){0,12}",
            mut cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            cuts.sort_unstable();
            prop_assert_eq!(read_cut(stream.as_bytes(), &cuts), read_cut(stream.as_bytes(), &[]));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(stream in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
            prop_assert_eq!(read_cut(&stream, &[cut]), read_cut(&stream, &[]));
        }
    }
}
