//! One agent in process, in simulated time: who runs beside whom, and what a stop leaves.

use gaffer_agent::{Agent, Outcome, Parts, Sender, inbox};
use gaffer_model::provider::Deadlines;
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Model, Prefix, Prices, Who};
use gaffer_protocol::{AgentId, AgentName, Block, End, EventKind, Role, Timestamp, Waiting};
use gaffer_store::{Fold, Transcript};
use gaffer_testkit::world::{FixedClock, Kept, Seeded};
use gaffer_tools::{Access, Context, Output, Run, ToolSet, erase};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Takes a second, and notes when it began and ended.
#[derive(Debug, Deserialize, JsonSchema)]
struct Wait {
    name: String,
}

type Times = Arc<Mutex<Vec<(String, u64, u64)>>>;

#[derive(Debug)]
struct Reader(Times, Instant);

#[derive(Debug)]
struct Writer(Times, Instant);

async fn wait(times: &Times, zero: Instant, name: String) -> Output {
    let began = zero.elapsed().as_secs();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ended = zero.elapsed().as_secs();
    times.lock().unwrap().push((name.clone(), began, ended));
    Output::text(name)
}

impl Run for Reader {
    const NAME: &'static str = "Look";
    const ACCESS: Access = Access::Reads;
    type Input = Wait;

    async fn run(&self, input: Wait, _: &Context) -> Output {
        wait(&self.0, self.1, input.name).await
    }
}

impl Run for Writer {
    const NAME: &'static str = "Change";
    const ACCESS: Access = Access::Writes;
    type Input = Wait;

    async fn run(&self, input: Wait, _: &Context) -> Output {
        assert_ne!(input.name, "panic", "a bug in a tool");
        wait(&self.0, self.1, input.name).await
    }
}

pub(crate) struct Setup {
    pub(crate) agent: Agent,
    pub(crate) sender: Sender,
    times: Times,
    pub(crate) events: Arc<Kept>,
    path: PathBuf,
    _temp: tempfile::TempDir,
}

fn setup(steps: &str) -> Setup {
    setup_with(steps, |_, _| {})
}

/// An agent whose surroundings are changed before it is made.
pub(crate) fn setup_with(steps: &str, change: impl FnOnce(&mut Context, Arc<Kept>)) -> Setup {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("t.jsonl");
    let script = Script::parse(&format!("agents: [{{ steps: [{steps}] }}]")).unwrap();
    let model: Arc<dyn Model> = Arc::new(Scripted::new(script, Deadlines::default()));
    let id = AgentId::random(&Seeded::new(1));
    let who = Who {
        id,
        name: AgentName::main(),
        agent_type: "t".into(),
    };
    let times = Times::default();
    let zero = Instant::now();
    let tools = Arc::new(ToolSet::new([
        erase(Reader(times.clone(), zero)),
        erase(Writer(times.clone(), zero)),
    ]));
    let prefix = Prefix {
        system: String::new(),
        tools: tools.specs(),
    };
    let (sender, inbox) = inbox();
    let events = Arc::new(Kept::default());
    let mut context = Context::in_folder(temp.path(), temp.path(), temp.path(), Path::new("none"));
    change(&mut context, events.clone());
    let agent = Agent::new(Parts {
        id,
        conversation: model.open(&prefix, who),
        model,
        tools,
        context,
        transcript: Transcript::create(path.clone()).unwrap(),
        inbox,
        events: events.clone(),
        prices: Arc::new(Prices::new(&BTreeMap::new())),
        clock: Arc::new(FixedClock(Timestamp(0))),
        max_turns: Some(20),
        compaction: gaffer_agent::Compaction::default(),
        allowance: Arc::new(gaffer_agent::Unlimited),
    });
    sender.send(Block::from_human("go"));
    Setup {
        agent,
        sender,
        times,
        events,
        path,
        _temp: temp,
    }
}

async fn run(setup: &mut Setup) -> Outcome {
    setup.agent.run(&CancellationToken::new()).await
}

#[tokio::test(start_paused = true)]
async fn reads_run_side_by_side_and_writers_one_after_another() {
    let calls = [
        "Look a", "Look b", "Change c", "Change d", "Look e", "Look f",
    ]
    .map(|call| {
        let (tool, name) = call.split_once(' ').unwrap();
        format!("{{ tool: {tool}, input: {{ name: {name} }} }}")
    });
    let mut setup = setup(&format!(
        "{{ calls: [{}] }}, {{ say: Done. }}",
        calls.join(", ")
    ));
    let outcome = run(&mut setup).await;
    assert_eq!((outcome.end, outcome.tool_uses), (End::Done, 6));
    let mut times = setup.times.lock().unwrap().clone();
    times.sort();
    let spans: Vec<_> = times
        .iter()
        .map(|(name, from, to)| (name.as_str(), *from, *to))
        .collect();
    assert_eq!(
        spans,
        [
            ("a", 0, 1),
            ("b", 0, 1),
            ("c", 1, 2),
            ("d", 2, 3),
            ("e", 3, 4),
            ("f", 3, 4)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_bug_in_a_tool_is_a_result_and_the_loop_goes_on() {
    let mut setup = setup(
        "{ calls: [{ tool: Change, as: x, input: { name: panic } }] }, { expect: [{ of: x, error: true, result: failed inside }], say: I see. }",
    );
    assert_eq!(run(&mut setup).await.end, End::Done);
}

#[tokio::test(start_paused = true)]
async fn mail_is_delivered_at_the_next_tool_round() {
    let mut setup = setup(
        "{ calls: [{ tool: Look, input: { name: a } }] }, { expect: [{ text: by the way }, { result: a }], say: Noted. }",
    );
    let sender = setup.sender.clone();
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        sender.send(Block::from_human("by the way"));
    });
    assert_eq!(outcome.end, End::Done);
}

/// Stops the run at many instants: before, in and after every model call and every tool.
#[tokio::test(start_paused = true)]
async fn a_stop_at_any_point_leaves_a_valid_conversation() {
    let steps = "{ delay: 1s, calls: [{ tool: Look, input: { name: a } }, { tool: Look, input: { name: b } }, { tool: Change, input: { name: c } }] }, { delay: 1s, say: Half., calls: [{ tool: Change, input: { name: d } }] }, { delay: 1s, say: Done. }";
    for at in (100..6500).step_by(200) {
        let mut setup = setup(steps);
        let stop = CancellationToken::new();
        let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
            tokio::time::sleep(Duration::from_millis(at)).await;
            stop.cancel();
        });
        let fold = Fold::read(&setup.path).unwrap();
        assert!(fold.damaged.is_empty());
        assert_eq!(fold.end.as_ref(), Some(&outcome.end));
        assert_eq!(
            outcome.end,
            if at > 6000 {
                End::Done
            } else {
                End::Interrupted
            },
            "at {at} ms"
        );
        let mut open: Vec<String> = Vec::new();
        for message in &fold.messages {
            let results: Vec<String> = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::ToolResult(result) => Some(result.call.clone()),
                    _ => None,
                })
                .collect();
            assert_eq!(results, open, "at {at} ms");
            open = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::ToolUse(call) if message.role == Role::Assistant => {
                        Some(call.id.clone())
                    }
                    _ => None,
                })
                .collect();
        }
        assert!(open.is_empty(), "at {at} ms");
        // What had ended by then is kept, what had not is said not to have.
        let kept = setup
            .times
            .lock()
            .unwrap()
            .iter()
            .map(|(name, ..)| name.clone())
            .collect::<Vec<_>>();
        let text = std::fs::read_to_string(&setup.path).unwrap();
        for name in &kept {
            assert!(
                text.contains(&format!("\"parts\":[{{\"text\":\"{name}\"}}]")),
                "at {at} ms: {name}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_always_shows_what_it_waits_for() {
    let mut setup = setup("{ calls: [{ tool: Look, input: { name: a } }] }, { say: Done. }");
    run(&mut setup).await;
    let waits: Vec<Waiting> = setup
        .events
        .events()
        .into_iter()
        .filter_map(|event| match event {
            EventKind::Waiting(waiting) => Some(waiting),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [Waiting::Tools(vec!["call_1".into()])]);
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_cannot_be_written_stops_everything() {
    let mut setup = setup("{ calls: [{ tool: Change, input: { name: a } }] }");
    let full = Transcript::create(PathBuf::from("/dev/full")).unwrap();
    setup.agent = with_transcript(setup.agent, full);
    let outcome = run(&mut setup).await;
    assert!(
        matches!(&outcome.end, End::Crashed(why) if why.contains("/dev/full")),
        "{:?}",
        outcome.end
    );
    assert!(setup.times.lock().unwrap().is_empty(), "no tool ran");
}

fn with_transcript(agent: Agent, transcript: Transcript) -> Agent {
    let mut parts = agent.into_parts();
    parts.transcript = transcript;
    Agent::new(parts)
}
