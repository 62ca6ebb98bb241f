//! OpenAI Responses: `POST {base}/v1/responses`, without state on the server.

mod stream;

use super::{
    Decoder, Encoding, Members, NO_IMAGE, Wire, WireOptions, comma, data_url, separate, string,
};
use crate::conversation::Prefix;
use gaffer_protocol::{Block, Image, Message, ResultPart, Role, ToolResult};

const NAME: &str = "openai";

#[derive(Debug, Clone)]
pub struct Responses {
    pub options: WireOptions,
}

impl Wire for Responses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &'static str {
        "responses"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let bearer = |key| ("authorization", format!("Bearer {key}"));
        key.map(bearer).into_iter().collect()
    }

    fn head(&self, prefix: &Prefix) -> Vec<u8> {
        let mut tools = vec![b'['];
        let mut first = true;
        for tool in &prefix.tools {
            comma(&mut tools, &mut first);
            Members::open(&mut tools)
                .str("type", "function")
                .str("name", &tool.name)
                .str("description", &tool.description)
                .raw("parameters", tool.schema.as_str())
                .raw("strict", "false")
                .close();
        }
        for tool in &self.options.server_tools {
            comma(&mut tools, &mut first);
            tools.extend_from_slice(tool.as_str().as_bytes());
        }
        tools.push(b']');
        let mut out = Vec::with_capacity(tools.len() + prefix.system.len() + 512);
        let own = ["model", "stream", "instructions", "tools", "input"];
        let mut members = Members::open(&mut out)
            .str("model", &self.options.model)
            .raw("stream", "true");
        let has = |key: &str| self.options.extra.contains_key(key);
        if !has("store") {
            members = members.raw("store", "false");
        }
        // Without state on the server, reasoning comes back only if it can be carried back.
        // Models that do not reason refuse to be asked for it.
        if !has("include") && reasons(&self.options.model) {
            members = members.raw("include", "[\"reasoning.encrypted_content\"]");
        }
        if !has("max_output_tokens") {
            let limit = self.options.max_output.to_string();
            members = members.raw("max_output_tokens", &limit);
        }
        if !has("prompt_cache_key") {
            members = members.str("prompt_cache_key", &prefix.hash());
        }
        members = members.extra(&self.options, &own);
        if !prefix.system.is_empty() {
            members = members.str("instructions", &prefix.system);
        }
        if tools.len() > 2 {
            members.key("tools").extend_from_slice(&tools);
        }
        members.key("input").push(b'[');
        out
    }

    fn encode(
        &self,
        message: &Message,
        encoding: &mut Encoding,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let mut first = !encoding.started;
        // Blocks of one kind that stand together share an item.
        let mut content = Vec::new();
        for block in &message.blocks {
            match block {
                Block::Text(text) if text.text.is_empty() => {}
                Block::Text(text) => {
                    separate(&mut content);
                    let kind = match message.role {
                        Role::User => "input_text",
                        Role::Assistant => "output_text",
                    };
                    Members::open(&mut content)
                        .str("type", kind)
                        .str("text", &text.text)
                        .close();
                }
                Block::Image(image) => {
                    separate(&mut content);
                    self.image(image, &mut content);
                }
                other => {
                    flush(message.role, &mut content, out, &mut first);
                    self.item(other, out, &mut first);
                }
            }
        }
        flush(message.role, &mut content, out, &mut first);
        encoding.started = !first;
        None
    }

    fn tail(&self, _: &Encoding) -> &'static [u8] {
        b"]}"
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }
}

/// Whether the model is of a family that reasons: all but the ones from before.
fn reasons(model: &str) -> bool {
    let before = ["gpt-4", "gpt-3", "chatgpt-4o"];
    !before.iter().any(|family| model.starts_with(family))
}

fn flush(role: Role, content: &mut Vec<u8>, out: &mut Vec<u8>, first: &mut bool) {
    if content.is_empty() {
        return;
    }
    comma(out, first);
    let role = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let mut members = Members::open(out).str("type", "message").str("role", role);
    let array = members.key("content");
    array.push(b'[');
    array.append(content);
    array.push(b']');
    members.close();
}

impl Responses {
    fn item(&self, block: &Block, out: &mut Vec<u8>, first: &mut bool) {
        match block {
            Block::Reasoning(reasoning) => {
                if let Some(raw) = reasoning.raw.as_ref().filter(|raw| raw.wire == NAME) {
                    comma(out, first);
                    out.extend_from_slice(raw.json.as_str().as_bytes());
                }
            }
            Block::ToolUse(tool_use) => {
                comma(out, first);
                Members::open(out)
                    .str("type", "function_call")
                    .str("call_id", &tool_use.id)
                    .str("name", &tool_use.name)
                    .str("arguments", tool_use.input.as_text())
                    .close();
            }
            Block::ToolResult(result) => {
                comma(out, first);
                self.tool_result(result, out);
            }
            Block::Text(_) | Block::Image(_) => {}
        }
    }

    fn tool_result(&self, result: &ToolResult, out: &mut Vec<u8>) {
        let mut members = Members::open(out)
            .str("type", "function_call_output")
            .str("call_id", &result.call);
        let output = members.key("output");
        let has_image = |part: &ResultPart| matches!(part, ResultPart::Image(_));
        if result.parts.iter().any(has_image) {
            output.push(b'[');
            let mut first = true;
            for part in &result.parts {
                comma(output, &mut first);
                match part {
                    ResultPart::Image(image) => self.image(image, output),
                    ResultPart::Text(text) => input_text(output, text),
                }
            }
            output.push(b']');
        } else {
            string(output, &super::result_text(result));
        }
        members.close();
    }

    fn image(&self, image: &Image, out: &mut Vec<u8>) {
        if !self.options.images {
            return input_text(out, NO_IMAGE);
        }
        Members::open(out)
            .str("type", "input_image")
            .str("image_url", &data_url(image))
            .close();
    }
}

fn input_text(out: &mut Vec<u8>, text: &str) {
    Members::open(out)
        .str("type", "input_text")
        .str("text", text)
        .close();
}
