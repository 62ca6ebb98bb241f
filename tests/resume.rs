//! Sessions that go on: after their end, after a kill, as a copy, and with files that are damaged.

use crate::harness::{Place, Ran, run};
use gaffer_protocol::{Answer, Block, Origin, StopReason, Usage};
use gaffer_store::{Fold, Found, Home, SessionFolder};
use gaffer_testkit::world::Seeded;
use gaffer_testkit::{Server, WireKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Two workers, of which one takes its time and one waits for the other's place.
const CREW: &str = "
agents:
- name: main
  steps:
  - calls:
    - { tool: Agent, input: { description: Toil, name: w, prompt: go } }
    - { tool: Agent, input: { description: Wait, name: q, prompt: go } }
  - say: Waiting.
  - expect: [{ text: { matches: '1 agent was interrupted(.|\\n)*w \\(agent-[0-9a-f]{8}, \"Toil\"\\): interrupted after 1 turns and 1 tool uses; SendMessage to w continues' } }]
    calls: [{ tool: SendMessage, input: { to: w, message: go on } }]
  - { when: { notifications: 3 }, meanwhile: Not yet., say: All is done. }
- name: w
  steps:
  - calls: [{ tool: Bash, input: { command: 'touch began; while [ ! -e enough ]; do sleep 0.1; done' } }]
  - { expect: [{ error: true, result: 'There is no result: the run was interrupted' }], say: W is done. }
- name: q
  steps: [{ say: Q is done. }]
";

fn crew(place: &Place, args: &[&str]) -> std::process::Command {
    let fixed = [
        "--mode",
        "coordinator",
        "--max-workers",
        "1",
        "--permission-mode",
        "bypassPermissions",
        "--sandbox",
        "off",
    ];
    place.scripted(CREW, &[args, &fixed].concat())
}

/// Starts a program and kills it when a file is there.
fn kill_when(mut command: std::process::Command, file: &Path) {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child: Child = command.spawn().unwrap();
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn folder(place: &Place, id: &str) -> SessionFolder {
    let home = Home::new(place.home().join(".gaffer"));
    let Found { folder, .. } = home.find_session(&place.project(), id).unwrap();
    folder
}

fn fold(folder: &SessionFolder) -> Fold {
    Fold::read(&folder.transcript(folder.about().unwrap().main)).unwrap()
}

#[test]
fn a_killed_crew_goes_on_where_it_was() {
    let place = Place::new();
    let first = crew(&place, &["-p", "go", "--session-id", "s"]);
    kill_when(first, &place.project().join("began"));
    // The other way of asking for the mode does not change what the session is.
    let ran = run(place.scripted(
        CREW,
        &[
            "-p",
            "--resume",
            "s",
            "--max-workers",
            "1",
            "--mode",
            "normal",
            "--sandbox",
            "off",
        ],
    ));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out.trim(), "All is done.");
    let word = "Entered coordinator mode to match resumed session.";
    assert!(ran.err.contains(word), "{}", ran.err);
    let folder = folder(&place, "s");
    let notified = fold(&folder)
        .messages
        .iter()
        .flat_map(|message| message.blocks.clone())
        .filter(|block| matches!(block, Block::Text(text) if text.origin == Some(Origin::TaskNotification)))
        .count();
    assert_eq!(
        notified, 3,
        "one for all who were interrupted, and two ends"
    );
    assert_eq!(folder.owner(), None);
    let nothing = run(crew(&place, &["-p", "--continue"]));
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.err.contains("say what comes next"), "{nothing:?}");
}

/// Both have completed and go on; the second no longer needs the first, which is at the one place
/// when the program is killed.
#[test]
fn one_that_was_continued_and_waits_for_a_place_needs_nobody_to_complete_again() {
    let script = "
agents:
- name: main
  steps:
  - calls:
    - { tool: Agent, input: { description: Task b, name: b, prompt: go } }
    - { tool: Agent, input: { description: Task c, name: c, prompt: go, depends_on: [b] } }
  - when: { notifications: 2 }
    meanwhile: Waiting.
    calls:
    - { tool: SendMessage, input: { to: b, message: more } }
    - { tool: SendMessage, input: { to: c, message: more } }
  - { say: Waiting. }
  - { when: { notifications: 4 }, meanwhile: Waiting., expect: [{ text: C again. }], say: All is done. }
- name: b
  steps:
  - say: B.
  - calls: [{ tool: Bash, input: { command: 'sleep 0.3; touch began; sleep 60' } }]
- name: c
  steps:
  - say: C.
  - say: C again.
";
    let place = Place::new();
    let fixed = [
        "--mode",
        "coordinator",
        "--max-workers",
        "1",
        "--permission-mode",
        "bypassPermissions",
        "--sandbox",
        "off",
    ];
    let first = [&["-p", "go", "--session-id", "s"][..], &fixed].concat();
    kill_when(
        place.scripted(script, &first),
        &place.project().join("began"),
    );
    let again = [&["-p", "--resume", "s"][..], &fixed].concat();
    let ran = run(place.scripted(script, &again));
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "All is done."),
        "{ran:?}"
    );
}

const TALK: &str = "agents: [{ name: main, steps: [{ expect: [{ text: one }], say: First. }, { expect: [{ text: two }], say: Second. }] }]";

#[test]
fn a_conversation_is_continued_by_name_by_id_and_as_the_newest() {
    for how in [
        &["--resume", "friday"][..],
        &["-r", "s1"],
        &["--resume"],
        &["-c"],
    ] {
        let place = Place::new();
        let first = ["-p", "one", "--session-id", "s1-x", "-n", "friday"];
        assert_eq!(run(place.scripted(TALK, &first)).out.trim(), "First.");
        let ran = run(place.scripted(TALK, &[&["-p", "two"][..], how].concat()));
        assert_eq!((ran.code, ran.out.trim()), (Some(0), "Second."), "{ran:?}");
        assert_eq!(fold(&folder(&place, "s1-x")).messages.len(), 4);
    }
}

#[test]
fn a_copy_goes_on_and_the_session_stays_as_it_was() {
    let place = Place::new();
    let first = ["-p", "one", "--session-id", "s1"];
    assert_eq!(run(place.scripted(TALK, &first)).code, Some(0));
    let before = std::fs::read(folder(&place, "s1").transcript(main(&place, "s1"))).unwrap();
    let fork = ["-p", "two", "--resume", "s1", "--fork-session"];
    let fork = [&fork[..], &["--session-id", "s2"]].concat();
    let ran = run(place.scripted(TALK, &fork));
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Second."), "{ran:?}");
    let after = std::fs::read(folder(&place, "s1").transcript(main(&place, "s1"))).unwrap();
    assert_eq!(before, after);
    let about = folder(&place, "s2").about().unwrap();
    assert_eq!(about.forked_from.unwrap().as_str(), "s1");
    assert_eq!(fold(&folder(&place, "s2")).messages.len(), 4);
}

fn main(place: &Place, id: &str) -> gaffer_protocol::AgentId {
    folder(place, id).about().unwrap().main
}

#[test]
fn what_cannot_be_continued_says_why() {
    let place = Place::new();
    let first = ["-p", "one", "--session-id", "s1"];
    assert_eq!(run(place.scripted(TALK, &first)).code, Some(0));
    let folder = folder(&place, "s1");
    let refused = |args: &[&str], word: &str| {
        let ran = run(place.scripted(TALK, &[&["-p", "two"][..], args].concat()));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    };
    let owned = folder.own(gaffer_protocol::Timestamp(0)).unwrap();
    let pid = format!("in use by process {}", std::process::id());
    refused(&["--resume", "s1"], &pid);
    drop(owned);
    refused(&["--resume", "nobody"], "nobody");
    refused(&["--fork-session"], "needs --resume or --continue");
    refused(&["-r", "s1", "--session-id", "s2"], "--fork-session");
    std::fs::remove_file(folder.transcript(folder.about().unwrap().main)).unwrap();
    std::fs::remove_file(folder.path().join("session.json")).unwrap();
    refused(&["--resume", "s1"], "no transcript that can be read");
}

#[test]
fn what_was_denied_stays_denied() {
    let script = "agents: [{ name: main, steps: [{ say: First. }, { calls: [{ tool: Bash, input: { command: touch made } }, { tool: Write, input: { file_path: allowed, content: x } }] }, { expect: [{ error: true, result: Not allowed }, { error: false }], say: Second. }] }]";
    let place = Place::new();
    let first = ["-p", "one", "--session-id", "s1", "--sandbox", "off"];
    let rules = ["--disallowed-tools", "Bash(touch *)"];
    let mode = ["--permission-mode", "bypassPermissions"];
    let first = [&first[..], &rules, &mode].concat();
    assert_eq!(run(place.scripted(script, &first)).code, Some(0));
    let ran = run(place.scripted(script, &["-p", "two", "--resume", "s1"]));
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Second."), "{ran:?}");
    assert!(!place.project().join("made").exists());
    assert!(place.project().join("allowed").exists());
    let about = folder(&place, "s1").about().unwrap();
    assert_eq!(about.rights.denied, ["Bash(touch *)"]);
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).unwrap()),
        }
    }
}

/// A server that has the same word for everybody.
fn calm() -> Server {
    Server::deciding(Box::new(|_, _| Answer {
        blocks: vec![Block::text("Fine.")],
        stop: StopReason::EndTurn,
        usage: Usage::default(),
        model: "scripted".into(),
    }))
}

fn go_on(place: &Place, server: &Server) -> Ran {
    let args = ["-p", "go on", "--resume", "s", "--mode", "coordinator"];
    run(place.on_wire(WireKind::Anthropic, server, &args))
}

/// What is done to a file.
fn harm(bytes: &mut Vec<u8>, dice: &Seeded) {
    use gaffer_protocol::Entropy;
    let roll = |below: usize| usize::try_from(dice.next() % below.max(1) as u64).unwrap();
    let at = roll(bytes.len());
    match roll(4) {
        0 => bytes.truncate(at),
        1 => {
            for _ in 0..=roll(20) {
                let at = roll(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << roll(8);
                }
            }
        }
        2 => drop(bytes.splice(at..at, (0..roll(50)).map(|_| dice.next() as u8))),
        _ => {
            let end = (at + roll(200)).min(bytes.len());
            drop(bytes.drain(at..end));
        }
    }
}

#[test]
fn a_session_with_any_damaged_file_goes_on() {
    let origin = Place::new();
    let first = crew(&origin, &["-p", "go", "--session-id", "s"]);
    kill_when(first, &origin.project().join("began"));
    let session = folder(&origin, "s").path().to_owned();
    let files: Vec<PathBuf> = std::fs::read_dir(&session)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    assert!(files.len() >= 6, "{files:?}");
    let mut wrong = 0;
    for seed in 0..8 {
        for file in &files {
            let dice = Seeded::new(seed * 1000 + wrong);
            wrong += 1;
            let place = Place::new();
            let target = place.home().join(".gaffer/projects/elsewhere/s");
            copy(&session, &target);
            let path = target.join(file.file_name().unwrap());
            let mut bytes = std::fs::read(&path).unwrap();
            harm(&mut bytes, &dice);
            std::fs::write(&path, &bytes).unwrap();
            let server = calm();
            let ran = go_on(&place, &server);
            let what = format!("seed {seed}, {}: {ran:?}", file.display());
            // Where even the first lines are gone, nobody can tell whose session it was.
            if ran.code == Some(2) {
                assert!(
                    ran.err.contains("not there") || ran.err.contains("no transcript"),
                    "{what}"
                );
                continue;
            }
            assert_eq!((ran.code, ran.out.trim()), (Some(0), "Fine."), "{what}");
            assert_eq!(server.violations(), [""; 0], "{what}");
            let again = go_on(&place, &server);
            assert_eq!(again.code, Some(0), "a second time: {what} {again:?}");
            assert_eq!(server.violations(), [""; 0], "a second time: {what}");
        }
    }
}
