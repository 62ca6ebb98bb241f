//! Caps of single tasks, and what a budget means for messages and advice, in simulated time.

use crate::crew_world::{Plan, World, told};
use gaffer_crew::tools::Manner;
use gaffer_crew::{CrewLimits, Guardrails, MailError, MailSender};
use gaffer_protocol::{Budget, End, EventKind};
use std::time::Duration;

/// Works on for ever: each answer costs 100 tokens and 190 millionths of a dollar.
const TOILS: &str = "{ say: Half done., usage: { input: 90, output: 10 }, calls: [{ tool: Work, input: { ms: 1000 } }], repeat: 9999 }";

fn tokens(most: u64) -> Budget {
    Budget {
        tokens: Some(most),
        ..Budget::default()
    }
}

fn limits(budget: Budget) -> CrewLimits {
    CrewLimits {
        budget,
        ..CrewLimits::default()
    }
}

/// One worker that toils under a budget of its own, beside one that has none.
async fn beside(budget: &str) -> World {
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{{ tool: Agent, input: {{ description: Toil, name: a, prompt: go, budget: {budget} }} }}, {{ tool: Agent, input: {{ description: Wait, name: b, prompt: go }} }}] }}, {{ say: Started. }}, {{ when: {{ notifications: 2 }}, meanwhile: Waiting., say: Good. }}] }}, {{ name: a, steps: [{TOILS}] }}, {{ name: b, steps: [{{ delay: 1h, say: B. }}] }}]"
    );
    let mut world = World::new(Plan::script(&script));
    assert_eq!(world.run("go").await, End::Done);
    let told = told(&world.fold(world.main).messages);
    let reasons: Vec<Option<&str>> = told.iter().map(|it| it.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("budget"), None]);
    assert_eq!(told[0].result.as_deref(), Some("Half done."));
    world
}

#[tokio::test(start_paused = true)]
async fn money_ends_one_task_alone() {
    let world = beside("{ usd: 0.002 }").await;
    let ends = world.log.ends();
    let cost = ends[0].2.cost.usd().unwrap();
    assert!((0.0015..=0.002).contains(&cost), "{cost}");
}

#[tokio::test(start_paused = true)]
async fn time_ends_one_task_alone() {
    let world = beside("{ seconds: 30 }").await;
    let ends = world.log.ends();
    let took = Duration::from_millis(ends[0].2.duration_ms);
    let most = Duration::from_secs(60);
    assert!((Duration::from_secs(30)..=most).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_would_continue_somebody_without_means_is_refused() {
    let script = format!("agents: [{{ name: w, steps: [{TOILS}] }}]");
    let world = World::new(Plan::script(&script));
    let mut order = world.order("w", "worker", world.main);
    order.terms.budget = tokens(1000);
    let report = world.one(order).await;
    assert_eq!(report.end, End::Budget);
    let asked = world.asked_by("w").len();
    let refused = world.crew.send(MailSender::Agent(world.main), "w", "more");
    let refused = refused.await.unwrap_err();
    assert!(matches!(refused, MailError::Budget(..)), "{refused}");
    // The model is told the same, in words.
    let text = refused.to_string();
    assert!(text.starts_with("w was not continued: "), "{text}");
    world.settle().await;
    assert_eq!(world.asked_by("w").len(), asked);
}

#[tokio::test(start_paused = true)]
async fn with_the_guardrail_off_nothing_is_said_and_the_cap_still_holds() {
    let calls: Vec<String> = (0..4)
        .map(|n| {
            format!("{{ tool: Agent, input: {{ description: Toil {n}, name: w{n}, prompt: go }} }}")
        })
        .collect();
    let script = format!(
        "agents: [{{ name: main, steps: [{{ usage: {{ input: 100 }}, calls: [{}] }}, {{ usage: {{ input: 100 }}, say: Started. }}, {{ usage: {{ input: 100 }}, say: Heard., repeat: 99 }}] }}, {{ steps: [{TOILS}] }}]",
        calls.join(", ")
    );
    for is_off in [false, true] {
        let mut guardrails = Guardrails::default();
        if is_off {
            guardrails.budget = gaffer_crew::orders::Level::Off;
        }
        let mut world = World::new(Plan {
            limits: limits(tokens(8000)),
            guardrails,
            ..Plan::script(&script)
        });
        assert_eq!(world.run("go").await, End::Budget);
        let all = world.model.usage.lock().unwrap().total();
        assert!(all <= 8000, "{all}");
        let events = world.log.all().into_iter();
        let advice = events.filter(
            |(_, _, kind)| matches!(kind, EventKind::Advice(advice) if advice.guardrail == "budget"),
        );
        assert_eq!(advice.count() == 0, is_off);
    }
}

/// Every agent starts another and waits for it, for ever: at the cap all of them come back.
#[tokio::test(start_paused = true)]
async fn those_that_wait_for_their_own_for_ever_stay_under_the_cap_too() {
    let starts = "{ say: More., usage: { input: 90, output: 10 }, calls: [{ tool: Agent, input: { description: More, prompt: go } }], repeat: 9999 }";
    let mut world = World::new(Plan {
        limits: CrewLimits {
            depth: 40,
            workers: 4,
            ..limits(tokens(20_000))
        },
        manner: Manner::Normal,
        ..Plan::script(&format!("agents: [{{ steps: [{starts}] }}]"))
    });
    let ended = tokio::time::timeout(Duration::from_secs(24 * 3600), world.run("go"));
    assert_eq!(ended.await, Ok(End::Budget));
    let all = world.model.usage.lock().unwrap().total();
    assert!((10_000..=20_000).contains(&all), "{all}");
    assert_eq!(world.crew.workers(), []);
}
