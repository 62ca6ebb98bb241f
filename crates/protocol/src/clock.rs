//! Time and randomness as values that are passed in, so that a run can be repeated to the byte.

use serde::{Deserialize, Serialize};
use std::fmt;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// Milliseconds since 1970 in UTC, written as `2026-11-15T09:00:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

/// Where the time of day comes from. Durations and deadlines use the runtime's clock instead,
/// which tests can pause.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
}

/// Where ids and jitter come from.
pub trait Entropy: Send + Sync + fmt::Debug {
    fn next(&self) -> u64;
}

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = i128::from(self.0) * 1_000_000;
        let text = OffsetDateTime::from_unix_timestamp_nanos(nanos)
            .ok()
            .and_then(|at| at.format(FORMAT).ok());
        // Years past 9999 have no such form; they only come from a broken clock.
        f.write_str(text.as_deref().unwrap_or("9999-12-31T23:59:59.999Z"))
    }
}

impl Timestamp {
    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let at = PrimitiveDateTime::parse(text, FORMAT).ok()?.assume_utc();
        u64::try_from(at.unix_timestamp_nanos() / 1_000_000)
            .ok()
            .map(Self)
    }

    /// The calendar day, `2026-11-15`.
    pub fn day(self) -> String {
        let mut text = self.to_string();
        text.truncate(10);
        text
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("not a time: {text}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_back_what_it_wrote() {
        for ms in [
            0,
            1,
            999,
            951_782_400_000,
            1_794_733_200_123,
            253_402_300_799_999,
        ] {
            let text = Timestamp(ms).to_string();
            assert_eq!(Timestamp::parse(&text), Some(Timestamp(ms)), "{text}");
        }
        assert_eq!(
            Timestamp(1_794_733_200_123).to_string(),
            "2026-11-15T09:00:00.123Z"
        );
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
