//! Hooks whose processes misbehave.

use super::*;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_flood_costs_little_and_is_reported_where_it_matters() {
    let flood = "head -c 50000000 /dev/zero | tr '\\0' x";
    let merged = ask_script(EventKind::PreToolUse, flood).await;
    assert!(merged.decision.is_none());
    let merged = ask_script(EventKind::PreToolUse, &format!("printf '{{'; {flood}")).await;
    assert!(merged.blocked().unwrap().contains("it is too long"));
    let merged = ask_script(EventKind::SessionStart, flood).await;
    assert!(merged.context.unwrap().chars().count() <= 10_000);
    assert!(merged.reports[0].text.contains("10000 is the most"));
    let merged = ask_script(EventKind::Stop, &format!("({flood}) >&2; exit 2")).await;
    assert!(merged.blocked().unwrap().chars().count() <= 10_000);
}

#[tokio::test]
async fn a_long_answer_that_can_be_used_is_used() {
    let script = "printf '{\"hookSpecificOutput\":{\"updatedInput\":{\"content\":\"'; \
        head -c 3000000 /dev/zero | tr '\\0' x; printf '\"}}}'";
    let merged = ask_script(EventKind::PreToolUse, script).await;
    let input = merged.updated_input.unwrap();
    assert_eq!(input["content"].as_str().unwrap().len(), 3_000_000);
}

#[tokio::test]
async fn what_a_hook_leaves_running_ends_with_it() {
    let temp = tempfile::tempdir().unwrap();
    let script = "sleep 60 & (trap '' TERM HUP; sleep 60) & echo on its way";
    let config = config(EventKind::UserPromptSubmit, &json!([command(script)]));
    let hooks = Hooks::new(config, surroundings(temp.path()));
    let event = event_in(temp.path(), moment(EventKind::UserPromptSubmit));
    let merged = hooks.run(&event).await;
    assert_eq!(merged.context.as_deref(), Some("on its way"));
    assert_eq!(texts(&merged), [""; 0]);
    nobody_is_left_in(temp.path()).await;
}

#[tokio::test]
async fn a_timeout_ends_all_processes() {
    let temp = tempfile::tempdir().unwrap();
    let handler = json!({"type": "command", "command": "sleep 60 & sleep 60", "timeout": 0.2});
    let hooks = Hooks::new(
        config(EventKind::Stop, &json!([handler])),
        surroundings(temp.path()),
    );
    hooks.run(&event_in(temp.path(), stop())).await;
    nobody_is_left_in(temp.path()).await;
}

#[tokio::test]
async fn dropping_the_run_ends_the_hooks() {
    let temp = tempfile::tempdir().unwrap();
    let handlers = json!([command("sleep 60 & touch started; sleep 60")]);
    let hooks = Hooks::new(
        config(EventKind::Stop, &handlers),
        surroundings(temp.path()),
    );
    let event = event_in(temp.path(), stop());
    let started = async {
        while !temp.path().join("started").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        merged = hooks.run(&event) => panic!("{merged:?}"),
        () = started => {}
    }
    nobody_is_left_in(temp.path()).await;
}

/// Waits until no process has the folder as its own. Those that have ended have none.
async fn nobody_is_left_in(folder: &Path) {
    let folder = folder.canonicalize().unwrap();
    let is_there = |entry: std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    let start = Instant::now();
    while std::fs::read_dir("/proc").unwrap().flatten().any(is_there) {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "a process is left"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A megabyte is more than any pipe holds, so writing it cannot end while nobody reads.
#[tokio::test]
async fn a_hook_need_not_read_what_it_is_told() {
    let temp = tempfile::tempdir().unwrap();
    let scripts = [
        "exit 0",
        "exec <&-; sleep 0.2",
        "sleep 0.2",
        "head -c 10 > /dev/null",
    ];
    let handlers: Vec<Value> = scripts.into_iter().map(command).collect();
    let config = config(EventKind::UserPromptSubmit, &handlers.into());
    let hooks = Hooks::new(config, surroundings(temp.path()));
    let prompt = "x".repeat(1 << 20);
    let event = event_in(temp.path(), Moment::UserPromptSubmit { prompt });
    let merged = hooks.run(&event).await;
    assert_eq!(texts(&merged), [""; 0]);
    assert!(merged.decision.is_none());
}

#[tokio::test]
async fn hidden_variables_are_hidden() {
    let temp = tempfile::tempdir().unwrap();
    let mut around = surroundings(temp.path());
    around.hidden = vec!["PATH_TO_KEYS".into(), "HOME".into()];
    let config = config(
        EventKind::SessionStart,
        &json!([command("echo \"[$HOME]\"")]),
    );
    let event = event_in(temp.path(), moment(EventKind::SessionStart));
    let merged = Hooks::new(config, around).run(&event).await;
    assert_eq!(merged.context.as_deref(), Some("[]"));
}
