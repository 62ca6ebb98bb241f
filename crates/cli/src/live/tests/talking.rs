//! Messages, interrupts, stops, models, compaction, and what is said behind a slash.

use super::{Place, sit};
use crate::mode::Mode;
use gaffer_protocol::{Command, End, EventKind};
use gaffer_store::{Entry, Fold, records::Line};

#[cfg(feature = "coordinator")]
fn start(name: &str) -> String {
    format!(
        "{{ tool: Agent, input: {{ description: Work of {name}, name: {name}, prompt: go, phase: research }} }}"
    )
}

#[tokio::test]
async fn a_prompt_is_answered_and_the_next_one_too() {
    let place = Place::new(Mode::Normal);
    let script = "agents: [{ steps: [{ expect: [{ text: first }], say: One. }, { expect: [{ text: second }], say: Two. }] }]";
    let over = sit(&place, script, async |sitter| {
        sitter.says("first thing\nand more");
        sitter.hears("One.").await;
        sitter.says("second thing");
        sitter.hears("Two.").await;
    })
    .await;
    assert!(over.is_used && !over.is_by_signal && over.next.is_none());
    let fold = Fold::read(&over.transcript).unwrap();
    assert_eq!(fold.end, Some(End::Done));
    let all = place.home().list(Some(&place.project()));
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].about.as_ref().unwrap().title, "first thing");
}

#[tokio::test]
async fn a_session_in_which_nothing_was_said_is_not_kept() {
    let place = Place::new(Mode::Normal);
    let over = sit(&place, "agents: [{ steps: [] }]", async |_| {}).await;
    assert!(!over.is_used);
    assert!(place.home().list(Some(&place.project())).is_empty());
}

#[tokio::test]
async fn what_is_said_meanwhile_is_heard_at_the_next_step() {
    let place = Place::new(Mode::Normal);
    let script = "agents: [{ steps: [{ delay: 300ms, calls: [{ tool: Glob, as: g, input: { pattern: '*' } }] }, { expect: [{ of: g, error: false }, { text: the other way }], say: Turned. }] }]";
    sit(&place, script, async |sitter| {
        sitter.says("go");
        let is_asked = |event: &gaffer_protocol::Event| {
            matches!(
                event.kind,
                EventKind::Waiting(gaffer_protocol::Waiting::Model)
            )
            .then_some(())
        };
        sitter.sees("a request", is_asked).await;
        sitter.says("the other way");
        sitter.hears("Turned.").await;
    })
    .await;
}

#[cfg(feature = "coordinator")]
#[tokio::test]
async fn an_interrupt_is_for_the_coordinator_and_its_workers_go_on() {
    let place = Place::new(Mode::Coordinator);
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ delay: 1h, say: Never said. }}, {{ expect: [{{ text: never mind }}], say: All right. }}, {{ say: It reported. }}] }}, {{ name: w, steps: [{{ delay: 3s, say: Done. }}] }}]",
        start("w")
    );
    let over = sit(&place, &script, async |sitter| {
        sitter.says("go");
        sitter.worker("w").await;
        let started = |event: &gaffer_protocol::Event| match &event.kind {
            EventKind::ToolFinished { .. } => Some(event.agent),
            _ => None,
        };
        let main = sitter.sees("the answer of its call", started).await;
        let thinks = |event: &gaffer_protocol::Event| {
            let is_it = matches!(
                event.kind,
                EventKind::Waiting(gaffer_protocol::Waiting::Model)
            );
            (event.agent == main && is_it).then_some(())
        };
        sitter.sees("that it thinks", thinks).await;
        sitter.wants(Command::Interrupt { agent: None });
        sitter.says("never mind");
        sitter.hears("All right.").await;
        sitter.hears("It reported.").await;
        assert!(!sitter.has_seen(
            |kind| matches!(kind, EventKind::AgentEnded(ended) if ended.end != End::Done)
        ));
    })
    .await;
    assert_eq!(Fold::read(&over.transcript).unwrap().end, Some(End::Done));
}

#[cfg(feature = "coordinator")]
#[tokio::test]
async fn a_worker_is_spoken_to_interrupted_and_stopped() {
    let place = Place::new(Mode::Coordinator);
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ say: It runs. }}, {{ repeat: 9, say: Heard. }}] }}, {{ name: w, steps: [{{ delay: 1h, say: Never said. }}, {{ expect: [{{ text: this way }}], say: So I did. }}, {{ expect: [{{ text: once more }}], delay: 1h, say: Never either. }}] }}]",
        start("w")
    );
    sit(&place, &script, async |sitter| {
        sitter.says("go");
        let worker = sitter.worker("w").await;
        sitter.hears("It runs.").await;
        let to = Some(worker);
        sitter.wants(Command::Interrupt { agent: to });
        sitter.hears("it waits for your word").await;
        let say = |text: &str| Command::Say {
            to,
            text: text.to_owned(),
        };
        sitter.wants(say("this way"));
        sitter.hears("So I did.").await;
        sitter.hears("Heard.").await;
        sitter.wants(Command::Interrupt { agent: to });
        sitter.hears("nothing to interrupt").await;
        // One that has ended goes on.
        sitter.wants(say("once more"));
        let goes_on = |event: &gaffer_protocol::Event| {
            matches!(event.kind, EventKind::Continued).then_some(())
        };
        sitter.sees("that it goes on", goes_on).await;
        sitter.wants(Command::Stop { agent: worker });
        let ended = |event: &gaffer_protocol::Event| match &event.kind {
            EventKind::AgentEnded(ended) if event.agent == worker => Some(ended.end.clone()),
            _ => None,
        };
        assert_eq!(sitter.sees("its end", ended).await, End::StoppedByUser);
        sitter.wants(Command::Stop { agent: worker });
        sitter.hears("it had ended").await;
    })
    .await;
}

#[cfg(feature = "coordinator")]
#[tokio::test]
async fn leaving_ends_workers_and_all_records_say_so() {
    let place = Place::new(Mode::Coordinator);
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{}] }}, {{ say: It runs. }}] }}, {{ name: w, steps: [{{ delay: 1h, say: Never said. }}] }}]",
        start("w")
    );
    let mut worker = None;
    let over = sit(&place, &script, async |sitter| {
        sitter.says("go");
        worker = Some(sitter.worker("w").await);
        sitter.hears("It runs.").await;
    })
    .await;
    let end = |path: &std::path::Path| Fold::read(path).unwrap().end;
    assert_eq!(end(&over.transcript), Some(End::Interrupted));
    let folder = over.transcript.parent().unwrap();
    let record = folder.join(format!("{}.jsonl", worker.unwrap()));
    assert_eq!(end(&record), Some(End::Interrupted));
}

#[tokio::test]
async fn another_model_goes_on_with_the_conversation() {
    let place = Place::new(Mode::Normal);
    let script = "agents: [{ steps: [{ say: One. }, { expect: [{ text: and now }], say: Two. }] }]";
    let over = sit(&place, script, async |sitter| {
        sitter.slash("model", "");
        sitter.hears("the model is scripted").await;
        sitter.says("go");
        sitter.hears("One.").await;
        let model = "another".to_owned();
        sitter.wants(Command::SetModel { model });
        sitter.hears("the model is another from the next turn on").await;
        let is_told = |kind: &EventKind| matches!(kind, EventKind::SessionStarted(it) if it.model == "another");
        assert!(sitter.has_seen(is_told));
        sitter.says("and now");
        sitter.hears("Two.").await;
    })
    .await;
    let session = place.home().newest_session(&place.project()).unwrap();
    let main = session.folder.about().unwrap().main;
    let records = session.folder.records(main).unwrap();
    let models = records.filter_map(|line| match line.unwrap() {
        Line::Record(record) => match record.entry {
            Entry::Start(start) => Some(start.model),
            _ => None,
        },
        Line::Damaged => None,
    });
    assert_eq!(models.collect::<Vec<_>>(), ["scripted", "another"]);
    let fold = Fold::read(&over.transcript).unwrap();
    assert_eq!(fold.messages.len(), 4, "two questions and two answers");
}

#[tokio::test]
async fn a_conversation_is_compacted_on_demand() {
    let place = Place::new(Mode::Normal);
    let script = "agents: [{ steps: [{ say: One. }, { expect: [{ text: the numbers }], say: We counted. }, { say: Two. }] }]";
    sit(&place, script, async |sitter| {
        sitter.says("go");
        sitter.hears("One.").await;
        let wish = Some("the numbers".to_owned());
        sitter.wants(Command::Compact { agent: None, wish });
        let compacted = |event: &gaffer_protocol::Event| {
            matches!(event.kind, EventKind::Compacted { .. }).then_some(())
        };
        sitter.sees("a compaction", compacted).await;
        sitter.says("next");
        sitter.hears("Two.").await;
    })
    .await;
}

#[tokio::test]
async fn slash_commands_are_answered_with_a_notice() {
    let place = Place::new(Mode::Normal);
    sit(
        &place,
        "agents: [{ steps: [{ say: One. }] }]",
        async |sitter| {
            sitter.slash("permissions", "");
            let told = sitter.hears("the permission mode is").await;
            assert!(
                told.contains("default") && told.contains("no rules"),
                "{told}"
            );
            sitter.slash("mode", "");
            sitter.hears("acceptEdits, plan, dontAsk").await;
            sitter.slash("resume", "");
            sitter.hears("no other session").await;
            sitter.slash("resume", "nonsense");
            sitter.hears("there is no session `nonsense`").await;
            sitter.slash("worktrees", "");
            sitter.hears("repository").await;
            sitter.slash("wroktrees", "");
            sitter
                .hears("there is no /wroktrees; did you mean /worktrees?")
                .await;
            let mode = |mode: &str| Command::SetMode {
                mode: mode.to_owned(),
            };
            sitter.wants(mode("brisk"));
            sitter.hears("there is no permission mode `brisk`").await;
            sitter.wants(mode("normal"));
            sitter.hears("gaffer --mode normal").await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_skill_is_called_by_its_name() {
    let place = Place::new(Mode::Normal);
    let folder = place.project().join(".gaffer/skills/tidy");
    std::fs::create_dir_all(&folder).unwrap();
    let text =
        "---\nname: tidy\ndescription: Puts things in order.\n---\nSweep $ARGUMENTS first.\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    let script = "agents: [{ steps: [{ expect: [{ text: Sweep the floor first. }, { text: /tidy the floor }], say: Swept. }] }]";
    sit(&place, script, async |sitter| {
        sitter.slash("tidy", "the floor");
        sitter.hears("Swept.").await;
        sitter.slash("tdiy", "");
        sitter.hears("did you mean /tidy?").await;
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_fails_is_told_and_the_session_goes_on() {
    let place = Place::new(Mode::Normal);
    let script = "agents: [{ steps: [{ say: No., stop: refusal }, { expect: [{ text: again }], say: Well then. }] }]";
    sit(&place, script, async |sitter| {
        sitter.says("go");
        sitter.hears("the turn ended early").await;
        sitter.says("again");
        sitter.hears("Well then.").await;
    })
    .await;
}
