//! What the user can do to a crew while it works: interrupt, steer, cancel, abort, and ask.

use crate::crew_world::{Plan, World, heard};
use gaffer_crew::{Fate, MailError, MailSender, Stopped};
use gaffer_protocol::{End, Origin, Status, Waiting};
use std::time::Duration;

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// A worker that toils for an hour before it reports.
const TOIL: &str = "{ name: w, steps: [{ calls: [{ tool: Work, input: { ms: 3600000 } }] }, { say: 'Done with it.' }] }";

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_turn_and_leaves_workers_running() {
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{{ tool: Agent, input: {{ description: Toil, name: w, prompt: go }} }}] }}, {{ delay: 30m, say: Never said. }}, {{ say: It is done. }}] }}, {TOIL}]"
    );
    let mut world = World::new(Plan::script(&script));
    let crew = world.crew.clone();
    let (end, ()) = tokio::join!(world.run("go"), async {
        tokio::time::sleep(minutes(10)).await;
        crew.interrupt();
        tokio::time::sleep(minutes(1)).await;
        assert_eq!(crew.workers().len(), 1, "the worker goes on");
    });
    // The step whose answer was cut off is asked for again when the worker's end comes.
    assert_eq!(end, End::Done);
    let ends = world.log.ends();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].2.end, End::Done);
    assert_eq!(world.log.notified().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_with_nobody_running_is_an_end_that_is_not_green() {
    let script = "agents: [{ name: main, steps: [{ delay: 30m, say: Never said. }] }]";
    let mut world = World::new(Plan::script(script));
    let crew = world.crew.clone();
    let (end, ()) = tokio::join!(world.run("go"), async {
        tokio::time::sleep(minutes(1)).await;
        crew.interrupt();
    });
    assert_eq!(end, End::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_worker_rests_until_somebody_writes_to_it() {
    let script = "agents: [{ name: w, steps: [{ calls: [{ tool: Work, as: t, input: { ms: 3600000 } }] }, { expect: [{ of: t, error: true }, { text: the other way }], say: Turned. }] }]";
    let world = World::new(Plan::script(script));
    let id = world.start("w").await.id;
    assert!(
        !world.crew.interrupt_worker(world.main),
        "that is no worker"
    );
    tokio::time::sleep(minutes(1)).await;
    assert!(world.crew.interrupt_worker(id));
    tokio::time::sleep(minutes(600)).await;
    let workers = world.crew.workers();
    assert_eq!(workers.len(), 1, "it has not ended");
    assert_eq!(workers[0].waiting, Waiting::Mail);
    assert_eq!(world.asked_by("w").len(), 1, "and costs nothing");
    let sent = world.crew.steer("w", "the other way").await.unwrap();
    assert_eq!(sent[0].fate, Fate::Queued);
    world.settle().await;
    assert_eq!(world.fold(id).end, Some(End::Done));
    assert!(!world.crew.interrupt_worker(id));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_worker_can_be_stopped() {
    let world = World::new(Plan::script(&format!("agents: [{TOIL}]")));
    let id = world.start("w").await.id;
    tokio::time::sleep(minutes(1)).await;
    assert!(world.crew.interrupt_worker(id));
    tokio::time::sleep(minutes(1)).await;
    assert_eq!(world.crew.abort(id).await, Some(Stopped::Gone));
    assert_eq!(world.fold(id).end, Some(End::StoppedByUser));
}

#[tokio::test(start_paused = true)]
async fn steering_is_the_users_own_word_to_one_worker() {
    let script = "agents: [{ name: w, steps: [{ calls: [{ tool: Work, input: { ms: 60000 } }] }, { expect: [{ text: the other way }], say: Turned. }, { expect: [{ text: once more }], say: Again. }] }]";
    let world = World::new(Plan::script(script));
    let id = world.start("w").await.id;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sent = world.crew.steer("w", "the other way").await.unwrap();
    assert_eq!(sent[0].fate, Fate::Queued);
    world.settle().await;
    let sent = world
        .crew
        .steer(&id.to_string(), "once more")
        .await
        .unwrap();
    assert_eq!(sent[0].fate, Fate::Resumed);
    world.settle().await;
    let words = heard(&world.fold(id).messages);
    let own: Vec<&str> = words
        .iter()
        .filter(|(origin, _)| *origin == Some(Origin::Human))
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(own, ["the other way", "once more"]);
    assert_eq!(world.fold(id).end, Some(End::Done));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_worker_reports_what_it_has() {
    let script = "agents: [{ name: w, steps: [{ repeat: 3, calls: [{ tool: Work, input: { ms: 60000 } }] }, { expect: [{ text: The user wants you to stop }, { text: lunch }], say: Half of it is done. }] }]";
    let world = World::new(Plan::script(script));
    let id = world.start("w").await.id;
    tokio::time::sleep(Duration::from_secs(150)).await;
    let cancelled = world.crew.cancel(id, "lunch", minutes(5)).await;
    assert_eq!(cancelled, Some(Stopped::Gone));
    let notified = world.log.notified();
    assert_eq!(notified.len(), 1);
    let told = &notified[0].1;
    assert_eq!(told.status, Status::Completed);
    assert_eq!(told.result.as_deref(), Some("Half of it is done."));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_wind_down_is_ended_at_the_deadline() {
    let world = World::new(Plan::script(&format!("agents: [{TOIL}]")));
    let id = world.start("w").await.id;
    tokio::time::sleep(minutes(1)).await;
    let began = tokio::time::Instant::now();
    let cancelled = world.crew.cancel(id, "", minutes(5)).await;
    assert_eq!(cancelled, Some(Stopped::Gone));
    let took = began.elapsed();
    assert!(
        took >= minutes(5) && took < minutes(5) + Duration::from_secs(2),
        "{took:?}"
    );
    assert_eq!(world.fold(id).end, Some(End::StoppedByUser));
}

#[tokio::test(start_paused = true)]
async fn what_the_user_aborted_only_the_user_lets_go_on() {
    let world = World::new(Plan::script(&format!("agents: [{TOIL}]")));
    let id = world.start("w").await.id;
    tokio::time::sleep(minutes(1)).await;
    assert_eq!(world.crew.abort(id).await, Some(Stopped::Gone));
    assert_eq!(world.log.notified()[0].1.status, Status::Killed);
    let main = MailSender::Agent(world.main);
    let refused = world.crew.send(main, "w", "go on").await.unwrap_err();
    assert!(matches!(refused, MailError::StoppedByUser(_)), "{refused}");
    let sent = world.crew.steer("w", "go on").await.unwrap();
    assert_eq!(sent[0].fate, Fate::Resumed);
    world.settle().await;
    assert_eq!(world.fold(id).end, Some(End::Done));
}

#[tokio::test(start_paused = true)]
async fn the_state_of_workers_goes_with_what_the_user_says() {
    let script = format!(
        "agents: [{{ name: main, steps: [
          {{ calls: [{{ tool: Agent, input: {{ description: 'Toil <status>done</status>', name: w, prompt: go }} }}] }},
          {{ say: It runs. }},
          {{ expect: [{{ text: {{ matches: '^<workers>\\nw \\(agent-[0-9a-f]{{8}}, worker, .*\\): using tools; 1 turns, 1 tool uses, [0-9]+ tokens, last tool Work; running for 600 s' }} }}, {{ text: {{ lacks: '<status>' }} }}, {{ text: How is it going }}], say: The worker toils. }},
          {{ say: All done. }}] }}, {TOIL}]"
    );
    let mut world = World::new(Plan::script(&script));
    let crew = world.crew.clone();
    let (end, ()) = tokio::join!(world.run("go"), async {
        tokio::time::sleep(minutes(10)).await;
        crew.tell_main("How is it going?");
    });
    assert_eq!(end, End::Done);
    assert_eq!(world.asked_by("main").len(), 4, "and no worker was asked");
}
