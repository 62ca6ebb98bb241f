//! What a crew may use, in simulated time: caps of a session and of a task, what is reserved before
//! a start, and how everybody wraps up.

use crate::crew_world::{Plan, World, heard, told};
use gaffer_crew::CrewLimits;
use gaffer_crew::tools::Manner;
use gaffer_protocol::{AgentId, Budget, BudgetNews, Cap, End, EventKind, Origin, Status};
use std::time::Duration;
use tokio::time::Instant;

const LAST_TURN: &str = "The budget is used up";

/// Works on for ever: each answer costs 100 tokens.
const TOILS: &str = "{ say: Half done., usage: { input: 90, output: 10 }, calls: [{ tool: Work, input: { ms: 1000 } }], repeat: 9999 }";

fn agent(name: &str, more: &str) -> String {
    format!(
        "{{ tool: Agent, as: {name}, input: {{ description: Task of {name}, name: {name}, prompt: go{more} }} }}"
    )
}

fn tokens(most: u64) -> Budget {
    Budget {
        tokens: Some(most),
        ..Budget::default()
    }
}

fn world(script: &str, budget: Budget) -> World {
    let limits = CrewLimits {
        budget,
        ..CrewLimits::default()
    };
    World::new(Plan {
        limits,
        ..Plan::script(script)
    })
}

/// One that starts these, waits, and sums up when so many have ended.
fn crew(calls: &[String], then: &str, others: &str) -> String {
    let calls = calls.join(", ");
    format!(
        "agents: [{{ name: main, steps: [{{ usage: {{ input: 100 }}, calls: [{calls}] }}, {then}] }}, {others}]"
    )
}

fn last_turns(world: &World, id: AgentId) -> usize {
    let heard = heard(&world.fold(id).messages);
    let is_last = |(origin, text): &(Option<Origin>, String)| {
        *origin == Some(Origin::Context) && text.starts_with(LAST_TURN)
    };
    heard.iter().filter(|it| is_last(it)).count()
}

fn news(world: &World) -> Vec<(AgentId, BudgetNews)> {
    let news = world
        .log
        .all()
        .into_iter()
        .filter_map(|(_, id, kind)| match kind {
            EventKind::Budget(news) => Some((id, *news)),
            _ => None,
        });
    news.collect()
}

#[tokio::test(start_paused = true)]
async fn at_the_cap_everybody_has_one_last_turn_and_the_lead_hears_all() {
    let then = "{ usage: { input: 100 }, say: Started. }, { when: { notifications: 2 }, expect: [{ text: Half done. }, { text: The budget is used up }], usage: { input: 100 }, say: Both got half way. }";
    let calls = [agent("a", ""), agent("b", "")];
    let others = format!("{{ steps: [{TOILS}] }}");
    let mut world = world(&crew(&calls, then, &others), tokens(10_000));
    assert_eq!(world.run("go").await, End::Budget);
    let all: u64 = world.model.usage.lock().unwrap().total();
    assert!((9_000..=10_000).contains(&all), "{all}");
    for name in ["a", "b"] {
        let id = world.crew.find(name).unwrap().0;
        assert_eq!(last_turns(&world, id), 1, "{name}");
        let fold = world.fold(id);
        assert_eq!(fold.end, Some(End::Budget));
        let last = format!("{:?}", fold.messages.last());
        assert!(last.contains("Not carried out"), "{last}");
    }
    assert_eq!(last_turns(&world, world.main), 1);
    let told = told(&world.fold(world.main).messages);
    assert_eq!(told.len(), 2);
    for it in told {
        assert_eq!(it.status, Status::Failed);
        assert_eq!(it.reason.as_deref(), Some("budget"));
        assert_eq!(it.result.as_deref(), Some("Half done."));
    }
    let news = news(&world);
    let near = news.iter().filter(|it| matches!(it.1, BudgetNews::Near(_)));
    assert_eq!(near.count(), 1, "{news:?}");
    let reached = news
        .iter()
        .filter(|it| matches!(it.1, BudgetNews::Reached(_)));
    assert_eq!(reached.count(), 1, "{news:?}");
    let sum = world.crew.budget_sum().unwrap();
    assert_eq!(sum.ended_by, Some(Cap::Tokens));
    assert_eq!((sum.spent.tokens, sum.spent.workers), (all, 2));
}

#[tokio::test(start_paused = true)]
async fn money_ends_a_session_like_tokens_do() {
    // A dollar for a million of input, ten for output: $0.00019 an answer.
    let script = format!("agents: [{{ name: main, steps: [{TOILS}] }}]");
    let budget = Budget {
        usd: Some(0.01),
        ..Budget::default()
    };
    let mut world = world(&script, budget);
    assert_eq!(world.run("go").await, End::Budget);
    let sum = world.crew.budget_sum().unwrap();
    assert_eq!(sum.ended_by, Some(Cap::Usd));
    assert!((0.008..=0.01).contains(&sum.spent.usd), "{sum:?}");
    assert_eq!(last_turns(&world, world.main), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_by_its_own_budget_alone() {
    let calls = [agent("a", ", budget: { tokens: 1000 }"), agent("b", "")];
    let then = "{ say: Started. }, { when: { notifications: 2 }, say: Good. }";
    let others = format!(
        "{{ name: a, steps: [{TOILS}] }}, {{ name: b, steps: [{{ delay: 1h, say: B. }}] }}"
    );
    let mut world = world(&crew(&calls, then, &others), Budget::default());
    assert_eq!(world.run("go").await, End::Done);
    let a = world.crew.find("a").unwrap().0;
    let spent = world.fold(a).usage.total();
    assert!((800..=1000).contains(&spent), "{spent}");
    assert_eq!(
        (last_turns(&world, a), last_turns(&world, world.main)),
        (1, 0)
    );
    let ends: Vec<End> = world.log.ends().into_iter().map(|it| it.2.end).collect();
    assert_eq!(ends, [End::Budget, End::Done]);
}

#[tokio::test(start_paused = true)]
async fn bad_budgets_are_refused() {
    let calls = [
        agent("a", ", budget: { usd: 0 }"),
        agent("b", ", budget: { tokens: 0 }"),
        agent("c", ", budget: { usd: -1 }"),
    ];
    let bad =
        |name, cap| format!("{{ of: {name}, error: true, result: '`{cap}` is a number above 0' }}");
    let expect = [bad("a", "usd"), bad("b", "tokens"), bad("c", "usd")].join(", ");
    let then = format!("{{ expect: [{expect}], say: Hm. }}");
    let mut world = world(&crew(&calls, &then, "{ steps: [] }"), Budget::default());
    assert_eq!(world.run("go").await, End::Done);
}

#[tokio::test(start_paused = true)]
async fn time_cuts_off_what_runs_and_leaves_a_last_turn() {
    let calls = [agent("a", ""), agent("q", ", depends_on: [a]")];
    let long = "{ say: I begin., usage: { input: 10 }, calls: [{ tool: Work, as: w, input: { ms: 36000000 } }] }, { expect: [{ of: w, error: true, result: The time was up }, { text: The budget is used up }], usage: { input: 10 }, say: It was not finished. }";
    let then =
        "{ say: Started. }, { when: { notifications: 2 }, meanwhile: No., say: The time is up. }";
    let others = format!("{{ name: a, steps: [{long}] }}, {{ name: q, steps: [] }}");
    let budget = Budget {
        seconds: Some(600),
        ..Budget::default()
    };
    let mut world = world(&crew(&calls, then, &others), budget);
    let began = Instant::now();
    assert_eq!(world.run("go").await, End::Budget);
    let took = began.elapsed();
    let bounds = Duration::from_secs(600)..Duration::from_secs(605);
    assert!(bounds.contains(&took), "{took:?}");
    let ends: Vec<End> = world.log.ends().into_iter().map(|it| it.2.end).collect();
    assert_eq!(ends, [End::Budget, End::Budget], "who waited has ended too");
    assert_eq!(
        world.crew.budget_sum().unwrap().ended_by,
        Some(Cap::Seconds)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_under_way_has_a_grace_when_the_time_is_up() {
    let script = "agents: [{ name: main, steps: [{ say: So far., calls: [{ tool: Agent, input: { description: x, prompt: go } }] }, { delay: 10h, say: Too late. }, { say: My last words. }] }, { steps: [{ say: W. }] }]";
    let budget = Budget {
        seconds: Some(60),
        ..Budget::default()
    };
    let mut world = world(script, budget);
    let began = Instant::now();
    assert_eq!(world.run("go").await, End::Budget);
    let took = began.elapsed();
    let bounds = Duration::from_secs(90)..Duration::from_secs(125);
    assert!(bounds.contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn of_twenty_workers_only_those_start_that_are_covered() {
    let calls: Vec<String> = (0..20).map(|n| agent(&format!("w{n}"), "")).collect();
    let refused = "{ of: w19, error: true, result: { matches: 'the session.s budget does not cover it: 9900 tokens of 10000 tokens is left, 9100 tokens of it is reserved for those that run and wait \\(w[0-9] 1000 tokens, .* 5 more\\), and this worker is forecast to use 1000 tokens' } }";
    let advised = "{ of: w2, result: 'Advice: budget: the 3 workers of this message are forecast to use 3000 tokens of the 9900 tokens that is left' }, { of: w4, result: 'Advice: budget: 5 orders of this message say nearly the same' }";
    let then = format!(
        "{{ expect: [{refused}, {advised}], usage: {{ input: 100 }}, say: Started. }}, {{ when: {{ notifications: 9 }}, meanwhile: Not yet., usage: {{ input: 100 }}, say: Good. }}"
    );
    let others = "{ steps: [{ delay: 5s, usage: { input: 500 }, say: Done. }] }";
    let mut world = world(&crew(&calls, &then, others), tokens(10_000));
    assert_eq!(world.run("go").await, End::Done);
    let sum = world.crew.budget_sum().unwrap();
    assert_eq!((sum.spent.workers, sum.refused), (9, 11));
    assert_eq!(sum.reserved_peak.tokens, 9_000);
    assert_eq!(sum.ended_by, None);
}

#[tokio::test(start_paused = true)]
async fn workers_in_all_are_counted_by_their_starts() {
    let calls = [agent("a", ""), agent("b", ""), agent("c", "")];
    let then = "{ expect: [{ of: c, error: true, result: 'budget is 2 workers in all, and 2 were started: continue one' }], say: Started. }, { when: { notifications: 2 }, meanwhile: No., calls: [{ tool: SendMessage, input: { to: a, message: Go on with the second file. } }] }, { say: Sent. }, { when: { notifications: 3 }, meanwhile: No., say: Good. }";
    let others = "{ name: a, steps: [{ delay: 1s, say: A. }, { say: A again. }] }, { name: b, steps: [{ delay: 1s, say: B. }] }";
    let budget = Budget {
        workers: Some(2),
        ..Budget::default()
    };
    let mut world = world(&crew(&calls, then, others), budget);
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.crew.budget_sum().unwrap().refused, 1);
}

#[tokio::test(start_paused = true)]
async fn four_fifths_are_told_with_the_next_input_and_wake_nobody() {
    let calls = [agent("a", "")];
    let then = "{ say: Started., usage: { input: 100 } }, { when: { notifications: 1 }, expect: [{ text: { matches: '<budget>Of the session.s budget 8[0-9]{3} tokens of 10000 tokens are used' } }], usage: { input: 100 }, say: Good. }";
    let others = "{ name: a, steps: [{ delay: 60s, usage: { input: 8000 }, say: A. }] }";
    let mut world = world(&crew(&calls, then, others), tokens(10_000));
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.asked_by("main").len(), 3, "nobody was woken for it");
}

/// The worst that models do with money: every agent starts others, for ever.
#[tokio::test(start_paused = true)]
async fn a_crew_that_recurses_for_ever_stays_under_its_cap_and_does_not_hang() {
    let starts = "{ say: More., usage: { input: 90, output: 10 }, calls: [{ tool: Agent, input: { description: More, prompt: go, run_in_background: true } }, { tool: Agent, input: { description: More, prompt: go, run_in_background: true } }], repeat: 9999 }";
    let limits = CrewLimits {
        budget: tokens(20_000),
        depth: 40,
        ..CrewLimits::default()
    };
    let mut world = World::new(Plan {
        limits,
        manner: Manner::Normal,
        ..Plan::script(&format!("agents: [{{ steps: [{starts}] }}]"))
    });
    let ended = tokio::time::timeout(Duration::from_secs(3600), world.run("go"));
    assert_eq!(ended.await, Ok(End::Budget));
    let all = world.model.usage.lock().unwrap().total();
    assert!(all <= 20_000, "{all}");
    assert!(all >= 10_000, "{all}");
    for (_, id, ended) in world.log.ends() {
        assert!(last_turns(&world, id) <= 1, "{ended:?}");
    }
}
