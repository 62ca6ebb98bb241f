//! Crews whose models, stops and messages come at any instant: every end is told once to the one
//! who is to hear it, and no message that got a receipt is lost.

use crate::crew_world::{Plan, World, heard, told};
use futures_util::future::BoxFuture;
use gaffer_crew::{CrewLimits, MailSender};
use gaffer_model::provider::Deadlines;
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, DeltaSink, ErrorKind, Model, ModelError, Prefix, Who};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{AgentId, Answer, Block, End, Entropy, Origin, StopReason, ToolUse, Usage};
use gaffer_testkit::world::Seeded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Takes some time, then answers, works, says nothing or fails, as it happens to be.
#[derive(Debug)]
struct Whim {
    dice: Seeded,
    is_calm: AtomicBool,
    opener: Scripted,
}

fn roll(dice: &Seeded, below: u64) -> u64 {
    dice.next() % below
}

/// Few distinct instants, so that much falls together.
fn moment(dice: &Seeded) -> Duration {
    Duration::from_millis(10 * roll(dice, 6))
}

impl Whim {
    fn says(&self) -> Result<Answer, ModelError> {
        let chance = match self.is_calm.load(Ordering::Relaxed) {
            true => 9,
            false => roll(&self.dice, 10),
        };
        let mut stop = StopReason::EndTurn;
        let blocks = match chance {
            0 => return Err(ModelError::new(ErrorKind::Unauthorized, "no")),
            1 => Vec::new(),
            2..5 => {
                stop = StopReason::ToolUse;
                let ms = moment(&self.dice).as_millis();
                vec![Block::ToolUse(ToolUse {
                    id: format!("call-{}", self.dice.next()),
                    name: "Work".into(),
                    input: ToolInput::from_text(&format!("{{\"ms\":{ms}}}")),
                })]
            }
            _ => vec![Block::text("Done.")],
        };
        Ok(Answer {
            blocks,
            stop,
            usage: Usage::default(),
            model: "scripted".into(),
        })
    }
}

impl Model for Whim {
    fn name(&self) -> &str {
        "scripted"
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.opener.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        _: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            tokio::time::sleep(moment(&self.dice)).await;
            match conversation.who().name.as_str() {
                "main" => Ok(Answer {
                    blocks: vec![Block::text("Noted.")],
                    stop: StopReason::EndTurn,
                    usage: Usage::default(),
                    model: "scripted".into(),
                }),
                _ => self.says(),
            }
        })
    }
}

/// What was done to the crew.
#[derive(Default)]
struct Deeds {
    workers: Vec<AgentId>,
    /// Messages with a receipt, and to whom.
    sent: Vec<(AgentId, String)>,
    /// Ends that somebody waited for and heard of.
    waited: Vec<AgentId>,
}

/// One deed after another, each at some instant.
async fn meddle(world: &Shared, dice: &Seeded, deeds: &mut Deeds) {
    for n in 0..40 {
        tokio::time::sleep(moment(dice)).await;
        let any = match deeds.workers.len() {
            0 => None,
            count => Some(deeds.workers[roll(dice, count as u64) as usize]),
        };
        match (roll(dice, 10), any) {
            (0..3, _) | (_, None) => {
                let parent = any.filter(|_| roll(dice, 3) == 0).unwrap_or(world.main);
                let mut order = world.order.clone();
                order.parent = parent;
                order.terms.max_turns = (roll(dice, 4) == 0).then_some(1);
                if roll(dice, 4) > 0 {
                    deeds
                        .workers
                        .extend(world.crew.start(order).await.ok().map(|it| it.id));
                } else if let Ok((started, mut waited)) = world.crew.start_waited(order).await {
                    deeds.workers.push(started.id);
                    let patience = moment(dice);
                    let report = tokio::select! {
                        report = &mut waited => report.ok(),
                        () = tokio::time::sleep(patience) => {
                            world.crew.move_to_background(started.id, waited)
                        }
                    };
                    deeds.waited.extend(report.map(|it| it.task));
                }
            }
            (3..8, Some(id)) => {
                let from = match roll(dice, 2) {
                    0 => MailSender::Human,
                    _ => MailSender::Agent(world.main),
                };
                let to = match roll(dice, 8) {
                    0 => "*".to_owned(),
                    _ => id.to_string(),
                };
                let text = format!("[message {n}]");
                let sent = world.crew.send(from, &to, &text).await.unwrap_or_default();
                let sent = sent.into_iter().map(|receipt| (receipt.to, text.clone()));
                deeds.sent.extend(sent);
            }
            (_, Some(id)) => {
                let why = match roll(dice, 2) {
                    0 => End::StoppedByUser,
                    _ => End::StoppedByCoordinator,
                };
                world.crew.stop(id, why).await;
            }
        }
    }
}

struct Shared {
    crew: gaffer_crew::Crew,
    main: AgentId,
    order: gaffer_crew::Order,
}

async fn play(seed: u64) -> usize {
    let model = Arc::new(Whim {
        dice: Seeded::new(seed),
        is_calm: AtomicBool::new(false),
        opener: Scripted::new(Script::parse("agents: []").unwrap(), Deadlines::default()),
    });
    let dice = Seeded::new(seed ^ 0xabcd);
    let limits = CrewLimits {
        workers: 1 + roll(&dice, 6) as usize,
        depth: 2,
        ..CrewLimits::default()
    };
    let mut world = World::new(Plan {
        limits,
        seed,
        ..Plan::new(model.clone())
    });
    let mut order = world.order("w", "worker", world.main);
    order.name = None;
    let shared = Shared {
        crew: world.crew.clone(),
        main: world.main,
        order,
    };
    let mut deeds = Deeds::default();
    let stop = CancellationToken::new();
    let inbox = world.inbox.clone();
    let is_over = AtomicBool::new(false);
    let main = async {
        loop {
            shared.crew.run_main(&mut world.agent, &stop).await;
            if is_over.load(Ordering::Relaxed) && !world.agent.has_mail() {
                break;
            }
            world.agent.rest(&stop).await;
        }
    };
    let others = async {
        meddle(&shared, &dice, &mut deeds).await;
        model.is_calm.store(true, Ordering::Relaxed);
        // A last word of the user's lets everybody read what is left.
        for id in deeds.workers.clone() {
            let text = "[the last]".to_owned();
            let to = id.to_string();
            let sent = shared.crew.send(MailSender::Human, &to, &text).await;
            assert!(sent.is_ok(), "seed {seed}");
            deeds.sent.push((id, text));
        }
        while shared.crew.is_busy() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Mail to one that had just failed is read in a further run.
        for id in deeds.workers.clone() {
            drop(
                shared
                    .crew
                    .send(MailSender::Human, &id.to_string(), "[read]")
                    .await,
            );
        }
        while shared.crew.is_busy() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        is_over.store(true, Ordering::Relaxed);
        inbox.send(Block::from_human("That is all."));
    };
    tokio::join!(main, others);
    check(&world, &deeds, seed);
    world.log.ends().len()
}

fn check(world: &World, deeds: &Deeds, seed: u64) {
    let mut ends: BTreeMap<AgentId, usize> = BTreeMap::new();
    for (_, id, _) in world.log.ends() {
        *ends.entry(id).or_default() += 1;
    }
    let mut heard_of: BTreeMap<AgentId, usize> = BTreeMap::new();
    for id in &deeds.waited {
        *heard_of.entry(*id).or_default() += 1;
    }
    let mut by_name: BTreeMap<AgentId, BTreeSet<AgentId>> = BTreeMap::new();
    for id in deeds.workers.iter().copied().chain([world.main]) {
        for told in told(&world.fold(id).messages) {
            let task = told.task.unwrap();
            *heard_of.entry(task).or_default() += 1;
            by_name.entry(task).or_default().insert(id);
        }
    }
    assert_eq!(
        ends, heard_of,
        "seed {seed}: ends, and those that were told"
    );
    for id in &deeds.workers {
        let start = world.fold(*id).start.unwrap();
        let right = [start.parent.unwrap(), world.main];
        let wrong = by_name.get(id).into_iter().flatten();
        assert!(wrong.clone().all(|it| right.contains(it)), "seed {seed}");
    }
    for (id, text) in &deeds.sent {
        let heard = heard(&world.fold(*id).messages);
        let count = heard.iter().filter(|(origin, heard)| {
            *origin != Some(Origin::TaskNotification) && heard.contains(text.as_str())
        });
        assert_eq!(count.count(), 1, "seed {seed}: {text} to {id} in {heard:?}");
    }
    assert_eq!(world.crew.free_places(), world.crew.parts().limits.workers);
}

#[tokio::test(start_paused = true)]
async fn every_end_is_told_once_and_no_message_is_lost() {
    let mut runs = 0;
    for seed in 0..60 {
        runs += play(seed).await;
    }
    assert!(runs > 2000, "{runs}");
}
