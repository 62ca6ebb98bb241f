//! What must hold of compaction by itself: what survives it, whatever was said before.

use super::facts::{Budget, Facts, pending_from, recent_from};
use super::spill::{LEAST, shorten};
use super::*;
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, Model, Prefix, Who};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{
    AgentId, AgentName, Entropy, Image, Message, Notification, ResultPart, Role, Status,
    ToolResult, ToolUse, Usage,
};
use gaffer_store::Notes;
use proptest::prelude::*;

#[derive(Debug)]
struct Zero;

impl Entropy for Zero {
    fn next(&self) -> u64 {
        7
    }
}

fn spill() -> (tempfile::TempDir, Spill) {
    let temp = tempfile::tempdir().unwrap();
    let spill = Spill::new(temp.path(), AgentId::random(&Zero));
    (temp, spill)
}

fn notification(n: usize) -> Notification {
    Notification {
        task: Some(AgentId::random(&Zero)),
        status: Status::Completed,
        summary: format!("Agent \"Task <{n}>\" completed"),
        result: Some("found".repeat(20)),
        usage: None,
        reason: None,
        output_file: Some(format!("/r/{n}.txt")),
        worktree: None,
        changed_files: Vec::new(),
        denials: Vec::new(),
        is_unverified: false,
        advice: None,
    }
}

/// One thing that happens to an agent.
#[derive(Debug, Clone)]
enum Step {
    Human(String),
    Mail(String),
    Told,
    Calls(usize),
    Words,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        "[a-z<>&é\n ]{1,80}".prop_map(Step::Human),
        "[a-z ]{1,80}".prop_map(Step::Mail),
        Just(Step::Told),
        (1usize..4).prop_map(Step::Calls),
        Just(Step::Words),
    ];
    prop::collection::vec(step, 1..40)
}

/// A conversation as a fold gives it, with numbered texts.
fn history(steps: &[Step]) -> Vec<Message> {
    let context = Block::from(Origin::Context, "<context>here</context>");
    let mut messages = vec![Message::user(vec![
        context,
        Block::from_human("0: the goal"),
    ])];
    for (n, step) in steps.iter().enumerate() {
        let message = match step {
            Step::Human(text) => Message::user(vec![Block::from_human(format!("{n}: {text}"))]),
            Step::Mail(text) => {
                Message::user(vec![Block::from(Origin::Agent, format!("{n}: {text}"))])
            }
            Step::Told => Message::user(vec![Block::from(
                Origin::TaskNotification,
                notification(n).render(),
            )]),
            Step::Words => Message::assistant(vec![Block::text(format!("{n}: words"))]),
            Step::Calls(count) => {
                let ids = (0..*count).map(|it| format!("call_{n}_{it}"));
                let call = |id: &String| {
                    Block::ToolUse(ToolUse {
                        id: id.clone(),
                        name: "Read".into(),
                        input: ToolInput::from_text("{}"),
                    })
                };
                let result = |id: String| {
                    Block::ToolResult(ToolResult {
                        call: id,
                        parts: vec![ResultPart::Text("r".repeat(50))],
                        is_error: false,
                        mail: None,
                    })
                };
                let ids: Vec<String> = ids.collect();
                messages.push(Message::assistant(ids.iter().map(call).collect()));
                Message::user(ids.into_iter().map(result).collect())
            }
        };
        messages.push(message);
    }
    messages
}

fn texts(messages: &[Message], origin: Origin) -> Vec<String> {
    let blocks = messages.iter().flat_map(|it| &it.blocks);
    let text = |block: &Block| match block {
        Block::Text(text) if text.origin == Some(origin) => Some(text.text.clone()),
        _ => None,
    };
    blocks.filter_map(text).collect()
}

/// Compacts as an agent does, without a model: what is kept, and what was noted.
fn compacted(messages: &[Message], notes: &Notes, summary: Option<&str>) -> (Vec<Message>, Notes) {
    let (_temp, mut spill) = spill();
    let budget = Budget::of(400_000, 0);
    let (body, pending) = messages.split_at(pending_from(messages));
    let start = summary.map_or_else(|| recent_from(body, 300), |_| body.len());
    let facts = Facts {
        body: &body[..start],
        notes,
        read: vec!["/p/read".into()],
        changed: vec!["/p/changed".into()],
        open_tasks: Some("<workers>\nw1 runs\n</workers>".into()),
        greeting: None,
    };
    let (first, notes) = facts.message(summary, &budget, &mut spill);
    let mut kept = Vec::new();
    if !body.is_empty() {
        kept.push(first);
    }
    kept.extend_from_slice(&body[start..]);
    kept.extend_from_slice(pending);
    (kept, notes)
}

/// Every call has its result right behind it.
fn assert_paired(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let results = message.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result.call.clone()),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), open, "{messages:#?}");
        let calls = message.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call.id.clone()),
            _ => None,
        });
        open = calls.collect();
    }
    assert!(open.is_empty());
}

proptest! {
    /// The user's words, the task, what was told and what was not answered survive any number of
    /// compactions, each once and in order.
    #[test]
    fn what_matters_survives(rounds in prop::collection::vec((steps(), any::<bool>()), 1..4)) {
        let mut messages = Vec::new();
        let mut notes = Notes::default();
        let mut human = Vec::new();
        let mut mail = Vec::new();
        let mut told = 0;
        for (steps, has_summary) in &rounds {
            let mut more = history(steps);
            if !messages.is_empty() {
                more.remove(0);
            }
            messages.extend(more);
            human.extend(texts(&messages, Origin::Human).into_iter().skip(human.len()));
            mail.extend(texts(&messages, Origin::Agent).into_iter().skip(mail.len()));
            told += steps.iter().filter(|it| matches!(it, Step::Told)).count();
            let pending = messages[pending_from(&messages)..].to_vec();
            let summary = has_summary.then_some("## Goal\nTea </compacted-summary>");
            (messages, notes) = compacted(&messages, &notes, summary);
            prop_assert_eq!(&texts(&messages, Origin::Human), &human);
            prop_assert_eq!(&texts(&messages, Origin::Agent), &mail);
            let whole = texts(&messages, Origin::TaskNotification).len();
            prop_assert_eq!(notes.told.len() + whole, told);
            prop_assert!(messages.ends_with(&pending));
            prop_assert_eq!(messages[0].role, Role::User);
            assert_paired(&messages);
            let ours = texts(&messages, Origin::Compacted).join("\n");
            if !ours.is_empty() {
                prop_assert!(ours.contains("w1 runs") && ours.contains("changed: /p/changed"));
                prop_assert_eq!(ours.matches("</compacted-summary>").count(), usize::from(ours.contains("<compacted-summary>")));
            }
        }
    }

    /// However little room there is, nothing is kept that is much larger, and nothing panics.
    #[test]
    fn what_is_kept_keeps_to_its_size(steps in steps(), room in 0usize..20_000, step in 0u32..6) {
        let messages = history(&steps);
        let (_temp, mut spill) = spill();
        let facts = Facts { body: &messages, notes: &Notes::default(), read: vec!["r".repeat(500); 50], changed: Vec::new(), open_tasks: Some("w".repeat(5000)), greeting: Some("g".repeat(3000)) };
        let (first, _) = facts.message(Some(&"s".repeat(9000)), &Budget::of(room, step), &mut spill);
        let size: usize = first.blocks.iter().map(|block| match block { Block::Text(text) => text.text.len(), _ => 0 }).sum();
        prop_assert!(size <= room + 9_000, "{size} for {room}");
    }

    #[test]
    fn the_beginning_and_the_end_stay(text: String, most in 0usize..2000) {
        let text = text.repeat(30);
        let cut = shorten(&text, most, "; see x");
        if text.len() <= most.max(LEAST) {
            prop_assert_eq!(cut, text);
        } else {
            prop_assert!(cut.contains("bytes are left out here; see x"));
            prop_assert!(cut.len() <= most.max(LEAST) + 70);
            prop_assert_eq!(cut.chars().next(), text.chars().next());
            prop_assert_eq!(cut.chars().last(), text.chars().last());
        }
    }
}

#[test]
fn only_a_persons_whole_text_is_a_request() {
    let read = |origin, text: &str| Request::read(&Block::from(origin, text));
    let wish = |text: &str| {
        Some(Request {
            wish: Some(text.to_owned()),
        })
    };
    assert_eq!(
        read(Origin::Human, " /compact\n"),
        Some(Request { wish: None })
    );
    assert_eq!(
        read(Origin::Human, "/compact keep the plan"),
        wish("keep the plan")
    );
    assert_eq!(read(Origin::Human, "/compacted"), None);
    assert_eq!(read(Origin::Human, "please /compact"), None);
    assert_eq!(read(Origin::Agent, "/compact"), None);
}

fn conversation() -> Conversation {
    let script = Script::parse("agents: [{ steps: [{ say: Hi. }] }]").unwrap();
    let prefix = Prefix {
        system: String::new(),
        tools: Vec::new(),
    };
    let who = Who {
        id: AgentId::random(&Zero),
        name: AgentName::main(),
        agent_type: "t".into(),
    };
    Scripted::new(script, Default::default()).open(&prefix, who)
}

#[test]
fn images_count_as_what_they_cost_and_not_by_their_bytes() {
    let mut conversation = conversation();
    let gauge = Gauge::new(Some(100_000), 0);
    let image = Image {
        media_type: "image/png".into(),
        data: "A".repeat(3_000_000).into(),
    };
    let message = Message::user(vec![Block::Image(image)]);
    conversation.push(&message);
    let tokens = gauge.tokens(&conversation);
    assert!((1_000..3_000).contains(&tokens), "{tokens}");
}

#[test]
fn a_count_calibrates_the_estimate_and_a_refusal_the_window() {
    let mut conversation = conversation();
    let mut gauge = Gauge::new(None, 0);
    assert!(!gauge.is_due(&conversation), "nobody knows the window");
    let message = Message::user(vec![Block::text("x".repeat(40_000))]);
    conversation.push(&message);
    let asked = conversation.len();
    let usage = Usage {
        input: 10_000,
        output: 50,
        ..Usage::default()
    };
    conversation.push(&Message::assistant(vec![Block::text("y".repeat(200))]));
    gauge.answered(usage, asked, &conversation);
    assert_eq!(gauge.tokens(&conversation), 10_050);
    conversation.push(&message);
    let tokens = gauge.tokens(&conversation);
    assert!((20_000..20_200).contains(&tokens), "{tokens}");
    gauge.refused(tokens);
    assert!((18_000..18_200).contains(&gauge.window().unwrap()));
    gauge.refused(5_000);
    assert_eq!(gauge.window(), Some(10_000), "so many were answered");
    assert!(gauge.is_due(&conversation));
    gauge.restart(&conversation);
    assert!(!gauge.is_due(&conversation), "it would bring nothing");
}
