//! From bytes to records: what is readable is found, also in lines that are damaged.

use super::fold::Fold;
use super::lines::Lines;
use super::record::{Entry, Record};
use super::writing::MOST_RECORD;
use gaffer_protocol::Timestamp;
use std::io::{self, BufRead};

/// How much is read at once.
pub(super) const CHUNK: usize = 64 << 10;

/// How long a line may be: a record, and the markers that are longer than what they stand for.
const MOST_LINE: usize = 2 * MOST_RECORD;

/// So often a damaged line is searched for a record; more would make reading it quadratic.
const TRIES: usize = 8;

/// How every record begins.
const BEGIN: &[u8] = b"{\"at\":";

/// What a whole record of the same conversation consists of.
#[derive(Debug)]
pub(super) enum Kept<'a> {
    /// A record as it is on disk, without the end of its line.
    Read(&'a [u8]),
    /// One that was made up to stand here.
    Made(Record),
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// Whether its last line is ended.
    pub(super) is_ended: bool,
}

/// Folds all lines, and shows what a whole record would consist of.
pub(super) fn fold(
    mut fold: Fold,
    reader: impl BufRead,
    keep: &mut dyn FnMut(Kept<'_>) -> io::Result<()>,
) -> io::Result<(Fold, Tail)> {
    let mut tail = Tail { is_ended: true };
    let mut lines = Lines::new(reader, MOST_LINE);
    while let Some(line) = lines.next()? {
        tail.is_ended = line.is_ended;
        if line.bytes.trim_ascii().is_empty() && line.is_whole() {
            continue;
        }
        if line.is_whole()
            && let Ok(record) = serde_json::from_slice(line.bytes)
        {
            take(&mut fold, record, line.bytes, keep)?;
            continue;
        }
        let found = if line.is_whole() {
            salvage(line.bytes)
        } else {
            Vec::new()
        };
        let whole: usize = found.iter().map(|(_, bytes)| bytes.len()).sum();
        // What is between two records that were joined is lost before the second of them.
        fold.lose(line.number, line.len.saturating_sub(whole as u64).max(1));
        for (record, bytes) in found {
            take(&mut fold, record, bytes, keep)?;
        }
    }
    fold.finish();
    let at = fold.span.map(|(_, last)| last).unwrap_or_default();
    give_made(&mut fold, at, keep)?;
    Ok((fold, tail))
}

fn take(
    fold: &mut Fold,
    record: Record,
    bytes: &[u8],
    keep: &mut dyn FnMut(Kept<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let at = record.at;
    let is_useful = fold.add(at, record.entry);
    give_made(fold, at, keep)?;
    if is_useful {
        keep(Kept::Read(bytes))?;
    }
    Ok(())
}

fn give_made(
    fold: &mut Fold,
    at: Timestamp,
    keep: &mut dyn FnMut(Kept<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let made: Vec<Entry> = fold.take_made();
    for entry in made {
        keep(Kept::Made(Record { at, entry }))?;
    }
    Ok(())
}

/// The whole records in a line that is not one: behind what was torn off, before zeros, or two
/// whose newline is gone.
fn salvage(line: &[u8]) -> Vec<(Record, &[u8])> {
    let finder = memchr::memmem::Finder::new(BEGIN);
    let mut found = Vec::new();
    let mut rest = line;
    for _ in 0..TRIES {
        let Some(at) = finder.find(rest) else { break };
        rest = &rest[at..];
        let mut records = serde_json::Deserializer::from_slice(rest).into_iter::<Record>();
        if let Some(Ok(record)) = records.next() {
            let (whole, behind) = rest.split_at(records.byte_offset());
            found.push((record, whole));
            rest = behind;
        } else {
            rest = &rest[BEGIN.len()..];
        }
    }
    found
}
