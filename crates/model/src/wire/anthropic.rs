//! Anthropic Messages: `POST {base}/v1/messages`.

mod quick;
mod stream;

use super::{Decoder, Encoding, Members, NO_IMAGE, Wire, WireOptions, comma, string};
use crate::conversation::Prefix;
use gaffer_protocol::{Block, Image, Message, ResultPart, Role, ToolResult};

const NAME: &str = "anthropic";
const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

#[derive(Debug, Clone)]
pub struct Anthropic {
    pub options: WireOptions,
}

impl Wire for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &'static str {
        "messages"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", "2023-06-01".to_owned())];
        headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        headers
    }

    /// Tools and system come before the messages in the provider's cache, so one mark at the end
    /// of the two covers both.
    fn head(&self, prefix: &Prefix) -> Vec<u8> {
        let mut tools = vec![b'['];
        let mut first = true;
        for (n, tool) in prefix.tools.iter().enumerate() {
            comma(&mut tools, &mut first);
            Members::open(&mut tools)
                .str("name", &tool.name)
                .str("description", &tool.description)
                .raw("input_schema", tool.schema.as_str())
                .close();
            if prefix.system.is_empty() && n + 1 == prefix.tools.len() {
                tools.pop();
                tools.extend_from_slice(MARK.as_bytes());
                tools.push(b'}');
            }
        }
        for tool in &self.options.server_tools {
            comma(&mut tools, &mut first);
            tools.extend_from_slice(tool.as_str().as_bytes());
        }
        tools.push(b']');
        let mut system = b"[{\"type\":\"text\",\"text\":".to_vec();
        string(&mut system, &prefix.system);
        system.extend_from_slice(MARK.as_bytes());
        system.extend_from_slice(b"}]");

        let mut out = Vec::with_capacity(tools.len() + system.len() + 256);
        let mut members = Members::open(&mut out)
            .str("model", &self.options.model)
            .raw("max_tokens", &self.options.max_output.to_string())
            .raw("stream", "true")
            .extra(
                &self.options,
                &[
                    "model",
                    "max_tokens",
                    "stream",
                    "messages",
                    "system",
                    "tools",
                ],
            );
        if tools.len() > 2 {
            members.key("tools").extend_from_slice(&tools);
        }
        if !prefix.system.is_empty() {
            members.key("system").extend_from_slice(&system);
        }
        members.key("messages").push(b'[');
        out
    }

    fn encode(
        &self,
        message: &Message,
        encoding: &mut Encoding,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let mut blocks = Vec::new();
        let mut first = true;
        for block in &message.blocks {
            self.block(block, &mut blocks, &mut first);
        }
        if first {
            return None;
        }
        if encoding.open == Some(message.role) {
            out.push(b',');
        } else {
            if encoding.open.is_some() {
                out.extend_from_slice(b"]}");
            }
            comma(out, &mut !encoding.started);
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            out.extend_from_slice(format!("{{\"role\":\"{role}\",\"content\":[").as_bytes());
        }
        encoding.open = Some(message.role);
        encoding.started = true;
        out.extend_from_slice(&blocks);
        // Inside the last block, before its closing brace.
        Some(out.len() - 1)
    }

    fn tail(&self, encoding: &Encoding) -> &'static [u8] {
        if encoding.open.is_some() {
            b"]}]}"
        } else {
            b"]}"
        }
    }

    fn cache_mark(&self) -> Option<&'static [u8]> {
        Some(MARK.as_bytes())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }
}

impl Anthropic {
    fn block(&self, block: &Block, out: &mut Vec<u8>, first: &mut bool) {
        match block {
            // The API refuses empty text blocks.
            Block::Text(text) if text.text.trim().is_empty() => {}
            Block::Text(text) => {
                comma(out, first);
                text_block(out, &text.text);
            }
            Block::Image(image) => {
                comma(out, first);
                self.image(image, out);
            }
            Block::Reasoning(reasoning) => {
                if let Some(raw) = reasoning.raw.as_ref().filter(|raw| raw.wire == NAME) {
                    comma(out, first);
                    out.extend_from_slice(raw.json.as_str().as_bytes());
                }
            }
            Block::ToolUse(tool_use) => {
                comma(out, first);
                Members::open(out)
                    .str("type", "tool_use")
                    .str("id", &tool_use.id)
                    .str("name", &tool_use.name)
                    .raw("input", tool_use.input.to_object().as_str())
                    .close();
            }
            Block::ToolResult(result) => {
                comma(out, first);
                self.tool_result(result, out);
            }
        }
    }

    fn tool_result(&self, result: &ToolResult, out: &mut Vec<u8>) {
        let mut content = vec![b'['];
        let mut first = true;
        for part in &result.parts {
            match part {
                ResultPart::Text(text) if text.is_empty() => {}
                ResultPart::Text(text) => {
                    comma(&mut content, &mut first);
                    text_block(&mut content, text);
                }
                ResultPart::Image(image) => {
                    comma(&mut content, &mut first);
                    self.image(image, &mut content);
                }
            }
        }
        content.push(b']');
        let mut members = Members::open(out)
            .str("type", "tool_result")
            .str("tool_use_id", &result.call);
        // Nearly all results are one text, which needs no array around it.
        if let [ResultPart::Text(text)] = result.parts.as_slice()
            && !text.is_empty()
        {
            members = members.str("content", text);
        } else if !first {
            members.key("content").extend_from_slice(&content);
        }
        if result.is_error {
            members = members.raw("is_error", "true");
        }
        members.close();
    }

    fn image(&self, image: &Image, out: &mut Vec<u8>) {
        if !self.options.images {
            return text_block(out, NO_IMAGE);
        }
        let mut source = Vec::new();
        Members::open(&mut source)
            .str("type", "base64")
            .str("media_type", &image.media_type)
            .str("data", &image.data)
            .close();
        let mut members = Members::open(out).str("type", "image");
        members.key("source").extend_from_slice(&source);
        members.close();
    }
}

fn text_block(out: &mut Vec<u8>, text: &str) {
    Members::open(out)
        .str("type", "text")
        .str("text", text)
        .close();
}
