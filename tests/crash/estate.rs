//! A crew with worktrees, files of its orders and dependencies that is killed at its steps: work in
//! worktrees is there afterwards and git is sound, nobody holds what nobody works on, and whoever
//! waited still waits for the right ones.
//!
//! The suite takes every fifth step, since git makes each run long; `GAFFER_CRASH_EVERY=1` takes all.

use super::{Said, answer, at_steps, below, fold, history, notifications, shim};
use crate::harness::{Place, run};
use crate::worktrees::{project, sh, worktree};
use gaffer_model::script::Speaker;
use gaffer_protocol::{Answer, End, Entropy, Status};
use gaffer_store::SessionFolder;
use gaffer_testkit::{Server, WireKind};
use gaffer_workspace::worktree::Worktree;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Two work apart, of whom one does nothing; two write the same file, which their orders name; one
/// needs the first two.
const CREW: [&str; 5] = ["apart", "first", "second", "last", "idle"];

/// More than anybody needs who is cut off once.
const MOST_CALLS: usize = 10;

fn order(name: &str) -> Value {
    let mut input = json!({"description": format!("Task {name}"), "name": name, "prompt": "go"});
    match name {
        "apart" | "idle" => input["isolation"] = json!("worktree"),
        "first" | "second" => input["files"] = json!(["shared.txt"]),
        _ => input["depends_on"] = json!(["apart", "first"]),
    }
    input
}

/// Starts all of them, continues whoever was interrupted, and ends when all have completed.
fn lead(body: &Value) -> Answer {
    let mut started = BTreeSet::new();
    let mut sent: BTreeMap<String, usize> = BTreeMap::new();
    let mut done = BTreeSet::new();
    let mut due: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut calls, mut open) = (0, Vec::new());
    for (n, said) in history(body).into_iter().enumerate() {
        match said {
            Said::Call(call) => {
                calls += 1;
                open.push((n, call));
            }
            Said::Result { is_error, text } => {
                let (at, call) = open.remove(0);
                assert!(!is_error || text.contains("interrupted"), "{text}");
                let input = &call["input"];
                match (is_error, input["to"].as_str()) {
                    (true, _) => {}
                    (false, Some(to)) => drop(sent.insert(to.to_owned(), at)),
                    (false, None) => {
                        started.insert(input["name"].as_str().unwrap().to_owned());
                    }
                }
            }
            Said::Text(text) if text.starts_with("<task-notification>") => {
                for name in CREW {
                    if text.contains(&format!("Agent \"Task {name}\" completed")) {
                        done.insert(name);
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
    let missing = CREW.into_iter().filter(|name| !started.contains(*name));
    let starts: Vec<_> = missing
        .enumerate()
        .map(|(n, name)| (id(n), "Agent", order(name)))
        .collect();
    if !starts.is_empty() {
        return answer(None, starts);
    }
    let may_go_on =
        |name: &str| name != "last" || (done.contains("apart") && done.contains("first"));
    let waits = |(name, at): &(&&str, &usize)| {
        sent.get(**name).is_none_or(|sent| sent < *at) && may_go_on(name)
    };
    if let Some((name, _)) = due.iter().find(waits) {
        let input = json!({"to": name, "message": "go on"});
        return answer(None, vec![(id(0), "SendMessage", input)]);
    }
    match done.len() == CREW.len() {
        true => answer(Some("All is done."), vec![]),
        false => answer(Some("Waiting."), vec![]),
    }
}

/// What a worker has done so far, by the calls that succeeded and failed.
fn work(name: &str, body: &Value) -> Answer {
    let mut open = Vec::new();
    let mut last: Option<(&Value, bool, String)> = None;
    let mut calls = 0;
    for said in history(body) {
        match said {
            Said::Call(call) => {
                calls += 1;
                open.push(call);
            }
            Said::Result { is_error, text } => last = Some((open.remove(0), is_error, text)),
            Said::Text(text) if text.contains("go on") => last = None,
            Said::Text(_) => {}
        }
    }
    let call = |tool: &'static str, input: Value| {
        answer(None, vec![(format!("call-{calls}"), tool, input)])
    };
    let write = |path: &str| call("Write", json!({"file_path": path, "content": "x\n"}));
    let done = || answer(Some(&format!("{name} is done.")), vec![]);
    let tool = last.as_ref().map(|it| it.0["name"].as_str().unwrap());
    match (name, tool, last.as_ref()) {
        ("idle", ..) => done(),
        // What was cut off is done once more. That always works: no lock of git's is left.
        ("apart", None, _) | ("apart", _, Some((_, true, _))) if calls < MOST_CALLS => call(
            "Bash",
            json!({"command": "echo kept > kept.txt && git add . && git commit -qm kept --allow-empty && echo loose > loose.txt"}),
        ),
        ("last", None, _) => write("last.txt"),
        ("first" | "second", None, _) => call("Read", json!({"file_path": "shared.txt"})),
        ("first" | "second", Some("Read"), Some((_, _, text))) if !text.contains(name) => call(
            "Edit",
            json!({"file_path": "shared.txt", "old_string": "end\n", "new_string": format!("{name}\nend\n")}),
        ),
        // What is not of its order is refused, in whichever run.
        ("first" | "second", Some("Read" | "Edit"), Some((_, false, _))) => write("outside.txt"),
        ("first" | "second", Some("Edit"), _) => call("Read", json!({"file_path": "shared.txt"})),
        _ => done(),
    }
}

struct Stage {
    place: Place,
    server: Server,
    shim: PathBuf,
    /// Who was asked, and whether the answer was its last word.
    asked: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Stage {
    fn new(shim: &Path) -> Self {
        let asked: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
        let seen = asked.clone();
        let decide = move |who: &Speaker, body: &Value| {
            let answer = match who.name.as_str() {
                "main" => lead(body),
                name => work(name, body),
            };
            let is_last = answer.text().contains("is done.");
            seen.lock().unwrap().push((who.name.clone(), is_last));
            answer
        };
        let place = project();
        place.write("project/shared.txt", "begin\nend\n");
        sh(&place, "git add . && git commit -qm two");
        Self {
            place,
            server: Server::deciding(Box::new(decide)),
            shim: shim.to_owned(),
            asked,
        }
    }

    fn gaffer(&self, args: &[&str]) -> Command {
        let fixed = [
            "--mode",
            "coordinator",
            "--sandbox",
            "off",
            "--permission-mode",
            "bypassPermissions",
        ];
        let args = [args, &fixed].concat();
        self.place.on_wire(WireKind::Anthropic, &self.server, &args)
    }

    fn first(&self) -> Command {
        self.gaffer(&["-p", "go", "--session-id", "s"])
    }

    /// The same, killed at a step that it takes anywhere.
    fn killed(&self, at: u64) -> Command {
        let root = self.place.root.path().canonicalize().unwrap();
        below(self.first(), &self.shim, &root, &root.join("count"), at)
    }

    fn count(&self) -> u64 {
        let ran = run(self.killed(0));
        assert_eq!(
            (ran.code, ran.out.trim()),
            (Some(0), "All is done."),
            "{ran:?}"
        );
        self.check("not killed");
        let count = std::fs::read_to_string(self.place.root.path().join("count"));
        count.unwrap().parse().unwrap()
    }

    fn folder(&self) -> Option<SessionFolder> {
        let home = gaffer_store::Home::new(self.place.home().join(".gaffer"));
        let found = home.find_session(&self.place.project(), "s").ok()?;
        Some(found.folder)
    }

    fn finish(&self) {
        let has_begun = self.folder().is_some_and(|folder| {
            let about = folder.about().or_else(|| folder.recovered_about());
            about.is_some_and(|about| !fold(&folder, about.main).messages.is_empty())
        });
        let ran = match has_begun {
            true => run(self.gaffer(&["-p", "--resume", "s"])),
            false => {
                drop(std::fs::remove_dir_all(self.place.home().join(".gaffer")));
                run(self.first())
            }
        };
        let is_done = ran.code == Some(0) && ran.out.trim() == "All is done.";
        assert!(
            is_done || ran.err.contains("nothing is left to do"),
            "{ran:?}"
        );
    }

    fn check(&self, what: &str) {
        let folder = self.folder().unwrap();
        let main = fold(&folder, folder.about().unwrap().main);
        let told = notifications(&main.messages);
        let mut ids = BTreeMap::new();
        for (id, _) in folder.agents().unwrap() {
            let fold = fold(&folder, id);
            let name = fold.start.as_ref().unwrap().name.to_string();
            if name != "main" {
                assert_eq!(fold.end, Some(End::Done), "{what}: {name}");
                assert!(ids.insert(name, id).is_none(), "{what}: two of one name");
            }
        }
        assert_eq!(ids.len(), CREW.len(), "{what}: {ids:?}");
        for (name, id) in &ids {
            let own = told.iter().filter(|it| it.task == Some(*id));
            let done = own.filter(|it| it.status == Status::Completed).count();
            assert_eq!(done, 1, "{what}: {name} {told:#?}");
        }
        self.check_files(what);
        self.check_order(what);
        let apart = ids["apart"].to_string();
        self.check_trees(what, &folder, &apart);
        let named = told.iter().filter_map(|it| it.worktree.as_ref());
        assert!(
            named.clone().any(|it| it.path.ends_with(&apart)),
            "{what}: {told:#?}"
        );
        assert_eq!(self.server.violations(), [""; 0], "{what}");
    }

    /// Both changes of the shared file are there, once, and nothing that no order names.
    fn check_files(&self, what: &str) {
        let project = self.place.project();
        let text = std::fs::read_to_string(project.join("shared.txt")).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["begin", "end", "first", "second"], "{what}");
        assert!(!project.join("outside.txt").exists(), "{what}");
        assert_eq!(std::fs::read(project.join("last.txt")).unwrap(), b"x\n");
    }

    /// The last one began when those that it needs had said their last word.
    fn check_order(&self, what: &str) {
        let asked = self.asked.lock().unwrap();
        let begun = asked.iter().position(|it| it.0 == "last").unwrap();
        for name in ["apart", "first"] {
            let done = asked.iter().position(|it| it.1 && it.0 == name);
            assert!(done.is_some_and(|done| done < begun), "{what}: {asked:?}");
        }
    }

    /// The work in the worktree is there, the one without work is gone, and git is sound.
    fn check_trees(&self, what: &str, folder: &SessionFolder, apart: &str) {
        let trees = Worktree::all(&folder.worktrees());
        let names: Vec<&str> = trees.iter().map(|tree| tree.name.as_str()).collect();
        assert_eq!(names, [apart], "{what}");
        let read = |name: &str| std::fs::read_to_string(trees[0].path.join(name));
        assert_eq!(read("kept.txt").unwrap(), "kept\n", "{what}");
        assert_eq!(read("loose.txt").unwrap(), "loose\n", "{what}");
        let branch = &trees[0].branch;
        let place = &self.place;
        assert_eq!(
            sh(place, &format!("git show {branch}:kept.txt")),
            "kept",
            "{what}"
        );
        let branches = sh(
            place,
            "git for-each-ref --format='%(refname:short)' refs/heads/gaffer",
        );
        assert_eq!(branches, *branch, "{what}");
        let list = sh(place, "git worktree list --porcelain");
        assert_eq!(list.matches("worktree ").count(), 2, "{what}: {list}");
        assert!(!list.contains("prunable"), "{what}: {list}");
        sh(place, "git fsck --strict --no-dangling 2>&1");
        // What was being written when it was killed may be left, hidden, beside the file.
        let status = sh(place, "git status --porcelain -- ':!.gaffer-*'");
        assert_eq!(status, " M shared.txt\n?? last.txt", "{what}");
        let listed = worktree(place, &["list"]).out;
        assert!(listed.contains(apart), "{what}: {listed}");
        assert_eq!(
            worktree(place, &["prune"]).out,
            "Nothing to forget.\n",
            "{what}"
        );
    }
}

#[test]
fn worktrees_files_and_dependencies_outlive_a_kill_at_any_step() {
    let temp = tempfile::tempdir().unwrap();
    let shim = shim(temp.path());
    let count = Stage::new(&shim).count();
    assert!(count > 100, "{count} steps");
    let every = std::env::var("GAFFER_CRASH_EVERY").ok();
    let every: u64 = every.map_or(5, |every| every.parse().unwrap());
    let killed = AtomicU64::new(0);
    at_steps(
        count,
        |at| at % every == 1 % every,
        |at| {
            let stage = Stage::new(&shim);
            let ran = run(stage.killed(at));
            killed.fetch_add(u64::from(ran.code.is_none()), Ordering::Relaxed);
            stage.finish();
            stage.check(&format!("killed at step {at} of {count}"));
        },
    );
    assert!(killed.load(Ordering::Relaxed) > 20);
}

#[test]
fn worktrees_files_and_dependencies_outlive_a_kill_at_any_time() {
    let temp = tempfile::tempdir().unwrap();
    let shim = shim(temp.path());
    let dice = gaffer_testkit::world::Seeded::new(17);
    for n in 0..15 {
        let stage = Stage::new(&shim);
        let mut command = stage.first();
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // The kill itself is what takes place at some time, also while git is at work.
        std::thread::sleep(std::time::Duration::from_micros(dice.next() % 400_000));
        child.kill().unwrap();
        child.wait().unwrap();
        stage.finish();
        stage.check(&format!("killed some time, {n}"));
    }
}
