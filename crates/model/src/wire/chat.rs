//! OpenAI Chat Completions: `POST {base}/v1/chat/completions`, as local servers speak it too.

mod stream;

use super::{
    Decoder, Encoding, Members, NO_IMAGE, Wire, WireOptions, comma, data_url, separate, string,
};
use crate::conversation::Prefix;
use gaffer_protocol::{Block, Image, Message, ResultPart, Role};
use serde::{Deserialize, Serialize};

const NAME: &str = "openai-chat";

#[derive(Debug, Clone)]
pub struct Chat {
    pub options: WireOptions,
}

impl Wire for Chat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let bearer = |key| ("authorization", format!("Bearer {key}"));
        key.map(bearer).into_iter().collect()
    }

    /// No limit on the answer is sent: servers disagree on that member's name, and without it all
    /// of them allow what the model allows.
    fn head(&self, prefix: &Prefix) -> Vec<u8> {
        let mut tools = vec![b'['];
        let mut first = true;
        for tool in &prefix.tools {
            comma(&mut tools, &mut first);
            let mut function = Vec::new();
            Members::open(&mut function)
                .str("name", &tool.name)
                .str("description", &tool.description)
                .raw("parameters", tool.schema.as_str())
                .close();
            let mut members = Members::open(&mut tools).str("type", "function");
            members.key("function").extend_from_slice(&function);
            members.close();
        }
        tools.push(b']');
        let mut out = Vec::with_capacity(tools.len() + prefix.system.len() + 256);
        let own = ["model", "stream", "stream_options", "tools", "messages"];
        let mut members = Members::open(&mut out)
            .str("model", &self.options.model)
            .raw("stream", "true")
            .raw("stream_options", "{\"include_usage\":true}")
            .extra(&self.options, &own);
        if !prefix.tools.is_empty() {
            members.key("tools").extend_from_slice(&tools);
        }
        let messages = members.key("messages");
        messages.push(b'[');
        if !prefix.system.is_empty() {
            Members::open(messages)
                .str("role", "system")
                .str("content", &prefix.system)
                .close();
        }
        out
    }

    /// A user's text stays open as an unfinished string: many local models refuse two user turns
    /// in a row, and only plain strings are understood everywhere, so the next text joins this one.
    fn encode(
        &self,
        message: &Message,
        encoding: &mut Encoding,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        match message.role {
            Role::Assistant => self.assistant(message, encoding, out),
            Role::User => self.user(message, encoding, out),
        }
        None
    }

    fn tail(&self, encoding: &Encoding) -> &'static [u8] {
        match (encoding.open, encoding.in_parts) {
            (Some(_), false) => b"\"}]}",
            (Some(_), true) => b"]}]}",
            (None, _) => b"]}",
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }
}

/// Ends the message that is open and makes room for the next.
fn next(encoding: &mut Encoding, out: &mut Vec<u8>) {
    if encoding.open.take().is_some() {
        let end: &[u8] = if encoding.in_parts { b"]}" } else { b"\"}" };
        out.extend_from_slice(end);
    }
    comma(out, &mut !encoding.started);
    encoding.started = true;
}

/// Reasoning as a chat server gave it: servers differ in the member's name and want it back
/// under the same.
#[derive(Serialize, Deserialize)]
struct Thoughts {
    field: String,
    text: String,
}

impl Chat {
    fn assistant(&self, message: &Message, encoding: &mut Encoding, out: &mut Vec<u8>) {
        let mut text = String::new();
        let mut calls = Vec::new();
        let mut reasoning = None;
        for block in &message.blocks {
            match block {
                Block::Text(part) => {
                    if !text.is_empty() {
                        text.push_str("\n\n");
                    }
                    text.push_str(&part.text);
                }
                Block::ToolUse(tool_use) => {
                    separate(&mut calls);
                    let mut function = Vec::new();
                    Members::open(&mut function)
                        .str("name", &tool_use.name)
                        .str("arguments", tool_use.input.as_text())
                        .close();
                    let mut members = Members::open(&mut calls)
                        .str("id", &tool_use.id)
                        .str("type", "function");
                    members.key("function").extend_from_slice(&function);
                    members.close();
                }
                Block::Reasoning(part) => {
                    let raw = part.raw.as_ref().filter(|raw| raw.wire == NAME);
                    reasoning = raw.and_then(|raw| raw.json.read::<Thoughts>().ok());
                }
                Block::ToolResult(_) | Block::Image(_) => {}
            }
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        next(encoding, out);
        let mut members = Members::open(out).str("role", "assistant");
        if text.is_empty() {
            members = members.raw("content", "null");
        } else {
            members = members.str("content", &text);
        }
        if !calls.is_empty() {
            // Models that think between calls want their thoughts back, and only there.
            if let Some(thoughts) = reasoning {
                members = members.str(&thoughts.field, &thoughts.text);
            }
            let array = members.key("tool_calls");
            array.push(b'[');
            array.append(&mut calls);
            array.push(b']');
        }
        members.close();
    }

    fn user(&self, message: &Message, encoding: &mut Encoding, out: &mut Vec<u8>) {
        let mut images: Vec<&Image> = Vec::new();
        let mut text = String::new();
        for block in &message.blocks {
            match block {
                Block::ToolResult(result) => {
                    next(encoding, out);
                    Members::open(out)
                        .str("role", "tool")
                        .str("tool_call_id", &result.call)
                        .str("content", &super::result_text(result))
                        .close();
                    let shown = result.parts.iter().filter_map(|part| match part {
                        ResultPart::Image(image) => Some(image),
                        ResultPart::Text(_) => None,
                    });
                    images.extend(shown);
                }
                Block::Text(part) => {
                    if !text.is_empty() {
                        text.push_str("\n\n");
                    }
                    text.push_str(&part.text);
                }
                Block::Image(image) => images.push(image),
                Block::Reasoning(_) | Block::ToolUse(_) => {}
            }
        }
        if !images.is_empty() && self.options.images {
            return self.with_images(&text, &images, encoding, out);
        }
        if !images.is_empty() {
            text.push_str(NO_IMAGE);
        }
        if text.is_empty() {
            return;
        }
        if encoding.open.is_some() && encoding.in_parts {
            out.push(b',');
            return text_part(&text, out);
        }
        let mut quoted = Vec::with_capacity(text.len() + 2);
        if encoding.open.is_some() {
            string(&mut quoted, &format!("\n\n{text}"));
        } else {
            string(&mut quoted, &text);
            next(encoding, out);
            out.extend_from_slice(b"{\"role\":\"user\",\"content\":\"");
            encoding.open = Some(Role::User);
            encoding.in_parts = false;
        }
        // Without its quotes: the string stays open.
        out.extend_from_slice(&quoted[1..quoted.len() - 1]);
    }

    /// Results of tools hold text alone on this wire, so their images follow as the user's. The
    /// list stays open, as a text does.
    fn with_images(
        &self,
        text: &str,
        images: &[&Image],
        encoding: &mut Encoding,
        out: &mut Vec<u8>,
    ) {
        let text = match (text, encoding.open.is_some() && encoding.in_parts) {
            ("", true) => "More images:",
            ("", false) => "The images of the results above:",
            (text, _) => text,
        };
        if encoding.open.is_some() && encoding.in_parts {
            out.push(b',');
        } else {
            let follows_text = encoding.open.is_some();
            next(encoding, out);
            if follows_text {
                // A text that stands as a string takes no images any more.
                out.extend_from_slice("{\"role\":\"assistant\",\"content\":\"…\"},".as_bytes());
            }
            out.extend_from_slice(b"{\"role\":\"user\",\"content\":[");
            encoding.open = Some(Role::User);
            encoding.in_parts = true;
        }
        text_part(text, out);
        for image in images {
            out.push(b',');
            let mut url = Vec::new();
            Members::open(&mut url).str("url", &data_url(image)).close();
            let mut members = Members::open(out).str("type", "image_url");
            members.key("image_url").extend_from_slice(&url);
            members.close();
        }
    }
}

fn text_part(text: &str, out: &mut Vec<u8>) {
    Members::open(out)
        .str("type", "text")
        .str("text", text)
        .close();
}
