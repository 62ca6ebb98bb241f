//! Whole crews in simulated time, thrown by dice: orders with dependencies, files, worktrees,
//! budgets and proofs; the real tools on files that several write; failures, stops, messages and
//! interrupts at any instant. What must always hold is checked when each run is over.
//!
//! The suite plays a fixed number of seeds. More of them, or a single one again:
//!
//! ```sh
//! GAFFER_SIM_SEEDS=2000 cargo nextest run --test system -- sim::
//! GAFFER_SIM_FROM=1234 GAFFER_SIM_SEEDS=1 cargo nextest run --test system -- sim::
//! ```
//!
//! `GAFFER_SIM_SHOW=1` prints all that happened. What a seed decides is what is done and when, in simulated time. Files, processes and the book
//! are real and on other threads, so a run that fails may need to be repeated a few times.

mod check;
mod diary;
mod mind;
mod site;

use crate::crew_world::{Plan, World};
use crate::sim::diary::Diary;
use crate::sim::mind::{Mind, Ways, moment, roll};
use crate::sim::site::Site;
use gaffer_crew::tools::Manner;
use gaffer_crew::{CrewLimits, Guardrails, MailSender};
use gaffer_protocol::{AgentId, Budget, End};
use gaffer_testkit::world::Seeded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// No run takes longer than this, in simulated time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const SEEDS: u64 = 40;

/// What a seed decides before anything happens.
fn plan(seed: u64, dice: &Seeded) -> (Plan, Arc<Mind>) {
    let waits = roll(dice, 3) == 0;
    let worktrees = roll(dice, 4) == 0;
    let depth = 1 + roll(dice, 3) as u32;
    let ways = Ways {
        waits,
        worktrees,
        proofs: roll(dice, 4) == 0,
        task_budgets: roll(dice, 2) == 0,
        handed_on: if depth > 1 { 20 } else { 0 },
        orders: 4 + roll(dice, 16),
    };
    let budget = match roll(dice, 4) {
        0 => Budget {
            tokens: Some(1000 + roll(dice, 6000)),
            ..Budget::default()
        },
        1 => Budget {
            usd: Some(0.005 + 0.001 * roll(dice, 20) as f64),
            seconds: Some(60 + roll(dice, 600)),
            ..Budget::default()
        },
        _ => Budget::default(),
    };
    let limits = CrewLimits {
        workers: 1 + roll(dice, 5) as usize,
        depth,
        budget,
        ..CrewLimits::default()
    };
    // Where leases are only spoken of, writers meet, and comparing before the swap is all that
    // keeps their work.
    let mut guardrails = Guardrails::default();
    guardrails.leases.is_enforced = roll(dice, 5) > 0;
    let mind = Arc::new(Mind::new(seed, Arc::default(), ways));
    let plan = Plan {
        outfitter: Some(Box::new(move |root, session, model| {
            Arc::new(Site::new(root, session.clone(), model, worktrees))
        })),
        limits,
        guardrails,
        manner: match waits {
            true => Manner::Normal,
            false => Manner::Coordinator,
        },
        seed,
        ..Plan::new(mind.clone())
    };
    (plan, mind)
}

/// The user: stops, messages and interrupts at any instant.
async fn meddle(crew: &gaffer_crew::Crew, dice: &Seeded, diary: &Diary) {
    for n in 0..roll(dice, 40) {
        tokio::time::sleep(moment(dice)).await;
        let workers: Vec<AgentId> = match roll(dice, 4) {
            0 => {
                let names = crew.names().into_iter();
                let id = |name: String| crew.find(name.split(' ').next()?).map(|it| it.0);
                names.filter_map(id).collect()
            }
            _ => crew.workers().into_iter().map(|it| it.id).collect(),
        };
        let any = match workers.len() as u64 {
            0 => None,
            count => Some(workers[roll(dice, count) as usize]),
        };
        match (roll(dice, 10), any) {
            (0..3, Some(id)) => {
                diary.let_go();
                crew.abort(id).await;
            }
            (3..6, Some(id)) => {
                let text = format!("[message {n}]");
                drop(crew.send(MailSender::Human, &id.to_string(), &text).await);
            }
            (6..8, _) => crew.interrupt(),
            _ => crew.tell_main("Go on."),
        }
    }
}

async fn play(seed: u64) -> usize {
    let dice = Seeded::new(seed ^ 0x51a1);
    let (plan, mind) = plan(seed, &dice);
    let diary = mind.diary.clone();
    let mut world = World::new(plan);
    world.log.beside.set(diary.clone()).unwrap();
    let stop = CancellationToken::new();
    let crew = world.crew.clone();
    if mind.ways.waits {
        let nervous = (crew.clone(), Seeded::new(seed ^ 0x7e7));
        diary.nervous.set(nervous).unwrap();
    }
    let is_over = AtomicBool::new(false);
    crew.tell_main("Begin.");
    let main = async {
        loop {
            let end = crew.run_main(&mut world.agent, &stop).await;
            if (is_over.load(Ordering::Relaxed) && !world.agent.has_mail()) || end == End::Budget {
                break;
            }
            world.agent.rest(&stop).await;
        }
    };
    let others = async {
        meddle(&crew, &dice, &diary).await;
        is_over.store(true, Ordering::Relaxed);
        mind.is_calm.store(roll(&dice, 2) == 0, Ordering::Relaxed);
        crew.tell_main("That is all.");
    };
    let all = async { tokio::join!(main, others) };
    let in_time = tokio::time::timeout(LONGEST, all).await;
    assert!(in_time.is_ok(), "it does not end: {:#?}", crew.workers());
    let stopping = crew.stop_all(&End::Interrupted);
    let in_time = tokio::time::timeout(LONGEST, stopping).await;
    assert!(in_time.is_ok(), "it does not stop: {:#?}", crew.workers());
    if number("GAFFER_SIM_SHOW").is_some() {
        diary.show();
    }
    check::all(&mut world, &diary);
    world.log.ends().len()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_a_crew_does_nothing_is_lost_and_everything_ends() {
    let from = number("GAFFER_SIM_FROM").unwrap_or(0);
    let seeds = number("GAFFER_SIM_SEEDS").unwrap_or(SEEDS);
    let mut runs = 0;
    for seed in from..from + seeds {
        let one = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build();
            runtime.unwrap().block_on(play(seed))
        };
        match std::panic::catch_unwind(one) {
            Ok(ends) => runs += ends,
            Err(_) => panic!(
                "seed {seed} failed, see above; again: GAFFER_SIM_FROM={seed} GAFFER_SIM_SEEDS=1"
            ),
        }
    }
    assert!(
        seeds < 20 || runs as u64 > 3 * seeds,
        "{runs} runs of workers in {seeds} seeds"
    );
}
