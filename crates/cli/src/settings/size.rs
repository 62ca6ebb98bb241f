//! Sizes in settings: a number of bytes, or a text with a unit.

use serde::{Deserialize, Deserializer};

/// So many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

const UNITS: [(&str, f64); 10] = [
    ("KIB", 1024.0),
    ("MIB", 1_048_576.0),
    ("GIB", 1_073_741_824.0),
    ("TIB", 1_099_511_627_776.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
    ("", 1.0),
];

impl Bytes {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_uppercase();
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
        let number = number.trim_end();
        // `inf`, `nan` and `1e9` are numbers for Rust alone.
        let is_plain = |c: char| c.is_ascii_digit() || c == '.';
        if number.is_empty() || !number.chars().all(is_plain) {
            return None;
        }
        let bytes = number.parse::<f64>().ok()? * unit;
        // Beyond what a float tells apart there is no disk either.
        (bytes <= 9e15).then_some(Self(bytes as u64))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a size such as `500MB` or a number of bytes"
        )]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(bytes) => Ok(Self(bytes)),
            Either::Text(text) => Self::parse(&text).ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "`{text}` is no size: expected `500MB`, `1.5GB`, `2GiB` or a number of bytes"
                ))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        for (text, bytes) in [
            ("500MB", 500_000_000),
            ("1.5 gb", 1_500_000_000),
            ("2GiB", 2_147_483_648),
            ("10 KiB", 10_240),
            ("7", 7),
            ("0", 0),
            ("12B", 12),
        ] {
            assert_eq!(Bytes::parse(text), Some(Bytes(bytes)), "{text}");
        }
        for text in [
            "",
            "MB",
            "-1MB",
            "1XB",
            "1e9",
            "inf",
            "nanB",
            "1 2MB",
            "99999999TB",
        ] {
            assert_eq!(Bytes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_wrong_size_is_told_with_what_is_right() {
        let read = |text: &str| serde_json::from_str::<Bytes>(text);
        assert_eq!(read("5").unwrap(), Bytes(5));
        assert_eq!(read("\"5KB\"").unwrap(), Bytes(5000));
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert!(told("\"big\"").starts_with("`big` is no size: expected `500MB`"));
        assert!(
            told("true").starts_with("expected a size"),
            "{}",
            told("true")
        );
    }
}
