//! The shared record: what any bytes, dead processes, wrong clocks and broken files do to it.
#![expect(
    clippy::disallowed_methods,
    reason = "a test's own tasks need no supervisor"
)]

use super::pace::SECOND;
use super::record::{ROWS, Record, Row};
use super::shared::Shared;
use super::*;
use proptest::prelude::*;
use std::path::Path;

fn gate(folder: &Path, limit: u32) -> Gate {
    let time = SinceStart::new(Instant::now());
    Gate::shared(folder.join("gates/one"), limit, usize::MAX, Arc::new(time))
}

fn state(folder: &Path) -> PathBuf {
    folder.join("gates/one/state")
}

fn some_record() -> Record {
    let mut record = Record::new(7);
    record.width = 3;
    record.epoch = 5;
    record.closed_until = 9 * SECOND;
    record.stamp = 8 * SECOND;
    record.pace.ceiling = 12.5;
    record.pace.length = 100.0;
    record.rows[ROWS - 1] = Row {
        limit: 7,
        under_way: 2,
        ticket: 0,
        seen: SECOND,
    };
    record
}

proptest! {
    #[test]
    fn torn_or_foreign_bytes_are_no_record(at in 0..bytes::LENGTH, mask in 1..=u8::MAX, cut in 0..bytes::LENGTH) {
        let record = some_record();
        let mut whole = bytes::write(&record);
        prop_assert_eq!(whole.len(), bytes::LENGTH);
        prop_assert_eq!(bytes::read(&whole), Some(record));
        prop_assert_eq!(bytes::read(&whole[..cut]), None);
        whole[at] ^= mask;
        prop_assert_eq!(bytes::read(&whole), None);
    }

    #[test]
    fn what_cannot_be_true_is_not_believed(width in any::<u32>(), closed in any::<u64>(), ceiling in any::<f64>()) {
        let mut record = some_record();
        (record.width, record.closed_until, record.pace.ceiling) = (width, closed, ceiling);
        let now = 10 * SECOND;
        if record.is_sound(now) {
            prop_assert!((1..=7).contains(&width));
            prop_assert!(closed < 26 * 60 * 60 * SECOND);
            prop_assert!(ceiling == 0.0 || (1e-7..1e9).contains(&ceiling));
        }
    }
}

#[test]
fn a_clock_that_goes_back_leaves_a_pause_as_long_as_it_was() {
    let mut record = some_record();
    record.follow(2 * SECOND);
    assert_eq!(record.closed_until, 3 * SECOND);
    assert!(record.is_sound(2 * SECOND));
    record.follow(5 * SECOND);
    assert_eq!(record.closed_until, 3 * SECOND);
}

#[tokio::test]
async fn a_broken_file_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let gate = gate(temp.path(), 4);
    let first = gate.enter(|| {}).await;
    let mut hostile = some_record();
    hostile.closed_until = u64::MAX;
    for bytes in [
        vec![],
        b"junk".to_vec(),
        vec![0xff; 9000],
        bytes::write(&hostile),
    ] {
        std::fs::write(state(temp.path()), bytes).unwrap();
        let second = timeout(Duration::from_secs(5), gate.enter(|| {}))
            .await
            .unwrap();
        let view = gate.view();
        assert_eq!((view.limit, view.width, view.under_way), (4, 4, 2));
        drop(second);
    }
    drop(first);
    assert_eq!((gate.view().under_way, gate.notice()), (0, None));
}

#[tokio::test]
async fn only_its_owner_may_read_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let temp = tempfile::tempdir().unwrap();
    drop(gate(temp.path(), 4).enter(|| {}).await);
    for (name, mode) in [
        ("gates", 0o700),
        ("gates/one", 0o700),
        ("gates/one/state", 0o600),
    ] {
        let found = temp.path().join(name).metadata().unwrap().permissions();
        assert_eq!(found.mode() & 0o777, mode, "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_shared_is_a_gate_of_its_own_with_a_notice() {
    let spoil: [fn(&Path); 3] = [
        |at| std::fs::write(at.join("gates"), "a file").unwrap(),
        |at| std::fs::create_dir_all(state(at)).unwrap(),
        |at| {
            std::fs::create_dir_all(at.join("gates/one")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", state(at)).unwrap();
        },
    ];
    for spoil in spoil {
        let temp = tempfile::tempdir().unwrap();
        spoil(temp.path());
        let gate = gate(temp.path(), 2);
        let first = gate.enter(|| {}).await;
        let notice = gate.notice().unwrap();
        assert!(notice.contains("not shared"), "{notice}");
        drop(gate.enter(|| {}).await);
        drop(first);
        assert_eq!((gate.view().under_way, gate.notice()), (0, None));
    }
}

/// A disk that takes nothing more, at any moment: what was given stays given.
#[tokio::test]
async fn a_file_that_cannot_be_written_any_more_is_given_up() {
    let temp = tempfile::tempdir().unwrap();
    let gate = gate(temp.path(), 2);
    let first = gate.enter(|| {}).await;
    if let Ground::Shared(shared, _) = &mut gate.lock().ground {
        shared.spoil(std::fs::File::open(state(temp.path())).unwrap());
    }
    let second = gate.enter(|| {}).await;
    assert!(gate.notice().unwrap().contains("not shared"));
    assert_eq!(gate.view().under_way, 2);
    drop((first, second));
    assert_eq!(gate.view().under_way, 0);
}

#[tokio::test]
async fn a_lock_that_is_never_let_go_of_holds_nobody_up_for_long() {
    let temp = tempfile::tempdir().unwrap();
    let gate = gate(temp.path(), 2);
    let first = gate.enter(|| {}).await;
    let stopped = std::fs::File::open(state(temp.path())).unwrap();
    stopped.lock().unwrap();
    // Given back while it is locked: owed, and paid later.
    drop(first);
    let second = timeout(Duration::from_secs(10), gate.enter(|| {}))
        .await
        .unwrap();
    assert!(gate.notice().unwrap().contains("does not let go"));
    drop(second);
    assert_eq!(gate.view().under_way, 0);
}

#[tokio::test]
async fn a_deleted_folder_is_made_again() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two) = (gate(temp.path(), 2), gate(temp.path(), 2));
    let place = one.enter(|| {}).await;
    std::fs::remove_dir_all(temp.path().join("gates")).unwrap();
    drop(two.enter(|| {}).await);
    assert_eq!(two.view().under_way, 0);
    let other = one.enter(|| {}).await;
    assert_eq!(two.view().under_way, 2);
    drop((place, other));
    assert_eq!((two.view().under_way, one.notice()), (0, None));
}

#[tokio::test]
async fn the_places_of_who_is_gone_come_back() {
    let temp = tempfile::tempdir().unwrap();
    let mut gone = Shared::join(&temp.path().join("gates/one"), 4, || 1).unwrap();
    gone.update(4, || 1, |_, _, _| ()).unwrap();
    let gate = gate(temp.path(), 4);
    assert_eq!(gate.view().under_way, 4);
    drop(gone);
    let began = std::time::Instant::now();
    drop(gate.enter(|| {}).await);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(gate.view().under_way, 0);
}

#[tokio::test(start_paused = true)]
async fn who_shares_a_place_takes_turns() {
    let temp = tempfile::tempdir().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for process in 0..3 {
        let (gate, order) = (gate(temp.path(), 1), order.clone());
        for _ in 0..4 {
            let (gate, order) = (gate.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..10 {
                    let place = gate.enter(|| {}).await;
                    order.lock().unwrap().push(process);
                    sleep(Duration::from_millis(100)).await;
                    drop(place);
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().unwrap();
    for few in order[..90].windows(6) {
        for process in 0..3 {
            assert!(few.contains(&process), "{order:?}");
        }
    }
}

/// Threads stand for processes here: each has a gate, and so a lock, of its own.
#[test]
fn many_at_once_never_have_more_than_the_width_and_lose_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = &|_| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let gate = gate(temp.path(), 3);
        runtime.block_on(async {
            for _ in 0..50 {
                let place = gate.enter(|| {}).await;
                most.fetch_max(1 + inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                place.succeeded();
            }
            assert_eq!(gate.notice(), None);
        });
    };
    std::thread::scope(|scope| {
        for thread in 0..5 {
            scope.spawn(move || work(thread));
        }
    });
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    assert_eq!(gate(temp.path(), 3).view().under_way, 0);
}

/// What sharing costs where nobody else is there. Wide margins: it is a debug build.
#[tokio::test]
async fn alone_a_shared_gate_costs_microseconds() {
    let temp = tempfile::tempdir().unwrap();
    let gate = gate(temp.path(), 4);
    drop(gate.enter(|| {}).await);
    let began = std::time::Instant::now();
    for _ in 0..2000 {
        gate.enter(|| panic!("nothing to wait for"))
            .await
            .succeeded();
    }
    let each = began.elapsed() / 2000;
    println!("{each:?} a request");
    assert!(each < Duration::from_millis(1), "{each:?}");
}

#[tokio::test(start_paused = true)]
async fn what_one_process_can_have_is_no_limit_for_others() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("gates/one");
    let time = || Arc::new(SinceStart::new(Instant::now()));
    let narrow = Gate::shared(path.clone(), 8, 1, time());
    let wide = Gate::shared(path, 8, usize::MAX, time());
    let first = narrow.enter(|| {}).await;
    let mut has_waited = false;
    let second = timeout(Duration::from_secs(60), narrow.enter(|| has_waited = true)).await;
    assert!(second.is_err() && has_waited);
    let mut others = Vec::new();
    for _ in 0..7 {
        others.push(wide.enter(|| panic!("a place is free")).await);
    }
    assert_eq!(wide.view().under_way, 8);
    first.succeeded();
    drop(narrow.enter(|| panic!("its own place is free again")).await);
}
