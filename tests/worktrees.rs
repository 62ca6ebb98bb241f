//! Workers with worktrees of their own, by the real program: where they work, what their end
//! names, how they go on, and what `gaffer worktree` does with what they left.

use crate::harness::{Place, Ran, run};
use gaffer_testkit::{Server, WireKind};
use gaffer_workspace::process::{Bounds, How, Plan};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A project with one commit.
pub(crate) fn project() -> Place {
    let place = Place::new();
    place.write("project/f", "one\n");
    place.write("project/.gitignore", "*.o\n");
    sh(
        &place,
        "git init -q -b main . && git config user.name t && git config user.email t@t && git add . && git commit -qm one",
    );
    place
}

/// What the user does in the project.
pub(crate) fn sh(place: &Place, script: &str) -> String {
    let mut plan = Plan::new("sh", place.project()).args(["-c", script]);
    plan.env = vec![("GIT_CONFIG_GLOBAL".into(), "/dev/null".into())];
    let bounds = Bounds {
        time: Duration::from_secs(60),
        keep: 1 << 20,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let finished = runtime
        .block_on(gaffer_workspace::process::run(&plan, bounds))
        .unwrap();
    let text = finished.output.text();
    assert!(
        matches!(finished.how, How::Exited(status) if status.success()),
        "{script}: {text}"
    );
    text.trim_end().to_owned()
}

const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

pub(crate) fn crew(place: &Place, script: &Value, more: &[&str]) -> Ran {
    let args = [
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--mode",
        "coordinator",
    ];
    let args = [&args[..], &FREE, more].concat();
    run(place.scripted(&script.to_string(), &args))
}

pub(crate) fn agent(name: &str) -> Value {
    json!({"tool": "Agent", "as": name, "input": {
        "description": format!("Task {name}"), "name": name, "prompt": "go", "isolation": "worktree",
    }})
}

pub(crate) fn bash(command: &str) -> Value {
    json!({"calls": [{"tool": "Bash", "as": "it", "input": {"command": command}}]})
}

pub(crate) fn worktree(place: &Place, args: &[&str]) -> Ran {
    run(place.gaffer(&[&["worktree"], args].concat()))
}

/// The worktrees that are there, by their folders.
pub(crate) fn left(place: &Place) -> Vec<PathBuf> {
    let list = sh(place, "git worktree list --porcelain");
    let paths = list
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    paths.skip(1).map(PathBuf::from).collect()
}

#[test]
fn what_was_done_is_named_shown_merged_and_removed() {
    let place = project();
    let main = place.project();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("edit"), agent("look")]},
            {"say": "Waiting."},
            {"when": {"notifications": 2}, "meanwhile": "Not yet.", "say": "All done."},
        ]},
        {"name": "edit", "steps": [
            bash("pwd; echo two >> f && echo new > g && git add . && git commit -qm two && git branch --show-current"),
            bash(&format!("echo x > {}/f; git -C {} commit -qm x --allow-empty", main.display(), main.display())),
            {"expect": [{"of": "it", "error": true}], "calls": [
                {"tool": "Write", "as": "there", "input": {"file_path": main.join("h"), "content": "x"}},
                {"tool": "Write", "as": "here", "input": {"file_path": "h", "content": "x"}},
            ]},
            {"expect": [{"of": "there", "error": true, "result": "outside the folders"}, {"of": "here", "error": false}],
             "calls": [{"tool": "Bash", "input": {"command": "git add h && git commit -qm h && env | grep GIT_DIR; true"}}]},
            {"say": "Edited."},
        ]},
        {"name": "look", "steps": [bash("cat f"), {"say": "Looked."}]},
    ]});
    // A folder that has the user's checkout in it is given to others, not to workers that work apart.
    let above = place.root.path().display().to_string();
    let ran = crew(
        &place,
        &script,
        &["--sandbox", "require", "--add-dir", &above],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        sh(
            &place,
            "cat f; git log --oneline | wc -l; git status --short"
        ),
        "one\n1"
    );
    assert!(!main.join("h").exists());
    // One is left, and its end named it.
    let trees = left(&place);
    assert_eq!(trees.len(), 1, "{trees:?}");
    let folder = trees[0].display().to_string();
    assert!(
        ran.out.contains(&folder) && ran.out.contains("/task-edit-"),
        "{}",
        ran.out
    );
    let name = trees[0].file_name().unwrap().to_str().unwrap();

    let list = worktree(&place, &["list"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    for word in [
        name,
        "Task edit",
        "2 commits that no other branch has",
        &folder,
    ] {
        assert!(list.out.contains(word), "{word}: {}", list.out);
    }
    let diff = worktree(&place, &["diff", name]);
    assert!(
        diff.out.contains("+two") && diff.out.contains("+++ b/g"),
        "{diff:?}"
    );
    let refused = worktree(&place, &["remove", name]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("no other branch has") && refused.err.contains("--keep-branch"));
    let merged = worktree(&place, &["merge", &name[..10]]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(sh(&place, "cat f g"), "one\ntwo\nnew");
    let removed = worktree(&place, &["remove", name]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(left(&place).is_empty() && !trees[0].exists());
    assert_eq!(sh(&place, "git branch --list 'gaffer/*'"), "");
    assert!(worktree(&place, &["list"]).out.contains("No worktrees"));
}

#[test]
fn what_is_wrong_is_said() {
    let plain = Place::new();
    let ran = worktree(&plain, &["list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("in no git repository"), "{ran:?}");
    let place = project();
    let ran = worktree(&place, &["diff", "nobody"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("has no worktrees of workers"), "{ran:?}");
    assert_eq!(worktree(&place, &["prune"]).out, "Nothing to forget.\n");
    // A coordinator that asks for one where there can be none is told.
    let script = json!({"agents": [{"name": "main", "steps": [
        {"calls": [agent("w")]},
        {"expect": [{"of": "w", "error": true, "result": "needs a git repository"}], "say": "Well."},
    ]}]});
    let ran = crew(&plain, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A type may ask for it, so that its workers always work apart.
#[test]
fn a_type_can_ask_for_it() {
    let place = project();
    place.write(
        "home/.gaffer/agents/apart.md",
        "---\nname: apart\ndescription: Works apart\nisolation: worktree\n---\nWork.\n",
    );
    let order = json!({"tool": "Agent", "as": "w", "input": {
        "description": "Try it", "name": "w", "prompt": "go", "subagent_type": "apart",
    }});
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [order]}, {"say": "Waiting."}, {"when": {"notifications": 1}, "say": "Done."},
        ]},
        {"name": "w", "steps": [bash("echo x > x"), {"say": "Tried."}]},
    ]});
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trees = left(&place);
    assert_eq!(trees.len(), 1, "{ran:?}");
    assert!(trees[0].join("x").is_file() && !place.project().join("x").exists());
}

/// What the tool offers depends on where it is.
#[test]
fn it_is_offered_in_a_repository_alone() {
    let offers = |place: &Place| {
        let server = Server::start("agents: [{ steps: [{ say: Hello. }] }]");
        let args = ["-p", "go", "--mode", "coordinator"];
        let ran = run(place.on_wire(WireKind::Anthropic, &server, &args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let body = server.asked()[0].json()["tools"].to_string();
        assert!(body.contains("max_turns"), "{body}");
        body.contains("\"isolation\"")
    };
    assert!(!offers(&Place::new()));
    assert!(offers(&project()));
}

/// Pain 29, by the program.
#[test]
fn thirty_two_start_at_once() {
    let place = project();
    let calls: Vec<Value> = (0..32).map(|n| agent(&format!("w{n}"))).collect();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": calls},
            {"say": "Waiting."},
            {"when": {"notifications": 32}, "meanwhile": "Not yet.", "say": "All done."},
        ]},
        {"steps": [
            bash("echo $PWD > mine && git add mine && git commit -qm mine"),
            {"expect": [{"of": "it", "error": false}], "say": "Done."},
        ]},
    ]});
    let began = Instant::now();
    let ran = crew(&place, &script, &["--max-workers", "32"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.result()["crew"]["completed"], 32, "{}", ran.result());
    println!("32 isolated workers in {:?}", began.elapsed());
    assert_eq!(left(&place).len(), 32);
    assert_eq!(
        sh(
            &place,
            "git branch --list 'gaffer/*' | wc -l; git status --short"
        ),
        "32"
    );
}

#[test]
fn a_worker_goes_on_in_its_worktree() {
    let place = project();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("w")]},
            {"say": "Waiting."},
            {"when": {"notifications": 1}, "calls": [{"tool": "SendMessage", "input": {"to": "w", "message": "more"}}]},
            {"say": "Waiting."},
            {"when": {"notifications": 2}, "say": "All done."},
        ]},
        {"name": "w", "steps": [
            bash("echo a > a && mkdir -p d && cd d"),
            {"say": "First."},
            bash("cat ../a && echo b > ../b"),
            {"expect": [{"of": "it", "error": false}], "say": "Second."},
        ]},
    ]});
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trees = left(&place);
    assert_eq!(trees.len(), 1);
    assert!(trees[0].join("a").is_file() && trees[0].join("b").is_file());
    assert_eq!(sh(&place, "git status --short"), "");
}

#[test]
fn after_a_kill_too() {
    let place = project();
    let began = place.root.path().join("tmp/began");
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("w")]},
            {"say": "Waiting."},
            {"calls": [{"tool": "SendMessage", "input": {"to": "w", "message": "go on"}}]},
            {"when": {"notifications": 2}, "meanwhile": "Not yet.", "say": "All done."},
        ]},
        {"name": "w", "steps": [
            bash(&format!("echo a > a; touch {}; while [ ! -e enough ]; do sleep 0.1; done", began.display())),
            bash("cat a && echo b > b"),
            {"expect": [{"of": "it", "error": false}], "say": "Done."},
        ]},
    ]});
    let args = [
        "-p",
        "go",
        "--mode",
        "coordinator",
        "--session-id",
        "s1",
        "--sandbox",
        "off",
    ];
    let args = [&args[..], &FREE].concat();
    let mut command = place.scripted(&script.to_string(), &args);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !began.exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let trees = left(&place);
    // A running session's worktrees are nobody else's to remove.
    let name = trees[0].file_name().unwrap().to_str().unwrap().to_owned();
    let refused = worktree(&place, &["remove", &name]);
    assert!(refused.err.contains("its session runs"), "{refused:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let args = [
        "-p",
        "go on",
        "--resume",
        "s1",
        "--mode",
        "coordinator",
        "--sandbox",
        "off",
    ];
    let args = [&args[..], &FREE].concat();
    let ran = run(place.scripted(&script.to_string(), &args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&place), trees);
    assert!(trees[0].join("b").is_file());
    assert_eq!(sh(&place, "git status --short"), "");
}
