//! A JSON value kept as the text it came in, so that it goes back to its provider byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// Valid JSON on one line. Equality is that of the text.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Takes any valid JSON text. Line breaks between its tokens become spaces: inside strings
    /// JSON does not allow them, and a transcript has one record a line.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self::from_raw(raw))
    }

    fn from_raw(raw: &RawValue) -> Self {
        let text = raw.get();
        if text.contains(['\n', '\r']) {
            Self(text.replace(['\n', '\r'], " ").into())
        } else {
            Self(text.into())
        }
    }

    /// Any serialisable value. What cannot be JSON (a map with odd keys) becomes `null`.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        match serde_json::to_string(value) {
            Ok(text) => Self(text.into()),
            Err(_) => Self("null".into()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the value as a type; the error says where in the value it did not fit.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    pub fn is_object(&self) -> bool {
        self.0.trim_start().starts_with('{')
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::from_raw(&raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept_and_stays_on_one_line() {
        let text = "{\"b\": 1.50,\n  \"a\": \"x\\ny\"}";
        let json = Json::parse(text).unwrap();
        assert_eq!(json.as_str(), "{\"b\": 1.50,   \"a\": \"x\\ny\"}");
        let line = serde_json::to_string(&json).unwrap();
        assert_eq!(line, json.as_str());
        assert_eq!(serde_json::from_str::<Json>(&line).unwrap(), json);
        assert!(Json::parse("{\"a\":").is_err());
    }
}
