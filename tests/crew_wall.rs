//! A provider that is overloaded for twenty minutes, in simulated time: workers wait, lose nothing
//! and do nothing twice.

use crate::crew_world::{Plan, World, told};
use futures_util::future::BoxFuture;
use gaffer_model::provider::Deadlines;
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, DeltaSink, ErrorKind, Gate, Model, ModelError, Prefix, Who};
use gaffer_protocol::{Answer, End, EventKind, Status, Waiting};
use gaffer_testkit::world::Seeded;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Answers 529 while the wall stands.
#[derive(Debug)]
struct Wall {
    inner: Scripted,
    from: Instant,
    until: Instant,
}

impl Model for Wall {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.inner.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        if (self.from..self.until).contains(&Instant::now()) {
            let error = ModelError::new(ErrorKind::Overloaded, "Overloaded");
            return Box::pin(async { Err(error) });
        }
        self.inner.answer(conversation, deltas)
    }
}

#[tokio::test(start_paused = true)]
async fn sixteen_workers_outlast_a_wall_of_overload_and_run_no_tool_twice() {
    let call = |n: u32| {
        format!("{{ tool: Agent, input: {{ description: Task {n}, name: w{n}, prompt: go }} }}")
    };
    let calls: Vec<String> = (0..16).map(call).collect();
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ say: Waiting. }}, {{ when: {{ notifications: 16 }}, say: All done. }}] }},
          {{ steps: [{{ repeat: 3, delay: 2s, calls: [{{ tool: Work, input: {{ ms: 9000 }} }}] }}, {{ say: Done. }}] }}]",
        calls.join(", ")
    );
    // The workers' second call runs when the wall comes up.
    let from = Instant::now() + Duration::from_secs(15);
    let until = from + Duration::from_secs(20 * 60);
    let wall = Wall {
        inner: Scripted::new(Script::parse(&script).unwrap(), Deadlines::default()),
        from,
        until,
    };
    let (gate, entropy) = (Gate::new(1024), Arc::new(Seeded::new(7)));
    let model = Retrying::new(Arc::new(wall), gate.clone(), Patience::default(), entropy);
    let mut world = World::new(Plan::new(Arc::new(model)));
    assert_eq!(world.run("go").await, End::Done);
    assert!(until.elapsed() < Duration::from_secs(180), "soon after it");
    let told = told(&world.fold(world.main).messages);
    assert_eq!(told.len(), 16);
    assert!(
        told.iter().all(|it| it.status == Status::Completed),
        "{told:?}"
    );
    let events = world.log.all();
    let ran = events
        .iter()
        .filter(|(_, id, kind)| *id != world.main && matches!(kind, EventKind::ToolStarted { .. }));
    assert_eq!(ran.count(), 16 * 3, "each call ran once");
    let suspended: std::collections::BTreeSet<_> = events
        .iter()
        .filter(|(at, _, kind)| {
            (from..until).contains(at) && matches!(kind, EventKind::Waiting(Waiting::Gate))
        })
        .map(|(_, id, _)| *id)
        .collect();
    assert_eq!(suspended.len(), 16, "all were seen to wait");
    assert_eq!(gate.view().under_way, 0);
}
