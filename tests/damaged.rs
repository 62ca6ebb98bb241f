//! Transcripts that are cut, changed, shuffled or full of noise: the next request is valid on
//! every wire, whatever is left of them.

use crate::wires::open;
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{
    Answer, Block, End, Image, Json, MailId, Message, Origin, Reasoning, ResultPart, Role,
    StopReason, Timestamp, ToolResult, ToolUse, Usage,
};
use gaffer_store::{Entry, Fold, Record, Transcript};
use gaffer_testkit::{WireKind, violations};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

/// The reasoning of one wire.
fn thought(kind: WireKind, text: &str) -> Block {
    let (wire, json) = match kind {
        WireKind::Anthropic => (
            "anthropic",
            json!({"type": "thinking", "thinking": text, "signature": "Eq+/09=="}),
        ),
        WireKind::Responses => (
            "openai",
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA-_x", "summary": []}),
        ),
        WireKind::Chat => (
            "openai-chat",
            json!({"field": "reasoning_content", "text": text}),
        ),
    };
    Block::Reasoning(Reasoning {
        text: text.into(),
        raw: Some(RawReasoning {
            wire: wire.into(),
            json: Json::of(&json),
        }),
    })
}

fn call(id: &str, input: &str) -> Block {
    Block::ToolUse(ToolUse {
        id: id.into(),
        name: "Read".into(),
        input: ToolInput::from_text(input),
    })
}

fn input(blocks: Vec<Block>) -> Entry {
    Entry::Input(Arc::new(Message::user(blocks)))
}

fn answer(stop: StopReason, blocks: Vec<Block>) -> Entry {
    Entry::Answer(Arc::new(Answer {
        blocks,
        stop,
        usage: Usage {
            input: 10,
            ..Usage::default()
        },
        model: "m-1".into(),
    }))
}

fn image() -> Image {
    Image {
        media_type: "image/png".into(),
        data: "iVBORw0KGgo=".into(),
    }
}

fn result(call: &str, parts: Vec<ResultPart>) -> Entry {
    Entry::Result(Arc::new(ToolResult {
        call: call.into(),
        parts,
        is_error: call.ends_with('2'),
        mail: None,
    }))
}

fn text(text: &str) -> Vec<ResultPart> {
    vec![ResultPart::Text(text.into())]
}

/// A worker's whole life, with everything that a record can hold. `large` is the length of its
/// longest result.
fn life(kind: WireKind, large: usize) -> Vec<Entry> {
    use StopReason::{EndTurn, MaxTokens, Pause, ToolUse};
    let letter = Block::from(Origin::Agent, "a letter: é 😀 \u{0} \"x\"\\").by_mail(MailId(7));
    let mut all = vec![
        input(vec![
            Block::from(Origin::Context, "the folder is /p"),
            Block::from_human("look at\nthis"),
        ]),
        answer(
            ToolUse,
            vec![
                thought(kind, "two files, then"),
                Block::text("I look."),
                call("toolu_1", "{\"a\": 1.0, \"b\":[true,null],\t\"c\":\"é\"}"),
                call("toolu_2", "not json {"),
            ],
        ),
        result("toolu_2", text("no such file")),
        result(
            "toolu_1",
            vec![
                ResultPart::Text("line\n".repeat(large / 5 + 1)),
                ResultPart::Image(image()),
            ],
        ),
        input(vec![letter, Block::Image(image())]),
        answer(ToolUse, vec![thought(kind, "on"), call("toolu_3", "")]),
        result("toolu_3", Vec::new()),
    ];
    if kind == WireKind::Anthropic {
        all.push(answer(Pause, vec![Block::text("searching")]));
    }
    all.extend([
        answer(
            MaxTokens,
            vec![Block::text("x"), call("toolu_4", "{\"half")],
        ),
        result("toolu_4", text("Not run")),
        answer(MaxTokens, vec![thought(kind, "only a thought")]),
        Entry::End(End::Context),
        input(vec![Block::from_human("again")]),
        answer(EndTurn, vec![Block::text("Done.")]),
        Entry::End(End::Done),
    ]);
    all
}

fn lines(entries: Vec<Entry>) -> Vec<Vec<u8>> {
    let records = entries.into_iter().enumerate();
    let line = |(n, entry)| {
        let at = Timestamp(1_790_000_000_000 + n as u64);
        let mut line = serde_json::to_vec(&Record { at, entry }).unwrap();
        line.push(b'\n');
        line
    };
    records.map(line).collect()
}

/// The next request is valid on every wire.
fn assert_goes_on(messages: &[Message]) {
    let mut ids = HashSet::new();
    for message in messages {
        let mut has_called = false;
        for block in &message.blocks {
            if let Block::ToolUse(call) = block {
                assert!(ids.insert(&call.id), "{} twice: {messages:?}", call.id);
                assert_eq!(message.role, Role::Assistant);
                has_called = true;
            }
        }
        let ends_with_thought = matches!(message.blocks.last(), Some(Block::Reasoning(_)));
        assert!(!(has_called && ends_with_thought), "{messages:?}");
    }
    for kind in WireKind::ALL {
        let mut conversation = open(kind, "system");
        for message in messages {
            conversation.push(message);
        }
        conversation.push(&Message::user(vec![Block::from_human("go on")]));
        let request = conversation.request().to_vec();
        assert_eq!(
            violations(kind, &request),
            Vec::<String>::new(),
            "{}",
            String::from_utf8_lossy(&request)
        );
    }
}

#[test]
fn a_whole_record_is_what_was_said() {
    for kind in WireKind::ALL {
        let fold = Fold::of(&lines(life(kind, 40)).concat());
        assert!(fold.damaged.is_empty(), "{}", fold.damaged);
        assert_eq!(fold.heard, HashSet::from([MailId(7)]));
        assert_goes_on(&fold.messages);
        let roles = fold.messages.windows(2);
        let answers = roles.filter(|two| two.iter().all(|one| one.role == Role::Assistant));
        assert_eq!(answers.count(), 0);
    }
}

/// What the agent pushed while it ran, in its own order.
fn live(kind: WireKind, entries: &[Entry]) -> Vec<u8> {
    let mut conversation = open(kind, "system");
    let mut results: Vec<&ToolResult> = Vec::new();
    let mut calls: Vec<&str> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Input(message) => conversation.push(message),
            Entry::Answer(answer) => {
                calls = answer.tool_uses().map(|call| call.id.as_str()).collect();
                conversation.push(&Message::assistant(answer.blocks.clone()));
            }
            Entry::Result(result) => results.push(result),
            Entry::Start(_) | Entry::Compacted(_) | Entry::End(_) => {}
        }
        if !calls.is_empty() && results.len() == calls.len() {
            let place = |result: &&ToolResult| calls.iter().position(|id| *id == result.call);
            results.sort_by_key(place);
            let blocks = results.drain(..).cloned().map(Block::ToolResult);
            conversation.push(&Message::user(blocks.collect()));
            calls.clear();
        }
    }
    conversation.request().to_vec()
}

/// Otherwise a provider's cache would not know the conversation any more.
#[test]
fn a_whole_record_goes_on_with_the_same_bytes() {
    for kind in WireKind::ALL {
        let mut entries = life(kind, 40);
        entries.retain(|entry| match entry {
            // Not sent again, because providers refuse it.
            Entry::Answer(answer) => !matches!(answer.blocks[..], [Block::Reasoning(_)]),
            _ => true,
        });
        let mut conversation = open(kind, "system");
        for message in Fold::of(&lines(entries.clone()).concat()).messages {
            conversation.push(&message);
        }
        let resumed = String::from_utf8(conversation.request().to_vec()).unwrap();
        assert_eq!(resumed, String::from_utf8(live(kind, &entries)).unwrap());
    }
}

#[test]
fn cut_at_every_byte_it_goes_on_everywhere() {
    for kind in WireKind::ALL {
        let all = lines(life(kind, 40)).concat();
        let mut last: Option<Vec<Message>> = None;
        for end in 0..=all.len() {
            let fold = Fold::of(&all[..end]);
            assert!(fold.damaged.len() <= 1);
            assert_eq!(fold.damaged.gaps(), 0, "cut at {end}");
            // Most cuts leave the same conversation as the one before.
            if last.as_ref() != Some(&fold.messages) {
                assert_goes_on(&fold.messages);
                last = Some(fold.messages);
            }
        }
    }
}

#[test]
fn without_any_one_or_two_lines_it_goes_on_everywhere() {
    for kind in WireKind::ALL {
        let all = lines(life(kind, 40));
        for first in 0..all.len() {
            for second in first..all.len() {
                let mut left = all.clone();
                left.remove(second);
                if first < second {
                    left.remove(first);
                }
                assert_goes_on(&Fold::of(&left.concat()).messages);
            }
        }
    }
}

/// One thing that goes wrong with a file.
#[derive(Debug, Clone)]
enum Harm {
    Flip(usize, u8),
    Noise(usize, Vec<u8>),
    Zeros(usize, usize),
    Lose(usize),
    Twice(usize),
    Swap(usize, usize),
    Cut(usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = || any::<u32>().prop_map(|n| n as usize);
    prop_oneof![
        4 => (at(), 1u8..=255).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        // A digit or letter for another keeps lines readable more often.
        4 => (at(), 0u32..5).prop_map(|(at, bit)| Harm::Flip(at, 1 << bit)),
        2 => (at(), prop::collection::vec(any::<u8>(), 1..30)).prop_map(|(at, noise)| Harm::Noise(at, noise)),
        1 => (at(), 1usize..300).prop_map(|(at, len)| Harm::Zeros(at, len)),
        3 => at().prop_map(Harm::Lose),
        3 => at().prop_map(Harm::Twice),
        3 => (at(), at()).prop_map(|(a, b)| Harm::Swap(a, b)),
        1 => at().prop_map(Harm::Cut),
    ]
}

fn harmed(all: &[u8], harms: &[Harm]) -> Vec<u8> {
    let mut bytes = all.to_vec();
    for harm in harms {
        let mut lines: Vec<Vec<u8>> = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        let (len, count) = (bytes.len().max(1), lines.len().max(1));
        match harm {
            _ if bytes.is_empty() => {}
            Harm::Flip(at, bits) => bytes[at % len] ^= bits,
            Harm::Noise(at, noise) => drop(bytes.splice(at % len..at % len, noise.iter().copied())),
            Harm::Zeros(at, zeros) => {
                let from = at % len;
                let to = (from + zeros).min(len);
                bytes[from..to].fill(0);
            }
            Harm::Lose(n) => {
                lines.remove(n % count);
                bytes = lines.concat();
            }
            Harm::Twice(n) => {
                let line = lines[n % count].clone();
                lines.insert(n % count, line);
                bytes = lines.concat();
            }
            Harm::Swap(a, b) => {
                lines.swap(a % count, b % count);
                bytes = lines.concat();
            }
            Harm::Cut(at) => bytes.truncate(at % len),
        }
    }
    bytes
}

/// So many cases, or as many as are asked for with `PROPTEST_CASES` if those are more.
fn at_least(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let asked = asked.and_then(|asked| asked.parse().ok()).unwrap_or(0);
    Config::with_cases(cases.max(asked))
}

fn kinds() -> impl Strategy<Value = WireKind> {
    prop::sample::select(&WireKind::ALL[..])
}

proptest! {
    #![proptest_config(at_least(1500))]

    #[test]
    fn harmed_in_any_way_it_goes_on_everywhere(
        kind in kinds(),
        other in kinds(),
        harms in prop::collection::vec(harm(), 1..12),
    ) {
        // Two lives in one file: ids come twice, and wires change.
        let mut entries = life(kind, 40);
        entries.extend(life(other, 40));
        let bytes = harmed(&lines(entries).concat(), &harms);
        assert_goes_on(&Fold::of(&bytes).messages);
    }
}

proptest! {
    #![proptest_config(at_least(60))]

    /// What a repair leaves is the conversation that was resumed, and needs no second one.
    #[test]
    fn harmed_and_repaired_it_is_whole(
        kind in kinds(),
        harms in prop::collection::vec(harm(), 1..6),
    ) {
        let bytes = harmed(&lines(life(kind, 100_000)).concat(), &harms);
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("agent-1.jsonl");
        std::fs::write(&path, &bytes).unwrap();
        let (mut transcript, fold) = Transcript::resume(path.clone()).unwrap();
        assert_goes_on(&fold.messages);
        if let Some(kept) = fold.damaged.kept() {
            prop_assert_eq!(std::fs::read(kept).unwrap(), bytes);
        } else {
            prop_assert!(fold.damaged.is_empty());
        }
        let entry = input(vec![Block::from_human("go on")]);
        transcript.append(&Record { at: Timestamp(1), entry }).unwrap();
        let (_, again) = Transcript::resume(path).unwrap();
        prop_assert!(again.damaged.is_empty(), "{}", again.damaged);
        prop_assert_eq!(&again.messages[..fold.messages.len()], &fold.messages[..]);
        prop_assert_eq!(again.messages.len(), fold.messages.len() + 1);
    }
}

#[cfg(feature = "coordinator")]
#[tokio::test(start_paused = true)]
async fn a_worker_with_a_damaged_transcript_goes_on_and_the_user_hears_of_it() {
    use crate::crew_world::{Plan, World};
    use gaffer_crew::MailSender;
    use gaffer_protocol::EventKind;

    let script = "agents: [{ steps: [{ calls: [{ tool: Work, input: { ms: 10 } }] }, { say: Done. }, { say: Again. }, { say: Thrice. }] }]";
    let world = World::new(Plan::script(script));
    let id = world.start("w").await.id;
    world.settle().await;
    let path = world.folder.transcript(id);
    let mut bytes = std::fs::read(&path).unwrap();
    // The result of its call is overwritten, and the end is torn.
    let ends: Vec<usize> = (0..bytes.len()).filter(|n| bytes[*n] == b'\n').collect();
    let is_result = |from: usize| {
        bytes[from..]
            .windows(11)
            .take(60)
            .any(|it| it == b"{\"result\":{")
    };
    let from = ends.iter().copied().find(|end| is_result(end + 1)).unwrap() + 1;
    bytes[from..from + 20].fill(0);
    bytes.extend_from_slice(b"{\"at\":");
    std::fs::write(&path, &bytes).unwrap();
    let notices = || -> Vec<String> {
        let all = world.log.all().into_iter();
        all.filter_map(|(_, agent, kind)| match kind {
            EventKind::Notice(text) if agent == id => Some(text),
            _ => None,
        })
        .collect()
    };
    for _ in 0..2 {
        world
            .crew
            .send(MailSender::Human, "w", "again")
            .await
            .unwrap();
        world.settle().await;
        let fold = world.fold(id);
        assert!(fold.damaged.is_empty(), "{}", fold.damaged);
        assert_eq!(fold.end, Some(End::Done));
        assert_goes_on(&fold.messages);
        assert_eq!(notices().len(), 1, "it is told once");
    }
    let kept = format!("{}.damaged-1", path.display());
    assert!(notices()[0].contains(&kept), "{:?}", notices());
    assert_eq!(std::fs::read(&kept).unwrap(), bytes);
    let asked = world.asked_by("w").len();
    assert_eq!(asked, 4, "every request was taken");
}
