//! Workers whose orders name files, beside those that wait for a place or for others: who counts
//! as waiting for what, and what a worker has again when it goes on or after a bug ended it.

use crate::crew_world::{Plan, World};
use futures_util::future::BoxFuture;
use gaffer_crew::{CrewLimits, MailSender, Order};
use gaffer_model::provider::Deadlines;
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, DeltaSink, Model, ModelError, Prefix, Who};
use gaffer_protocol::{AgentName, Answer, End, Waiting};
use std::sync::Arc;
use std::time::Duration;

fn order(world: &World, name: &str, files: &[&str]) -> Order {
    let mut order = world.order(name, "worker", world.main);
    order.terms.files = files.iter().map(|glob| (*glob).to_owned()).collect();
    order
}

fn places(workers: usize, script: &str) -> World {
    World::new(Plan {
        limits: CrewLimits {
            workers,
            ..CrewLimits::default()
        },
        ..Plan::script(script)
    })
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn waiting(world: &World, name: &str) -> Option<Waiting> {
    let workers = world.crew.workers();
    let worker = workers.iter().find(|it| it.name.as_str() == name)?;
    Some(worker.waiting.clone())
}

fn lease(of: &str) -> Option<Waiting> {
    Some(Waiting::Lease(vec![AgentName::parse(of).unwrap()]))
}

const SLOW: &str = "agents: [{ steps: [{ delay: 60s, say: Done. }] }]";

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_files_is_not_in_the_queue() {
    let script = "agents: [{ name: short, steps: [{ delay: 10s, say: Done. }] }, { steps: [{ delay: 60s, say: Done. }] }]";
    let world = places(2, script);
    let crew = &world.crew;
    crew.start(order(&world, "a", &["x"])).await.unwrap();
    world.start("short").await;
    let b = crew.start(order(&world, "b", &["x"])).await.unwrap();
    assert_eq!(b.place, Some(1));
    assert_eq!(world.start("c").await.place, Some(2));
    seconds(11).await;
    // It came to its turn, could not begin, and gave its place to the next one.
    assert_eq!(waiting(&world, "b"), lease("a"));
    assert_eq!(waiting(&world, "c"), Some(Waiting::Model));
    assert_eq!(world.start("d").await.place, Some(1));
    assert_eq!(world.start("e").await.place, Some(2));
    seconds(1).await;
    assert_eq!(waiting(&world, "b"), lease("a"));
    assert_eq!(waiting(&world, "d"), Some(Waiting::Queue(1)));
    // When its files are free it stands behind those who came before.
    seconds(50).await;
    assert_eq!(waiting(&world, "d"), Some(Waiting::Model));
    assert_eq!(waiting(&world, "e"), Some(Waiting::Queue(1)));
    assert_eq!(waiting(&world, "b"), Some(Waiting::Queue(2)));
    world.settle().await;
    assert_eq!(world.log.ends().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_while_it_waits_for_files_leaves_no_trace_in_the_queue() {
    let world = places(1, SLOW);
    let crew = &world.crew;
    // It stands in the queue, has its place, and then has to wait for files.
    crew.start(order(&world, "a", &["x"])).await.unwrap();
    let b = crew.start(order(&world, "b", &["y"])).await.unwrap();
    let c = crew.start(order(&world, "c", &["y"])).await.unwrap();
    assert_eq!((b.place, c.place), (Some(1), Some(2)));
    crew.stop(c.id, End::StoppedByCoordinator).await;
    seconds(70).await;
    assert_eq!(world.start("d").await.place, Some(1));
    world.settle().await;
    assert_eq!(world.start("e").await.place, None);
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_continued_worker_waits_for_its_files_whatever_became_of_what_it_depended_on() {
    let script = "agents: [{ name: first, steps: [{ say: Done. }, { fault: unauthorized }] }, { name: other, steps: [{ delay: 60s, say: Done. }] }, { steps: [{ say: Done. }, { say: Again. }] }]";
    let mut world = places(4, script);
    let crew = world.crew.clone();
    crew.start(order(&world, "first", &[])).await.unwrap();
    let mut second = order(&world, "second", &["x"]);
    second.depends_on = vec!["first".to_owned()];
    crew.start(second).await.unwrap();
    world.settle().await;
    // What it depended on has failed since, and somebody else has its files.
    crew.send(MailSender::Human, "first", "more").await.unwrap();
    world.settle().await;
    crew.start(order(&world, "other", &["x"])).await.unwrap();
    crew.send(MailSender::Human, "second", "more")
        .await
        .unwrap();
    seconds(1).await;
    assert_eq!(waiting(&world, "second"), lease("other"));
    assert!(crew.is_busy());
    let stop = tokio_util::sync::CancellationToken::new();
    drop(
        tokio::time::timeout(
            Duration::from_secs(600),
            crew.run_main(&mut world.agent, &stop),
        )
        .await,
    );
    let ends = world.log.ends();
    let ends: Vec<&End> = ends.iter().map(|it| &it.2.end).collect();
    let done = ends.iter().filter(|end| ***end == End::Done);
    assert_eq!(done.count(), 4, "{ends:?}");
}

/// A bug, at the first request of one worker.
#[derive(Debug)]
struct Broken(Scripted);

impl Model for Broken {
    fn name(&self) -> &str {
        "scripted"
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.0.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            assert_ne!(conversation.who().name.as_str(), "broken", "a bug");
            self.0.answer(conversation, deltas).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_bug_that_ends_a_worker_frees_its_files() {
    let scripted = Scripted::new(Script::parse(SLOW).unwrap(), Deadlines::default());
    let world = World::new(Plan::new(Arc::new(Broken(scripted))));
    let crew = &world.crew;
    crew.start(order(&world, "broken", &["x"])).await.unwrap();
    crew.start(order(&world, "next", &["x"])).await.unwrap();
    world.settle().await;
    let ends = world.log.ends();
    let ends: Vec<&End> = ends.iter().map(|it| &it.2.end).collect();
    assert!(matches!(ends[..], [End::Crashed(_), End::Done]), "{ends:?}");
    assert_eq!(crew.free_places(), crew.parts().limits.workers);
}
