//! What must hold of every request: calls and results pair up, roles alternate as the wire
//! demands, and what was sent before is sent again byte for byte.

use crate::WireKind;
use crate::http::Request;
use serde_json::Value;
use std::collections::HashSet;

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

/// Watches the requests of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    last: Option<Vec<u8>>,
    /// Whether the conversation may begin anew: a summary was asked for, or it was refused.
    pub(crate) may_restart: bool,
    /// What a provider's cache holds: everything before each mark that was ever sent.
    cache: HashSet<String>,
}

impl Checker {
    /// Takes a request; answers how much of it was cached and how much it asks to be.
    pub(crate) fn take(
        &mut self,
        wire: WireKind,
        request: &Request,
        out: &mut Vec<String>,
    ) -> (usize, usize) {
        let body = &request.body;
        out.extend(violations(wire, body));
        if request.header("content-type") != Some("application/json") {
            out.push("the content type is not application/json".to_owned());
        }
        let text = String::from_utf8_lossy(body).into_owned();
        let plain = text.replace(MARK, "").into_bytes();
        let is_aside = asks_for_summary(&text);
        // A compacted conversation begins anew, and a question for a summary leaves out what was
        // not answered yet; both have the prefix that there always was.
        let may_differ = is_aside || (self.may_restart && is_compacted(&text));
        self.may_restart = is_aside;
        let last = self.last.as_ref();
        if let Some(last) = last.filter(|_| may_differ) {
            let now = String::from_utf8_lossy(&plain);
            if head(wire, &now) != head(wire, &String::from_utf8_lossy(last)) {
                out.push("the prefix is another one after a compaction".to_owned());
            }
        }
        if let Some(last) = last.filter(|_| !may_differ) {
            // A request ends with what closes its arrays and objects; all before that stays.
            let kept = last.len().saturating_sub(4);
            if !plain.starts_with(&last[..kept]) {
                let same = plain.iter().zip(last).take_while(|(a, b)| a == b).count();
                let shown = String::from_utf8_lossy(
                    &last[same.saturating_sub(80)..last.len().min(same + 80)],
                )
                .into_owned();
                out.push(format!(
                    "byte {same} of what was sent before has changed, near: {shown}"
                ));
            }
        }
        if !is_aside {
            self.last = Some(plain);
        }
        self.look_up(&text)
    }

    fn look_up(&mut self, text: &str) -> (usize, usize) {
        let mut before = String::new();
        let mut hit = 0;
        let parts: Vec<&str> = text.split(MARK).collect();
        for part in &parts[..parts.len() - 1] {
            before.push_str(part);
            if self.cache.contains(&before) {
                hit = before.len();
            }
        }
        let mut before = String::new();
        for part in &parts[..parts.len() - 1] {
            before.push_str(part);
            self.cache.insert(before.clone());
        }
        (hit, before.len())
    }
}

/// Whether a request asks for a summary of its conversation.
pub fn asks_for_summary(body: &str) -> bool {
    body.contains(first_words(include_str!("../../prompts/compact.md")))
}

/// Whether a request's conversation was compacted.
pub fn is_compacted(body: &str) -> bool {
    body.contains(first_words(include_str!("../../prompts/compacted.md")))
}

fn first_words(text: &str) -> &str {
    text.split_once(':').map_or(text, |(words, _)| words)
}

/// All of a request before what was said.
pub fn head(wire: WireKind, body: &str) -> &str {
    let begins = match wire {
        WireKind::Anthropic => "\"messages\":",
        WireKind::Responses => "\"input\":",
        WireKind::Chat => "{\"role\":\"user\"",
    };
    body.split_once(begins).map_or("", |(head, _)| head)
}

/// What is wrong with a request's body.
pub fn violations(wire: WireKind, body: &[u8]) -> Vec<String> {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return vec![format!("the body is not JSON: {error}")],
    };
    let mut wrong = Vec::new();
    if value["stream"] != true {
        wrong.push("it does not ask for a stream".to_owned());
    }
    match wire {
        WireKind::Anthropic => anthropic(&value, &mut wrong),
        WireKind::Responses => responses(&value, &mut wrong),
        WireKind::Chat => chat(&value, &mut wrong),
    }
    wrong
}

fn strings(items: &Value, kind: &str, id: &str) -> Vec<String> {
    let items = items.as_array().into_iter().flatten();
    items
        .filter(|item| item["type"] == kind)
        .map(|item| item[id].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn anthropic(body: &Value, wrong: &mut Vec<String>) {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    if messages.first().is_none_or(|first| first["role"] != "user") {
        wrong.push("the first message is not the user's".to_owned());
    }
    let mut open: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let want = if n % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != want {
            wrong.push(format!("message {n} is not the {want}'s"));
        }
        let results = strings(&message["content"], "tool_result", "tool_use_id");
        if results != open {
            wrong.push(format!(
                "message {n} has results for {results:?}, not for {open:?}"
            ));
        }
        open = strings(&message["content"], "tool_use", "id");
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "text"
                && block["text"]
                    .as_str()
                    .is_none_or(|text| text.trim().is_empty())
            {
                wrong.push(format!("message {n} has an empty text block"));
            }
            if block["type"] == "tool_use" && !block["input"].is_object() {
                wrong.push(format!("message {n} has a call whose input is no object"));
            }
        }
        if message["content"].as_array().is_none_or(Vec::is_empty) {
            wrong.push(format!("message {n} is empty"));
        }
    }
    if !open.is_empty() {
        wrong.push(format!("calls without results: {open:?}"));
    }
    let text = body.to_string();
    let marks = text.matches("\"cache_control\"").count();
    if marks > 4 {
        wrong.push(format!("{marks} cache marks; 4 are allowed"));
    }
    let last = messages
        .last()
        .and_then(|message| message["content"].as_array()?.last().cloned());
    if last.is_none_or(|block| block["cache_control"].is_null()) {
        wrong.push("the last block has no cache mark".to_owned());
    }
}

fn responses(body: &Value, wrong: &mut Vec<String>) {
    let items = &body["input"];
    let calls = strings(items, "function_call", "call_id");
    let results = strings(items, "function_call_output", "call_id");
    if calls != results {
        wrong.push(format!("calls {calls:?} and results {results:?} differ"));
    }
    let mut after_reasoning = false;
    for (n, item) in items.as_array().into_iter().flatten().enumerate() {
        if item["type"].is_null() {
            wrong.push(format!("item {n} has no type"));
        }
        let is_own = item["type"] == "function_call"
            || item["role"] == "assistant"
            || item["type"] == "reasoning";
        if after_reasoning && !is_own {
            wrong.push(format!(
                "item {} is reasoning without the item that follows from it",
                n - 1
            ));
        }
        after_reasoning = item["type"] == "reasoning";
    }
    if body["store"] != false {
        wrong.push("it would leave state on the server".to_owned());
    }
}

fn chat(body: &Value, wrong: &mut Vec<String>) {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let mut open: Vec<String> = Vec::new();
    let mut last = String::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default().to_owned();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.first().is_none_or(|first| first != id) {
                wrong.push(format!(
                    "message {n} is the result of {id:?}, not of {:?}",
                    open.first()
                ));
            } else {
                open.remove(0);
            }
        } else if !open.is_empty() {
            wrong.push(format!("message {n} comes before the results of {open:?}"));
        }
        if role == last && role != "tool" {
            wrong.push(format!(
                "messages {} and {n} are both of the role {role}",
                n.wrapping_sub(1)
            ));
        }
        if role == "assistant" {
            open = strings(&message["tool_calls"], "function", "id");
        }
        last = role;
    }
    if !open.is_empty() {
        wrong.push(format!("calls without results: {open:?}"));
    }
}
