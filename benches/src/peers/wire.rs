//! One server for all of them: whatever wire a program speaks, the answer is one word.

use crate::events;
use crate::server::content_length;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::time::Instant;

const WORD: &str = "done";

/// Serves on threads of this process until it ends. `asked` hears of each question to a model.
pub(super) fn listen(asked: Sender<Instant>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = asked.clone();
            // A connection that breaks is the client's to report.
            std::thread::spawn(move || drop(talk(&stream, &asked)));
        }
    });
    Ok(address)
}

fn talk(stream: &TcpStream, asked: &Sender<Instant>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let arrived = Instant::now();
        if head
            .to_ascii_lowercase()
            .contains("\r\nexpect: 100-continue")
        {
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = body(&mut reader, &head)?;
        let target = head.split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let streams = memchr::memmem::find(&body, b"\"stream\":true").is_some()
            || memchr::memmem::find(&body, b"\"stream\": true").is_some();
        let (kind, text) = match answer(path, streams) {
            Some(answer) => {
                // Nobody may be interested any more.
                let _ = asked.send(arrived);
                answer
            }
            None => ("application/json", beside(path).to_string()),
        };
        let is_head = head.starts_with("HEAD ");
        let length = text.len();
        let mut whole =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        if !is_head {
            whole.push_str(&text);
        }
        let mut stream = stream;
        stream.write_all(whole.as_bytes())?;
    }
}

/// By its length, or in chunks.
fn body(reader: &mut impl BufRead, head: &str) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let lower = head.to_ascii_lowercase();
    if lower.contains("\r\ntransfer-encoding: chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = line.trim().split(';').next().unwrap_or_default();
            let size = u64::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
            reader.take(size).read_to_end(&mut body)?;
            let mut end = String::new();
            reader.read_line(&mut end)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length = content_length(head.as_bytes()).unwrap_or(0);
    reader.take(length as u64).read_to_end(&mut body)?;
    Ok(body)
}

/// What is answered where a model is asked.
fn answer(path: &str, streams: bool) -> Option<(&'static str, String)> {
    const EVENTS: &str = "text/event-stream";
    const JSON: &str = "application/json";
    let end = path.rsplit('/').next().unwrap_or_default();
    if end.ends_with(":streamGenerateContent") {
        return Some((EVENTS, format!("data: {}\r\n\r\n", google())));
    }
    if end.ends_with(":generateContent") {
        return Some((JSON, google().to_string()));
    }
    match (end, streams) {
        ("messages", true) => Some((EVENTS, events::words(WORD))),
        ("messages", false) => Some((JSON, message().to_string())),
        ("responses", true) => Some((EVENTS, responses())),
        ("responses", false) => Some((JSON, response("completed").to_string())),
        ("completions", true) => Some((EVENTS, chat())),
        ("completions", false) => Some((JSON, completion().to_string())),
        _ => None,
    }
}

/// What is answered to whatever else a program wants to know.
fn beside(path: &str) -> Value {
    match path.rsplit('/').next().unwrap_or_default() {
        "count_tokens" => json!({"input_tokens": 10}),
        end if end.ends_with(":countTokens") => json!({"totalTokens": 10}),
        "models" => json!({"object": "list", "data": [], "models": []}),
        _ => json!({}),
    }
}

fn message() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": events::MODEL,
        "content": [{"type": "text", "text": WORD}], "stop_reason": "end_turn",
        "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1},
    })
}

fn google() -> Value {
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": [{"text": WORD}]},
            "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11},
    })
}

fn item() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": WORD, "annotations": []}],
    })
}

fn response(status: &str) -> Value {
    let mut response = json!({
        "id": "resp_1", "object": "response", "created_at": 1_790_000_000, "model": "bench",
        "status": status, "output": [],
    });
    if status == "completed" {
        response["output"] = json!([item()]);
        response["usage"] = json!({
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 11,
        });
    }
    response
}

fn responses() -> String {
    let place = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0});
    let with = |more: Value| {
        let mut all = place.clone();
        for (name, value) in more.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        all
    };
    let events = [
        (
            "response.created",
            json!({"response": response("in_progress")}),
        ),
        (
            "response.output_item.added",
            with(json!({"item": {
                "id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress",
                "content": [],
            }})),
        ),
        ("response.output_text.delta", with(json!({"delta": WORD}))),
        ("response.output_text.done", with(json!({"text": WORD}))),
        ("response.output_item.done", with(json!({"item": item()}))),
        (
            "response.completed",
            json!({"response": response("completed")}),
        ),
    ];
    let mut out = String::new();
    for (number, (name, mut event)) in events.into_iter().enumerate() {
        event["type"] = json!(name);
        event["sequence_number"] = json!(number);
        out.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    }
    out
}

fn completion() -> Value {
    json!({
        "id": "chat_1", "object": "chat.completion", "created": 1_790_000_000, "model": "bench",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": WORD},
        }],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    })
}

fn chat() -> String {
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({
            "id": "chat_1", "object": "chat.completion.chunk", "created": 1_790_000_000,
            "model": "bench", "choices": [choice],
        });
        format!("data: {chunk}\n\n")
    };
    let first = chunk(json!({"role": "assistant", "content": WORD}), Value::Null);
    first + &chunk(json!({}), json!("stop")) + "data: [DONE]\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_is_answered_and_nothing_else_counts_as_a_question() {
        for path in [
            "/v1/messages",
            "/v1/responses",
            "/v1/chat/completions",
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
        ] {
            for streams in [true, false] {
                let (_, text) = answer(path, streams).unwrap();
                assert!(text.contains(WORD), "{path}");
            }
        }
        for path in ["/v1/models", "/v1/messages/count_tokens", "/", "/api/hello"] {
            assert_eq!(answer(path, true), None, "{path}");
        }
    }

    #[test]
    fn a_body_in_chunks_is_read_to_its_end() {
        let mut text: &[u8] = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nnext";
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(body(&mut text, head).unwrap(), b"abcde");
        assert_eq!(text, b"next");
    }
}
