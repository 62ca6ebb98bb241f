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
    call(turn, "Read", &read_input())
}

/// An answer that has the file printed by a command.
pub(crate) fn bash_call(turn: u64) -> String {
    call(turn, "Bash", &format!("{{\"command\":\"cat {FILE}\"}}"))
}

fn call(turn: u64, tool: &str, input: &str) -> String {
    let id = call_id(turn);
    let start =
        format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{tool}\",\"input\":{{}}}}");
    let input = input.replace('"', "\\\"");
    let mut out = opening(&start);
    for part in ["", &input] {
        delta(&mut out, "input_json_delta", "partial_json", part);
    }
    out + &closing("tool_use")
}

/// An answer that starts so many workers. `from` is the number of the first.
pub(crate) fn agent_calls(from: u64, workers: u64) -> String {
    let mut out = String::new();
    message_start(&mut out);
    for index in 0..workers {
        let id = call_id(from + index);
        let start = format!(
            "\"index\":{index},\"content_block\":{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"Agent\",\"input\":{{}}}}"
        );
        event(&mut out, "content_block_start", &start);
        let input = format!(
            "{{\"description\":\"read a small file\",\"prompt\":\"Read {FILE} and say what stands there. You are number {:05}.\"}}",
            from + index
        );
        let input = input.replace('"', "\\\"");
        let delta = format!(
            "\"index\":{index},\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"{input}\"}}"
        );
        event(&mut out, "content_block_delta", &delta);
        event(
            &mut out,
            "content_block_stop",
            &format!("\"index\":{index}"),
        );
    }
    message_end(&mut out, "tool_use");
    out
}

/// An answer of a few words.
pub(crate) fn words(text: &str) -> String {
    let mut out = text_opening();
    delta(&mut out, "text_delta", "text", text);
    out + &text_closing()
}

/// What a worker says last: a word, or so many bytes.
pub(crate) fn last_words(bytes: u64) -> String {
    const WORDS: &str = "Nothing there is worth a second look. ";
    match usize::try_from(bytes) {
        Ok(0) | Err(_) => "done".to_owned(),
        Ok(bytes) => WORDS.repeat(bytes.div_ceil(WORDS.len())),
    }
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
    message_start(&mut out);
    let start = format!("\"index\":0,\"content_block\":{block}");
    event(&mut out, "content_block_start", &start);
    out
}

fn message_start(out: &mut String) {
    let usage = "{\"input_tokens\":3,\"cache_creation_input_tokens\":150,\"cache_read_input_tokens\":9000,\"output_tokens\":1}";
    event(
        out,
        "message_start",
        &format!(
            "\"message\":{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"{MODEL}\",\"content\":[],\"stop_reason\":null,\"usage\":{usage}}}"
        ),
    );
}

fn delta(out: &mut String, kind: &str, member: &str, text: &str) {
    let rest = format!("\"index\":0,\"delta\":{{\"type\":\"{kind}\",\"{member}\":\"{text}\"}}");
    event(out, "content_block_delta", &rest);
}

fn closing(reason: &str) -> String {
    let mut out = String::new();
    event(&mut out, "content_block_stop", "\"index\":0");
    message_end(&mut out, reason);
    out
}

fn message_end(out: &mut String, reason: &str) {
    let rest = format!(
        "\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":40}}"
    );
    event(out, "message_delta", &rest);
    out.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

fn event(out: &mut String, name: &str, rest: &str) {
    let whole = format!("event: {name}\ndata: {{\"type\":\"{name}\",{rest}}}\n\n");
    out.push_str(&whole);
}
