//! Questions about calls and plans, and what the user says once and for all.

use super::{Place, sit};
use crate::mode::Mode;
use gaffer_protocol::{Command, Event, EventKind, Permission};

fn write(name: &str) -> String {
    format!("{{ tool: Write, as: f, input: {{ file_path: {name}, content: x }} }}")
}

fn allow() -> Permission {
    Permission::Allow { rules: Vec::new() }
}

fn settled(number: u64) -> impl Fn(&Event) -> Option<()> {
    move |event| matches!(event.kind, EventKind::Settled(it) if it == number).then_some(())
}

#[tokio::test]
async fn a_question_is_answered_once_always_or_with_words() {
    let place = Place::new(Mode::Normal);
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{}] }}, {{ expect: [{{ of: f, error: true, result: 'The user said no: not there' }}], calls: [{}] }}, {{ expect: [{{ of: f, error: false }}], calls: [{}] }}, {{ expect: [{{ of: f, error: false }}], calls: [{}] }}, {{ say: Done. }}] }}]",
        write("a.txt"),
        write("b.txt"),
        write("c.txt"),
        write("d.txt"),
    );
    sit(&place, &script, async |sitter| {
        sitter.says("go");
        let first = sitter.question().await;
        assert_eq!((first.tool.as_str(), first.number), ("Write", 1));
        assert!(
            !first.reason.contains("nobody can be asked"),
            "{}",
            first.reason
        );
        let message = "not there".to_owned();
        sitter.answers(1, Permission::Deny { message });
        let second = sitter.question().await;
        sitter.answers(second.number, allow());
        sitter
            .sees("that it is settled", settled(second.number))
            .await;
        sitter.answers(second.number, allow());
        sitter.hears("needs no answer any more").await;
        let third = sitter.question().await;
        sitter.answers(
            third.number,
            Permission::Allow {
                rules: vec!["Write".to_owned()],
            },
        );
        sitter.hears("Done.").await;
        sitter.slash("permissions", "");
        let told = sitter.hears("the permission mode is").await;
        assert!(told.contains("allowed: Write (this session)"), "{told}");
    })
    .await;
    assert!(!place.has("a.txt"));
    assert!(place.has("b.txt") && place.has("c.txt") && place.has("d.txt"));
}

#[tokio::test]
async fn a_mode_settles_what_it_allows() {
    let place = Place::new(Mode::Normal);
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{}] }}, {{ expect: [{{ of: f, error: false }}], say: Made. }}, {{ calls: [{}] }}, {{ expect: [{{ of: f, error: true, result: 'dontAsk denies' }}], say: Not made. }}] }}]",
        write("a.txt"),
        write("/elsewhere/b.txt"),
    );
    sit(&place, &script, async |sitter| {
        sitter.says("go");
        let question = sitter.question().await;
        let mode = |mode: &str| Command::SetMode {
            mode: mode.to_owned(),
        };
        sitter.wants(mode("acceptEdits"));
        sitter
            .sees("that it is settled", settled(question.number))
            .await;
        sitter.hears("Made.").await;
        sitter.wants(mode("dontAsk"));
        sitter.says("and elsewhere");
        sitter.hears("Not made.").await;
    })
    .await;
    assert!(place.has("a.txt"));
}

#[cfg(feature = "coordinator")]
#[tokio::test]
async fn a_question_goes_with_the_worker_that_asked_it() {
    let place = Place::new(Mode::Coordinator);
    // Writing there is never approved unasked.
    let script = format!(
        "agents: [{{ name: main, steps: [{{ calls: [{{ tool: Agent, input: {{ description: Work, name: w, prompt: go, phase: research }} }}] }}, {{ repeat: 9, say: Well. }}] }}, {{ name: w, steps: [{{ calls: [{}] }}] }}]",
        write(".gaffer/settings.json")
    );
    sit(&place, &script, async |sitter| {
        sitter.says("go");
        let worker = sitter.worker("w").await;
        let question = sitter.question().await;
        sitter.wants(Command::Stop { agent: worker });
        sitter
            .sees("that it is settled", settled(question.number))
            .await;
        sitter.answers(question.number, allow());
        sitter.hears("needs no answer any more").await;
    })
    .await;
    assert!(!place.has(".gaffer/settings.json"));
}

#[cfg(feature = "coordinator")]
#[tokio::test]
async fn a_plan_is_approved_before_anything_is_changed() {
    let place = Place::new(Mode::Coordinator);
    let order = "{ tool: Agent, as: o, input: { description: Make it, name: maker, prompt: Write a.txt and stop when it is there., phase: implementation } }";
    let script = format!(
        "agents: [{{ name: main, steps: [{{ say: One file., calls: [{order}] }}, {{ expect: [{{ of: o, error: true, result: 'did not approve the plan: smaller' }}], say: A smaller one., calls: [{order}] }}, {{ expect: [{{ of: o, error: false }}], say: It runs. }}, {{ repeat: 9, say: All made. }}] }}, {{ name: maker, steps: [{{ calls: [{}] }}, {{ say: Made. }}] }}]",
        write("a.txt")
    );
    sit(&place, &script, async |sitter| {
        let mode = "plan".to_owned();
        sitter.wants(Command::SetMode { mode });
        sitter.hears("before you have approved it").await;
        sitter.says("make it");
        let plan = sitter.question().await;
        assert_eq!(plan.input["text"], "One file.");
        let message = "smaller".to_owned();
        sitter.answers(plan.number, Permission::Deny { message });
        let plan = sitter.question().await;
        assert_eq!(plan.input["text"], "A smaller one.");
        assert!(!place.has("a.txt"));
        sitter.answers(plan.number, allow());
        sitter.worker("maker").await;
        sitter.hears("All made.").await;
        let modes = sitter.seen.iter().filter_map(|event| match &event.kind {
            EventKind::SessionStarted(session) => Some(session.permission_mode.as_str()),
            _ => None,
        });
        assert_eq!(modes.collect::<Vec<_>>(), ["default", "plan", "default"]);
    })
    .await;
    assert!(place.has("a.txt"));
}
