//! A crew that is killed at every step it takes on disk, and taken up again: nothing is lost,
//! doubled or given to the wrong agent, and the end is the one of a run that was not killed.

mod estate;
mod spend;

use crate::harness::{Place, run};
use gaffer_model::script::Speaker;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{
    AgentId, Answer, Block, End, MailId, Message, Notification, Origin, Status, StopReason,
    ToolUse, Usage,
};
use gaffer_store::{About, Fold, SessionFolder};
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

const CREW: [&str; 3] = ["a", "b", "c"];

fn answer(texts: Option<&str>, calls: Vec<(String, &str, Value)>) -> Answer {
    let text = texts.map(Block::text).into_iter();
    let stop = match calls.is_empty() {
        true => StopReason::EndTurn,
        false => StopReason::ToolUse,
    };
    let calls = calls.into_iter().map(|(id, name, input)| {
        Block::ToolUse(ToolUse {
            id,
            name: name.into(),
            input: ToolInput::from_text(&input.to_string()),
        })
    });
    Answer {
        blocks: text.chain(calls).collect(),
        stop,
        usage: Usage::default(),
        model: "scripted".into(),
    }
}

/// What happened in a conversation, in order.
enum Said<'a> {
    Text(&'a str),
    Call(&'a Value),
    Result { is_error: bool, text: String },
}

fn history(body: &Value) -> Vec<Said<'_>> {
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| {
        let is_user = message["role"] == "user";
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(move |block| (is_user, block))
    });
    blocks.filter_map(said).collect()
}

fn said((is_user, block): (bool, &Value)) -> Option<Said<'_>> {
    match block["type"].as_str()? {
        "text" if is_user => Some(Said::Text(block["text"].as_str()?)),
        "tool_use" => Some(Said::Call(block)),
        "tool_result" => Some(Said::Result {
            is_error: block["is_error"] == true,
            text: block["content"].to_string(),
        }),
        _ => None,
    }
}

/// The coordinator: starts three, sends one of them a message, lets another go on after its end,
/// continues whoever was interrupted, and ends when all have done what they were to do.
fn lead(body: &Value) -> Answer {
    let mut started = BTreeSet::new();
    let mut last_sent: BTreeMap<&str, usize> = BTreeMap::new();
    let mut again = false;
    let mut turned = false;
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    let mut due: BTreeMap<&str, usize> = BTreeMap::new();
    let mut calls = 0;
    let mut open = Vec::new();
    for (n, said) in history(body).into_iter().enumerate() {
        match said {
            Said::Call(call) => {
                calls += 1;
                open.push((n, call));
            }
            // A call that was cut off is made again; whatever took effect was answered.
            Said::Result { is_error, text } => {
                let (at, call) = open.remove(0);
                let input = &call["input"];
                let name = |key: &str| CREW.into_iter().find(|name| input[key] == *name).unwrap();
                assert!(!is_error || text.contains("interrupted"), "{text}");
                match (call["name"].as_str().unwrap(), is_error) {
                    (_, true) => {}
                    ("Agent", false) => drop(started.insert(name("name"))),
                    (_, false) => {
                        last_sent.insert(name("to"), at);
                        again |= input["message"] == "again";
                        turned |= input["message"] == "turn left";
                    }
                }
            }
            Said::Text(text) if text.starts_with("<task-notification>") => {
                for name in CREW {
                    if text.contains(&format!("Agent \"Task {name}\" completed")) {
                        *done.entry(name).or_default() += 1;
                        due.remove(name);
                    } else if text.contains(&format!("\"Task {name}\"")) {
                        due.insert(name, n);
                    }
                }
            }
            Said::Text(_) => {}
        }
    }
    let id = |n: usize| format!("call-{}", calls + n);
    let missing = CREW.into_iter().filter(|name| !started.contains(name));
    let starts: Vec<_> = missing
        .enumerate()
        .map(|(n, name)| {
            let task = format!("Task {name}");
            let mut input = json!({"description": task, "name": name, "prompt": "go"});
            if name == "c" {
                // It begins when the other has completed, however often that takes.
                input["depends_on"] = json!(["b"]);
            }
            (id(n), "Agent", input)
        })
        .collect();
    if !starts.is_empty() {
        return answer(None, starts);
    }
    let send = |to: &str, text: &str| {
        let input = json!({"to": to, "message": text});
        answer(None, vec![(id(0), "SendMessage", input)])
    };
    if !turned {
        return send("c", "turn left");
    }
    let waits = |(name, at): &(&&str, &usize)| last_sent.get(**name).is_none_or(|sent| sent < *at);
    if let Some((name, _)) = due.iter().find(waits) {
        return send(name, "go on");
    }
    let count = |name: &str| done.get(name).copied().unwrap_or(0);
    if count("a") > 0 && !again {
        return send("a", "again");
    }
    // The message to `c` may come when it has ended: then it goes on with it.
    if count("a") >= 2 && count("b") >= 1 && count("c") >= 1 {
        return answer(Some("All is done."), vec![]);
    }
    answer(Some("Waiting."), vec![])
}

/// A worker: one file for whatever it is told, and a word that it is there.
fn work(name: &str, body: &Value) -> Answer {
    let mut calls = 0;
    let mut has_written = false;
    for said in history(body) {
        match said {
            Said::Text(_) => has_written = false,
            Said::Call(_) => {
                calls += 1;
                has_written = true;
            }
            Said::Result { .. } => {}
        }
    }
    if has_written {
        return answer(Some(&format!("{name} is done.")), vec![]);
    }
    let input = json!({"file_path": format!("{name}-{calls}.txt"), "content": "x"});
    answer(None, vec![(format!("call-{calls}"), "Write", input)])
}

struct Stage {
    place: Place,
    server: Server,
    shim: PathBuf,
}

impl Stage {
    fn new(shim: &Path) -> Self {
        let decide = |who: &Speaker, body: &Value| match who.name.as_str() {
            "main" => lead(body),
            name => work(name, body),
        };
        Self {
            place: Place::new(),
            server: Server::deciding(Box::new(decide)),
            shim: shim.to_owned(),
        }
    }

    fn gaffer(&self, args: &[&str]) -> Command {
        let fixed = ["--mode", "coordinator", "--sandbox", "off"];
        let args = [args, &fixed].concat();
        let server = &self.server;
        self.place.on_wire(WireKind::Anthropic, server, &args)
    }

    fn first(&self) -> Command {
        self.gaffer(&["-p", "go", "--session-id", "s"])
    }

    /// The same below the shim.
    fn counted(&self, command: Command, at: u64, is_torn: bool) -> Command {
        let count = self.place.root.path().join("count");
        let mut command = below(command, &self.shim, &self.place.home(), &count, at);
        if is_torn {
            command.env("CRASH_TORN", "1");
        }
        command
    }

    /// How many steps there are in a run that is left alone.
    fn count(&self) -> u64 {
        let ran = run(self.counted(self.first(), 0, false));
        assert_eq!((ran.code, ran.out.trim()), (Some(0), "All is done."));
        self.check("not killed");
        let count = std::fs::read_to_string(self.place.root.path().join("count")).unwrap();
        let count: u64 = count.parse().unwrap();
        assert!(count > 50, "{count} steps");
        count
    }

    fn folder(&self) -> Option<SessionFolder> {
        let home = gaffer_store::Home::new(self.place.home().join(".gaffer"));
        let found = home.find_session(&self.place.project(), "s").ok()?;
        Some(found.folder)
    }

    /// Takes the session up, to its end; begins anew if there is nothing to take up.
    fn finish(&self) {
        let has_begun = self.folder().is_some_and(|folder| {
            let about = folder.about().or_else(|| folder.recovered_about());
            about.is_some_and(|about| !fold(&folder, about.main).messages.is_empty())
        });
        let ran = match has_begun {
            true => run(self.gaffer(&["-p", "--resume", "s"])),
            false => {
                // It died before it had heard the prompt: there is nothing to go on with.
                drop(std::fs::remove_dir_all(self.place.home().join(".gaffer")));
                run(self.first())
            }
        };
        let is_done = ran.code == Some(0) && ran.out.trim() == "All is done.";
        // It may have ended before it could say so.
        let was_done = ran.err.contains("nothing is left to do");
        assert!(is_done || was_done, "{ran:?}");
    }

    /// What must be true of a session that came to its end, however often it was killed.
    fn check(&self, what: &str) {
        let folder = self.folder().unwrap();
        let about: About = folder.about().unwrap();
        let main = fold(&folder, about.main);
        let mut by_name: BTreeMap<String, (AgentId, Fold)> = BTreeMap::new();
        for (id, _) in folder.agents().unwrap() {
            let fold = fold(&folder, id);
            let start = fold.start.as_ref().unwrap();
            let before = by_name.insert(start.name.to_string(), (id, fold));
            assert!(before.is_none(), "{what}: two of one name");
        }
        assert_eq!(by_name.len(), 4, "{what}: {:?}", by_name.keys());
        let told = notifications(&main.messages);
        for (name, most) in [("a", 2), ("b", 1), ("c", 2)] {
            let (id, fold) = &by_name[name];
            assert_eq!(fold.end, Some(End::Done), "{what}: {name}");
            let mine = told.iter().filter(|it| it.task == Some(*id));
            let done: Vec<_> = mine.filter(|it| it.status == Status::Completed).collect();
            let text = format!("{name} is done.");
            assert!((1..=most).contains(&done.len()), "{what}: {name} {done:?}");
            assert!(done.iter().all(|it| it.result.as_ref() == Some(&text)));
            let heard = letters(&fold.messages);
            let unique: BTreeSet<MailId> = heard.iter().map(|(id, _)| *id).collect();
            assert_eq!(unique.len(), heard.len(), "{what}: {name} {heard:?}");
            let times = |text: &str| heard.iter().filter(|(_, it)| it.contains(text)).count();
            let orders = [("turn left", "c"), ("again", "a")];
            for (text, reader) in orders {
                let want = usize::from(name == reader);
                assert_eq!(times(text), want, "{what}: {text} {told:#?} {heard:#?}");
            }
        }
        let heard = letters(&main.messages);
        let unique: BTreeSet<MailId> = heard.iter().map(|(id, _)| *id).collect();
        assert_eq!(unique.len(), heard.len(), "{what}: {heard:?}");
        let contents = folder.book().read().unwrap();
        let left: Vec<_> = contents
            .letters
            .iter()
            .filter(|letter| !main.heard.contains(&letter.id))
            .collect();
        assert!(left.is_empty(), "{what}: {left:?}");
        assert_eq!(self.server.violations(), [""; 0], "{what}");
    }
}

fn fold(folder: &SessionFolder, id: AgentId) -> Fold {
    Fold::read(&folder.transcript(id)).unwrap_or_default()
}

fn letters(messages: &[Message]) -> Vec<(MailId, String)> {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let letter = |block: &Block| match block {
        Block::Text(text) => text.mail.map(|id| (id, text.text.clone())),
        _ => None,
    };
    blocks.filter_map(letter).collect()
}

fn notifications(messages: &[Message]) -> Vec<Notification> {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let told = |block: &Block| match block {
        Block::Text(text) if text.origin == Some(Origin::TaskNotification) => {
            Some(Notification::parse(&text.text).unwrap())
        }
        _ => None,
    };
    blocks.filter_map(told).collect()
}

/// Builds the shim with the compiler that linked this test.
#[expect(clippy::disallowed_methods, reason = "a compiler is run, once")]
fn shim(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/crash/shim.c");
    let path = folder.join("shim.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&path, &source])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    path
}

/// Does something for the steps that `pick` leaves, two at a time.
fn at_steps(count: u64, pick: impl Fn(u64) -> bool + Sync, each: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at > count {
                        break;
                    }
                    if pick(at) {
                        each(at);
                    }
                }
            });
        }
    });
}

/// A program below the shim, which counts what it does in a folder.
fn below(mut command: Command, shim: &Path, under: &Path, count: &Path, at: u64) -> Command {
    command
        .env("LD_PRELOAD", shim)
        .env("CRASH_UNDER", under)
        .env("CRASH_AT", at.to_string())
        .env("CRASH_COUNT", count);
    command
}

/// Kills a run at the steps that `pick` leaves, and takes it up again.
fn kill_at_steps(is_torn: bool, pick: impl Fn(u64) -> bool + Sync) {
    let temp = tempfile::tempdir().unwrap();
    let shim = shim(temp.path());
    let count = Stage::new(&shim).count();
    let killed = AtomicU64::new(0);
    at_steps(count, pick, |at| {
        let stage = Stage::new(&shim);
        let ran = run(stage.counted(stage.first(), at, is_torn));
        killed.fetch_add(u64::from(ran.code.is_none()), Ordering::Relaxed);
        stage.finish();
        stage.check(&format!("killed at step {at} of {count}"));
    });
    assert!(killed.load(Ordering::Relaxed) > 0);
}

/// Lets the disk be full, or no longer writable, from a step on; then it is well again.
fn fail_from_steps(error: i32) {
    let temp = tempfile::tempdir().unwrap();
    let shim = shim(temp.path());
    let count = Stage::new(&shim).count();
    let mut failed = 0;
    for at in (1..=count).step_by(5) {
        let stage = Stage::new(&shim);
        let mut command = stage.counted(stage.first(), at, false);
        command.env("CRASH_ERROR", error.to_string());
        let ran = run(command);
        let what = format!("error {error} from step {at} of {count}");
        assert!(ran.code.is_some(), "{what}: it must end by itself, {ran:?}");
        assert!(!ran.err.contains("panicked"), "{what}: {ran:?}");
        if ran.code != Some(0) {
            failed += 1;
            let reason = std::io::Error::from_raw_os_error(error).to_string();
            let reason = reason.split(" (os").next().unwrap().to_owned();
            let is_told = ran.err.contains(&reason) || ran.err.contains("disk is full");
            assert!(is_told, "{what}: {}", ran.err);
        }
        stage.finish();
        stage.check(&what);
    }
    assert!(failed > 3, "{failed}");
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    fail_from_steps(28);
}

#[test]
fn a_disk_that_cannot_be_written_is_told_and_loses_nothing() {
    fail_from_steps(30);
}

#[test]
fn a_crew_that_is_killed_at_any_step_comes_to_its_end() {
    kill_at_steps(false, |_| true);
}

#[test]
fn a_crew_that_is_killed_at_any_time_comes_to_its_end() {
    use gaffer_protocol::Entropy;
    let temp = tempfile::tempdir().unwrap();
    let shim = shim(temp.path());
    let dice = gaffer_testkit::world::Seeded::new(11);
    for n in 0..30 {
        let stage = Stage::new(&shim);
        let mut command = stage.first();
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // The kill itself is what takes place at some time.
        std::thread::sleep(std::time::Duration::from_micros(dice.next() % 120_000));
        child.kill().unwrap();
        child.wait().unwrap();
        stage.finish();
        stage.check(&format!("killed some time, {n}"));
    }
}

#[test]
fn a_write_that_is_cut_in_the_middle_loses_nothing() {
    kill_at_steps(true, |at| at % 3 == 0);
}
