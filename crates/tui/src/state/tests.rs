//! What the fold keeps, and what it lets go.

use super::*;
use crate::tests::scene::{self, Scene, id};
use gaffer_protocol::Phase;

fn fold(scene: &Scene) -> Model {
    let mut model = Model::default();
    for event in &scene.events {
        model.take(event);
    }
    model
}

#[test]
fn the_crew_is_known_with_its_phases_and_figures() {
    let model = fold(&scene::crew());
    let reader = model.agent(id(1)).expect("it was started");
    assert_eq!(reader.phase, Some(Phase::Research));
    assert_eq!(reader.budget.usd, Some(0.5));
    assert_eq!((reader.turns, reader.tool_uses), (1, 1));
    assert_eq!(reader.usage.total(), 6640);
    assert_eq!(reader.last_tool, "Read src/total.rs");
    let checker = model.agent(id(4)).expect("it was started");
    assert_eq!(checker.doing(), "number 1 in the queue");
    assert!(!checker.is_working());
    assert_eq!(model.turns, 4);
}

#[test]
fn a_question_goes_with_its_settlement_or_its_asker() {
    let mut scene = scene::asking();
    assert_eq!(fold(&scene).questions.len(), 2);
    scene.add(2, EventKind::Settled(1));
    assert_eq!(fold(&scene).questions.len(), 1);
    scene.ends(3, End::StoppedByUser, "");
    assert_eq!(fold(&scene).questions.len(), 0);
}

#[test]
fn a_transcript_has_a_limit_and_says_what_it_lost() {
    let mut scene = Scene::default();
    scene.begin();
    let text = "x".repeat(10_000);
    for _ in 0..200 {
        scene.answers(0, &text, &[]);
        scene.add(0, EventKind::TextDelta(text.clone()));
    }
    let model = fold(&scene);
    let transcript = &model.main().expect("it began").transcript;
    assert!(transcript.first() > 0);
    assert!(transcript.end() - transcript.first() < 60);
}

#[test]
fn what_was_streamed_before_a_retry_or_an_interruption_is_not_lost_and_not_doubled() {
    let mut scene = Scene::default();
    scene.begin().streams(0, "half an answer");
    scene.waits(0, Waiting::Mail);
    let model = fold(&scene);
    let transcript = &model.main().expect("it began").transcript;
    assert_eq!(transcript.words(), "");
    assert_eq!(transcript.end(), 2);
    let mut scene = Scene::default();
    scene.begin().streams(0, "half an answer");
    scene.add(
        0,
        EventKind::Retry {
            attempt: 1,
            delay_ms: 500,
            status: Some(529),
            error: "busy".to_owned(),
        },
    );
    let model = fold(&scene);
    let transcript = &model.main().expect("it began").transcript;
    assert_eq!((transcript.words(), transcript.end()), ("", 1));
}

#[test]
fn what_was_said_is_unheard_until_its_reader_has_it() {
    let mut model = fold(&scene::crew());
    model.unheard.push((Some(id(2)), "look again".to_owned()));
    let mut scene = Scene::default();
    scene.human(3, "look again").human(2, "look again");
    model.take(&scene.events[0]);
    assert_eq!(model.unheard.len(), 1);
    model.take(&scene.events[1]);
    assert_eq!(model.unheard.len(), 0);
}
