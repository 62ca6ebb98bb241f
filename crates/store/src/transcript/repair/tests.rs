//! Transcripts that are taken up again, whole and damaged.

use super::super::sample::*;
use super::super::{Entry, Record};
use super::*;
use gaffer_protocol::{Block, Message, Timestamp};
use proptest::prelude::*;

struct Place {
    temp: tempfile::TempDir,
}

impl Place {
    fn new(bytes: &[u8]) -> Self {
        // A repair waits for the disk; in memory it need not.
        let memory = Path::new("/dev/shm");
        let temp = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let place = Self {
            temp: temp.unwrap(),
        };
        fs::write(place.path(), bytes).unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.temp.path().join("agent-1.jsonl")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.temp.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn inode(&self) -> u64 {
        fs::metadata(self.path()).unwrap().ino()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.temp.path().join(name)).unwrap()
    }
}

/// Resumes and checks that it is whole from then on; answers with the conversation.
fn resumed(place: &Place) -> Vec<Message> {
    let (mut transcript, fold) = Transcript::resume(place.path()).unwrap();
    let (names, inode, bytes) = (place.names(), place.inode(), place.read("agent-1.jsonl"));
    let (_, again) = Transcript::resume(place.path()).unwrap();
    assert!(again.damaged.is_empty(), "{}", again.damaged);
    assert_eq!(again.messages, fold.messages);
    assert_eq!((place.names(), place.inode()), (names, inode));
    assert_eq!(place.read("agent-1.jsonl"), bytes);
    let entry = input("more");
    let at = Timestamp(1000);
    transcript.append(&Record { at, entry }).unwrap();
    let later = Fold::read(&place.path()).unwrap();
    assert!(later.damaged.is_empty(), "{}", later.damaged);
    assert_eq!(later.messages[..fold.messages.len()], fold.messages);
    assert_eq!(later.messages.len(), fold.messages.len() + 1);
    fold.messages
}

#[test]
fn a_whole_file_is_not_touched() {
    let place = Place::new(&sample());
    let inode = place.inode();
    let (transcript, fold) = Transcript::resume(place.path()).unwrap();
    drop(transcript);
    assert!(fold.damaged.is_empty());
    assert_eq!(fold.damaged.kept(), None);
    assert_eq!(place.read("agent-1.jsonl"), sample());
    assert_eq!(
        (place.names(), place.inode()),
        (vec!["agent-1.jsonl".into()], inode)
    );
}

#[test]
fn one_that_is_not_there_begins_empty() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("agent-1.jsonl");
    let (_, fold) = Transcript::resume(path.clone()).unwrap();
    assert!(fold.messages.is_empty() && fold.start.is_none());
    assert!(path.exists());
}

#[test]
fn a_call_without_a_result_only_gets_one() {
    let all = bytes(vec![
        input("go"),
        answer(vec![call("a"), call("b")]),
        result("b"),
    ]);
    let place = Place::new(&all);
    let inode = place.inode();
    let messages = resumed(&place);
    assert_eq!(place.inode(), inode);
    assert_eq!(place.names(), ["agent-1.jsonl"]);
    assert!(place.read("agent-1.jsonl").starts_with(&all));
    assert_eq!(messages.len(), 3);
    assert_eq!(
        messages[2].blocks[0],
        Block::ToolResult(super::super::interrupted("a".into()))
    );
}

#[test]
fn a_newline_that_is_missing_is_added_and_no_damage() {
    let mut all = sample();
    all.pop();
    let place = Place::new(&all);
    let inode = place.inode();
    resumed(&place);
    assert_eq!(
        (place.names(), place.inode()),
        (vec!["agent-1.jsonl".into()], inode)
    );
}

#[test]
fn the_original_of_a_damaged_file_is_kept_and_never_overwritten() {
    let torn = |n: usize| {
        let mut all = sample();
        all.extend_from_slice(&b"{\"at\":\"2026-"[..n]);
        all
    };
    let place = Place::new(&torn(3));
    let (_, fold) = Transcript::resume(place.path()).unwrap();
    assert_eq!(fold.damaged.len(), 1);
    assert_eq!(fold.damaged.bytes(), 3);
    let said = fold.damaged.to_string();
    assert!(
        said.contains("line 9") && said.contains("agent-1.jsonl.damaged-1"),
        "{said}"
    );
    assert_eq!(place.read("agent-1.jsonl"), sample());
    assert_eq!(place.read("agent-1.jsonl.damaged-1"), torn(3));
    fs::write(place.path(), torn(7)).unwrap();
    let (_, fold) = Transcript::resume(place.path()).unwrap();
    assert!(
        fold.damaged
            .kept()
            .unwrap()
            .ends_with("agent-1.jsonl.damaged-2")
    );
    assert_eq!(place.read("agent-1.jsonl.damaged-1"), torn(3));
    assert_eq!(place.read("agent-1.jsonl.damaged-2"), torn(7));
}

/// What a crash leaves at each step of a repair is repaired as if nothing had been.
#[test]
fn a_repair_that_was_cut_short_is_done_again() {
    let mut all = sample();
    all.extend_from_slice(b"{\"at\"");
    let place = Place::new(&all);
    let file = File::open(place.path()).unwrap();
    // The original was kept, and half of the new file was written.
    keep(&place.path(), &file).unwrap();
    fs::write(beside(&place.path(), "repairing"), b"{\"at\":\"20").unwrap();
    let messages = resumed(&place);
    assert_eq!(messages.len(), 6);
    assert_eq!(place.names(), ["agent-1.jsonl", "agent-1.jsonl.damaged-1"]);
    assert_eq!(place.read("agent-1.jsonl.damaged-1"), all);
}

#[test]
fn where_links_cannot_be_made_the_original_is_copied() {
    let place = Place::new(b"torn");
    let file = File::open(place.path()).unwrap();
    let name = beside(&place.path(), "damaged-1");
    copy(&file, &name).unwrap();
    assert_eq!(place.names(), ["agent-1.jsonl", "agent-1.jsonl.damaged-1"]);
    assert_eq!(place.read("agent-1.jsonl.damaged-1"), b"torn");
}

#[test]
fn what_is_missing_is_written_where_it_is_missing() {
    let mut lines = lines();
    lines.remove(4);
    lines.insert(4, b"\0\0\0\0\xff garbage\n".to_vec());
    let place = Place::new(&lines.concat());
    resumed(&place);
    let text = String::from_utf8(place.read("agent-1.jsonl")).unwrap();
    assert!(text.contains("was lost here"), "{text}");
    assert!(!text.contains("result of c"), "its call is gone: {text}");
}

#[test]
fn cut_at_any_byte_it_is_repaired() {
    let all = sample();
    for end in 0..=all.len() {
        let place = Place::new(&all[..end]);
        resumed(&place);
        let kept = usize::from(place.names().len() > 1);
        let is_torn = end > 0 && all[end - 1] != b'\n' && all.get(end) != Some(&b'\n');
        assert_eq!(kept, usize::from(is_torn), "cut at {end}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn damaged_in_any_way_it_is_whole_after_a_repair(
        swaps in prop::collection::vec((0usize..8, 0usize..8), 0..3),
        gone in prop::collection::vec(0usize..8, 0..3),
        twice in prop::collection::vec(0usize..8, 0..2),
        flips in prop::collection::vec((0usize..900, any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..20),
        at in 0usize..900,
    ) {
        let mut lines = lines();
        for (a, b) in swaps {
            lines.swap(a, b);
        }
        for n in twice {
            lines.insert(n, lines[n].clone());
        }
        for n in gone {
            lines.remove(n % lines.len());
        }
        let mut all = lines.concat();
        for (at, bits) in flips {
            let at = at % all.len();
            all[at] ^= bits;
        }
        let at = at % all.len();
        all.splice(at..at, noise);
        resumed(&Place::new(&all));
    }
}

#[test]
fn an_entry_that_is_no_use_does_not_come_back() {
    let orphan: Vec<Entry> = vec![input("a"), result("x")];
    let place = Place::new(&bytes(orphan));
    assert_eq!(resumed(&place).len(), 1);
    assert_eq!(place.names().len(), 2);
}

#[test]
fn what_took_effect_is_answered_also_where_the_record_is_torn() {
    let temp = tempfile::tempdir().unwrap();
    for torn in ["", "{\"at\":\"2026-"] {
        let path = temp.path().join(format!("t{}.jsonl", torn.len()));
        let mut bytes = bytes(vec![input("go"), answer(vec![call("a"), call("b")])]);
        bytes.extend(torn.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        let known = [("a".to_owned(), "task_id: 1".to_owned())].into();
        let (_, fold) = Transcript::resume_knowing(path.clone(), &known).unwrap();
        let again = Fold::read(&path).unwrap();
        for fold in [fold, again] {
            let results: Vec<_> = fold.messages.last().unwrap().blocks.iter().collect();
            let [Block::ToolResult(a), Block::ToolResult(b)] = results[..] else {
                panic!("{results:?}");
            };
            assert_eq!((a.text().as_str(), a.is_error), ("task_id: 1", false));
            assert!(b.is_error);
        }
    }
}

#[test]
fn what_is_known_of_earlier_calls_changes_nothing_that_was_said() {
    let place = Place::new(&bytes(vec![
        input("go"),
        answer(vec![call("a")]),
        // Its result is gone without a trace.
        answer(vec![Block::text("on")]),
    ]));
    let known = [("a".to_owned(), "task_id: 1".to_owned())].into();
    let (_, first) = Transcript::resume_knowing(place.path(), &known).unwrap();
    let (_, second) = Transcript::resume(place.path()).unwrap();
    assert_eq!(first.messages, second.messages);
}
