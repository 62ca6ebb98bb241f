//! Wire formats: how a conversation is written for a provider and how its stream is read.
//!
//! A format is one file. It writes messages once and in order, never goes back, and reads events
//! until its own final one: nothing else makes an answer.

pub mod anthropic;
pub mod chat;
mod fault;
pub mod responses;

pub(crate) use fault::{http_error, stream_error};

use crate::conversation::Prefix;
use crate::error::{ErrorKind, ModelError};
use crate::{DeltaSink, sse};
use gaffer_protocol::{Answer, Image, Json, Message, Role};

/// How one provider's requests are written and its answers are read.
pub trait Wire: Send + Sync + std::fmt::Debug {
    /// The format's name, as it stands beside raw reasoning blocks.
    fn name(&self) -> &'static str;

    /// The path below the provider's base address.
    fn path(&self) -> &'static str;

    /// The headers that carry the key and the version.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Everything of a request before its messages.
    fn head(&self, prefix: &Prefix) -> Vec<u8>;

    /// Appends a message. Answers where in `out` a cache mark could be put, if anywhere.
    fn encode(
        &self,
        message: &Message,
        encoding: &mut Encoding,
        out: &mut Vec<u8>,
    ) -> Option<usize>;

    /// What closes a request after its messages.
    fn tail(&self, encoding: &Encoding) -> &'static [u8];

    /// What marks a block for the provider's cache, where the wire has marks.
    fn cache_mark(&self) -> Option<&'static [u8]> {
        None
    }

    fn decoder(&self) -> Box<dyn Decoder>;
}

/// Reads one stream.
pub trait Decoder: Send {
    /// Takes an event; answers with the whole answer at the final one.
    fn event(
        &mut self,
        event: sse::Event<'_>,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Option<Answer>, ModelError>;
}

/// What an encoder must remember between messages.
#[derive(Debug, Clone, Default)]
pub struct Encoding {
    /// The message that was begun last and can still take blocks of its role.
    pub open: Option<Role>,
    /// Whether the open message is a list of parts, where a wire has more than one form.
    pub in_parts: bool,
    /// Whether anything was written yet.
    pub started: bool,
}

/// What settings may change about the requests of a wire.
#[derive(Debug, Clone, PartialEq)]
pub struct WireOptions {
    pub model: String,
    pub max_output: u32,
    /// Further members of the request's body, as in settings.
    pub extra: serde_json::Map<String, serde_json::Value>,
    /// Whether images may stand in messages.
    pub images: bool,
    /// Tools that the provider itself runs, in its own form.
    pub server_tools: Vec<Json>,
}

/// Writes `"key":value` members of a JSON object in the order they are given.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Members<'a> {
    fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        string(self.out, key);
        self.out.push(b':');
        self.out
    }

    fn str(mut self, key: &str, value: &str) -> Self {
        string(self.key(key), value);
        self
    }

    fn raw(mut self, key: &str, json: &str) -> Self {
        self.key(key).extend_from_slice(json.as_bytes());
        self
    }

    /// The members of settings that the wire does not write itself.
    fn extra(mut self, options: &WireOptions, own: &[&str]) -> Self {
        for (key, value) in &options.extra {
            if !own.contains(&key.as_str()) {
                self = self.raw(key, Json::of(value).as_str());
            }
        }
        self
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

/// Appends a JSON string.
fn string(out: &mut Vec<u8>, text: &str) {
    // Writing to a vector and serialising a string cannot fail.
    drop(serde_json::to_writer(out, text));
}

/// Appends a comma unless nothing came before.
fn comma(out: &mut Vec<u8>, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

/// Appends a comma behind what there is.
fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

/// A result as plain text, for wires that have no flag for errors and no place for images.
fn result_text(result: &gaffer_protocol::ToolResult) -> String {
    let text = result.text();
    if result.is_error {
        format!("[error] {text}")
    } else {
        text
    }
}

fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.data)
}

/// Stands for an image that a wire or a model does not take.
const NO_IMAGE: &str = "[an image that this model cannot be shown]";

fn garbled(what: impl std::fmt::Display) -> ModelError {
    ModelError::new(ErrorKind::Garbled, what.to_string())
}

/// Reads an event's data; anything that is not of the wire's form is garbled.
fn read<'a, T: serde::Deserialize<'a>>(event: sse::Event<'a>) -> Result<T, ModelError> {
    serde_json::from_str(event.data).map_err(|error| {
        let shown: String = event.data.chars().take(120).collect();
        garbled(format!("{error} in event `{shown}`"))
    })
}
