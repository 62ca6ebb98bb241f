//! One agent in process whose model has a small context: what a compaction does when summaries
//! fail, when people have a say, and when it is stopped.

use futures_util::future::BoxFuture;
use gaffer_agent::{Agent, Compaction, CompactionLimits, Outcome, Parts, Sender, inbox};
use gaffer_model::wire::{Wire, WireOptions, anthropic::Anthropic};
use gaffer_model::{Conversation, DeltaSink, ErrorKind, Model, ModelError, Prefix, Prices, Who};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{
    AgentId, AgentName, Answer, Block, End, EventKind, Origin, StopReason, Timestamp, ToolUse,
    Trigger, Usage,
};
use gaffer_store::{Fold, Transcript};
use gaffer_testkit::world::{FixedClock, Kept, Seeded};
use gaffer_testkit::{WireKind, asks_for_summary, is_compacted, violations};
use gaffer_tools::read::Read;
use gaffer_tools::{Access, Context, Output, Run, ToolSet, erase};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Gives so many bytes.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ask {
    bytes: usize,
}

#[derive(Debug)]
struct Give;

impl Run for Give {
    const NAME: &'static str = "Give";
    const ACCESS: Access = Access::Reads;
    type Input = Ask;

    async fn run(&self, input: Ask, _: &Context) -> Output {
        Output::text("x ".repeat(input.bytes / 2))
    }
}

/// What a model does when it is asked for a summary.
#[derive(Debug, Clone, Copy)]
enum Way {
    Say(&'static str),
    Call(&'static str),
    Fail(ErrorKind),
    Hang,
}

/// Calls a tool so many times and is done. Four bytes are a token.
#[derive(Debug)]
struct Tiny {
    window: usize,
    /// The last one is what it does from then on.
    ways: Mutex<VecDeque<Way>>,
    calls: Mutex<usize>,
    bytes: usize,
    /// So many of its answers are cut because the context is full.
    overfull: Mutex<usize>,
    bodies: Mutex<Vec<String>>,
    /// A file that it reads again with every call.
    note: Mutex<Option<&'static str>>,
}

impl Tiny {
    fn new(window: usize, ways: &[Way], calls: usize, bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            window,
            ways: Mutex::new(ways.iter().copied().collect()),
            calls: Mutex::new(calls),
            bytes,
            overfull: Mutex::default(),
            bodies: Mutex::default(),
            note: Mutex::default(),
        })
    }

    fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    fn next(&self) -> Vec<Block> {
        let mut calls = self.calls.lock().unwrap();
        if *calls == 0 {
            return vec![Block::text("All done.")];
        }
        *calls -= 1;
        let mut blocks = vec![call(*calls, self.bytes)];
        blocks.extend(self.note.lock().unwrap().map(|file| {
            Block::ToolUse(ToolUse {
                id: format!("read_{calls}"),
                name: "Read".to_owned(),
                input: ToolInput::from_text(&format!("{{\"file_path\":\"{file}\"}}")),
            })
        }));
        blocks
    }

    fn way(&self) -> Way {
        let mut ways = self.ways.lock().unwrap();
        match ways.len() {
            1 => ways[0],
            _ => ways.pop_front().unwrap(),
        }
    }
}

fn call(n: usize, bytes: usize) -> Block {
    Block::ToolUse(ToolUse {
        id: format!("call_{n}"),
        name: "Give".to_owned(),
        input: ToolInput::from_text(&format!("{{\"bytes\":{bytes}}}")),
    })
}

impl Model for Tiny {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        let options = WireOptions {
            model: "tiny".to_owned(),
            max_output: 500,
            extra: serde_json::Map::new(),
            images: true,
            server_tools: Vec::new(),
        };
        let wire: Arc<dyn Wire> = Arc::new(Anthropic { options });
        Conversation::new(wire, prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        _: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let body = conversation.request().to_vec();
            assert_eq!(violations(WireKind::Anthropic, &body), [""; 0]);
            let body = String::from_utf8(body).unwrap();
            self.bodies.lock().unwrap().push(body.clone());
            if body.len() / 4 > self.window {
                return Err(ModelError::new(ErrorKind::PromptTooLong, "too long"));
            }
            let blocks = match asks_for_summary(&body).then(|| self.way()) {
                None => self.next(),
                Some(Way::Say(text)) => vec![Block::text(text)],
                Some(Way::Call(text)) => vec![Block::text(text), call(9999, 10)],
                Some(Way::Fail(kind)) => return Err(ModelError::new(kind, "no")),
                Some(Way::Hang) => std::future::pending().await,
            };
            let mut overfull = self.overfull.lock().unwrap();
            if *overfull > 0 && !asks_for_summary(&body) {
                *overfull -= 1;
                return Ok(answer(
                    vec![Block::text("Half a")],
                    StopReason::ContextFull,
                    &body,
                ));
            }
            let is_call = blocks.iter().any(|it| matches!(it, Block::ToolUse(_)));
            let stop = if is_call {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            };
            Ok(answer(blocks, stop, &body))
        })
    }
}

fn answer(blocks: Vec<Block>, stop: StopReason, body: &str) -> Answer {
    Answer {
        blocks,
        stop,
        usage: Usage {
            input: body.len() as u64 / 4,
            output: 20,
            ..Usage::default()
        },
        model: "tiny".to_owned(),
    }
}

struct Setup {
    agent: Agent,
    sender: Sender,
    events: Arc<Kept>,
    path: PathBuf,
    model: Arc<Tiny>,
    _temp: tempfile::TempDir,
}

fn setup(model: Arc<Tiny>, window: Option<u64>) -> Setup {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("t.jsonl");
    let (sender, inbox) = inbox();
    let events = Arc::new(Kept::default());
    let agent = agent(&model, temp.path(), inbox, events.clone(), window);
    Setup {
        agent,
        sender,
        events,
        path,
        model,
        _temp: temp,
    }
}

fn agent(
    model: &Arc<Tiny>,
    folder: &Path,
    inbox: gaffer_agent::Inbox,
    events: Arc<Kept>,
    window: Option<u64>,
) -> Agent {
    let tools = Arc::new(ToolSet::new([erase(Give), erase(Read)]));
    let prefix = Prefix {
        system: "You are tiny.".to_owned(),
        tools: tools.specs(),
    };
    let id = AgentId::random(&Seeded::new(1));
    let who = Who {
        id,
        name: AgentName::main(),
        agent_type: "t".into(),
    };
    let path = folder.join("t.jsonl");
    let mut conversation = model.open(&prefix, who);
    if path.exists() {
        let fold = Fold::read(&path).unwrap();
        fold.messages.iter().for_each(|it| conversation.push(it));
    }
    let limits = CompactionLimits {
        is_auto: true,
        window,
    };
    Agent::new(Parts {
        id,
        conversation,
        model: model.clone(),
        tools,
        context: Context::in_folder(folder, folder, folder, Path::new("none")),
        transcript: Transcript::create(path).unwrap(),
        inbox,
        events,
        prices: Arc::new(Prices::new(&BTreeMap::new())),
        clock: Arc::new(FixedClock(Timestamp(0))),
        max_turns: Some(500),
        compaction: Compaction { limits, memo: None },
        allowance: Arc::new(gaffer_agent::Unlimited),
    })
}

async fn run(setup: &mut Setup, prompt: &str) -> Outcome {
    setup.sender.send(Block::from_human(prompt));
    setup.agent.run(&CancellationToken::new()).await
}

fn compacted(setup: &Setup) -> Vec<Trigger> {
    let events = setup.events.events().into_iter();
    events
        .filter_map(|kind| match kind {
            EventKind::Compacted { trigger, .. } => Some(trigger),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn no_failure_of_a_summary_ends_the_work() {
    let ways: [&[Way]; 8] = [
        &[Way::Say("## Goal\nGo on.")],
        &[Way::Say("")],
        &[Way::Call("")],
        &[Way::Call("## Goal\nGo on, without this call.")],
        &[Way::Fail(ErrorKind::Server)],
        &[Way::Fail(ErrorKind::BadRequest)],
        &[Way::Fail(ErrorKind::PromptTooLong)],
        &[Way::Fail(ErrorKind::PromptTooLong), Way::Say("At last.")],
    ];
    for ways in ways {
        for window in [Some(8_000), None] {
            let model = Tiny::new(8_000, ways, 80, 1_500);
            let mut setup = setup(model, window);
            let outcome = run(&mut setup, "Give all. My word: quince.").await;
            assert_eq!(outcome.end, End::Done, "{ways:?} {window:?}");
            assert_eq!(outcome.tool_uses, 80, "no call of a summary was run");
            assert!(!compacted(&setup).is_empty());
            let bodies = setup.model.bodies();
            for body in bodies.iter().filter(|body| is_compacted(body)) {
                assert!(body.contains("My word: quince."), "{ways:?}");
            }
            assert!(bodies.len() < 200, "{ways:?}: {} requests", bodies.len());
            let fold = Fold::read(&setup.path).unwrap();
            assert_eq!(fold.usage, outcome.usage, "{ways:?}");
            assert_eq!(fold.end, Some(End::Done));
        }
    }
}

#[tokio::test]
async fn a_file_is_shown_once_and_again_when_the_conversation_lost_it() {
    for window in [Some(8_000), None] {
        let model = Tiny::new(8_000, &[Way::Say("## Goal\nGo on.")], 80, 900);
        *model.note.lock().unwrap() = Some("note.txt");
        let mut setup = setup(model, window);
        let note = setup.path.with_file_name("note.txt");
        std::fs::write(note, "the quince stands by the wall\n".repeat(40)).unwrap();
        let outcome = run(&mut setup, "Give all.").await;
        assert_eq!((outcome.end, outcome.tool_uses), (End::Done, 160));
        assert!(compacted(&setup).len() > 2);
        let mut spared = 0;
        for body in setup.model.bodies() {
            if asks_for_summary(&body) {
                continue;
            }
            let times = body.matches("40\\tthe quince").count();
            let again = body.matches("The same as when you read it above").count();
            assert!(times <= 1, "it is shown {times} times");
            assert!(again == 0 || times == 1, "it points at nothing");
            spared += again;
        }
        assert!(spared > 100, "{spared}");
    }
}

#[tokio::test]
async fn a_provider_that_is_away_ends_the_run_and_changes_nothing() {
    let model = Tiny::new(8_000, &[Way::Fail(ErrorKind::Unauthorized)], 80, 1_500);
    let mut setup = setup(model, Some(8_000));
    let outcome = run(&mut setup, "Give all.").await;
    assert!(matches!(outcome.end, End::ProviderError(_)));
    assert_eq!(Fold::read(&setup.path).unwrap().compactions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_leaves_the_conversation_as_it_was() {
    let model = Tiny::new(8_000, &[Way::Hang, Way::Say("Go on.")], 30, 1_500);
    let mut first = setup(model, Some(8_000));
    first.sender.send(Block::from_human("Give all."));
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(first.agent.run(&stop), async {
        while !first.model.bodies().iter().any(|it| asks_for_summary(it)) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        stop.cancel();
    });
    assert_eq!(outcome.end, End::Interrupted);
    let fold = Fold::read(&first.path).unwrap();
    assert_eq!((fold.compactions, fold.end), (0, Some(End::Interrupted)));
    // Another process goes on from the record.
    let (sender, inbox) = inbox();
    let folder = first.path.parent().unwrap().to_owned();
    let mut again = agent(
        &first.model,
        &folder,
        inbox,
        first.events.clone(),
        Some(8_000),
    );
    sender.send(Block::from_human("Go on."));
    assert_eq!(again.run(&CancellationToken::new()).await.end, End::Done);
    assert!(Fold::read(&first.path).unwrap().compactions >= 1);
}

#[tokio::test]
async fn a_resumed_agent_goes_on_with_what_was_compacted() {
    let model = Tiny::new(8_000, &[Way::Say("SUMMARY")], 40, 1_500);
    let mut first = setup(model, Some(8_000));
    assert_eq!(run(&mut first, "Give all.").await.end, End::Done);
    let path = first.path.clone();
    let bytes = std::fs::read(&path).unwrap();
    // Cut anywhere, what is read back is a request that the provider takes.
    for end in (0..bytes.len()).step_by(97).chain([bytes.len()]) {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let (_, inbox) = inbox();
        let folder = path.parent().unwrap();
        let cut = agent(&first.model, folder, inbox, first.events.clone(), None);
        let mut conversation = cut.conversation().clone();
        conversation.push(&gaffer_protocol::Message::user(vec![Block::from_human(
            "On.",
        )]));
        let body = conversation.request().to_vec();
        assert_eq!(violations(WireKind::Anthropic, &body), [""; 0], "at {end}");
    }
    let (sender, inbox) = inbox();
    let folder = path.parent().unwrap();
    let mut again = agent(
        &first.model,
        folder,
        inbox,
        first.events.clone(),
        Some(8_000),
    );
    sender.send(Block::from_human("Anything else?"));
    assert_eq!(again.run(&CancellationToken::new()).await.end, End::Done);
    let last = first.model.bodies().pop().unwrap();
    assert!(last.contains("SUMMARY") && last.contains("Give all.") && last.contains("Anything"));
}

#[tokio::test]
async fn a_person_can_ask_for_it_and_say_what_matters() {
    let model = Tiny::new(100_000, &[Way::Say("SUMMARY")], 3, 1_500);
    let mut setup = setup(model, None);
    assert_eq!(run(&mut setup, "Give all.").await.end, End::Done);
    let asked = setup.model.bodies().len();
    let outcome = run(&mut setup, "/compact mind the plums").await;
    assert_eq!(outcome.end, End::Done);
    assert_eq!(compacted(&setup), [Trigger::Manual]);
    let bodies = setup.model.bodies();
    assert_eq!(
        bodies.len(),
        asked + 1,
        "a summary and nothing else was asked for"
    );
    assert!(bodies[asked].contains("mind the plums"));
    assert_eq!(run(&mut setup, "And now?").await.end, End::Done);
    let last = setup.model.bodies().pop().unwrap();
    assert!(last.contains("SUMMARY") && last.contains("Give all.") && last.contains("And now?"));
    assert!(!last.contains("mind the plums"));
}

#[tokio::test]
async fn nothing_to_compact_is_said_and_costs_nothing() {
    let model = Tiny::new(100_000, &[Way::Hang], 0, 0);
    let mut setup = setup(model, None);
    let context = Block::from(Origin::Context, "You are here.");
    setup.sender.send(context);
    assert_eq!(run(&mut setup, "/compact").await.end, End::Done);
    assert!(setup.model.bodies().is_empty());
}

#[tokio::test]
async fn a_text_that_only_begins_like_it_is_no_request() {
    let model = Tiny::new(100_000, &[Way::Hang], 0, 0);
    let mut setup = setup(model, None);
    let prompt = "/compactness matters";
    assert_eq!(run(&mut setup, prompt).await.end, End::Done);
    assert!(setup.model.bodies()[0].contains(prompt));
}

#[tokio::test]
async fn what_cannot_fit_is_an_end_with_a_word_on_it() {
    for window in [Some(150), None] {
        let model = Tiny::new(150, &[Way::Say("S")], 5, 400);
        let mut setup = setup(model, window);
        assert_eq!(
            run(&mut setup, &"Give all. ".repeat(100)).await.end,
            End::Context
        );
        let notice = |kind: &EventKind| matches!(kind, EventKind::Notice(text) if text.contains("cannot be made shorter"));
        assert!(setup.events.events().iter().any(notice));
        assert!(setup.model.bodies().len() < 12);
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_cut_and_kept_in_a_file() {
    let model = Tiny::new(8_000, &[Way::Say("S")], 1, 400);
    let mut setup = setup(model, Some(8_000));
    let prompt = format!("First. {} Last.", "tea ".repeat(20_000));
    assert_eq!(run(&mut setup, &prompt).await.end, End::Done);
    let last = setup.model.bodies().pop().unwrap();
    assert!(
        last.contains("First. tea") && last.contains("tea  Last.") && last.contains("-long-1.txt")
    );
    let folder = setup.path.parent().unwrap();
    let kept = std::fs::read_dir(folder).unwrap().flatten();
    let mut kept = kept.filter(|it| it.file_name().to_string_lossy().contains("-long-"));
    let whole = std::fs::read_to_string(kept.next().unwrap().path()).unwrap();
    assert_eq!(whole, prompt);
}

#[tokio::test]
async fn an_answer_that_filled_the_context_is_asked_for_again() {
    for (times, end) in [(1, End::Done), (2, End::Done), (100, End::Context)] {
        let model = Tiny::new(100_000, &[Way::Say("S")], 0, 0);
        *model.overfull.lock().unwrap() = times;
        let mut setup = setup(model, None);
        assert_eq!(run(&mut setup, "Say it.").await.end, end, "{times}");
        assert!(setup.model.bodies().len() < 12);
    }
}
