//! Appending, also where it fails.

use super::super::sample::*;
use super::super::{Fold, Transcript};
use super::*;
use gaffer_protocol::{End, ResultPart, Timestamp, ToolResult};
use std::sync::Arc;

#[test]
fn what_was_appended_is_read_back() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("t.jsonl");
    let mut transcript = Transcript::create(path.clone()).unwrap();
    for (n, entry) in [input("hi"), answer(vec![call("a")]), result("a")]
        .into_iter()
        .enumerate()
    {
        transcript
            .append(&Record {
                at: Timestamp(n as u64),
                entry,
            })
            .unwrap();
    }
    let fold = Fold::read(&path).unwrap();
    assert_eq!(fold.messages.len(), 3);
    assert!(fold.damaged.is_empty());
}

fn long(len: usize) -> Record {
    Record {
        at: Timestamp(0),
        entry: Entry::Result(Arc::new(ToolResult {
            call: "a".into(),
            parts: vec![ResultPart::Text("x".repeat(len))],
            is_error: false,
            mail: None,
        })),
    }
}

fn short(n: u64) -> Record {
    Record {
        at: Timestamp(n),
        entry: input("hi"),
    }
}

fn open() -> (tempfile::TempDir, Transcript) {
    let temp = tempfile::tempdir().unwrap();
    let transcript = Transcript::create(temp.path().join("t.jsonl")).unwrap();
    (temp, transcript)
}

#[test]
fn a_record_that_is_too_long_is_refused_and_the_next_one_is_not() {
    let (_temp, mut transcript) = open();
    transcript.limit(1000, 1 << 20);
    transcript.append(&short(1)).unwrap();
    let error = transcript.append(&long(2000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    assert_eq!(inner, Some(&TooLarge::Record(1000)));
    assert!(error.to_string().contains("put into a file"), "{error}");
    transcript.append(&short(2)).unwrap();
    let fold = Fold::read(transcript.path()).unwrap();
    assert!(fold.damaged.is_empty());
    assert_eq!(fold.messages.len(), 2);
}

#[test]
fn a_full_transcript_still_takes_its_end() {
    let (_temp, mut transcript) = open();
    transcript.limit(1000, 1000);
    let error = loop {
        if let Err(error) = transcript.append(&short(1)) {
            break error;
        }
    };
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    assert_eq!(inner, Some(&TooLarge::Transcript(1000)));
    assert!(error.to_string().contains("new worker"), "{error}");
    let end = Record {
        at: Timestamp(2),
        entry: Entry::End(End::Context),
    };
    transcript.append(&end).unwrap();
    let fold = Fold::read(transcript.path()).unwrap();
    assert_eq!(fold.end, Some(End::Context));
}

#[test]
fn a_secret_is_in_memory_and_not_on_disk() {
    let (_temp, mut transcript) = open();
    let key = format!("sk-{}-api03-{}", "ant", "aB3dE6gH9j".repeat(5));
    let record = Record {
        at: Timestamp(1),
        entry: input(&format!("my key:\n{key}\nkeep it")),
    };
    transcript.append(&record).unwrap();
    let text = std::fs::read_to_string(transcript.path()).unwrap();
    assert!(
        !text.contains(&key) && text.contains("[a secret was left out: sk-ant-…]"),
        "{text}"
    );
    assert!(format!("{:?}", record.entry).contains(&key));
    let fold = Fold::read(transcript.path()).unwrap();
    assert!(fold.damaged.is_empty());
}

#[test]
fn where_nothing_can_be_written_the_error_names_the_path() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("not-there/t.jsonl");
    let error = Transcript::create(path.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains(&*path.to_string_lossy()),
        "{error}"
    );
    // Nobody, not even the superuser, may create files here.
    let path = PathBuf::from("/proc/self/t.jsonl");
    let error = Transcript::create(path).unwrap_err();
    assert!(error.to_string().contains("/proc/self/t.jsonl"), "{error}");
}

#[test]
fn a_disk_that_is_full_is_reported_by_every_append() {
    let mut transcript = Transcript::create("/dev/full".into()).unwrap();
    for _ in 0..2 {
        let error = transcript.append(&short(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}

/// The folder for the part of the next test that runs in a process of its own.
const FULL: &str = "GAFFER_TEST_FULL_FOLDER";

/// A limit on the size of files is a disk that becomes full in the middle of a record: the kernel
/// takes the first part of a write and refuses the rest.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the limit must hold for a process of its own, and this crate knows no other way"
)]
fn a_record_that_does_not_fit_leaves_nothing_and_the_next_one_fits() {
    let temp = tempfile::tempdir().unwrap();
    let name = "transcript::writing::tests::in_a_process_with_little_room";
    let ran = std::process::Command::new("sh")
        // Two blocks of 512 or of 1024 bytes, as the shell counts; the signal would kill.
        .args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(FULL, temp.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{ran:?}");
    let fold = Fold::read(&temp.path().join("t.jsonl")).unwrap();
    assert!(fold.damaged.is_empty(), "{}", fold.damaged);
    assert_eq!(fold.messages.len(), 2);
}

#[test]
#[ignore = "a part of the test above"]
fn in_a_process_with_little_room() {
    let Some(folder) = std::env::var_os(FULL) else {
        return;
    };
    let path = PathBuf::from(folder).join("t.jsonl");
    let mut transcript = Transcript::create(path.clone()).unwrap();
    transcript.append(&short(1)).unwrap();
    let before = std::fs::read(&path).unwrap();
    for _ in 0..3 {
        let error = transcript.append(&long(5000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(
            error.get_ref().is_none(),
            "the system's own error: {error:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    transcript.append(&short(2)).unwrap();
}

#[test]
fn what_cannot_be_cut_back_is_ended_and_costs_only_itself() {
    let (_temp, mut transcript) = open();
    transcript.append(&short(1)).unwrap();
    std::fs::write(transcript.path(), b"{\"at\":\"20").unwrap();
    transcript.is_torn = true;
    // No file has this length: cutting fails, as it does where a disk has gone read-only.
    transcript.limit(1000, u64::MAX);
    transcript.len = 1 << 63;
    transcript.append(&short(2)).unwrap();
    assert!(!transcript.is_torn);
    let fold = Fold::read(transcript.path()).unwrap();
    // What was said, and that something is lost before it.
    assert_eq!((fold.damaged.len(), fold.messages.len()), (1, 2));
    assert_eq!(
        transcript.len,
        std::fs::metadata(transcript.path()).unwrap().len()
    );
}

#[test]
fn syncing_is_harmless_at_any_time() {
    let (_temp, mut transcript) = open();
    assert!(!transcript.is_named);
    transcript.sync().unwrap();
    transcript.append(&short(1)).unwrap();
    transcript.sync().unwrap();
    assert!(transcript.is_named);
}
