//! What goes wrong in other crews and must not go wrong here, in simulated time: workers that
//! hang, ends that are called by a wrong name, places that leak, sums that do not add up.

use crate::crew_world::{Plan, World, patient, told};
use gaffer_crew::{CrewLimits, MailSender, Stopped};
use gaffer_model::provider::Deadlines;
use gaffer_model::retry::Patience;
use gaffer_protocol::{Cost, End, EventKind, Status, Timestamp, Usage, Waiting};
use gaffer_testkit::world::FixedClock;
use gaffer_tools::Floor;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

fn calls(names: &[&str]) -> String {
    let call = |name: &&str| {
        format!(
            "{{ tool: Agent, input: {{ description: Task {name}, name: {name}, prompt: go }} }}"
        )
    };
    names.iter().map(call).collect::<Vec<_>>().join(", ")
}

/// A model that answers nothing, in each of the ways that there are.
#[tokio::test(start_paused = true)]
async fn the_coordinator_hears_of_a_worker_that_hangs_within_its_deadline() {
    let patience = Patience {
        attempts: 2,
        first_delay: Duration::from_millis(100),
        ..Patience::default()
    };
    let deadlines = Deadlines {
        first_byte: Duration::from_secs(30),
        silence: Duration::from_secs(20),
    };
    for (fault, say, reason, seconds) in [
        ("hang", "", "no_progress", 60),
        ("silence", "", "no_progress", 40),
        ("silence", "say: Half an, ", "no_progress", 40),
        ("disconnect", "", "provider_error", 0),
        ("cut", "say: Half an, ", "provider_error", 0),
    ] {
        let script = format!(
            "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ say: Waiting. }}, {{ when: {{ notifications: 3 }}, say: All heard. }}] }},
              {{ name: bad, steps: [{{ repeat: 2, {say}fault: {fault} }}] }},
              {{ steps: [{{ delay: 3s, calls: [{{ tool: Work, input: {{ ms: 2000 }} }}] }}, {{ say: A sibling's result. }}] }}]",
            calls(&["one", "bad", "two"])
        );
        let mut world = World::new(Plan::new(patient(&script, patience, deadlines)));
        let began = Instant::now();
        assert_eq!(world.run("go").await, End::Done, "{fault}");
        let told = told(&world.fold(world.main).messages);
        assert_eq!(told.len(), 3, "{fault}");
        for it in &told {
            match it.summary.contains("Task bad") {
                true => {
                    assert_eq!(it.status, Status::Failed, "{fault}");
                    assert_eq!(it.reason.as_deref(), Some(reason), "{fault}");
                }
                false => assert_eq!(it.result.as_deref(), Some("A sibling's result.")),
            }
        }
        let bad = world.log.notified().into_iter();
        let at = bad.filter(|(_, it)| it.status == Status::Failed);
        let took = at.map(|(at, _)| at - began).next().unwrap();
        let deadline = Duration::from_secs(seconds);
        assert!(
            took >= deadline && took <= deadline + Duration::from_secs(2),
            "{fault}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_runs_does_not_look_as_if_it_waited_for_a_place() {
    let limits = CrewLimits {
        workers: 1,
        ..CrewLimits::default()
    };
    let script = "agents: [{ steps: [{ delay: 1s, calls: [{ tool: Work, input: { ms: 1000 } }] }, { delay: 1s, say: Done. }, { say: Again. }] }]";
    let world = World::new(Plan {
        limits,
        ..Plan::script(script)
    });
    let first = world.start("first").await;
    assert_eq!(world.crew.workers()[0].waiting, Waiting::Model);
    let second = world.start("second").await;
    assert_eq!(second.place, Some(1));
    let shown = || -> Vec<Waiting> {
        let workers = world.crew.workers();
        workers.into_iter().map(|worker| worker.waiting).collect()
    };
    assert_eq!(shown(), [Waiting::Model, Waiting::Queue(1)]);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(matches!(
        shown()[..],
        [Waiting::Tools(_), Waiting::Queue(1)]
    ));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(shown(), [Waiting::Model]);
    // Continued while the place is taken: it is in the queue, and its place is shown.
    world
        .crew
        .send(MailSender::Human, "first", "more")
        .await
        .unwrap();
    assert_eq!(shown(), [Waiting::Queue(1), Waiting::Model]);
    let queued = world.log.all().into_iter().filter(|(_, id, kind)| {
        *id == first.id && matches!(kind, EventKind::Waiting(Waiting::Queue(1)))
    });
    assert_eq!(queued.count(), 1);
    world.settle().await;
}

/// Every way in which an answer can end a run.
#[tokio::test(start_paused = true)]
async fn only_a_natural_end_with_a_result_is_completed() {
    let patience = Patience {
        attempts: 2,
        overload: Duration::from_secs(60),
        ..Patience::default()
    };
    let faults = [
        "overloaded",
        "server_error",
        "unauthorized",
        "forbidden",
        "{ bad_request: no }",
        "prompt_too_long",
        "disconnect",
        "cut",
        "garbled",
        "overloaded_inside",
        "hang",
        "silence",
        "html",
        "flood",
    ];
    let stops = [
        "end_turn",
        "tool_use",
        "max_tokens",
        "context_full",
        "refusal",
        "stop_sequence",
        "pause",
    ];
    let mut steps = Vec::new();
    for say in ["", "say: 'Some words.', ", "say: '  ', ", "think: Hm., "] {
        for fault in faults {
            steps.push((format!("{{ repeat: 99, {say}fault: {fault} }}"), false));
        }
        for stop in stops {
            let is_natural = ["end_turn", "tool_use", "stop_sequence"].contains(&stop);
            let is_done = is_natural && say.contains("words");
            steps.push((format!("{{ repeat: 99, {say}stop: {stop} }}"), is_done));
            // Words from an earlier turn are no result of this one.
            let earlier = "{ say: Earlier., calls: [{ tool: Work, input: { ms: 1 } }] }";
            steps.push((
                format!("{earlier}, {{ repeat: 99, {say}stop: {stop} }}"),
                is_done,
            ));
        }
    }
    // It never comes to an end: so many turns are too many.
    let tool = "{ repeat: 99, say: On., calls: [{ tool: Work, input: { ms: 1 } }] }";
    steps.push((tool.to_owned(), false));
    // The script ends before the run does.
    steps.push((
        "{ calls: [{ tool: Work, input: { ms: 1 } }] }".to_owned(),
        false,
    ));
    for (steps, is_done) in steps {
        let script = format!("agents: [{{ steps: [{steps}] }}]");
        let world = World::new(Plan::new(patient(&script, patience, Deadlines::default())));
        let mut order = world.order("w", "worker", world.main);
        order.terms.max_turns = Some(5);
        world.crew.start(order).await.unwrap();
        world.settle().await;
        let [(_, told)] = &world.log.notified()[..] else {
            panic!("told once: {steps}");
        };
        assert_eq!(
            told.status == Status::Completed,
            is_done,
            "{steps}: {told:?}"
        );
        if is_done {
            assert!(
                told.result
                    .as_ref()
                    .is_some_and(|text| !text.trim().is_empty())
            );
            assert!(told.reason.is_none() && told.summary.ends_with("completed"));
        } else {
            assert!(told.reason.is_some(), "{steps}: {told:?}");
            assert_eq!(told.status, Status::Failed, "{steps}: {told:?}");
        }
    }
}

/// A stop at any instant of a run: killed, or it had completed before.
#[tokio::test(start_paused = true)]
async fn a_stopped_worker_is_killed_by_whoever_stopped_it_or_had_completed() {
    let script = "agents: [{ steps: [{ delay: 1s, calls: [{ tool: Work, input: { ms: 1000 } }] }, { delay: 1s, say: Done. }] }]";
    for at in (60..3500).step_by(125) {
        for why in [End::StoppedByCoordinator, End::StoppedByUser] {
            let world = World::new(Plan::script(script));
            let id = world.start("w").await.id;
            tokio::time::sleep(Duration::from_millis(at)).await;
            let stopped = world.crew.stop(id, why.clone()).await.unwrap();
            assert!(!world.crew.is_busy());
            let [(_, told)] = &world.log.notified()[..] else {
                panic!("told once at {at} ms");
            };
            match stopped {
                Stopped::Gone => assert_eq!(told.reason.as_deref(), Some(why.reason()), "{at}"),
                Stopped::Before(end) => assert_eq!((end, at >= 3000), (End::Done, true)),
            }
            let status = if at < 3000 {
                Status::Killed
            } else {
                Status::Completed
            };
            assert_eq!(told.status, status, "at {at} ms");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_ledger_adds_up_to_what_the_models_reported() {
    let steps = |model: &str| {
        format!(
            "{{ model: {model}, usage: {{ input: 100, output: 7 }}, calls: [{{ tool: Work, input: {{ ms: 10 }} }}] }}, {{ repeat: 9, model: {model}, usage: {{ input: 30, cache_read: 1000, cache_write: 20, output: 5 }}, say: Done. }}"
        )
    };
    let script = |model: &str| format!("agents: [{{ steps: [{}] }}]", steps(model));
    let mut plan = Plan::script(&script("scripted"));
    let mut models = BTreeMap::new();
    for name in ["small", "large"] {
        let model = patient(&script(name), Patience::default(), Deadlines::default());
        models.insert(name.to_owned(), model);
    }
    plan.models = models;
    let mut world = World::new(plan);
    for (name, model) in [("a", Some("small")), ("b", Some("large")), ("c", None)] {
        let mut order = world.order(name, "worker", world.main);
        order.model = model.map(str::to_owned);
        world.crew.start(order).await.unwrap();
    }
    world.settle().await;
    for _ in 0..2 {
        for name in ["a", "b"] {
            world
                .crew
                .send(MailSender::Human, name, "again")
                .await
                .unwrap();
        }
        world.settle().await;
    }
    let first = Usage {
        input: 100,
        output: 7,
        ..Usage::default()
    };
    let later = Usage {
        input: 30,
        cache_read: 1000,
        cache_write: 20,
        output: 5,
    };
    let ledger = world.crew.ledger();
    for (row, (name, model, runs)) in
        ledger
            .iter()
            .zip([("a", "small", 3), ("b", "large", 3), ("c", "scripted", 1)])
    {
        let usage = (0..runs).fold(first, |sum, _| sum + later);
        assert_eq!(
            (row.name.as_str(), row.model.as_str(), row.usage),
            (name, model, usage)
        );
        assert!(matches!(row.cost, Cost::MicroUsd(cost) if cost > 0));
    }
    assert_eq!(ledger.len(), 3);
    // The last notification of a worker tells what all its runs came to.
    let told = world.log.notified();
    let of_a = told.iter().rfind(|(_, it)| it.summary.contains("of a\""));
    let total = of_a.unwrap().1.usage.as_ref().unwrap().total_tokens;
    assert_eq!(total, ledger[0].usage.total());
    world.run("go").await;
    let own = world.crew.own_spending().usage();
    let all = ledger.iter().filter(|row| row.model == "scripted");
    let all: Usage = all.map(|row| row.usage).sum::<Usage>() + own;
    assert_eq!(all, *world.model.usage.lock().unwrap());
    assert!(own.total() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_workers_leak_no_place_and_cost_the_coordinator_nothing_while_it_waits() {
    let limits = CrewLimits {
        workers: 10,
        ..CrewLimits::default()
    };
    let script = "agents: [{ name: main, steps: [{ repeat: 9999, say: Noted. }] }, { steps: [{ delay: 100s, say: Done. }] }]";
    let mut world = World::new(Plan {
        limits,
        ..Plan::script(script)
    });
    let began = Instant::now();
    let names: Vec<String> = (0..1000).map(|n| format!("w{n}")).collect();
    let starts = names.iter().map(|name| world.start(name));
    let started = futures_util::future::join_all(starts).await;
    let ids: Vec<_> = started.iter().map(|it| it.id).collect();
    // Some never get their place, some lose it.
    for id in ids.iter().skip(3).step_by(7) {
        world.crew.stop(*id, End::StoppedByCoordinator).await;
    }
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.crew.free_places(), 10);
    assert!(!world.crew.is_busy() && world.crew.workers().is_empty());
    let told = told(&world.fold(world.main).messages);
    assert_eq!(told.len(), 1000);
    // It was asked when something had come, and at no other time.
    let mut wakes: Vec<Duration> = world
        .log
        .notified()
        .iter()
        .map(|(at, _)| *at - began)
        .collect();
    wakes.dedup();
    let asked: Vec<Duration> = world
        .asked_by("main")
        .iter()
        .map(|it| it.at - began)
        .collect();
    assert!(
        asked.len() <= wakes.len() + 1,
        "{} for {}",
        asked.len(),
        wakes.len()
    );
    // What comes close behind a notification is waited for, and nothing else.
    let close = Duration::from_millis(50);
    for at in asked {
        let is_woken = |wake: &Duration| *wake <= at && at - *wake <= close;
        assert!(wakes.iter().any(is_woken), "asked at {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_full_disk_a_long_result_is_told_in_part_and_not_kept() {
    let limits = CrewLimits {
        result: 1500,
        ..CrewLimits::default()
    };
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ say: Waiting. }}, {{ say: Done. }}] }}, {{ steps: [{{ say: {} }}] }}]",
        calls(&["a"]),
        "long ".repeat(400)
    );
    for (free, is_kept) in [(3_000_000, true), (1_000_000, false)] {
        let clock = Arc::new(FixedClock(Timestamp(0)));
        let gauge = Box::new(move |_: &Path| Ok(free));
        let mut world = World::new(Plan {
            limits,
            floor: Floor::with(Path::new("/x"), 2_000_000, clock, gauge),
            ..Plan::script(&script)
        });
        assert_eq!(world.run("go").await, End::Done);
        let (_, told) = world.log.notified().remove(0);
        assert_eq!(told.status, Status::Completed);
        let is_there = told
            .output_file
            .as_ref()
            .map(|file| Path::new(file).exists());
        assert_eq!(is_there, is_kept.then_some(true));
        let why = "The whole could not be kept: only 1 MB are free";
        let advice = told.advice.unwrap_or_default();
        assert_eq!(advice.starts_with(why), !is_kept, "{advice}");
        assert!(told.result.unwrap().starts_with("long long"));
    }
}
