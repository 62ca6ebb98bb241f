//! Integration by the real program: the coordinator's tool, the command for people, and what is
//! left when it is killed.

use crate::harness::{Place, Ran, run};
use crate::worktrees::{agent, bash, crew, left, project, sh, worktree};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn commit(file: &str, text: &str) -> Value {
    bash(&format!(
        "echo {text} > {file} && git add . && git commit -qm {text}"
    ))
}

fn integrate(ids: &[&str], more: &Value) -> Value {
    let mut input = json!({"task_ids": ids});
    let members = more.as_object().into_iter().flatten();
    for (name, value) in members {
        input[name] = value.clone();
    }
    json!({"tool": "Integrate", "as": "merge", "input": input})
}

fn done() -> Value {
    json!({"expect": [{"of": "it", "error": false}], "say": "Done."})
}

#[test]
fn a_conflict_goes_back_to_its_worker_and_then_all_is_merged() {
    let place = project();
    let log = place.root.path().join("tmp/hooks");
    let hook = format!("cat >> {0}; echo >> {0}", log.display());
    let hook = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    let settings = json!({
        "integrate": {"test": "test -e f"},
        "hooks": {"WorktreeCreate": hook, "WorktreeRemove": hook},
    });
    place.write("home/.gaffer/settings.json", &settings.to_string());
    let report = "(?s)Merged 2 of 3 branches into gaffer/integrated-.*merged: a \\(agent-.*, \"Task a\"\\) as .*its worktree is removed.*conflict: b \\(agent-.*, \"Task b\"\\).*f: changed by a \\(agent-.*, \"Task a\"\\), too.*<<<<<<< a\\n +from-a\\n +=======\\n +from-b\\n +>>>>>>> b.*merged: c .*Next:\\n- b: in its worktree, merge gaffer/integrated-";
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("a"), agent("b"), agent("c")]},
            {"calls": [integrate(&["a"], &json!({}))]},
            {"expect": [{"of": "merge", "error": true, "result": "still works"}], "say": "Waiting."},
            {"when": {"notifications": 3}, "meanwhile": "Not yet.", "calls": [integrate(&["a", "b", "c"], &json!({}))]},
            {"expect": [{"of": "merge", "error": false, "result": {"matches": report}}],
             "calls": [integrate(&["a", "b"], &json!({}))]},
            {"expect": [{"of": "merge", "error": true, "result": "a (agent-"}],
             "calls": [integrate(&["b"], &json!({"into": "main"}))]},
            {"expect": [{"of": "merge", "error": true, "result": "`into` is `new`"}],
             "calls": [{"tool": "SendMessage", "input": {"to": "b", "message": "merge the integrated branch and resolve"}}]},
            {"say": "Waiting."},
            {"when": {"notifications": 4}, "meanwhile": "Not yet.", "calls": [integrate(&["b"], &json!({"into": "current"}))]},
            {"expect": [{"of": "merge", "error": false, "result": {"matches": "Merged 1 of 1 branches into main: [0-9a-f]{8} → [0-9a-f]{8}"}}], "say": "All done."},
        ]},
        // It ends when the coordinator has asked for it too early.
        {"name": "a", "steps": [bash("sleep 2; echo from-a > f && git add . && git commit -qm a"), done()]},
        {"name": "b", "steps": [
            commit("f", "from-b"), done(),
            bash("git merge -q $(git branch --list 'gaffer/integrated*' --format='%(refname:short)'); echo both > f && git add . && git commit -qm both"),
            done(),
        ]},
        {"name": "c", "steps": [commit("g", "from-c"), done()]},
    ]});
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sh(&place, "cat f g; git status --short"), "both\nfrom-c");
    assert!(left(&place).is_empty());
    let statistics = &ran.result()["crew"];
    assert_eq!(
        (
            &statistics["integrations"],
            &statistics["branches_merged"],
            &statistics["branches_left_out"]
        ),
        (&json!(2), &json!(3), &json!(1)),
        "{statistics}"
    );
    let told = ran
        .events()
        .into_iter()
        .filter(|it| it["subtype"] == "integrated");
    let told: Vec<Value> = told.collect();
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[1]["into"], &told[1]["merged"]),
        (&json!("main"), &json!(1))
    );
    let hooks = std::fs::read_to_string(log).unwrap();
    assert_eq!(hooks.matches("\"WorktreeCreate\"").count(), 3, "{hooks}");
    assert_eq!(hooks.matches("\"WorktreeRemove\"").count(), 3, "{hooks}");
    assert!(hooks.contains("\"worktree_path\":\"/"), "{hooks}");
}

/// The tool is there where worktrees are, and moves the user's branch only where files may be
/// changed unasked.
#[test]
fn it_is_offered_in_a_repository_alone_and_asks_for_no_more_than_its_mode_gives() {
    let place = project();
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("a")]},
            {"say": "Waiting."},
            {"when": {"notifications": 1}, "meanwhile": "Not yet.", "calls": [integrate(&["a"], &json!({"into": "current"}))]},
            {"expect": [{"of": "merge", "error": true, "result": "the user's own branch stays"}], "say": "Well."},
        ]},
        {"name": "a", "steps": [{"say": "Nothing."}]},
    ]});
    let args = [
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "default",
        "--mode",
        "coordinator",
    ];
    let ran = run(place.scripted(&script.to_string(), &args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let tools = ran.events()[0]["tools"].to_string();
    assert!(
        tools.contains("Integrate") && !tools.contains("Bash"),
        "{tools}"
    );
}

/// Two worktrees with commits, and with build output, so that they stay when they are merged.
fn two(done_when: &str) -> Place {
    let place = project();
    let mut orders = [agent("one"), agent("two")];
    orders[1]["input"]["depends_on"] = json!(["one"]);
    orders[1]["input"]["done_when"] = json!(done_when);
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": orders}, {"say": "Waiting."},
            {"when": {"notifications": 2}, "meanwhile": "Not yet.", "say": "Done."},
        ]},
        {"name": "one", "steps": [commit("one", "1"), bash("echo x > x.o"), done()]},
        {"name": "two", "steps": [commit("two", "2"), bash("echo x > x.o"), done()]},
    ]});
    let ran = crew(&place, &script, &["--sandbox", "off"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&place).len(), 2);
    place
}

fn integrate_both(place: &Place, more: &[&str]) -> Ran {
    worktree(place, &[&["integrate", "two", "one"], more].concat())
}

#[test]
fn people_integrate_by_command() {
    let place = two("test -e two");
    let ran = integrate_both(&place, &["--dry-run", "--test", "test -e one"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("2 of 2 branches would be merged"),
        "{ran:?}"
    );
    assert_eq!(sh(&place, "git branch --list 'gaffer/integrated*'"), "");
    let ran = integrate_both(&place, &["--test", "echo no; test ! -e two", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    // The one that the other depends on comes first, whatever was said.
    assert_eq!(report["items"][0]["name"], "one");
    assert_eq!(report["items"][1]["outcome"]["kind"], "check_failed");
    let output = report["items"][1]["outcome"]["output"].as_str().unwrap();
    assert!(
        output.contains("no") && output.contains("exit code 1"),
        "{report}"
    );
    let ran = integrate_both(&place, &["--into", "current"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("its worktree stays") && ran.out.contains("No test command"),
        "{ran:?}"
    );
    assert_eq!(sh(&place, "cat one two; git status --short"), "1\n2");
    assert_eq!(worktree(&place, &["integrate", "nobody"]).code, Some(2));
    assert_eq!(worktree(&place, &["integrate"]).code, Some(2));
    let ran = integrate_both(&place, &[]);
    assert!(ran.out.contains("already contained: one"), "{ran:?}");
}

/// Whether a process that the program started is still in the project.
fn is_busy(place: &Place) -> bool {
    let project = place.project();
    let is_there =
        |path: PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|it| it == project);
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.any(|entry| is_there(entry.path()))
}

/// Killed at any moment it leaves the branch old or new, the checkout clean, and no harm to the
/// next run.
#[test]
fn killed_at_random_it_leaves_nothing_half_way() {
    let place = two("sleep 0.1");
    let old = sh(&place, "git rev-parse HEAD");
    let back = format!("git reset -q --hard {old}");
    let args = [
        "worktree",
        "integrate",
        "one",
        "two",
        "--into",
        "current",
        "--test",
        "sleep 0.1",
    ];
    let began = Instant::now();
    assert_eq!(run(place.gaffer(&args)).code, Some(0));
    let whole = began.elapsed();
    sh(&place, &back);
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut moved = 0;
    for round in 0..20 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let part = u32::try_from(seed >> 48).unwrap();
        let mut command = place.gaffer(&args);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(whole * part / 0xffff);
        child.kill().unwrap();
        child.wait().unwrap();
        // What moves the branch is git's, and ends by itself.
        let start = Instant::now();
        while is_busy(&place) {
            assert!(start.elapsed() < Duration::from_secs(20), "git never ends");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!place.project().join(".git/index.lock").exists());
        assert_eq!(sh(&place, "git status --porcelain"), "", "round {round}");
        if sh(&place, "git rev-parse HEAD") != old {
            assert_eq!(sh(&place, "cat one two"), "1\n2", "round {round}");
            moved += 1;
            sh(&place, &back);
        }
    }
    println!("moved in {moved} of 20 rounds of {whole:?}");
    assert_eq!(run(place.gaffer(&args)).code, Some(0));
    assert_eq!(sh(&place, "cat one two; git status --short"), "1\n2");
    assert_eq!(left(&place).len(), 2, "no scratch worktree is left");
    assert!(
        worktree(&place, &["prune"])
            .out
            .contains("Nothing to forget")
    );
}
