//! The three wires against every cut of their streams, and what they carry back unchanged.

use gaffer_model::sse::Parser;
use gaffer_model::wire::anthropic::Anthropic;
use gaffer_model::wire::chat::Chat;
use gaffer_model::wire::responses::Responses;
use gaffer_model::wire::{Wire, WireOptions};
use gaffer_model::{Conversation, ErrorKind, ModelError, Prefix, Who};
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{
    AgentId, AgentName, Answer, Block, Image, Json, Message, Origin, Reasoning, ResultPart,
    StopReason, ToolResult, ToolUse, Usage,
};
use gaffer_testkit::world::Seeded;
use gaffer_testkit::{WireKind, encode, violations};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn wire(kind: WireKind) -> Arc<dyn Wire> {
    let options = WireOptions {
        model: "m".into(),
        max_output: 100,
        extra: serde_json::Map::new(),
        images: true,
        server_tools: Vec::new(),
    };
    match kind {
        WireKind::Anthropic => Arc::new(Anthropic { options }),
        WireKind::Responses => Arc::new(Responses { options }),
        WireKind::Chat => Arc::new(Chat { options }),
    }
}

fn decode(kind: WireKind, stream: &[u8], cuts: &[usize]) -> Result<Option<Answer>, ModelError> {
    let mut decoder = wire(kind).decoder();
    let mut parser = Parser::new(1 << 20);
    let mut from = 0;
    for cut in cuts.iter().copied().chain([stream.len()]) {
        let cut = cut.clamp(from, stream.len());
        let found = parser.feed(&stream[from..cut], |event| {
            decoder.event(event, &mut |_| {})
        })?;
        if found.is_some() {
            return Ok(found);
        }
        from = cut;
    }
    Ok(None)
}

fn text() -> impl Strategy<Value = String> {
    "[a-z \n\"\\\\é\u{1F600}]{1,30}"
}

/// An answer that a wire can carry: reasoning in the wire's own form, then text, then calls.
fn answer(kind: WireKind) -> impl Strategy<Value = Answer> {
    let reasoning = prop::option::of(text()).prop_map(move |thought| {
        let text = thought?;
        let json = match kind {
            WireKind::Anthropic => json!({"type": "thinking", "thinking": text, "signature": "s+/="}),
            WireKind::Responses => json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": [{"type": "summary_text", "text": text}]}),
            WireKind::Chat => json!({"field": "reasoning_content", "text": text}),
        };
        let wire = match kind {
            WireKind::Anthropic => "anthropic",
            WireKind::Responses => "openai",
            WireKind::Chat => "openai-chat",
        };
        Some(Block::Reasoning(Reasoning { text, raw: Some(RawReasoning { wire: wire.into(), json: Json::of(&json) }) }))
    });
    let call = (text(), "[A-Za-z_]{1,12}", text()).prop_map(|(id, name, argument)| {
        let input = ToolInput::Json(Json::of(&json!({"b": argument, "a": [1, null]})));
        Block::ToolUse(ToolUse { id, name, input })
    });
    let calls = prop::collection::vec(call, 0..4);
    (reasoning, prop::option::of(text()), calls, 0u64..1000).prop_map(
        |(reasoning, text, mut calls, tokens)| {
            for (n, call) in calls.iter_mut().enumerate() {
                if let Block::ToolUse(call) = call {
                    call.id = format!("call{n}{}", call.id);
                }
            }
            let stop = if calls.is_empty() {
                StopReason::EndTurn
            } else {
                StopReason::ToolUse
            };
            let blocks = reasoning
                .into_iter()
                .chain(text.map(Block::text))
                .chain(calls)
                .collect();
            let usage = Usage {
                input: tokens,
                cache_read: tokens / 3,
                cache_write: tokens / 5,
                output: tokens / 2,
            };
            Answer {
                blocks,
                stop,
                usage,
                model: "m-1".into(),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_answer_is_the_same_however_its_stream_is_cut(
        (kind, answer) in prop::sample::select(&WireKind::ALL[..]).prop_flat_map(|kind| (Just(kind), answer(kind))),
        mut cuts in prop::collection::vec(0usize..4000, 0..20),
    ) {
        let stream = encode::events(kind, &answer).concat().into_bytes();
        cuts.sort_unstable();
        prop_assert_eq!(decode(kind, &stream, &cuts).unwrap(), Some(answer));
    }

    #[test]
    fn no_part_of_a_stream_is_taken_for_the_answer(
        (kind, answer) in prop::sample::select(&WireKind::ALL[..]).prop_flat_map(|kind| (Just(kind), answer(kind))),
        part in 0.0f64..1.0,
    ) {
        let stream = encode::events(kind, &answer).concat().into_bytes();
        // The final event ends two bytes before the stream does, with its line's end.
        let end = (stream.len() as f64 * part) as usize;
        prop_assert_eq!(decode(kind, &stream[..end.min(stream.len() - 2)], &[]).unwrap(), None);
    }

    #[test]
    fn noise_is_an_error_or_nothing_and_never_a_panic(
        kind in prop::sample::select(&WireKind::ALL[..]),
        answer in answer(WireKind::Anthropic),
        at in 0usize..2000,
        noise in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let mut stream = encode::events(kind, &answer).concat().into_bytes();
        let at = at.min(stream.len());
        stream.splice(at..at, noise);
        drop(decode(kind, &stream, &[at / 2]));
    }

    #[test]
    fn every_conversation_is_a_valid_request(
        kind in prop::sample::select(&WireKind::ALL[..]),
        answers in prop::collection::vec(answer(WireKind::Anthropic), 1..6),
        interruptions in prop::collection::vec(any::<bool>(), 6),
    ) {
        let mut conversation = open(kind, "You are a test.");
        let context = Block::from(Origin::Context, "here");
        conversation.push(&Message::user(vec![context, Block::from_human("go")]));
        let mut last: Option<Vec<u8>> = None;
        for (n, mut answer) in answers.into_iter().enumerate() {
            for (m, block) in answer.blocks.iter_mut().enumerate() {
                if let Block::ToolUse(call) = block {
                    call.id = format!("c{n}-{m}");
                }
            }
            conversation.push(&Message::assistant(answer.blocks.clone()));
            let results: Vec<Block> = answer.tool_uses().map(|call| result(&call.id, "fine")).collect();
            let has_results = !results.is_empty();
            conversation.push(&Message::user(results));
            // The user's word after results, or twice in a row.
            if interruptions[n] || !has_results {
                conversation.push(&Message::user(vec![Block::from_human("and?")]));
                conversation.push(&Message::user(vec![Block::from_human("well?")]));
            }
            let request = conversation.request().to_vec();
            prop_assert_eq!(violations(kind, &request), Vec::<String>::new(), "{}", String::from_utf8_lossy(&request));
            let plain = String::from_utf8(request).unwrap().replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "").into_bytes();
            if let Some(last) = last {
                prop_assert!(plain.starts_with(&last[..last.len() - 4]));
            }
            last = Some(plain);
        }
    }
}

pub(crate) fn open(kind: WireKind, system: &str) -> Conversation {
    let who = Who {
        id: AgentId::random(&Seeded::new(1)),
        name: AgentName::main(),
        agent_type: "t".into(),
    };
    Conversation::new(
        wire(kind),
        &Prefix {
            system: system.into(),
            tools: Vec::new(),
        },
        who,
    )
}

fn result(call: &str, text: &str) -> Block {
    Block::ToolResult(ToolResult {
        call: call.into(),
        parts: vec![ResultPart::Text(text.into())],
        is_error: false,
        mail: None,
    })
}

fn request(conversation: &Conversation) -> Value {
    serde_json::from_slice(&conversation.request().to_vec()).unwrap()
}

#[test]
fn reasoning_goes_back_to_its_own_wire_unchanged_and_to_no_other() {
    let raws = [
        (
            WireKind::Anthropic,
            "anthropic",
            r#"{"type": "thinking","thinking":"hm","signature":"a+b=="}"#,
        ),
        (
            WireKind::Anthropic,
            "anthropic",
            r#"{"type":"redacted_thinking","data":"zz"}"#,
        ),
        (
            WireKind::Responses,
            "openai",
            r#"{"id":"rs_7","type":"reasoning","summary":[],"encrypted_content":"q"}"#,
        ),
    ];
    for (kind, name, raw) in raws {
        let mut conversation = open(kind, "");
        let raw_block = RawReasoning {
            wire: name.into(),
            json: Json::parse(raw).unwrap(),
        };
        let reasoning = Block::Reasoning(Reasoning {
            text: "hm".into(),
            raw: Some(raw_block),
        });
        let foreign = Block::Reasoning(Reasoning {
            text: "alien".into(),
            raw: Some(RawReasoning {
                wire: "other".into(),
                json: Json::of("alien"),
            }),
        });
        conversation.push(&Message::user(vec![Block::from_human("go")]));
        conversation.push(&Message::assistant(vec![
            reasoning,
            foreign,
            Block::text("so"),
        ]));
        let body = String::from_utf8(conversation.request().to_vec()).unwrap();
        assert!(body.contains(raw), "{body}");
        assert!(!body.contains("alien"), "{body}");
    }
}

#[test]
fn a_chat_models_thoughts_go_back_with_its_calls_under_the_same_name() {
    let stream = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm \"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"reasoning\":\"ok\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"Read\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let answer = decode(WireKind::Chat, stream.as_bytes(), &[])
        .unwrap()
        .unwrap();
    assert_eq!(answer.stop, StopReason::ToolUse);
    let mut conversation = open(WireKind::Chat, "");
    conversation.push(&Message::user(vec![Block::from_human("go")]));
    conversation.push(&Message::assistant(answer.blocks));
    assert_eq!(request(&conversation)["messages"][1]["reasoning"], "hm ok");
}

#[test]
fn images_in_results_stand_where_each_wire_takes_them() {
    let image = Image {
        media_type: "image/png".into(),
        data: "aWk=".into(),
    };
    let shown = Block::ToolResult(ToolResult {
        call: "c".into(),
        parts: vec![
            ResultPart::Text("a picture".into()),
            ResultPart::Image(image),
        ],
        is_error: false,
        mail: None,
    });
    let call = Block::ToolUse(ToolUse {
        id: "c".into(),
        name: "Read".into(),
        input: ToolInput::from_text("{}"),
    });
    let build = |kind| {
        let mut conversation = open(kind, "");
        conversation.push(&Message::user(vec![Block::from_human("go")]));
        conversation.push(&Message::assistant(vec![call.clone()]));
        conversation.push(&Message::user(vec![shown.clone()]));
        request(&conversation)
    };
    let anthropic = build(WireKind::Anthropic);
    assert_eq!(
        anthropic["messages"][2]["content"][0]["content"][1]["source"]["data"],
        "aWk="
    );
    let responses = build(WireKind::Responses);
    assert_eq!(
        responses["input"][2]["output"][1]["image_url"],
        "data:image/png;base64,aWk="
    );
    let chat = build(WireKind::Chat);
    assert_eq!(chat["messages"][2]["content"], "a picture");
    assert_eq!(
        chat["messages"][3]["content"][1]["image_url"]["url"],
        "data:image/png;base64,aWk="
    );
}

#[test]
fn two_texts_of_the_user_in_a_row_are_one_turn() {
    for kind in WireKind::ALL {
        let mut conversation = open(kind, "sys");
        conversation.push(&Message::user(vec![Block::from_human("one \"1\"")]));
        let first = conversation.request().to_vec();
        conversation.push(&Message::user(vec![Block::from_human("two")]));
        assert_eq!(violations(kind, &first), [""; 0]);
        assert_eq!(violations(kind, &conversation.request().to_vec()), [""; 0]);
        if kind == WireKind::Chat {
            assert_eq!(
                request(&conversation)["messages"][1]["content"],
                "one \"1\"\n\ntwo"
            );
        }
    }
}

#[test]
fn a_text_and_then_an_image_of_the_user_are_valid_everywhere() {
    for kind in WireKind::ALL {
        let mut conversation = open(kind, "sys");
        conversation.push(&Message::user(vec![Block::from_human("look at this")]));
        let image = Block::Image(Image {
            media_type: "image/png".to_owned(),
            data: "iVBORw0KGgo=".into(),
        });
        conversation.push(&Message::user(vec![image]));
        conversation.push(&Message::user(vec![Block::from_human("and say")]));
        let request = conversation.request().to_vec();
        assert_eq!(violations(kind, &request), Vec::<String>::new());
        let text = String::from_utf8_lossy(&request);
        for part in ["look at this", "iVBORw0KGgo=", "and say"] {
            assert!(text.contains(part), "{kind:?}: {text}");
        }
    }
}

#[test]
fn an_unknown_stop_reason_is_not_taken_for_success() {
    let streams = [
        (
            WireKind::Anthropic,
            "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tired\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        (
            WireKind::Responses,
            "data: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"tired\"}}}\n\n",
        ),
        (
            WireKind::Chat,
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tired\"}]}\n\ndata: [DONE]\n\n",
        ),
    ];
    for (kind, stream) in streams {
        let error = decode(kind, stream.as_bytes(), &[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{kind:?}");
        assert!(error.message.contains("tired"));
    }
}
