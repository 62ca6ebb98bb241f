//! Durations as people write them: `250ms`, `2s`, `1.5m`, `2h`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Span(pub Duration);

impl Span {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = text.split_at(unit_at);
        let number: f64 = number.trim().parse().ok()?;
        let seconds = match unit {
            "ms" => number / 1000.0,
            "s" => number,
            "m" => number * 60.0,
            "h" => number * 3600.0,
            _ => return None,
        };
        Duration::try_from_secs_f64(seconds).ok().map(Self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let wrong = || {
            serde::de::Error::custom(format!(
                "`{text}` is no duration: expected `250ms`, `2s`, `5m` or `2h`"
            ))
        };
        Self::parse(&text).ok_or_else(wrong)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*[0-9.]+\s*(ms|s|m|h)$",
            "examples": ["250ms", "2s", "5m", "2h"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_durations_so() {
        let rows = [
            ("250ms", 0.25),
            ("2s", 2.0),
            (" 1.5 m", 90.0),
            ("2h", 7200.0),
        ];
        for (text, seconds) in rows {
            assert_eq!(
                Span::parse(text),
                Some(Span(Duration::from_secs_f64(seconds)))
            );
        }
        for bad in ["", "2", "s", "-1s", "1d", "1e400s", "NaNs"] {
            assert_eq!(Span::parse(bad), None, "{bad}");
        }
    }
}
