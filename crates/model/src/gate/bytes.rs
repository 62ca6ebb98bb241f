//! A record as bytes of a fixed length with a checksum: what was torn or is not ours is no record.

use super::pace::Pace;
use super::record::{ROWS, Record, Row};
use xxhash_rust::xxh3::xxh3_64;

/// Names the layout; another version is another number, and so no record to this one.
const MAGIC: &[u8; 8] = b"gafgate1";
const HEAD: usize = 8 + 8;
const FIXED: usize = 4 * 4 + 8 * 5 + 8 * 7 + 4 * 3;
const ROW: usize = 4 * 2 + 8 * 2;
pub(crate) const LENGTH: usize = HEAD + FIXED + ROW * ROWS;

pub(crate) fn write(record: &Record) -> Vec<u8> {
    let mut out = Vec::with_capacity(LENGTH);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; 8]);
    for number in [record.limit, record.width, record.peak, record.successes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let pace = &record.pace;
    for number in [
        record.epoch,
        record.closed_until,
        record.stamp,
        record.service.to_bits(),
        record.tickets,
        pace.ceiling.to_bits(),
        pace.sent.to_bits(),
        pace.length.to_bits(),
        pace.memory.to_bits(),
        pace.since,
        pace.next,
        pace.window,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [pace.before, pace.count, pace.passed] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for row in &record.rows {
        out.extend_from_slice(&row.limit.to_le_bytes());
        out.extend_from_slice(&row.under_way.to_le_bytes());
        out.extend_from_slice(&row.ticket.to_le_bytes());
        out.extend_from_slice(&row.seen.to_le_bytes());
    }
    let sum = xxh3_64(&out[HEAD..]);
    out[8..HEAD].copy_from_slice(&sum.to_le_bytes());
    out
}

pub(crate) fn read(bytes: &[u8]) -> Option<Record> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let is_ours = bytes.len() == LENGTH && magic == MAGIC;
    if !is_ours || u64::from_le_bytes(*sum) != xxh3_64(rest) {
        return None;
    }
    let mut reader = Reader(rest);
    let mut record = Record {
        limit: reader.short()?,
        width: reader.short()?,
        peak: reader.short()?,
        successes: reader.short()?,
        epoch: reader.long()?,
        closed_until: reader.long()?,
        stamp: reader.long()?,
        service: f64::from_bits(reader.long()?),
        tickets: reader.long()?,
        pace: Pace {
            ceiling: f64::from_bits(reader.long()?),
            sent: f64::from_bits(reader.long()?),
            length: f64::from_bits(reader.long()?),
            memory: f64::from_bits(reader.long()?),
            since: reader.long()?,
            next: reader.long()?,
            window: reader.long()?,
            before: reader.short()?,
            count: reader.short()?,
            passed: reader.short()?,
        },
        rows: [Row::default(); ROWS],
    };
    for row in &mut record.rows {
        *row = Row {
            limit: reader.short()?,
            under_way: reader.short()?,
            ticket: reader.long()?,
            seen: reader.long()?,
        };
    }
    Some(record)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn short(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn long(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }
}
