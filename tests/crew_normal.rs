//! Sub-agents of an agent that works itself, and orders that cannot be carried out, in simulated
//! time.

use crate::crew_world::{Plan, World};
use gaffer_crew::CrewLimits;
use gaffer_crew::tools::Manner;
use gaffer_protocol::{AgentId, End, EventKind, EventSink};
use serde_json::json;
use std::sync::Arc;

fn normal(script: &str) -> World {
    World::new(Plan {
        manner: Manner::Normal,
        ..Plan::script(script)
    })
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_that_is_waited_for_reports_as_a_result_and_not_by_notification() {
    let mut world = normal(
        "agents: [{ name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Look, name: w, prompt: go } }] }, { expect: [{ of: a, error: false, result: It is there. }], say: Good. }] }, { steps: [{ delay: 119s, say: It is there. }] }]",
    );
    assert_eq!(world.run("go").await, End::Done);
    assert!(world.log.notified().is_empty());
    assert_eq!(world.log.ends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_that_takes_long_goes_on_in_the_background_and_reports_once() {
    let mut world = normal(
        "agents: [{ name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Look, name: w, prompt: go } }] }, { expect: [{ of: a, error: false, result: goes on in the background }], say: I wait. }, { when: { notifications: 1 }, expect: [{ text: It is there. }], say: Good. }] }, { steps: [{ delay: 121s, say: It is there. }] }]",
    );
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.log.notified().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_in_the_background_is_not_waited_for() {
    let mut world = normal(
        "agents: [{ name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Look, name: w, prompt: go, run_in_background: true } }] }, { expect: [{ of: a, error: false, result: task_id }], say: I wait. }, { when: { notifications: 1 }, say: Good. }] }, { steps: [{ delay: 5s, say: It is there. }] }]",
    );
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.log.notified().len(), 1);
    assert!(world.asked_by("main")[1].at < world.asked_by("main")[2].at);
}

/// Whoever waits for a worker is cut off at the very moment at which the worker ends.
#[tokio::test(start_paused = true)]
async fn an_end_is_told_though_who_waited_for_it_is_cut_off() {
    // One place: who waits for its own worker has given it up and needs it again for the answer.
    let mut world = World::new(Plan {
        manner: Manner::Normal,
        limits: CrewLimits {
            depth: 2,
            workers: 1,
            ..CrewLimits::default()
        },
        ..Plan::script(
            "agents: [{ name: main, steps: [{ calls: [{ tool: Agent, input: { description: Look, name: outer, prompt: go, run_in_background: true } }] }, { say: I wait. }, { when: { notifications: 3 }, meanwhile: I wait., say: Good. }] }, { name: outer, steps: [{ calls: [{ tool: Agent, input: { description: Look, name: inner, prompt: go } }] }] }, { name: inner, steps: [{ delay: 10s, say: It is there. }] }, { name: next, steps: [{ delay: 10s, say: Next. }] }]",
        )
    });
    let crew = world.crew.clone();
    let next = world.order("next", "worker", world.main);
    let (end, ()) = tokio::join!(world.run("go"), async {
        let pause = || tokio::time::sleep(std::time::Duration::from_millis(100));
        while crew.find("inner").is_none() {
            pause().await;
        }
        // It has the place from the end of the inner one on, so that the outer one waits for it.
        assert_eq!(crew.start(next).await.unwrap().place, Some(1));
        while crew.workers().iter().any(|it| it.name.as_str() == "inner") {
            pause().await;
        }
        let (outer, _) = crew.find("outer").unwrap();
        crew.stop(outer, End::StoppedByCoordinator).await;
    });
    assert_eq!(end, End::Done);
    let told = world.log.notified();
    let told: Vec<String> = told.into_iter().map(|(_, it)| it.summary).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    let heard = crate::crew_world::told(&world.fold(world.main).messages);
    assert_eq!(heard.len(), 3, "{heard:?}");
}

/// Interrupts the session's own agent at the moment at which a worker has ended.
#[derive(Debug)]
struct Nervous(gaffer_crew::Crew);

impl EventSink for Nervous {
    fn emit(&self, _: AgentId, kind: EventKind) {
        if matches!(kind, EventKind::AgentEnded(_)) {
            self.0.interrupt();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_is_told_though_the_user_interrupts_as_it_comes() {
    let mut world = normal(
        "agents: [{ name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Look, name: w, prompt: go } }] }, { when: { notifications: 1 }, expect: [{ of: a, error: true }, { text: It is there. }], say: Good. }] }, { steps: [{ delay: 10s, say: It is there. }] }]",
    );
    let nervous = Arc::new(Nervous(world.crew.clone()));
    world.log.beside.set(nervous).unwrap();
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.log.notified().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_sub_agent_is_an_error_with_its_last_words() {
    let mut world = normal(
        "agents: [{ name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Look, name: w, prompt: go } }] }, { expect: [{ of: a, error: true, result: { matches: 'did not finish(.|\\n)*I began\\.' } }], say: A pity. }] }, { steps: [{ say: I began., calls: [{ tool: Work, input: { ms: 1 } }] }, { fault: unauthorized }] }]",
    );
    assert_eq!(world.run("go").await, End::Done);
    assert!(world.log.notified().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_its_own_gives_up_its_place() {
    let limits = CrewLimits {
        depth: 2,
        workers: 1,
        ..CrewLimits::default()
    };
    let mut world = World::new(Plan {
        limits,
        manner: Manner::Normal,
        ..Plan::script(
            "agents: [
              { name: main, steps: [{ calls: [{ tool: Agent, as: a, input: { description: Above, name: above, prompt: go } }] }, { expect: [{ of: a, error: false, result: 'It says: deep.' }], say: Good. }] },
              { name: above, steps: [{ calls: [{ tool: Agent, as: b, input: { description: Below, name: below, prompt: go } }] }, { expect: [{ of: b, error: false, result: deep. }], say: 'It says: deep.' }] },
              { name: below, steps: [{ calls: [{ tool: Agent, as: c, input: { description: Deeper, prompt: go } }, { tool: Work, input: { ms: 60000 } }] }, { expect: [{ of: c, error: true, result: 'There is no tool `Agent`' }], say: deep. }] }]",
        )
    });
    assert_eq!(world.run("go").await, End::Done);
    assert_eq!(world.log.ends().len(), 2);
    assert!(world.log.notified().is_empty());
}

#[tokio::test(start_paused = true)]
async fn workers_of_workers_are_refused_beyond_the_depth() {
    let world = normal("agents: [{ steps: [{ delay: 1s, say: Done. }] }]");
    let w = world.start("w").await.id;
    let why = world
        .crew
        .start(world.order("below", "worker", w))
        .await
        .unwrap_err();
    assert!(why.to_string().contains("a depth of 1"), "{why}");
    world.settle().await;
    let limits = CrewLimits {
        depth: 2,
        ..CrewLimits::default()
    };
    let world = World::new(Plan {
        limits,
        ..Plan::script(
            "agents: [{ name: w, steps: [{ delay: 3s, say: Done. }] }, { steps: [{ delay: 1s, say: Below. }] }]",
        )
    });
    let w = world.start("w").await.id;
    let order = world.order("below", "worker", w);
    assert_eq!(world.one(order).await.result, "Below.");
    let below = world.crew.find("below").unwrap().0;
    let deeper = world
        .crew
        .start(world.order("deeper", "worker", below))
        .await;
    assert!(deeper.is_err());
    world.crew.stop_all(&End::Interrupted).await;
}

#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_carried_out_is_refused_with_the_reason() {
    let long = "x".repeat(1 << 20);
    let odd = [
        (
            json!({"description": "Big", "prompt": long}),
            "1048576 bytes",
        ),
        (
            json!({"description": " \n", "prompt": "go"}),
            "`description` is empty",
        ),
        (
            json!({"description": "x", "prompt": "\t"}),
            "`prompt` is empty",
        ),
        (
            json!({"description": "x", "prompt": "go", "name": "agent-00000000"}),
            "name",
        ),
        (
            json!({"description": "x", "prompt": "go", "name": "main"}),
            "name",
        ),
        (
            json!({"description": "x", "prompt": "go", "name": "../up"}),
            "name",
        ),
        (
            json!({"description": "x", "prompt": "go", "name": "x".repeat(65)}),
            "name",
        ),
        (
            json!({"description": "x", "prompt": "go", "name": "*"}),
            "name",
        ),
        (
            json!({"description": "x", "prompt": "go", "max_turns": 0}),
            "at least 1",
        ),
        (
            json!({"description": "x", "prompt": "go", "subagent_type": ""}),
            "general-purpose",
        ),
    ];
    for (input, why) in odd {
        let script = json!({"agents": [{"steps": [
            {"calls": [{"tool": "Agent", "as": "a", "input": input}]},
            {"expect": [{"of": "a", "error": true, "result": why}], "say": "I see."},
        ]}]});
        for manner in [Manner::Normal, Manner::Coordinator] {
            let mut world = World::new(Plan {
                manner,
                ..Plan::script(&script.to_string())
            });
            assert_eq!(world.run("go").await, End::Done, "{why}");
            assert!(world.crew.names().is_empty());
        }
    }
    // A long description is cut, not refused, and a blank name is none.
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [{"tool": "Agent", "input": {"description": "ж".repeat(5000), "prompt": "go", "name": " "}}]},
            {"say": "Waiting."},
            {"when": {"notifications": 1}, "expect": [{"text": "ж"}], "say": "Good."},
        ]},
        {"steps": [{"say": "Done."}]},
    ]});
    let mut world = World::new(Plan::script(&script.to_string()));
    assert_eq!(world.run("go").await, End::Done);
    assert!(world.log.notified()[0].1.summary.len() < 500);
    assert!(world.crew.names()[0].starts_with("worker-1 "));
}
