//! Plan first: nobody changes anything before the user has approved the plan.

use crate::crew_world::{Plan, World};
use crate::harness::{Place, Ran, run};
use crate::phases::crew;
use gaffer_crew::{Approver, PlanFirst};
use gaffer_protocol::plan::PlanState;
use gaffer_protocol::{End, EventKind, EventSink, Permission};
use gaffer_tools::question::Questions;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn order(name: &str, phase: &str) -> Value {
    json!({"tool": "Agent", "as": name, "input": {"description": format!("Task of {name}"), "name": name, "prompt": "go", "phase": phase}})
}

/// A coordinator that plans two changes and a look in one message, then does as the steps say.
fn planned(then: &Value) -> Value {
    let write =
        json!({"tool": "Write", "as": "f", "input": {"file_path": "made.txt", "content": "x"}});
    let mut steps = vec![
        json!({"say": "First the look, then two changes.", "calls": [order("looker", "research"), order("one", "implementation"), order("two", "implementation")]}),
    ];
    steps.extend(then.as_array().unwrap().clone());
    json!([
        {"name": "main", "steps": steps},
        {"name": "looker", "steps": [{"calls": [write]}, {"expect": [{"of": "f", "error": true}], "say": "I may not write."}]},
        {"name": "one", "steps": [{"calls": [write]}, {"expect": [{"of": "f", "error": false}], "say": "Made."}]},
        {"name": "two", "steps": [{"say": "Made as well."}]},
    ])
}

/// Nobody could be asked.
fn parked() -> Value {
    json!([
        {"expect": [
            {"of": "looker", "error": false},
            {"of": "one", "error": true, "result": "has to approve the plan first"},
            {"of": "two", "error": true, "result": "has to approve the plan first"},
        ], "say": "I plan two changes."},
        {"when": {"notifications": 1}, "say": "The look is over; the plan stands."},
        {"expect": [{"text": "I approve the plan"}], "calls": [order("one", "implementation"), order("two", "implementation")]},
        {"expect": [{"of": "one", "error": false}, {"of": "two", "error": false}], "say": "They run."},
        {"when": {"notifications": 3}, "meanwhile": "Not yet.", "say": "All is done."},
    ])
}

fn asks(ran: &Ran) -> Vec<Value> {
    let is_plan = |line: &Value| line["subtype"] == "plan";
    ran.events().into_iter().filter(is_plan).collect()
}

#[test]
fn without_anybody_to_ask_the_plan_is_what_comes_of_it() {
    let place = Place::new();
    let agents = planned(&parked());
    let ran = crew(
        &place,
        &agents,
        &["--permission-mode", "plan", "--session-id", "s"],
    );
    assert_eq!(ran.code, Some(4), "{} {}", ran.err, ran.result());
    let result = ran.result();
    assert_eq!(result["crew"]["started"], 1, "only the look");
    let plan = &result["plan"];
    assert_eq!(plan["state"], "waiting");
    assert_eq!(plan["text"], "First the look, then two changes.");
    let phases: Vec<&Value> = plan["orders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["phase"])
        .collect();
    assert_eq!(phases, ["research", "implementation", "implementation"]);
    assert_eq!(asks(&ran).len(), 1, "one question, not two");
    assert!(!place.project().join("made.txt").exists());
    // Approved later, the coordinator sends its orders again, and the session has left plan mode.
    let script = json!({ "agents": agents }).to_string();
    let again = [
        "-p",
        "--resume",
        "s",
        "--approve-plan",
        "--mode",
        "coordinator",
        "--output-format",
        "stream-json",
    ];
    let ran = run(place.scripted(&script, &again));
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
    assert!(place.project().join("made.txt").exists());
    assert_eq!(asks(&ran)[0]["state"], "approved");
}

#[test]
fn the_plan_is_printed_where_the_answer_would_be() {
    let place = Place::new();
    place.write("home/.gaffer/settings.json", r#"{"planFirst": true}"#);
    let script = json!({ "agents": planned(&parked()) }).to_string();
    let ran = run(place.scripted(&script, &["-p", "go", "--mode", "coordinator"]));
    assert_eq!(ran.code, Some(4), "{ran:?}");
    for part in [
        "First the look",
        "2. Task of one (implementation)",
        "   > go",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(ran.err.contains("--approve-plan"), "{}", ran.err);
}

#[test]
fn a_plan_that_is_approved_beforehand_is_shown_and_carried_out() {
    let place = Place::new();
    let agents = planned(&json!([
        {"expect": [{"of": "one", "error": false}], "say": "They run."},
        {"when": {"notifications": 3}, "meanwhile": "Not yet.", "say": "All is done."},
    ]));
    let ran = crew(
        &place,
        &agents,
        &["--permission-mode", "plan", "--approve-plan"],
    );
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
    assert_eq!(asks(&ran).len(), 1);
    assert_eq!(asks(&ran)[0]["state"], "approved");
    assert_eq!(ran.result()["plan"], Value::Null);
    assert!(place.project().join("made.txt").exists());
}

#[test]
fn a_worker_is_not_sent_to_work_by_mail_instead() {
    let place = Place::new();
    let mail =
        json!({"to": "looker", "message": "Change note.txt: it must say hello. Report the line."});
    let agents = json!([
        {"name": "main", "steps": [
            {"calls": [order("looker", "research")]},
            {"when": {"notifications": 1}, "meanwhile": "Wait.", "calls": [{"tool": "SendMessage", "as": "m", "input": mail}]},
            {"expect": [{"of": "m", "error": true, "result": "approved no plan yet"}], "say": "I see."},
        ]},
        {"name": "looker", "steps": [{"say": "Seen."}]},
    ]);
    let ran = crew(&place, &agents, &["--permission-mode", "plan"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.err, ran.result());
}

/// A crew whose questions somebody answers, each with the next of these words.
async fn answered(then: &Value, words: &[Permission]) -> (World, End) {
    let script = json!({"agents": [
        {"name": "main", "steps": then},
        {"steps": [{"say": "Done."}]},
    ]});
    let mut plan = Plan::script(&script.to_string());
    let late = Arc::new(Late::default());
    let questions = Questions::new(late.clone());
    plan.guardrails.plan = PlanFirst::new(Approver::Asks(questions.clone()));
    let mut world = World::new(plan);
    late.0.set(world.log.clone()).unwrap();
    let ends = world.crew.clone();
    let answering = async {
        for word in words {
            let open = loop {
                if let Some(open) = questions.open().first() {
                    break open.number;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            };
            assert_eq!(questions.open().len(), 1, "one question for all");
            let is_work = |it: &gaffer_crew::WorkerState| it.name.as_str() != "looker";
            assert!(!ends.workers().iter().any(is_work), "nobody began");
            assert!(questions.answer(open, word.clone()));
        }
    };
    let (end, ()) = tokio::join!(world.run("go"), answering);
    (world, end)
}

/// The log of a world that is made later.
#[derive(Debug, Default)]
struct Late(std::sync::OnceLock<Arc<crate::crew_world::Log>>);

impl EventSink for Late {
    fn emit(&self, agent: gaffer_protocol::AgentId, kind: EventKind) {
        if let Some(log) = self.0.get() {
            log.emit(agent, kind);
        }
    }
}

fn states(world: &World) -> Vec<PlanState> {
    let plan = |(_, _, kind)| match kind {
        EventKind::Plan(plan) => Some(plan.state),
        _ => None,
    };
    world.log.all().into_iter().filter_map(plan).collect()
}

#[tokio::test(start_paused = true)]
async fn an_approved_plan_is_carried_out() {
    let orders = [
        order("looker", "research"),
        order("one", "implementation"),
        order("two", "implementation"),
    ];
    let then = json!([
        {"say": "The plan.", "calls": orders},
        {"expect": [{"of": "one", "error": false}, {"of": "two", "error": false}], "say": "They run."},
        {"when": {"notifications": 3}, "meanwhile": "Not yet.", "say": "All is done."},
    ]);
    let allow = Permission::Allow { rules: Vec::new() };
    let (world, end) = answered(&then, &[allow]).await;
    assert_eq!(end, End::Done);
    assert_eq!(states(&world), [PlanState::Waiting, PlanState::Approved]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_plan_is_made_anew_with_the_users_words() {
    let both = [
        order("one", "implementation"),
        order("two", "implementation"),
    ];
    let no = json!({"matches": "did not approve the plan: smaller steps"});
    let then = json!([
        {"calls": both},
        {"expect": [{"of": "one", "error": true, "result": no}, {"of": "two", "error": true, "result": no}], "calls": [order("small", "implementation")]},
        {"expect": [{"of": "small", "error": false}], "say": "It runs."},
        {"when": {"notifications": 1}, "meanwhile": "Not yet.", "say": "All is done."},
    ]);
    let deny = Permission::Deny {
        message: "smaller steps".to_owned(),
    };
    let allow = Permission::Allow { rules: Vec::new() };
    let (world, end) = answered(&then, &[deny, allow]).await;
    assert_eq!(end, End::Done);
    use PlanState::{Approved, Refused, Waiting};
    assert_eq!(states(&world), [Waiting, Refused, Waiting, Approved]);
}
