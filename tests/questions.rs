//! Calls that wait for somebody's word, and tools that are loaded when they are needed.

use crate::agent::{Setup, setup_with};
use gaffer_protocol::{AgentId, End, EventKind, Permission, Question, Waiting};
use gaffer_testkit::world::Seeded;
use gaffer_tools::permission::{Mode, Policy};
use gaffer_tools::question::Questions;
use gaffer_tools::tool_search::{Pool, tool as tool_search};
use gaffer_tools::{Access, Context, Guard, Output, Run, Standing, erase};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An agent that must ask before it changes anything.
fn asking(steps: &str) -> (Setup, Questions) {
    asking_under(steps, Mode::Default, &Standing::default())
}

/// The same in a mode, where the user has said something before.
fn asking_under(steps: &str, mode: Mode, standing: &Standing) -> (Setup, Questions) {
    let mut kept = None;
    let setup = setup_with(steps, |context, events| {
        let questions = Questions::new(events);
        let roots = vec![context.cwd.get()];
        let policy = Policy::new(mode, roots, PathBuf::from("/nowhere"));
        let agent = AgentId::random(&Seeded::new(7));
        let guard = Guard::new(Arc::new(policy)).asking(agent, questions.clone());
        let guard = guard.heeding(standing.clone());
        context.guard = Some(guard);
        kept = Some(questions);
    });
    (setup, kept.unwrap())
}

fn asked(setup: &Setup) -> Vec<Arc<Question>> {
    let events = setup.events.events().into_iter();
    events
        .filter_map(|event| match event {
            EventKind::Asked(question) => Some(question),
            _ => None,
        })
        .collect()
}

const CHANGE: &str = "{ calls: [{ tool: Change, as: c, input: { name: a } }] }";

#[tokio::test(start_paused = true)]
async fn a_call_waits_until_any_surface_answers() {
    let (mut setup, questions) = asking(&format!(
        "{CHANGE}, {{ expect: [{{ of: c, result: a }}], say: Done. }}"
    ));
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
        // However long it takes.
        tokio::time::sleep(Duration::from_secs(36_000)).await;
        let open = questions.open();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].tool, "Change");
        assert!(!open[0].reason.is_empty());
        let allow = Permission::Allow { rules: Vec::new() };
        assert!(questions.answer(open[0].number, allow.clone()));
        assert!(
            !questions.answer(open[0].number, allow),
            "the first answer counts"
        );
    });
    assert_eq!(outcome.end, End::Done);
    let events = setup.events.events();
    assert!(
        events
            .iter()
            .any(|it| matches!(it, EventKind::Waiting(Waiting::User)))
    );
    assert!(events.iter().any(|it| matches!(it, EventKind::Settled(1))));
}

#[tokio::test(start_paused = true)]
async fn a_no_is_told_to_the_model_with_its_words() {
    let (mut setup, questions) = asking(&format!(
        "{CHANGE}, {{ expect: [{{ of: c, error: true, result: 'The user said no: use the other file' }}], say: All right. }}"
    ));
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let message = "use the other file".to_owned();
        assert!(questions.answer(1, Permission::Deny { message }));
    });
    assert_eq!(outcome.end, End::Done);
}

#[tokio::test(start_paused = true)]
async fn rules_given_with_an_answer_hold_from_then_on() {
    let (mut setup, questions) = asking(&format!("{CHANGE}, {CHANGE}, {{ say: Done. }}"));
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let rules = questions.open()[0].suggestions.clone();
        assert_eq!(rules, ["Change"]);
        assert!(questions.answer(1, Permission::Allow { rules }));
    });
    assert_eq!(outcome.end, End::Done);
    assert_eq!(asked(&setup).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_to_one_question_answers_others_that_wait() {
    let twice = "{ calls: [{ tool: Change, as: c, input: { name: a } }, { tool: Change, as: d, input: { name: b } }] }";
    let standing = Standing::default();
    let (mut one, questions) = asking_under(twice, Mode::Default, &standing);
    let (mut two, others) = asking_under(
        &format!("{CHANGE}, {{ expect: [{{ of: c, result: a }}], say: Done. }}"),
        Mode::Default,
        &standing,
    );
    let stop = CancellationToken::new();
    let (_, outcome, ()) = tokio::join!(one.agent.run(&stop), two.agent.run(&stop), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((questions.open().len(), others.open().len()), (1, 1));
        let rules = vec!["Change".to_owned()];
        assert!(questions.answer(1, Permission::Allow { rules }));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(others.open().is_empty(), "nobody need answer it");
        stop.cancel();
    });
    assert_eq!(outcome.end, End::Done);
    let events = two.events.events();
    assert!(events.iter().any(|it| matches!(it, EventKind::Settled(1))));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_is_to_be_asked_nobody_is() {
    let script = format!(
        "{CHANGE}, {{ expect: [{{ of: c, error: true, result: 'dontAsk denies' }}], say: All right. }}"
    );
    let (mut setup, questions) = asking_under(&script, Mode::DontAsk, &Standing::default());
    let outcome = setup.agent.run(&CancellationToken::new()).await;
    assert_eq!(outcome.end, End::Done);
    assert!(questions.open().is_empty());
    assert!(asked(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_the_question_back() {
    let (mut setup, questions) = asking(CHANGE);
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    });
    assert_eq!(outcome.end, End::Interrupted);
    assert!(questions.open().is_empty());
    let allow = Permission::Allow { rules: Vec::new() };
    assert!(!questions.answer(1, allow), "nobody waits any more");
    let events = setup.events.events();
    assert!(events.iter().any(|it| matches!(it, EventKind::Settled(1))));
}

/// Tells the time on Mars.
#[derive(Debug, Deserialize, JsonSchema)]
struct MarsTimeInput {}

#[derive(Debug)]
struct MarsTime;

impl Run for MarsTime {
    const NAME: &'static str = "MarsTime";
    const ACCESS: Access = Access::Reads;
    type Input = MarsTimeInput;

    async fn run(&self, _: MarsTimeInput, _: &Context) -> Output {
        Output::text("half past noon")
    }
}

#[tokio::test(start_paused = true)]
async fn a_deferred_tool_can_be_called_once_it_is_loaded_and_says_when_it_is_gone() {
    let pool = Pool::default();
    pool.defer(erase(MarsTime));
    let own = pool.view();
    let shared = pool.clone();
    let steps = "{ calls: [{ tool: MarsTime, as: a, input: {} }] }, \
        { expect: [{ of: a, error: true, result: 'select:MarsTime' }], calls: [{ tool: ToolSearch, as: b, input: { query: 'select:MarsTime' } }] }, \
        { expect: [{ of: b, result: 'MarsTime: Tells the time' }], calls: [{ tool: MarsTime, as: c, input: {} }] }, \
        { expect: [{ of: c, result: half past noon }], calls: [{ tool: Look, input: { name: wait } }] }, \
        { calls: [{ tool: MarsTime, as: d, input: {} }] }, \
        { expect: [{ of: d, error: true }], say: Done. }";
    let mut setup = setup_with(steps, |context, _| context.pool = own.clone());
    let search = tool_search(own).unwrap();
    let mut parts = setup.agent.into_parts();
    let mut tools = vec![search];
    tools.extend(["Look", "Change"].map(|name| parts.tools.get(name).unwrap().clone()));
    parts.tools = Arc::new(gaffer_tools::ToolSet::new(tools));
    setup.agent = gaffer_agent::Agent::new(parts);
    let stop = CancellationToken::new();
    let (outcome, ()) = tokio::join!(setup.agent.run(&stop), async {
        // While it looks at something else.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(shared.remove("MarsTime"));
    });
    assert_eq!(outcome.end, End::Done, "{outcome:?}");
}
