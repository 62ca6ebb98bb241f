//! Event streams: where the bytes are cut does not matter.
//!
//! An input is one byte for the size limit, one that says how to cut, and the stream.

use gaffer_model::sse::{Event, Parser, SseError};

/// The events of a stream, and how its reading ended.
type Read = (Vec<(String, String)>, Result<(), SseError>);

pub(crate) fn run(bytes: &[u8]) {
    let [limit, cut, stream @ ..] = bytes else {
        return;
    };
    let limit = usize::from(*limit);
    let whole = read(limit, [stream]);
    let step = usize::from(*cut).max(1);
    assert_eq!(whole, read(limit, stream.chunks(1)), "byte by byte");
    assert_eq!(whole, read(limit, stream.chunks(step)), "{step} at a time");
    let (left, right) = stream.split_at(step.min(stream.len()));
    assert_eq!(whole, read(limit, [left, right]), "cut at {step}");
    for (name, data) in &whole.0 {
        assert!(!name.contains(['\r', '\n']), "a name is one line: {name:?}");
        assert!(!data.contains('\r'), "lines are joined by \\n: {data:?}");
        assert!(data.len() <= limit + 1, "{} bytes of data", data.len());
    }
    // An event that is read can be written and read again.
    let again: String = whole.0.iter().map(written).collect();
    let read_again = read(usize::MAX, [again.as_bytes()]);
    assert_eq!((&whole.0, &Ok(())), (&read_again.0, &read_again.1));
}

fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut parser = Parser::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        let fed: Result<Option<()>, SseError> = parser.feed(piece, |event: Event<'_>| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok(None)
        });
        if let Err(error) = fed {
            return (events, Err(error));
        }
    }
    (events, Ok(()))
}

fn written((name, data): &(String, String)) -> String {
    let data = data.replace('\n', "\ndata: ");
    format!("event: {name}\ndata: {data}\n\n")
}
