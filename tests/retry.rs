//! Patience, in simulated time: hours pass in milliseconds.

use gaffer_model::provider::Deadlines;
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, Delta, ErrorKind, Gate, Model, ModelError, Prefix, Who};
use gaffer_protocol::{AgentId, AgentName, Answer, Block, Message};
use gaffer_testkit::world::Seeded;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

fn model(steps: &str, gate: Gate) -> Retrying {
    let script = Script::parse(&format!("agents: [{{ steps: [{steps}] }}]")).unwrap();
    let scripted = Arc::new(Scripted::new(script, Deadlines::default()));
    Retrying::new(
        scripted,
        gate,
        Patience::default(),
        Arc::new(Seeded::new(7)),
    )
}

fn open(model: &dyn Model, seed: u64) -> Conversation {
    let who = Who {
        id: AgentId::random(&Seeded::new(seed)),
        name: AgentName::main(),
        agent_type: "t".into(),
    };
    let mut conversation = model.open(
        &Prefix {
            system: String::new(),
            tools: Vec::new(),
        },
        who,
    );
    conversation.push(&Message::user(vec![Block::from_human("go")]));
    conversation
}

async fn ask(steps: &str) -> (Result<Answer, ModelError>, Vec<Duration>) {
    let model = model(steps, Gate::new(4));
    let conversation = open(&model, 1);
    let mut delays = Vec::new();
    let answer = model
        .answer(&conversation, &mut |delta| {
            if let Delta::Retry { delay, .. } = delta {
                delays.push(delay);
            }
        })
        .await;
    (answer, delays)
}

#[tokio::test(start_paused = true)]
async fn delays_double_with_jitter_up_to_a_bound() {
    let (answer, delays) = ask("{ repeat: 14, fault: overloaded }, { say: Hi. }").await;
    assert_eq!(answer.unwrap().text(), "Hi.");
    for (n, delay) in delays.iter().enumerate() {
        let full = Duration::from_millis(500 << n.min(7)).min(Duration::from_secs(60));
        assert!(
            *delay >= full / 2 && *delay <= full,
            "{n}: {delay:?} of {full:?}"
        );
    }
    let distinct: std::collections::HashSet<_> = delays.iter().collect();
    assert_eq!(distinct.len(), delays.len(), "jitter");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_provider_asks_for_is_kept() {
    let began = Instant::now();
    let (answer, delays) =
        ask("{ fault: { rate_limited: { retry_after: 90s } } }, { say: Hi. }").await;
    assert!(answer.is_ok());
    assert!(delays[0] >= Duration::from_secs(90) && began.elapsed() >= Duration::from_secs(90));
    assert!(
        began.elapsed() < Duration::from_secs(92),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn overload_is_waited_for_two_hours_and_no_longer() {
    let began = Instant::now();
    let (answer, delays) = ask("{ repeat: 100000, fault: overloaded }").await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Overloaded);
    let hours = began.elapsed().as_secs_f64() / 3600.0;
    assert!((1.95..=2.0).contains(&hours), "{hours} hours");
    assert!(delays.len() > 100);
}

#[tokio::test(start_paused = true)]
async fn other_errors_are_bounded_by_attempts() {
    let (answer, delays) = ask("{ repeat: 100, fault: server_error }").await;
    assert!(
        answer
            .unwrap_err()
            .message
            .contains("given up after 8 attempts")
    );
    assert_eq!(delays.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_a_silent_attempt() {
    for (fault, kind, seconds) in [
        ("hang", ErrorKind::NoFirstByte, 300),
        ("silence", ErrorKind::Silent, 180),
    ] {
        let began = Instant::now();
        let (answer, _) = ask(&format!(
            "{{ fault: {fault} }}, {{ repeat: 9, fault: {fault} }}"
        ))
        .await;
        assert_eq!(answer.unwrap_err().kind, kind);
        let each = began.elapsed().as_secs() / 8;
        assert!(
            (seconds..seconds + 20).contains(&each),
            "{each} s for each attempt"
        );
    }
}

/// Sixteen agents against a wall of 529 for twenty minutes: all wait, all finish.
#[tokio::test(start_paused = true)]
async fn a_wall_of_overload_suspends_everybody_and_loses_nobody() {
    let gate = Gate::new(16);
    let wall = Instant::now() + Duration::from_secs(20 * 60);
    let model = Arc::new(Retrying::new(
        Arc::new(Wall { until: wall }),
        gate.clone(),
        Patience::default(),
        Arc::new(Seeded::new(3)),
    ));
    let agents: Vec<_> = (0..16).map(|n| (model.clone(), open(&*model, n))).collect();
    let all = agents
        .iter()
        .map(|(model, conversation)| async move { model.answer(conversation, &mut |_| {}).await });
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(Result::is_ok));
    assert!(
        wall.elapsed() < Duration::from_secs(120),
        "all are back {:?} after the wall",
        wall.elapsed()
    );
    assert_eq!(gate.view().under_way, 0);
}

/// Answers 529 until a moment.
#[derive(Debug)]
struct Wall {
    until: Instant,
}

impl Model for Wall {
    fn name(&self) -> &str {
        "wall"
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        let script = Script::parse("agents: []").unwrap();
        Scripted::new(script, Deadlines::default()).open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        _: &'a Conversation,
        _: &'a mut gaffer_model::DeltaSink<'_>,
    ) -> futures_util::future::BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if Instant::now() < self.until {
                return Err(ModelError::new(ErrorKind::Overloaded, "Overloaded"));
            }
            Ok(Answer {
                blocks: vec![Block::text("through")],
                stop: gaffer_protocol::StopReason::EndTurn,
                usage: gaffer_protocol::Usage::default(),
                model: "wall".into(),
            })
        })
    }
}
