//! Tests of the book.

use super::*;
use gaffer_protocol::{AgentId, AgentName, Block, End, MailId, Origin, Terms};
use std::collections::HashSet;

fn agent(n: u32) -> AgentId {
    AgentId::parse(&format!("agent-{n:08x}")).unwrap()
}

fn task(n: u32) -> Task {
    Task {
        id: agent(n),
        name: AgentName::parse(&format!("w-{n}")).unwrap(),
        kind: "worker".into(),
        description: "Look".into(),
        parent: agent(0),
        depth: 1,
        model: None,
        depends_on: if n > 1 {
            vec![agent(n - 1)]
        } else {
            Vec::new()
        },
        includes_results: n > 1,
        terms: Terms {
            max_turns: Some(3),
            done_when: Some("true".into()),
            isolated: n == 2,
            ..Terms::default()
        },
    }
}

fn letter(n: u64, to: u32) -> Letter {
    let id = MailId(n);
    Letter {
        id,
        to: agent(to),
        about: None,
        block: Block::from(Origin::Agent, format!("text {n}")).by_mail(id),
        is_held: false,
    }
}

fn book(temp: &tempfile::TempDir) -> Book {
    Book::at(temp.path().join(FILE))
}

#[tokio::test]
async fn a_task_lives_and_ends_and_its_mail_with_it() {
    let temp = tempfile::tempdir().unwrap();
    let write = book(&temp);
    let steps = [
        Step::written(vec![
            Change::Start(Box::new(task(1))),
            Change::Send(letter(1, 1)),
        ]),
        Step::synced(vec![Change::Send(letter(2, 1))]),
        Step::synced(vec![
            Change::End {
                task: agent(1),
                end: End::Done,
                notes: "n".into(),
            },
            Change::Heard(vec![MailId(1)]),
            Change::Hold(vec![MailId(2)]),
            Change::Send(letter(3, 0)),
        ]),
    ];
    for step in steps {
        write.write(step).await.unwrap();
    }
    let contents = book(&temp).read().unwrap();
    let entered = Entered {
        task: task(1),
        runs: 1,
        end: Some(End::Done),
        notes: Some("n".into()),
    };
    assert_eq!(contents.tasks, [entered]);
    let held = Letter {
        is_held: true,
        ..letter(2, 1)
    };
    assert_eq!(contents.letters, [held, letter(3, 0)]);
    let on = Step::written(vec![Change::GoOn(agent(1)), Change::Heard(vec![MailId(3)])]);
    write.write(on).await.unwrap();
    let contents = book(&temp).read().unwrap();
    assert_eq!((contents.tasks[0].runs, &contents.tasks[0].end), (2, &None));
    assert_eq!(contents.letters, [letter(2, 1)], "it reads it now");
    assert_eq!(contents.last_letter, 3, "a number is used once");
}

#[tokio::test]
async fn a_step_happens_as_a_whole_or_not_at_all() {
    let temp = tempfile::tempdir().unwrap();
    let book = book(&temp);
    let first = Step::written(vec![Change::Start(Box::new(task(1)))]);
    book.write(first).await.unwrap();
    // Written together: the sound one is not taken down by the other.
    let (sound, broken) = tokio::join!(
        book.write(Step::written(vec![Change::Start(Box::new(task(2)))])),
        book.write(Step::synced(vec![
            Change::Send(letter(1, 1)),
            Change::Start(Box::new(task(1)))
        ])),
    );
    sound.unwrap();
    let why = broken.unwrap_err().to_string();
    assert!(why.contains("cannot write") && why.contains(FILE), "{why}");
    let contents = book.read().unwrap();
    assert_eq!(contents.tasks.len(), 2);
    assert_eq!(contents.letters, []);
}

#[tokio::test]
async fn what_a_call_did_is_known_until_its_caller_has_heard_it() {
    let temp = tempfile::tempdir().unwrap();
    let book = book(&temp);
    let answered = |call: &str| Change::Answered {
        agent: agent(1),
        call: call.into(),
        answer: format!("answer of {call}"),
    };
    let step = Step::written(vec![answered("a"), answered("b"), answered("a")]);
    book.write(step).await.unwrap();
    let answers = book.read().unwrap().answers;
    let want = |call: &str| (agent(1), call.to_owned(), format!("answer of {call}"));
    assert_eq!(answers, [want("a"), want("b")]);
    let settled = Step::written(vec![Change::Settled(agent(1))]);
    book.write(settled).await.unwrap();
    assert_eq!(book.read().unwrap().answers, []);
}

#[tokio::test]
async fn several_may_write_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let books: Vec<Book> = (0..4).map(|_| book(&temp)).collect();
    let writes = (1..=200u64).map(|n| {
        let book = books[n as usize % 4].clone();
        async move {
            book.write(Step::written(vec![Change::Send(letter(n, 1))]))
                .await
        }
    });
    let mut set = tokio::task::JoinSet::new();
    for write in writes {
        set.spawn(write);
    }
    for outcome in set.join_all().await {
        outcome.unwrap();
    }
    let letters = books[0].read().unwrap().letters;
    let ids: HashSet<u64> = letters.iter().map(|letter| letter.id.0).collect();
    assert_eq!(ids.len(), 200);
}

#[tokio::test]
async fn a_copy_can_be_taken_while_it_is_written() {
    let temp = tempfile::tempdir().unwrap();
    let book = book(&temp);
    let step = Step::written(vec![
        Change::Start(Box::new(task(1))),
        Change::Send(letter(7, 1)),
    ]);
    book.write(step).await.unwrap();
    let other = Book::at(temp.path().join("copy.db"));
    book.copy_to(&other).unwrap();
    let contents = other.read().unwrap();
    assert_eq!((contents.tasks.len(), contents.last_letter), (1, 7));
}

#[test]
fn no_book_says_nothing_and_none_is_made_by_reading() {
    let temp = tempfile::tempdir().unwrap();
    let contents = book(&temp).read().unwrap();
    assert!(contents.tasks.is_empty() && contents.letters.is_empty());
    assert!(!temp.path().join(FILE).exists());
}

#[tokio::test]
async fn what_a_newer_version_wrote_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let first = book(&temp);
    let start = || Step::written(vec![Change::Start(Box::new(task(1)))]);
    first.write(start()).await.unwrap();
    let connection = rusqlite::Connection::open(temp.path().join(FILE)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let second = book(&temp);
    let why = second.read().unwrap_err().to_string();
    assert!(why.contains("newer version"), "{why}");
    assert!(second.write(start()).await.is_err());
}

#[tokio::test]
async fn a_damaged_book_is_kept_and_begins_anew_with_what_can_be_read() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join(FILE);
    {
        let book = book(&temp);
        for n in 1..=40 {
            let started = vec![
                Change::Start(Box::new(task(n))),
                Change::Send(letter(n.into(), n)),
            ];
            book.write(Step::written(started)).await.unwrap();
        }
    }
    // All in one file.
    let connection = rusqlite::Connection::open(&path).unwrap();
    let to_file = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection.query_row(to_file, [], |_| Ok(())).unwrap();
    drop(connection);
    let whole = std::fs::read(&path).unwrap();
    assert!(whole.len() > 20_000);
    let mut read = 0;
    for at in (0..whole.len()).step_by(211) {
        // A folder for each: who wrote last may still be closing its files.
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(FILE);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&path, &bytes).unwrap();
        let contents = book(&temp).take_up().unwrap();
        assert!(contents.tasks.len() <= 40 && contents.letters.len() <= 40);
        read += usize::from(contents.tasks.len() == 40);
        // Whatever was damaged: the book can be written now, and says what it said.
        let step = Step::synced(vec![Change::Start(Box::new(task(99)))]);
        book(&temp).write(step).await.unwrap();
        let again = book(&temp).read().unwrap();
        assert_eq!(again.tasks.len(), contents.tasks.len() + 1, "byte {at}");
        let sorted = |mut letters: Vec<Letter>| {
            letters.sort_by_key(|letter| letter.id);
            letters
        };
        let (letters, before) = (sorted(again.letters), sorted(contents.letters));
        assert!(letters == before, "byte {at}: {letters:?} {before:?}");
    }
    assert!(read > 0);
    for size in [0, 1, 100, 4096, 5000, whole.len() - 1] {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(FILE);
        std::fs::write(&path, &whole[..size]).unwrap();
        let contents = book(&temp).take_up().unwrap();
        let step = Step::synced(vec![Change::Start(Box::new(task(99)))]);
        book(&temp).write(step).await.unwrap();
        if size > 0 {
            assert!(!contents.damaged.is_empty(), "{size} bytes");
            let kept = std::fs::read(temp.path().join("crew.db.damaged-1")).unwrap();
            assert_eq!(kept, &whole[..size]);
        }
    }
}

/// Without its lock, an older SQLite that looks into the book removes the log on leaving, and the
/// owner goes on writing to a file that has no name.
#[tokio::test]
async fn the_owner_keeps_its_lock_whatever_it_syncs() {
    use std::os::unix::fs::MetadataExt;
    let temp = tempfile::tempdir().unwrap();
    let owner = book(&temp);
    let inode = || temp.path().join(FILE).metadata().unwrap().ino();
    for n in 1..=3 {
        let step = Step::synced(vec![Change::Start(Box::new(task(n)))]);
        owner.write(step).await.unwrap();
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let own = format!(" {} ", std::process::id());
        let file = format!(":{} ", inode());
        let held = locks
            .lines()
            .any(|it| it.contains(&own) && it.contains(&file));
        assert!(held, "after step {n}:\n{locks}");
        assert_eq!(book(&temp).read().unwrap().tasks.len(), n as usize);
    }
}

#[tokio::test]
async fn a_book_has_a_largest_size_and_keeps_what_it_has() {
    let temp = tempfile::tempdir().unwrap();
    let small = Book::at_most(temp.path().join(FILE), 40);
    let mut written = 0;
    let why = loop {
        let step = Step::synced(vec![Change::Send(Letter {
            block: Block::from(Origin::Agent, "x".repeat(4000)),
            ..letter(written + 1, 1)
        })]);
        match small.write(step).await {
            Ok(()) => written += 1,
            Err(why) => break why.to_string(),
        }
        assert!(written < 100);
    };
    assert!(why.contains("full"), "{why}");
    assert_eq!(small.read().unwrap().letters.len() as u64, written);
    // What was heard makes room again.
    let heard = Step::synced(vec![Change::Heard((1..=written).map(MailId).collect())]);
    small.write(heard).await.unwrap();
    let step = Step::synced(vec![Change::Send(letter(written + 1, 1))]);
    small.write(step).await.unwrap();
}
