//! The state machine by examples, and what holds for any course.

use super::*;
use proptest::prelude::*;

const R: Phase = Phase::Research;
const I: Phase = Phase::Implementation;
const V: Phase = Phase::Verification;

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

/// A stint that was ordered, began and ended at these moments.
fn stint(who: &str, phase: Phase, moments: [u64; 3]) -> (AgentName, Stint) {
    let [ordered, began, ended] = moments;
    let stint = Stint {
        began,
        ended,
        is_completed: ended > 0,
        ..Stint::new(phase, ordered)
    };
    (name(who), stint)
}

fn works(all: &[(AgentName, Stint)]) -> impl Iterator<Item = Work<'_>> {
    all.iter().map(|(name, stint)| Work { name, stint })
}

fn phases(all: &[(AgentName, Stint)]) -> Phases {
    Phases::of(works(all))
}

fn rule(found: Option<OutOfTurn>) -> Option<&'static str> {
    found.map(|it| it.rule)
}

fn shown(all: &[(AgentName, Stint)]) -> String {
    let course = phases(all).course(Vec::new());
    let all: Vec<String> = course.stretches.iter().map(ToString::to_string).collect();
    all.join(", ")
}

#[test]
fn the_first_work_needs_research_or_a_place_to_begin() {
    let nothing = phases(&[]);
    assert_eq!(
        rule(nothing.before_implementing(false, &[])),
        Some("unresearched")
    );
    assert_eq!(rule(nothing.before_implementing(true, &[])), None);
    let after = phases(&[stint("a", R, [1, 2, 3])]);
    assert_eq!(rule(after.before_implementing(false, &[])), None);
    // Who has begun to implement was told so before.
    let second = phases(&[stint("a", I, [1, 2, 0])]);
    assert_eq!(rule(second.before_implementing(false, &[])), None);
}

#[test]
fn work_waits_for_the_research_beside_it() {
    let looking = phases(&[stint("a", R, [1, 2, 0]), stint("b", R, [3, 4, 5])]);
    let found = looking.before_implementing(true, &[]).unwrap();
    assert_eq!(
        (found.rule, found.workers),
        ("research-running", vec![name("a")])
    );
    assert_eq!(rule(looking.before_implementing(true, &[name("a")])), None);
}

#[test]
fn only_a_verification_that_came_after_covers_what_was_written() {
    let written = stint("w", I, [1, 2, 5]);
    let ends = |verifier| rule(phases(&[written.clone(), verifier]).before_the_end());
    assert_eq!(
        rule(phases(std::slice::from_ref(&written)).before_the_end()),
        Some("unchecked-work")
    );
    assert_eq!(ends(stint("v", V, [6, 7, 8])), None);
    // Ordered before, but begun after: it waited for the work.
    assert_eq!(ends(stint("v", V, [3, 7, 8])), None);
    assert_eq!(ends(stint("v", V, [3, 4, 8])), Some("unchecked-work"));
    assert_eq!(ends(stint("v", V, [6, 7, 0])), Some("unchecked-work"));
    assert_eq!(ends(stint("w", V, [6, 7, 8])), Some("unchecked-work"));
    // What comes after it is open again.
    let all = [
        written,
        stint("v", V, [6, 7, 8]),
        stint("w", I, [9, 10, 11]),
    ];
    assert_eq!(rule(phases(&all).before_the_end()), Some("unchecked-work"));
}

#[test]
fn the_course_is_told_in_its_order_with_what_was_left_out() {
    let all = [
        stint("a", R, [1, 2, 5]),
        stint("b", R, [3, 4, 6]),
        stint("w", I, [7, 8, 9]),
        stint("v", V, [10, 11, 12]),
        stint("w", I, [13, 14, 15]),
    ];
    assert_eq!(
        shown(&all),
        "research (a, b), synthesis, implementation (w), verification (v), implementation (w)"
    );
    let course = phases(&all[..2]).course(Vec::new());
    assert_eq!(course.left_out, [I, V]);
    assert_eq!(course.stretches.len(), 2, "the answer was made of it");
    assert_eq!(phases(&[]).course(Vec::new()), Course::default());
}

#[test]
fn facts_go_before_what_an_order_says_of_itself() {
    assert_eq!(settled(I, true, false), R);
    assert_eq!(settled(I, false, false), I);
    assert_eq!(settled(I, true, true), I);
    assert_eq!(settled(R, false, true), I);
    assert_eq!(settled(V, true, true), V);
}

prop_compose! {
    fn any_stint()(
        who in 0..5_u8,
        phase in proptest::sample::select(vec![R, I, V]),
        ordered in 1..40_u64,
        waits in 1..10_u64,
        takes in proptest::option::of(1..10_u64),
        is_completed in any::<bool>(),
        is_proven in any::<bool>(),
    ) -> (AgentName, Stint) {
        let began = ordered + waits;
        let (name, mut stint) = stint(
            &format!("w{who}"),
            phase,
            [ordered, began, takes.map_or(0, |it| began + it)],
        );
        stint.is_completed = is_completed && stint.ended > 0;
        stint.is_proven = is_proven;
        stint.spending.turns = 1;
        (name, stint)
    }
}

proptest! {
    #[test]
    fn any_course_is_sound(all in proptest::collection::vec(any_stint(), 0..20)) {
        let end = rule(phases(&all).before_the_end());
        let shares = shares(works(&all), &Spending::default());
        let turns: u32 = shares.iter().map(|it| it.turns).sum();
        prop_assert_eq!(turns as usize, all.len());
        let course = phases(&all).course(shares);
        // No two neighbours are of one phase, and nobody does the synthesis for the one above.
        for pair in course.stretches.windows(2) {
            prop_assert_ne!(pair[0].phase, pair[1].phase);
        }
        for stretch in &course.stretches {
            prop_assert_eq!(stretch.phase == Phase::Synthesis, stretch.workers.is_empty());
            prop_assert!(!course.left_out.contains(&stretch.phase));
        }
        prop_assert_eq!(end.is_some(), !course.unchecked.is_empty());
        // Whatever a fresh verification has seen from its begin to its end is covered.
        let last = all.iter().filter(|(_, it)| it.phase == V && it.is_completed);
        for (verifier, seen) in last {
            for (worker, work) in &all {
                let is_own = worker == verifier;
                let is_alone = all.iter().filter(|(other, it)| other == worker && it.is_completed).count() == 1;
                if work.is_completed && work.ended <= seen.began && !is_own && is_alone && work.phase == I {
                    prop_assert!(!course.unchecked.contains(worker));
                    prop_assert!(!course.unverified.contains(worker));
                }
            }
        }
    }

    #[test]
    fn without_work_nobody_hears_a_word(all in proptest::collection::vec(any_stint(), 0..20)) {
        let looked: Vec<_> = all.into_iter().filter(|(_, it)| it.phase != I).collect();
        prop_assert_eq!(rule(phases(&looked).before_the_end()), None);
    }
}
