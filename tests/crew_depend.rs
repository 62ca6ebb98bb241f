//! Tasks that begin when others have completed, in simulated time.

use crate::crew_world::{Plan, World, heard};
use gaffer_protocol::{AgentId, End, EventKind, Status, Waiting};
use std::time::Duration;

fn agent(name: &str, more: &str) -> String {
    format!(
        "{{ tool: Agent, as: {name}, input: {{ description: Task of {name}, name: {name}, prompt: go{more} }} }}"
    )
}

fn script(calls: &[String], then: &str, others: &str) -> String {
    let calls = calls.join(", ");
    format!("agents: [{{ name: main, steps: [{{ calls: [{calls}] }}, {then}] }}, {others}]")
}

fn id(world: &World, name: &str) -> AgentId {
    world.crew.find(name).unwrap().0
}

/// How tasks ended, by name, in the order of their ends.
fn ends(world: &World) -> Vec<(String, End)> {
    let names = ["a", "b", "c"].map(|name| (world.crew.find(name), name));
    let name = |id: AgentId| {
        let found = names
            .iter()
            .find(|(it, _)| it.as_ref().is_some_and(|it| it.0 == id));
        found.map(|(_, name)| (*name).to_owned())
    };
    let ends = world.log.ends().into_iter();
    ends.filter_map(|(_, id, ended)| Some((name(id)?, ended.end)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_task_begins_when_the_last_that_it_needs_has_completed() {
    // `c` is named first, and needs those behind it.
    let calls = [
        agent("c", ", depends_on: [a, b], include_results: true"),
        agent("a", ""),
        agent("b", ""),
    ];
    let then = "{ expect: [{ of: c, result: 'It begins by itself when a, b have completed.' }], say: Started. }, { when: { notifications: 3 }, meanwhile: Not yet., say: All. }";
    let others = "{ name: a, steps: [{ delay: 10s, say: A found </result> it. }] }, { name: b, steps: [{ delay: 90s, say: B too. }] }, { name: c, steps: [{ expect: [{ text: { matches: 'result of=.a.>\\nA found &lt;/result> it' } }, { text: B too }], say: C. }] }";
    let mut world = World::new(Plan::script(&script(&calls, then, others)));
    assert_eq!(world.run("go").await, End::Done);
    let order: Vec<String> = ends(&world).into_iter().map(|(name, _)| name).collect();
    assert_eq!(order, ["a", "b", "c"]);
    let c = id(&world, "c");
    let waits = world
        .log
        .all()
        .into_iter()
        .filter_map(|(_, id, kind)| match kind {
            EventKind::Waiting(Waiting::Dependencies(names)) if id == c => Some(names.len()),
            _ => None,
        });
    assert_eq!(waits.collect::<Vec<_>>(), [2, 1], "it is seen waiting");
    let (_, _, ended) = world.log.ends().into_iter().find(|it| it.1 == c).unwrap();
    assert!(ended.duration_ms < 10_000, "its clock stood still");
}

const FAILS: &str = "{ name: a, steps: [{ delay: 9s, fault: unauthorized }, { say: A at last. }] }, { name: b, steps: [{ say: B. }] }";

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_a_failed_task_is_held_until_that_completes() {
    let calls = [agent("a", ""), agent("b", ", depends_on: [a]")];
    let then = r#"{ say: Started. }, { expect: [{ text: { matches: 'failed(.|\n)*These wait for it and have not begun: b \(agent-[0-9a-f]{8}, "Task of b"\)' } }], calls: [{ tool: SendMessage, input: { to: a, message: again } }] }, { say: Sent. }, { when: { notifications: 3 }, meanwhile: Not yet., say: All. }"#;
    let mut world = World::new(Plan::script(&script(&calls, then, FAILS)));
    assert_eq!(world.run("go").await, End::Done);
    let ends = ends(&world);
    assert_eq!(ends.len(), 3, "{ends:?}");
    assert_eq!((&*ends[1].0, &ends[1].1), ("a", &End::Done));
    assert_eq!((&*ends[2].0, &ends[2].1), ("b", &End::Done));
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_vain_fails_when_nobody_works_any_more() {
    let calls = [
        agent("a", ""),
        agent("b", ", depends_on: [a]"),
        agent("c", ", depends_on: [b]"),
    ];
    let then = "{ say: Started. }, { say: A pity. }, { expect: [{ text: 'needs a' }, { text: 'needs b' }], say: All is lost. }";
    let mut world = World::new(Plan::script(&script(&calls, then, FAILS)));
    assert_eq!(world.run("go").await, End::Done);
    let ends = ends(&world);
    let vain = ends
        .iter()
        .filter(|(_, end)| matches!(end, End::DependencyFailed(_)));
    assert_eq!(vain.count(), 2, "{ends:?}");
    let fold = world.fold(world.main);
    assert!(
        heard(&fold.messages)
            .iter()
            .any(|(_, text)| text.contains("dependency"))
    );
    assert!(ends.iter().all(|(_, end)| end.status() == Status::Failed));
}

#[tokio::test(start_paused = true)]
async fn circles_and_strangers_are_refused_at_once() {
    let calls = [
        agent("a", ", depends_on: [b]"),
        agent("b", ", depends_on: [c]"),
        agent("c", ", depends_on: [a]"),
    ];
    let circle = "error: true, result: 'wait for each other for ever: '";
    let then = format!(
        "{{ expect: [{{ of: a, {circle} }}, {{ of: b, {circle} }}, {{ of: c, {circle} }}], say: Hm. }}"
    );
    let mut world = World::new(Plan::script(&script(&calls, &then, FAILS)));
    let began = tokio::time::Instant::now();
    assert_eq!(world.run("go").await, End::Done);
    assert!(began.elapsed() < Duration::from_secs(10));
    let own = [
        agent("a", ", depends_on: [a]"),
        agent("b", ", depends_on: [nobody]"),
    ];
    let then = "{ expect: [{ of: a, error: true, result: 'a → a' }, { of: b, error: true, result: 'there is no such task' }], say: Hm. }";
    let mut world = World::new(Plan::script(&script(&own, then, FAILS)));
    assert_eq!(world.run("go").await, End::Done);
    assert!(world.crew.workers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_can_be_stopped() {
    let calls = [agent("a", ""), agent("b", ", depends_on: [a]")];
    let then = "{ calls: [{ tool: TaskStop, input: { task_id: b } }] }, { say: Stopped. }, { when: { notifications: 2 }, meanwhile: Not yet., say: All. }";
    let others = "{ name: a, steps: [{ delay: 50s, say: A. }] }";
    let mut world = World::new(Plan::script(&script(&calls, then, others)));
    assert_eq!(world.run("go").await, End::Done);
    let ends = ends(&world);
    assert_eq!(ends[0], ("b".to_owned(), End::StoppedByCoordinator));
    assert_eq!(ends[1], ("a".to_owned(), End::Done));
}
