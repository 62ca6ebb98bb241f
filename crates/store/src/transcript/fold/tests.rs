//! What is read back, whole and damaged.

use super::super::sample::*;
use super::super::{Record, interrupted};
use super::*;
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{Image, Json, Reasoning, ResultPart, ToolUse};
use proptest::prelude::*;
use std::io::Read;

/// Every call has one result, right behind its answer and in its order.
fn assert_valid(messages: &[Message]) {
    let mut expected: Vec<String> = Vec::new();
    for message in messages {
        let results: Vec<String> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult(result) => Some(result.call.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(results, expected, "{messages:?}");
        expected = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse(call) if message.role == Role::Assistant => Some(call.id.clone()),
                _ => None,
            })
            .collect();
    }
    assert!(expected.is_empty(), "{messages:?}");
}

#[test]
fn results_stand_in_the_order_of_their_calls() {
    let fold = Fold::of(&sample());
    assert_eq!(fold.messages.len(), 6);
    assert_eq!(fold.end, Some(End::Done));
    assert_eq!(fold.usage.output, 3);
    assert_valid(&fold.messages);
    let Block::ToolResult(first) = &fold.messages[2].blocks[0] else {
        panic!("no result")
    };
    assert_eq!(first.text(), "result of a");
}

#[test]
fn turns_calls_and_time_are_counted_without_the_rest_between_runs() {
    let mut all = sample();
    let fold = Fold::of(&all);
    let calls: Vec<u32> = fold.turns.iter().map(|turn| turn.calls).collect();
    assert_eq!(calls, [2, 1, 0]);
    assert_eq!((fold.ends, fold.worked_ms), (1, 7));
    for (at, entry) in [(100, input("more")), (105, answer(vec![Block::text("x")]))] {
        let at = Timestamp(at);
        serde_json::to_writer(&mut all, &Record { at, entry }).unwrap();
        all.push(b'\n');
    }
    let fold = Fold::of(&all);
    assert_eq!((fold.ends, fold.worked_ms, fold.end), (1, 12, None));
    assert_eq!(fold.span, Some((Timestamp(0), Timestamp(105))));
}

#[test]
fn a_transcript_cut_at_any_byte_is_a_valid_conversation() {
    let all = sample();
    for end in 0..=all.len() {
        let fold = Fold::of(&all[..end]);
        assert_valid(&fold.messages);
        assert!(fold.damaged.len() <= 1);
    }
}

proptest! {
    #[test]
    fn noise_in_the_file_is_skipped_and_counted(at in 0usize..900, noise in prop::collection::vec(any::<u8>(), 1..20)) {
        let mut all = sample();
        let at = at.min(all.len());
        all.splice(at..at, noise);
        assert_valid(&Fold::of(&all).messages);
    }
}

fn texts(message: &Message) -> Vec<&str> {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn fold(entries: Vec<Entry>) -> Fold {
    let fold = Fold::of(&bytes(entries));
    assert_valid(&fold.messages);
    fold
}

#[test]
fn an_answer_without_what_it_answers_is_told_as_a_loss() {
    let said = || answer(vec![Block::text("x")]);
    let first = fold(vec![said()]);
    assert_eq!(texts(&first.messages[0]), [LOST]);
    assert_eq!(first.damaged.gaps(), 1);
    let after_another = fold(vec![input("a"), said(), said()]);
    assert_eq!(after_another.messages.len(), 4);
    assert_eq!(texts(&after_another.messages[2]), [LOST]);
    let Block::Text(text) = &after_another.messages[2].blocks[0] else {
        panic!("no text")
    };
    assert_eq!(text.origin, Some(Origin::Context));
}

#[test]
fn a_result_without_its_call_is_told_once_and_one_that_comes_twice_is_not() {
    let lost = fold(vec![input("a"), result("x"), result("y"), input("b")]);
    assert_eq!(lost.damaged.gaps(), 2);
    let all: Vec<_> = lost.messages.iter().flat_map(texts).collect();
    assert_eq!(all, ["a", LOST, "b"]);
    let twice = fold(vec![
        input("a"),
        answer(vec![call("x")]),
        result("x"),
        result("x"),
        input("b"),
        result("x"),
    ]);
    assert!(twice.damaged.is_empty());
    assert_eq!(twice.messages.len(), 4);
}

#[test]
fn what_goes_on_after_a_pause_is_one_answer() {
    let paused = |stop, text: &str| {
        Entry::Answer(Arc::new(Answer {
            blocks: vec![Block::text(text)],
            stop,
            usage: Usage::default(),
            model: "m".into(),
        }))
    };
    let fold = fold(vec![
        input("a"),
        paused(StopReason::Pause, "one"),
        paused(StopReason::Pause, "two"),
        paused(StopReason::EndTurn, "three"),
    ]);
    assert!(fold.damaged.is_empty());
    assert_eq!(fold.messages.len(), 2);
    assert_eq!(texts(&fold.messages[1]), ["one", "two", "three"]);
    assert_eq!(fold.turns.len(), 3);
}

#[test]
fn no_two_calls_have_one_id() {
    let fold = fold(vec![
        input("a"),
        answer(vec![call("x"), call("x")]),
        result("x"),
        result("x"),
        answer(vec![call("x"), call("x_2"), call("")]),
        result("x_2"),
        result(""),
        result("x"),
    ]);
    let mut ids = Vec::new();
    for block in fold.messages.iter().flat_map(|message| &message.blocks) {
        match block {
            Block::ToolUse(call) => ids.push(call.id.as_str()),
            Block::ToolResult(result) => assert!(!result.is_error, "{result:?}"),
            _ => {}
        }
    }
    assert_eq!(ids, ["x", "x_2", "x_3", "x_2_2", "call_1"]);
    assert!(fold.damaged.is_empty());
}

#[test]
fn the_calls_of_a_cut_answer_are_said_to_be_so() {
    let cut = Entry::Answer(Arc::new(Answer {
        blocks: vec![call("x")],
        stop: StopReason::MaxTokens,
        usage: Usage::default(),
        model: "m".into(),
    }));
    let fold = fold(vec![input("a"), cut, input("b")]);
    let Block::ToolResult(result) = &fold.messages[2].blocks[0] else {
        panic!("no result")
    };
    assert_eq!(result.text(), super::super::ANSWER_CUT);
}

#[test]
fn a_result_whose_line_is_damaged_is_said_to_be_lost() {
    let mut all = bytes(vec![input("a"), answer(vec![call("x")])]);
    all.extend_from_slice(b"{\"at\":\"2026-01-01T00:00:00.000Z\",\"entry\":{\"result\":\n");
    all.extend(bytes(vec![answer(vec![Block::text("on")])]));
    let fold = Fold::of(&all);
    assert_valid(&fold.messages);
    let Block::ToolResult(result) = &fold.messages[2].blocks[0] else {
        panic!("no result")
    };
    assert!(result.text().contains("not on record"), "{result:?}");
    // It is told in one place, not in two.
    assert_eq!(fold.messages.len(), 4);
    assert_eq!((fold.damaged.len(), fold.damaged.gaps()), (1, 0));
    assert!(interrupted("x".into()).text().contains("interrupted"));
}

#[test]
fn records_are_found_in_lines_that_zeros_or_torn_ends_have_joined() {
    let lines = lines();
    let mut zeros = lines[..2].concat();
    zeros.extend([0; 5000]);
    zeros.extend(lines[2..].concat());
    let fold = Fold::of(&zeros);
    assert_eq!(
        (
            fold.messages.len(),
            fold.damaged.len(),
            fold.damaged.bytes()
        ),
        (7, 1, 5000)
    );
    // Zeros stand for something; no results are missing, so it is told by itself.
    assert_eq!(
        fold.messages
            .iter()
            .flat_map(texts)
            .filter(|text| *text == LOST)
            .count(),
        1
    );
    let mut torn = lines[..1].concat();
    torn.extend(&lines[1][..40]);
    torn.extend(lines[1..].concat());
    let fold = Fold::of(&torn);
    assert_eq!((fold.damaged.len(), fold.damaged.bytes()), (1, 40));
    assert_eq!(fold.end, Some(End::Done));
    // A newline that became something else.
    let mut joined = lines.concat();
    let at = lines[0].len() - 1;
    joined[at] ^= 0x40;
    let fold = Fold::of(&joined);
    assert_eq!((fold.messages.len(), fold.damaged.bytes()), (6, 1));
}

#[test]
fn what_no_provider_would_take_is_left_out_of_an_answer() {
    let thought = |wire: &str, json: &str| {
        Block::Reasoning(Reasoning {
            text: "t".into(),
            raw: Some(RawReasoning {
                wire: wire.into(),
                json: Json::parse(json).unwrap(),
            }),
        })
    };
    let sound = thought(
        "anthropic",
        r#"{"type":"thinking","thinking":"t","signature":"s"}"#,
    );
    let odd = Block::ToolUse(ToolUse {
        id: "a".into(),
        name: "Re\u{1}ad".into(),
        input: ToolInput::Json(Json::parse("[1]").unwrap()),
    });
    let changed =
        r#"{"type":"thinking","thinking":"[a secret was left out: sk-…]","signature":"s"}"#;
    let fold = fold(vec![
        input("a"),
        answer(vec![
            thought("anthropic", r#"{"tipe":"thinking"}"#),
            thought("openai", r#"{"type":"message"}"#),
            thought("openai-chat", r#"{"field":"content","text":"x"}"#),
            thought("anthropic", changed),
            sound.clone(),
            odd,
            sound.clone(),
        ]),
        input("b"),
        answer(vec![sound.clone()]),
        input("c"),
    ]);
    let blocks = &fold.messages[1].blocks;
    assert_eq!(blocks.len(), 6, "thoughts at the end are dropped");
    for block in &blocks[..4] {
        assert!(matches!(block, Block::Reasoning(part) if part.raw.is_none()));
    }
    assert_eq!(blocks[4], sound);
    let Block::ToolUse(call) = &blocks[5] else {
        panic!("no call")
    };
    assert_eq!(call.name, "Re_ad");
    assert_eq!(call.input, ToolInput::Broken("[1]".into()));
    let roles: Vec<Role> = fold.messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles[2..],
        [Role::User; 3],
        "an answer of thoughts alone is none"
    );
}

#[test]
fn raw_json_that_nobody_else_can_read_is_no_input() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    for raw in ["{\"a\":\"\\ud83d\"}", "{\"a\":1e999}", &deep] {
        let call = Block::ToolUse(ToolUse {
            id: "a".into(),
            name: "Read".into(),
            input: ToolInput::Json(Json::parse(raw).unwrap()),
        });
        let fold = fold(vec![input("x"), answer(vec![call])]);
        let Block::ToolUse(call) = &fold.messages[1].blocks[0] else {
            panic!("no call")
        };
        assert_eq!(call.input, ToolInput::Broken(raw.into()));
    }
}

#[test]
fn damaged_images_become_words() {
    let image = |media_type: &str, data: &str| Image {
        media_type: media_type.into(),
        data: data.into(),
    };
    let parts: Vec<ResultPart> = [
        ("image/png", "iVBORw0KGgo="),
        ("image/pnh", "iVBORw0KGgo="),
        ("image/png", "iVBORw0KG\u{1}o="),
        ("image/png", "iVBOR"),
    ]
    .into_iter()
    .map(|(kind, data)| ResultPart::Image(image(kind, data)))
    .collect();
    let result = Entry::Result(Arc::new(ToolResult {
        call: "a".into(),
        parts,
        is_error: false,
        mail: None,
    }));
    let fold = fold(vec![input("x"), answer(vec![call("a")]), result]);
    let Block::ToolResult(result) = &fold.messages[2].blocks[0] else {
        panic!("no result")
    };
    let kept: Vec<bool> = result
        .parts
        .iter()
        .map(|part| matches!(part, ResultPart::Image(_)))
        .collect();
    assert_eq!(kept, [true, false, false, false]);
}

/// Counts what is asked of it.
struct Counting<'a> {
    left: &'a [u8],
    read: u64,
    largest: usize,
}

impl Read for Counting<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.largest = self.largest.max(out.len());
        let n = self.left.read(out)?;
        self.read += n as u64;
        Ok(n)
    }
}

#[test]
fn every_byte_is_read_once_and_a_little_at_a_time() {
    let many: Vec<u8> = (0..200).flat_map(|_| sample()).collect();
    let mut counting = Counting {
        left: &many,
        read: 0,
        largest: 0,
    };
    let reader = BufReader::with_capacity(reading::CHUNK, &mut counting);
    let (fold, _) = reading::fold(Fold::default(), reader, &mut |_| Ok(())).unwrap();
    assert_eq!(fold.messages.len(), 1200);
    assert_eq!(counting.read, many.len() as u64);
    assert!(counting.largest <= reading::CHUNK);
}

/// What would take minutes if any step looked at all that came before.
#[test]
fn many_calls_of_one_answer_and_many_of_one_id_are_linear() {
    let ids: Vec<String> = (0..20_000).map(|n| format!("c{n}")).collect();
    let mut entries = vec![input("a"), answer(ids.iter().map(|id| call(id)).collect())];
    entries.extend(ids.iter().rev().map(|id| result(id)));
    entries.push(answer(vec![call("same"); 20_000]));
    entries.extend(vec![result("same"); 20_000]);
    let fold = fold(entries);
    assert_eq!(fold.messages[2].blocks.len(), 20_000);
    assert_eq!(fold.messages[4].blocks.len(), 20_000);
    assert!(fold.damaged.is_empty());
}
