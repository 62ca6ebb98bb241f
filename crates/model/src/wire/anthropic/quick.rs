//! The usual deltas, read without detours.
//!
//! A stream is made of thousands of small deltas, and enums that are tagged from inside buffer every
//! value twice to find their tag. What has exactly the usual form is read here at once. Everything
//! else is nobody's business here: the general way reads it, or says what is wrong with it.

use super::stream::BlockDelta;
use crate::sse;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

const NAME: &str = "content_block_delta";

/// The block that a delta belongs to, and the delta. `None` says nothing about the event.
pub(super) fn read<'a>(event: &sse::Event<'a>) -> Option<(usize, BlockDelta<'a>)> {
    // Serde would take a list for a struct, too.
    if event.name != NAME || !event.data.starts_with('{') {
        return None;
    }
    let read: Usual<'a> = serde_json::from_str(event.data).ok()?;
    (read.kind == NAME).then_some((read.index, read.delta.0))
}

/// Without unknown members: the general way reads their values, and may find one that it cannot.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Usual<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: usize,
    #[serde(borrow)]
    delta: UsualDelta<'a>,
}

struct UsualDelta<'a>(BlockDelta<'a>);

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for UsualDelta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = UsualDelta<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a delta of the usual form")
    }

    /// Two members: the type, and the one that belongs to it.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        // Nobody reads it.
        let unusual = || A::Error::custom("not of the usual form");
        let (mut kind, mut text) = (None, None);
        while let Some(name) = members.next_key::<&str>()? {
            let was = match name {
                "type" => kind.replace(members.next_value::<&str>()?).map(|_| ()),
                _ => text
                    .replace((name, members.next_value::<Text<'de>>()?.0))
                    .map(|_| ()),
            };
            if was.is_some() {
                return Err(unusual());
            }
        }
        let (name, text) = text.ok_or_else(unusual)?;
        Ok(UsualDelta(match (kind.ok_or_else(unusual)?, name) {
            ("text_delta", "text") => BlockDelta::TextDelta { text },
            ("thinking_delta", "thinking") => BlockDelta::ThinkingDelta { thinking: text },
            ("signature_delta", "signature") => BlockDelta::SignatureDelta { signature: text },
            ("input_json_delta", "partial_json") => {
                BlockDelta::InputJsonDelta { partial_json: text }
            }
            _ => return Err(unusual()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Event;
    use super::*;

    type Grown<'a> = Option<(usize, BlockDelta<'a>)>;

    fn both(data: &str) -> [Grown<'_>; 2] {
        let general = match serde_json::from_str(data) {
            Ok(Event::ContentBlockDelta { index, delta }) => Some((index, delta)),
            _ => None,
        };
        [read(&sse::Event { name: NAME, data }), general]
    }

    #[test]
    fn the_usual_is_read_as_the_general_way_reads_it() {
        let rows = [
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}"#,
            r#"{ "index" : 1, "delta" : { "text" : "a\n\u00e9 \ud83d\ude00", "type" : "text_delta" }, "type" : "content_block_delta" }"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x=="}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#,
        ];
        for data in rows {
            let [quick, general] = both(data);
            assert!(quick.is_some(), "{data}");
            assert_eq!(quick, general, "{data}");
        }
    }

    #[test]
    fn the_unusual_is_left_to_the_general_way() {
        let rows = [
            "",
            "{",
            "nonsense",
            r#"["content_block_delta",0,{"type":"text_delta","text":"a"}]"#,
            r#"{"type":"content_block_delta","index":0,"delta":["text_delta","a"]}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}} x"#,
            r#"{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud800"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"b"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","thinking":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","extra":1}}"#,
            r#"{"type":"content_block_delta","index":0,"extra":1e999,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#,
            r#"{"type":"content_block_stop","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","type":"ping","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
        ];
        for data in rows {
            assert_eq!(both(data)[0], None, "{data}");
        }
    }
}
