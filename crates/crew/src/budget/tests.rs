//! Whatever agents cost and however many ask at once, no purse loses more than it may.

use super::admit::Applicant;
use super::purse::Amount;
use super::*;
use proptest::prelude::*;
use std::cell::Cell;

fn id(n: u32) -> AgentId {
    AgentId::parse(&format!("agent-{n:08x}")).unwrap()
}

fn name(n: u32) -> AgentName {
    AgentName::parse(&format!("w-{n}")).unwrap()
}

fn tokens(most: u64) -> Budget {
    Budget {
        tokens: Some(most),
        ..Budget::default()
    }
}

fn start(
    purses: &mut Purses,
    n: u32,
    parent: u32,
    budget: Budget,
) -> Result<Option<String>, String> {
    let name = name(n);
    let applicant = Applicant {
        id: id(n),
        name: &name,
        kind: "worker",
        parent: id(parent),
        prompt: "go",
        budget,
    };
    purses.admit(&applicant, Duration::ZERO)
}

fn charge(purses: &mut Purses, n: u32, tokens: u64) -> News {
    let usage = Usage {
        input: tokens,
        ..Usage::default()
    };
    let cost = Cost::MicroUsd(tokens);
    purses.charge(id(n), (usage, cost), true, Duration::ZERO)
}

fn spent(purses: &Purses, n: u32) -> u64 {
    purses.purse(id(n)).unwrap().spent.tokens
}

#[test]
fn what_is_used_goes_on_all_above() {
    let mut purses = Purses::new(id(0), tokens(10_000));
    start(&mut purses, 1, 0, tokens(1_000)).unwrap();
    start(&mut purses, 2, 1, Budget::default()).unwrap();
    charge(&mut purses, 2, 300);
    charge(&mut purses, 0, 50);
    assert_eq!((spent(&purses, 1), spent(&purses, 0)), (300, 350));
    // Who is not known is the session's.
    charge(&mut purses, 99, 7);
    assert_eq!(spent(&purses, 0), 357);
    let near = charge(&mut purses, 1, 500);
    assert!(matches!(&near[..], [(owner, BudgetNews::Near(_))] if *owner == id(1)));
    assert!(charge(&mut purses, 1, 100).is_empty(), "it is said once");
}

#[test]
fn reservations_shrink_and_go_and_the_forecast_learns() {
    let mut purses = Purses::new(id(0), tokens(1_000));
    // Nothing is known: a tenth of the cap each.
    for n in 1..=10 {
        start(&mut purses, n, 0, Budget::default()).unwrap();
    }
    let why = start(&mut purses, 11, 0, Budget::default()).unwrap_err();
    assert!(why.contains("1000 tokens of 1000 tokens is left, 1000 tokens of it is reserved for those that run and wait (w-1 100 tokens, w-2 100 tokens, w-3 100 tokens, w-4 100 tokens, 6 more), and this worker is forecast to use 100 tokens (none has ended yet: 1/10 of the cap)"), "{why}");
    charge(&mut purses, 1, 60);
    purses.end_run(id(1), Duration::ZERO);
    // 940 are left, 900 are reserved, and one of its type came to 60.
    let why = start(&mut purses, 11, 0, Budget::default()).unwrap_err();
    assert!(
        why.contains("forecast to use 60 tokens (the mean of 1 of its type that ended)"),
        "{why}"
    );
    // Its own budget is smaller than the forecast.
    start(&mut purses, 11, 0, tokens(40)).unwrap();
    assert!(purses.may_continue(id(1), Duration::ZERO).is_err());
    purses.end_run(id(2), Duration::ZERO);
    assert!(purses.may_continue(id(1), Duration::ZERO).is_ok());
    let sum = purses.sum(Duration::ZERO).unwrap();
    assert_eq!(
        (sum.refused, sum.reserved_peak.tokens, sum.spent.workers),
        (2, 1_000, 11)
    );
}

#[test]
fn a_purse_runs_while_anybody_works_on_it() {
    let at = Duration::from_secs;
    let caps = Budget {
        seconds: Some(100),
        ..Budget::default()
    };
    let mut purses = Purses::new(id(0), Budget::default());
    start(&mut purses, 1, 0, caps).unwrap();
    start(&mut purses, 2, 1, Budget::default()).unwrap();
    assert_eq!(purses.time_left(id(1), at(50)), Some(at(100)), "it waits");
    purses.start_clock(id(1), at(50));
    purses.start_clock(id(2), at(60));
    purses.end_run(id(1), at(90));
    assert_eq!(purses.time_left(id(2), at(100)), Some(at(50)));
    purses.end_run(id(2), at(110));
    assert_eq!(purses.time_left(id(2), at(900)), Some(at(40)));
    assert_eq!(purses.time_left(id(0), at(900)), None);
}

#[test]
fn what_has_no_price_closes_a_purse_of_money() {
    let caps = Budget {
        usd: Some(1.0),
        ..Budget::default()
    };
    let mut purses = Purses::new(id(0), caps);
    let bill = (Usage::default(), Cost::Unknown);
    let news = purses.charge(id(0), bill, true, Duration::ZERO);
    assert!(matches!(news[0].1, BudgetNews::Reached(_)));
    assert!(matches!(
        purses.ask(id(0), Duration::ZERO).0,
        Say::WrapUp(_)
    ));
    assert_eq!(purses.ask(id(0), Duration::ZERO).0, Say::Stop);
}

/// What one agent of the simulation does.
#[derive(Debug, Default)]
struct Actor {
    /// What its request will come to, while one is under way.
    asking: Option<(u64, bool)>,
    wraps: u32,
    has_ended: bool,
}

proptest! {
    /// Random costs, order and concurrency: the sum stays below the cap, the requests that were
    /// under way when it was reached, and the last turns. Nobody has more than one, nobody hangs.
    #[test]
    fn spending_stays_within_the_cap_and_what_was_under_way(
        cap in 1_000u64..200_000,
        workers in 0u32..24,
        own in proptest::option::of(500u64..20_000),
        steps in proptest::collection::vec((any::<proptest::sample::Index>(), 1u64..4_000), 50..900),
    ) {
        let mut purses = Purses::new(id(0), tokens(cap));
        let mut actors: BTreeMap<u32, Actor> = BTreeMap::from([(0, Actor::default())]);
        for n in 1..=workers {
            // Every third works under another, every fourth has a budget of its own.
            let parent = if n % 3 == 0 { n - 1 } else { 0 };
            let parent = if actors.contains_key(&parent) { parent } else { 0 };
            let budget = own.filter(|_| n % 4 == 0).map(tokens).unwrap_or_default();
            if start(&mut purses, n, parent, budget).is_ok() {
                actors.insert(n, Actor::default());
            }
        }
        let dearest = steps.iter().map(|step| step.1).max().unwrap_or(0);
        let wraps = Cell::new(0u64);
        // How many asked when the cap was reached or the purse closed, whichever came first.
        let mut under_way = None;
        let run = |purses: &mut Purses, actors: &mut BTreeMap<u32, Actor>, n: u32, cost: u64| {
            let actor = actors.get_mut(&n).unwrap();
            if actor.has_ended { return }
            if let Some((cost, is_last)) = actor.asking.take() {
                charge(purses, n, cost);
                if is_last && n != 0 {
                    actor.has_ended = true;
                    purses.end_run(id(n), Duration::ZERO);
                } else if is_last {
                    actor.has_ended = true;
                }
                return;
            }
            match purses.ask(id(n), Duration::ZERO).0 {
                Say::Go => actor.asking = Some((cost, false)),
                Say::WrapUp(_) => {
                    actor.wraps += 1;
                    wraps.set(wraps.get() + 1);
                    actor.asking = Some((cost, true));
                }
                Say::Stop if n != 0 => {
                    actor.has_ended = true;
                    purses.end_run(id(n), Duration::ZERO);
                }
                // It waits for the others.
                Say::Stop => {}
            }
        };
        for (index, cost) in &steps {
            let all: Vec<u32> = actors.keys().copied().collect();
            let asking = actors.values().filter(|it| it.asking.is_some()).count() as u64;
            run(&mut purses, &mut actors, *index.get(&all), *cost);
            let is_over = purses.purse(id(0)).unwrap().closed.is_some();
            if is_over || spent(&purses, 0) > cap {
                under_way.get_or_insert(asking);
            }
        }
        if under_way.is_some() {
            // Everybody comes to an end.
            for _ in 0..6 {
                let all: Vec<u32> = actors.keys().rev().copied().collect();
                for n in all { run(&mut purses, &mut actors, n, dearest); }
            }
            prop_assert!(actors.iter().all(|(n, it)| *n == 0 || it.has_ended));
        }
        let most = cap + dearest * (under_way.unwrap_or(0) + wraps.get());
        prop_assert!(spent(&purses, 0) <= most, "{} > {most}", spent(&purses, 0));
        prop_assert!(actors.values().all(|it| it.wraps <= 1));
    }

    /// Where every request costs the same, not even the last turns break the cap.
    #[test]
    fn even_costs_never_break_the_cap(
        cost in 1u64..500,
        factor in 60u64..300,
        workers in 0u32..10,
        order in proptest::collection::vec(any::<proptest::sample::Index>(), 300..1500),
    ) {
        let cap = cost * factor;
        let mut purses = Purses::new(id(0), tokens(cap));
        let mut asking: BTreeMap<u32, Option<bool>> = BTreeMap::from([(0, None)]);
        for n in 1..=workers {
            if start(&mut purses, n, 0, Budget::default()).is_ok() {
                asking.insert(n, None);
            }
        }
        for index in &order {
            let all: Vec<u32> = asking.keys().copied().collect();
            let Some(n) = (!all.is_empty()).then(|| *index.get(&all)) else { break };
            match asking.remove(&n).flatten() {
                Some(is_last) => {
                    charge(&mut purses, n, cost);
                    match is_last {
                        true => purses.end_run(id(n), Duration::ZERO),
                        false => { asking.insert(n, None); }
                    }
                }
                None => match purses.ask(id(n), Duration::ZERO).0 {
                    Say::Go => { asking.insert(n, Some(false)); }
                    Say::WrapUp(_) => { asking.insert(n, Some(true)); }
                    Say::Stop if n == 0 => { asking.insert(n, None); }
                    Say::Stop => purses.end_run(id(n), Duration::ZERO),
                },
            }
            prop_assert!(spent(&purses, 0) <= cap, "{} of {cap}", spent(&purses, 0));
        }
    }
}

#[test]
fn orders_that_cost_much_together_are_worth_a_line() {
    let mut purses = Purses::new(id(0), tokens(1_000_000));
    charge(&mut purses, 0, 1_000);
    assert_eq!(start(&mut purses, 1, 0, Budget::default()), Ok(None));
    assert_eq!(start(&mut purses, 2, 0, Budget::default()), Ok(None));
    let line = start(&mut purses, 3, 0, Budget::default())
        .unwrap()
        .unwrap();
    assert!(line.contains("the 3 workers of this message are forecast to use 300000 tokens of the 999000 tokens that is left"), "{line}");
    assert_eq!(
        start(&mut purses, 4, 0, Budget::default()),
        Ok(None),
        "once"
    );
    let line = start(&mut purses, 5, 0, Budget::default())
        .unwrap()
        .unwrap();
    assert!(
        line.starts_with("5 orders of this message say nearly the same"),
        "{line}"
    );
    // The next message is another one.
    charge(&mut purses, 0, 1_000);
    assert_eq!(start(&mut purses, 6, 0, Budget::default()), Ok(None));
}

#[test]
fn what_was_used_before_counts() {
    let mut purses = Purses::new(id(0), tokens(1_100));
    let some = Amount {
        micro: 300,
        tokens: 300,
    };
    purses.remember(some, 3, Duration::from_secs(5));
    let name = name(1);
    let applicant = Applicant {
        id: id(1),
        name: &name,
        kind: "worker",
        parent: id(0),
        prompt: "",
        budget: tokens(500),
    };
    purses.restore(&applicant, (some, Duration::from_secs(3), (1, 3)));
    assert_eq!((spent(&purses, 0), spent(&purses, 1)), (600, 300));
    let sum = purses.sum(Duration::ZERO).unwrap();
    assert_eq!((sum.spent.workers, sum.spent.seconds), (1, 5.0));
    purses.begin_run(id(1));
    charge(&mut purses, 1, 50);
    assert_eq!(purses.ask(id(1), Duration::ZERO).0, Say::Go, "as it fits");
    charge(&mut purses, 1, 100);
    assert!(matches!(
        purses.ask(id(1), Duration::ZERO).0,
        Say::WrapUp(_)
    ));
    assert_eq!(
        purses.ask(id(0), Duration::ZERO).0,
        Say::Go,
        "the session goes on"
    );
}

#[test]
fn one_that_was_there_before_asks_only_if_its_last_turn_fits_as_well() {
    let before = |tokens: u64| Amount { micro: 0, tokens };
    let mut purses = Purses::new(id(0), tokens(1_000));
    purses.remember(before(800), 8, Duration::ZERO);
    assert_eq!(purses.ask(id(0), Duration::ZERO).0, Say::Go);
    charge(&mut purses, 0, 100);
    let say = purses.ask(id(0), Duration::ZERO).0;
    assert!(matches!(say, Say::WrapUp(_)), "{say:?}");
    let mut purses = Purses::new(id(0), tokens(1_000));
    purses.remember(before(900), 9, Duration::ZERO);
    assert_eq!(purses.ask(id(0), Duration::ZERO).0, Say::Stop);
}
