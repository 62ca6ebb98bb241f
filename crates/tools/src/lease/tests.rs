//! How leases behave: never two holders, no wait without an end, no circle, and the same file by
//! whatever name.

use super::*;
use crate::tool::{Output, Run};
use crate::write::{Write, WriteInput};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Debug, Default)]
struct Log(Mutex<Vec<(AgentId, EventKind)>>);

impl EventSink for Log {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        self.0.lock().unwrap().push((agent, kind));
    }
}

/// Who waits for whom without a file.
#[derive(Debug)]
struct Tied(Vec<(AgentId, AgentId)>);

impl Ties for Tied {
    fn waits_for(&self, agent: AgentId) -> Vec<(AgentId, AgentName)> {
        let own = self.0.iter().filter(|(from, _)| *from == agent);
        own.map(|(_, to)| (*to, AgentName::parse("tied").unwrap()))
            .collect()
    }
}

fn id(n: usize) -> AgentId {
    AgentId::parse(&format!("agent-{n:08x}")).unwrap()
}

fn member(n: usize) -> Member {
    Member {
        id: id(n),
        name: AgentName::parse(&format!("w{n}")).unwrap(),
        task: format!("Task {n}"),
        above: Vec::new(),
        scope: None,
    }
}

fn leases(is_enforced: bool, ties: &[(usize, usize)]) -> (Leases, Arc<Log>) {
    let log = Arc::new(Log::default());
    let limits = LeaseLimits {
        is_enforced,
        ..LeaseLimits::default()
    };
    let ties = ties.iter().map(|(from, to)| (id(*from), id(*to)));
    let ties = Box::new(Tied(ties.collect()));
    (Leases::new(limits, log.clone(), ties), log)
}

async fn take(lease: &Lease, file: &str) -> Result<String, String> {
    let path = Path::new("/p").join(file);
    lease.obtain((file, &[]), path, None).await
}

fn join(leases: &Leases, n: usize) -> (Tenure, Lease) {
    let tenure = leases.join(member(n)).unwrap();
    let lease = tenure.lease(Vec::new());
    (tenure, lease)
}

#[tokio::test(start_paused = true)]
async fn a_held_file_is_waited_for_and_then_its_holder_is_named() {
    let (leases, log) = leases(true, &[]);
    let (_one, first) = join(&leases, 1);
    let (_two, second) = join(&leases, 2);
    take(&first, "a").await.unwrap();
    take(&first, "a").await.unwrap();
    let began = Instant::now();
    let why = take(&second, "a").await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(20));
    let holder = id(1);
    for part in [
        &format!("w1 ({holder}, \"Task 1\")"),
        "for 20 s",
        "SendMessage",
        "report",
    ] {
        assert!(why.contains(part), "{why}");
    }
    let events = log.0.lock().unwrap();
    let waited = |(_, kind): &&(AgentId, EventKind)| matches!(kind, EventKind::Waiting(Waiting::Lease(names)) if names == &[AgentName::parse("w1").unwrap()]);
    assert_eq!(events.iter().filter(waited).count(), 1);
    assert!(matches!(
        events.last(),
        Some((_, EventKind::Waiting(Waiting::Tools(_))))
    ));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_holder_lets_the_next_one_on_at_once() {
    let (leases, _) = leases(true, &[]);
    let (one, first) = join(&leases, 1);
    let (_two, second) = join(&leases, 2);
    take(&first, "a").await.unwrap();
    let began = Instant::now();
    let (got, ()) = tokio::join!(take(&second, "a"), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop(one);
    });
    got.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_close_a_circle_is_an_error_at_once() {
    let (leases, _) = leases(true, &[]);
    let (one, first) = join(&leases, 1);
    let (_two, second) = join(&leases, 2);
    let (three, third) = join(&leases, 3);
    take(&first, "a").await.unwrap();
    take(&second, "b").await.unwrap();
    take(&third, "c").await.unwrap();
    let began = Instant::now();
    let (waits, also, why) = tokio::join!(
        async { (take(&first, "b").await, drop(one)) },
        async { (take(&second, "c").await, drop(leases.clone())) },
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let why = take(&third, "a").await.unwrap_err();
            assert_eq!(began.elapsed(), Duration::from_secs(1));
            drop(three);
            why
        }
    );
    assert!(why.contains("w3 → w1 → w2 → w3"), "{why}");
    also.0.unwrap();
    // The second goes on with what it has, so the first waits in vain.
    assert!(waits.0.unwrap_err().contains("w2"));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_worker_of_ones_own_is_a_part_of_a_circle() {
    let (leases, _) = leases(true, &[(1, 2)]);
    let (_one, first) = join(&leases, 1);
    let (_two, second) = join(&leases, 2);
    take(&first, "a").await.unwrap();
    let began = Instant::now();
    let why = take(&second, "a").await.unwrap_err();
    assert!(why.contains("w2 → w1 → tied"), "{why}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    let newcomer = Member {
        scope: Some(Scope::new(&["a".to_owned()], Path::new("/p"))),
        ..member(2)
    };
    assert!(leases.blocked(&newcomer).unwrap().circle.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_worker_of_its_own_hands_its_files_on() {
    let (leases, _) = leases(true, &[(1, 2)]);
    let (_one, first) = join(&leases, 1);
    take(&first, "a").await.unwrap();
    take(&first, "b").await.unwrap();
    let child = Member {
        above: vec![id(1)],
        scope: Some(Scope::new(&["b".to_owned()], Path::new("/p"))),
        ..member(2)
    };
    let tenure = leases.join(child).unwrap();
    let second = tenure.lease(Vec::new());
    take(&second, "a").await.unwrap();
    take(&second, "b").await.unwrap();
    // They are the child's now, for everybody.
    let (_three, third) = join(&leases, 3);
    assert!(take(&third, "a").await.unwrap_err().contains("w2"));
    drop(tenure);
    take(&first, "a").await.unwrap();
    let (_four, fourth) = join(&leases, 4);
    take(&fourth, "b").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_warning_lets_the_write_through() {
    let (leases, log) = leases(false, &[]);
    let (_one, first) = join(&leases, 1);
    let (_two, second) = join(&leases, 2);
    take(&first, "a").await.unwrap();
    let note = take(&second, "a").await.unwrap();
    assert!(note.starts_with("\nAdvice: held-file: w1"), "{note}");
    let events = log.0.lock().unwrap();
    let is_told = |(_, kind): &(AgentId, EventKind)| matches!(kind, EventKind::Advice(it) if !it.is_refusal && it.guardrail == "leases");
    assert!(events.iter().any(is_told));
}

#[tokio::test(start_paused = true)]
async fn files_of_an_order_are_its_workers_alone_and_those_below_it() {
    let (leases, _) = leases(true, &[]);
    let scope = |globs: &[&str]| {
        let globs: Vec<String> = globs.iter().map(|it| (*it).to_owned()).collect();
        Some(Scope::new(&globs, Path::new("/p")))
    };
    let tenure = leases
        .join(Member {
            scope: scope(&["src/**"]),
            ..member(1)
        })
        .unwrap();
    let (_two, second) = join(&leases, 2);
    let why = take(&second, "src/x").await.unwrap_err();
    assert!(why.contains("whose order names `src/**`"), "{why}");
    take(&second, "other").await.unwrap();
    let below = leases
        .join(Member {
            above: vec![id(1)],
            ..member(3)
        })
        .unwrap();
    take(&below.lease(Vec::new()), "src/y").await.unwrap();
    let like = Member {
        scope: scope(&["src/a.rs"]),
        ..member(4)
    };
    assert_eq!(leases.join(like.clone()).unwrap_err().names.len(), 1);
    let apart = Member {
        scope: scope(&["docs/*"]),
        ..member(5)
    };
    leases.join(apart).unwrap();
    drop(tenure);
    leases.join(like).unwrap();
    // What somebody has written stands in the way of an order as well.
    let late = Member {
        scope: scope(&["oth*"]),
        ..member(6)
    };
    assert!(leases.join(late).is_err());
}

/// Each agent takes files one after another, rests after each, and ends.
async fn agent(leases: &Leases, n: usize, steps: Vec<(u8, u64)>, held: &Mutex<HashMap<u8, usize>>) {
    let (tenure, lease) = join(leases, n);
    for (file, rest) in steps {
        match take(&lease, &file.to_string()).await {
            Ok(_) => {
                let before = held.lock().unwrap().insert(file, n);
                assert!(before.is_none_or(|other| other == n), "two hold {file}");
            }
            Err(why) => assert!(
                why.contains("never end") || why.contains("waited for"),
                "{why}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(rest)).await;
    }
    held.lock().unwrap().retain(|_, by| *by != n);
    drop(tenure);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_file_has_two_holders_and_every_wait_ends(
        crew in proptest::collection::vec(proptest::collection::vec((0..5u8, 0..15_000u64), 1..6), 1..8)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (leases, _) = leases(true, &[]);
            let held = Mutex::new(HashMap::new());
            let all = crew.into_iter().enumerate();
            let all = all.map(|(n, steps)| agent(&leases, n, steps, &held));
            // No agent takes longer than all its waits and rests.
            let longest = Duration::from_secs(5 * 35 + 1);
            tokio::time::timeout(longest, futures_util::future::join_all(all)).await.unwrap();
            assert!(leases.table().held.is_empty());
        });
    }
}

async fn write(context: &Context, path: &str) -> Output {
    let input = WriteInput {
        file_path: path.to_owned(),
        content: "x".to_owned(),
    };
    Write.run(input, context).await
}

#[tokio::test(start_paused = true)]
async fn links_lead_to_the_same_lease() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let (spill, own) = (root.join("spill"), root.join("own"));
    for folder in [&spill, &own, &root.join("real")] {
        std::fs::create_dir(folder).unwrap();
    }
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    std::fs::write(root.join("hard"), "same").unwrap();
    std::fs::hard_link(root.join("hard"), root.join("linked")).unwrap();
    let (leases, _) = leases(true, &[]);
    let (_one, first) = join(&leases, 1);
    let (_two, second) = join(&leases, 2);
    let at = |lease: &Lease| {
        let mut context = Context::in_folder(&root, &spill, &own, Path::new("none"));
        context.lease = Some(lease.clone());
        context
    };
    let (one, two) = (at(&first), at(&second));
    assert!(!write(&one, "real/a").await.is_error);
    let refused = write(&two, "link/a").await;
    assert!(
        refused.is_error && refused.to_text().contains("w1"),
        "{refused:?}"
    );
    // It has not read the file, and so has not written it: but it is at it.
    assert!(
        write(&one, "hard")
            .await
            .to_text()
            .contains("not been read")
    );
    let refused = write(&two, "linked").await;
    assert!(refused.to_text().contains("has held it"), "{refused:?}");
    // Nobody waits for what is an agent's own.
    assert!(!write(&one, "own/t").await.is_error);
    assert!(leases.table().holder(&own.join("t"), id(2)).is_none());
}
