//! What of a request a provider counts as input, and what a request is made of.

use crate::cache::MARK;
use crate::report::{Report, count};
use anyhow::Context;
use serde_json::Value;

/// What of the parts of one kind there is in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    kind: &'static str,
    number: u64,
    /// As they are sent, and as they are counted.
    bytes: usize,
    content: usize,
}

/// The request as a model reads it: tools, system and messages, in the order of the provider's
/// cache. The JSON around them, its escapes, and members such as `max_tokens` are not read by a
/// model, and no provider counts them. Marks stand where they stood.
pub(crate) fn of(body: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut out = String::new();
    visit(body, &mut |_, value, text| {
        out.push_str(text);
        if !value["cache_control"].is_null() {
            out.push_str(MARK);
        }
    })?;
    Ok(out.into_bytes())
}

/// Adds to a report what a request is made of. What is not in the list is the JSON around it.
pub(crate) fn report(report: &mut Report, whose: &str, body: &[u8]) -> anyhow::Result<()> {
    report.row([whose, "number", "bytes", "content"]);
    let parts = parts(body)?;
    let mut row = |kind: &str, number: &str, bytes: usize, content: usize| {
        let [bytes, content] = [bytes, content].map(|it| count(it as u64));
        report.row([&format!("  {kind}"), number, &bytes, &content]);
    };
    for part in &parts {
        row(part.kind, &count(part.number), part.bytes, part.content);
    }
    let sent = String::from_utf8_lossy(body).replace(MARK, "").len();
    let bytes: usize = parts.iter().map(|it| it.bytes).sum();
    row("JSON around them", "", sent.saturating_sub(bytes), 0);
    let content = parts.iter().map(|it| it.content).sum();
    row("all", "", sent, content);
    Ok(())
}

fn parts(body: &[u8]) -> anyhow::Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    visit(body, &mut |kind, value, text| {
        let bytes = value.to_string().replace(MARK, "").len();
        match parts.iter_mut().find(|it| it.kind == kind) {
            Some(part) => {
                part.number += 1;
                part.bytes += bytes;
                part.content += text.len();
            }
            None => parts.push(Part {
                kind,
                number: 1,
                bytes,
                content: text.len(),
            }),
        }
    })?;
    Ok(parts)
}

/// Shows each part: its kind, the part itself, and what of it is counted.
fn visit(body: &[u8], see: &mut dyn FnMut(&'static str, &Value, &str)) -> anyhow::Result<()> {
    let body: Value = serde_json::from_slice(body).context("a request is not JSON")?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for tool in list(&body["tools"]) {
        let [name, about] = ["name", "description"].map(|it| word(&tool[it]));
        let text = format!("{name}\n{about}\n{}\n", tool["input_schema"]);
        see("tools", &tool, &text);
    }
    for block in list(&body["system"]) {
        see("system", &block, word(&block["text"]));
    }
    for message in list(&body["messages"]) {
        let role = word(&message["role"]);
        for block in list(&message["content"]) {
            // A model is told who speaks. No provider says in how many tokens; four a block is
            // rather too many than too few.
            let text = format!("\n<|{role}|>\n{}", words(&block));
            see(kind(role, &block), &block, &text);
        }
    }
    Ok(())
}

fn kind(role: &str, block: &Value) -> &'static str {
    let text = word(&block["text"]);
    match word(&block["type"]) {
        "tool_use" => "calls",
        "tool_result" => "results of calls",
        _ if role == "assistant" => "its own words",
        _ if text.starts_with("<context>") => "context",
        _ if text.starts_with("<task-notification>") => "notifications",
        _ => "what it is told",
    }
}

/// Ids are taken to be counted, though a model may never see them.
fn words(block: &Value) -> String {
    let id = |name: &str| word(&block[name]).to_owned();
    match word(&block["type"]) {
        "text" => word(&block["text"]).to_owned(),
        "tool_use" => format!("{} {} {}", id("id"), id("name"), block["input"]),
        "tool_result" => {
            let parts = block["content"].as_array().into_iter().flatten();
            let parts: String = parts.map(|part| word(&part["text"])).collect();
            let text = block["content"].as_str().unwrap_or(&parts);
            format!("{} {text}", id("tool_use_id"))
        }
        _ => block.to_string(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Vec<u8> {
        let body = r#"{"model":"m","stream":true,
            "tools":[{"name":"Read","description":"Reads.","input_schema":{"type":"object"}}],
            "system":[{"type":"text","text":"Be\nbrief."|}],
            "messages":[
                {"role":"user","content":[{"type":"text","text":"<context>"},{"type":"text","text":"Go."}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"x":1}}]},
                {"role":"user","content":[
                    {"type":"tool_result","tool_use_id":"a","content":"one"},
                    {"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"two"}]|}]}]}"#;
        body.replace('|', MARK).into_bytes()
    }

    #[test]
    fn what_a_model_reads_is_counted_and_marks_stay() {
        let want = "Read\nReads.\n{\"type\":\"object\"}\nBe\nbrief.|\n<|user|>\n<context>\
            \n<|user|>\nGo.\n<|assistant|>\na Read {\"x\":1}\n<|user|>\na one\n<|user|>\nb two|";
        // The frames of roles have such strokes, too.
        let got = String::from_utf8(of(&body()).unwrap()).unwrap();
        assert_eq!(got.replace(MARK, "|"), want);
    }

    #[test]
    fn parts_are_told_by_their_kind() {
        let parts = parts(&body()).unwrap();
        let kinds: Vec<(&str, u64)> = parts.iter().map(|it| (it.kind, it.number)).collect();
        let want = [
            ("tools", 1),
            ("system", 1),
            ("context", 1),
            ("what it is told", 1),
            ("calls", 1),
            ("results of calls", 2),
        ];
        assert_eq!(kinds, want);
        let tools = format!("Read\nReads.\n{}\n", "{\"type\":\"object\"}");
        assert_eq!(parts[0].content, tools.len());
    }
}
