//! What the canned model says: events of the Anthropic wire, and the file that it reads.

pub(crate) const MODEL: &str = "claude-opus-5-5";
pub(crate) const FILE: &str = "small.txt";
/// Every delta of a long answer has so many bytes of text.
pub(crate) const DELTA: usize = 20;
/// So many deltas stand in one piece of a long answer: about what one packet buffer holds.
const DELTAS_A_PIECE: usize = 125;
pub(crate) const PIECE: usize = DELTA * DELTAS_A_PIECE;

/// A small file: ten lines.
pub(crate) fn file() -> String {
    let line = |n: u32| format!("line {n}: nothing here is worth a second look\n");
    (0..10).map(line).collect()
}

pub(crate) fn read_input() -> String {
    format!("{{\"file_path\":\"{FILE}\"}}")
}

/// The id of a call. All ids have one length, so that turns differ in nothing else.
pub(crate) fn call_id(turn: u64) -> String {
    format!("toolu_{turn:08}")
}

/// An answer that reads the file.
pub(crate) fn read_call(turn: u64) -> String {
    let id = call_id(turn);
    let start =
        format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"Read\",\"input\":{{}}}}");
    let input = read_input().replace('"', "\\\"");
    let mut out = opening(&start);
    for part in ["", &input] {
        delta(&mut out, "input_json_delta", "partial_json", part);
    }
    out + &closing("tool_use")
}

/// An answer of a few words.
pub(crate) fn words(text: &str) -> String {
    let mut out = text_opening();
    delta(&mut out, "text_delta", "text", text);
    out + &text_closing()
}

pub(crate) fn text_opening() -> String {
    opening("{\"type\":\"text\",\"text\":\"\"}")
}

pub(crate) fn text_closing() -> String {
    closing("end_turn")
}

/// The deltas of `PIECE` bytes of text. One in five holds a line break, which has to be decoded
/// where the others can be borrowed.
pub(crate) fn piece() -> String {
    let mut out = String::new();
    for n in 0..DELTAS_A_PIECE {
        let text = if n % 5 == 4 {
            "and a line ends so.\\n"
        } else {
            "twenty bytes in all "
        };
        delta(&mut out, "text_delta", "text", text);
    }
    out
}

fn opening(block: &str) -> String {
    let mut out = String::new();
    let usage = "{\"input_tokens\":3,\"cache_creation_input_tokens\":150,\"cache_read_input_tokens\":9000,\"output_tokens\":1}";
    event(
        &mut out,
        "message_start",
        &format!(
            "\"message\":{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"{MODEL}\",\"content\":[],\"stop_reason\":null,\"usage\":{usage}}}"
        ),
    );
    let start = format!("\"index\":0,\"content_block\":{block}");
    event(&mut out, "content_block_start", &start);
    out
}

fn delta(out: &mut String, kind: &str, member: &str, text: &str) {
    let rest = format!("\"index\":0,\"delta\":{{\"type\":\"{kind}\",\"{member}\":\"{text}\"}}");
    event(out, "content_block_delta", &rest);
}

fn closing(reason: &str) -> String {
    let mut out = String::new();
    event(&mut out, "content_block_stop", "\"index\":0");
    let rest = format!(
        "\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":40}}"
    );
    event(&mut out, "message_delta", &rest);
    out.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    out
}

fn event(out: &mut String, name: &str, rest: &str) {
    let whole = format!("event: {name}\ndata: {{\"type\":\"{name}\",{rest}}}\n\n");
    out.push_str(&whole);
}
