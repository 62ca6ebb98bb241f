//! A worker that works apart, and its file tools: whatever path they are given, nothing of the
//! user's checkout changes, whatever the permissions are.

use crate::worktrees::{agent, bash, crew, project, sh};
use serde_json::{Value, json};

fn write(path: &str) -> Value {
    json!({"tool": "Write", "as": "it", "input": {"file_path": path, "content": "spoilt\n"}})
}

#[test]
fn no_file_tool_reaches_the_users_checkout() {
    let place = project();
    place.write("project/n.ipynb", r#"{"cells": [{"cell_type": "code", "source": "1", "metadata": {}, "id": "a", "outputs": [], "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#);
    sh(&place, "git add . && git commit -qm two");
    let main = place.project().display().to_string();
    let read = |path: &str| json!({"tool": "Read", "input": {"file_path": path}});
    let edit = json!({"tool": "Edit", "as": "it", "input": {"file_path": format!("{main}/f"), "old_string": "one", "new_string": "spoilt"}});
    let notebook = json!({"tool": "NotebookEdit", "as": "it", "input": {"notebook_path": format!("{main}/n.ipynb"), "cell_id": "a", "new_source": "2"}});
    let up = "../".repeat(20) + main.trim_start_matches('/');
    let refused = |call: Value, next: Value| {
        let mut next = next;
        next["expect"] = json!([{"of": "it", "error": true}]);
        vec![json!({"calls": [call]}), next]
    };
    let mut steps = vec![
        json!({"calls": [read(&format!("{main}/f"))]}),
        bash(&format!("ln -s {main} there && ln -s {main}/f file")),
    ];
    let calls = [
        write(&format!("{main}/f")),
        write(&format!("{main}/new")),
        write(&format!("{main}/.git/config")),
        write(&format!("{up}/f")),
        write("there/f"),
        write("there/new"),
        write("file"),
        edit,
        notebook,
    ];
    for call in calls {
        let then = refused(
            call,
            json!({"calls": [{"tool": "Read", "input": {"file_path": "f"}}]}),
        );
        steps.extend(then);
    }
    steps.push(json!({"calls": [{"tool": "Write", "as": "it", "input": {"file_path": "mine", "content": "x"}}]}));
    steps.push(json!({"expect": [{"of": "it", "error": false}], "say": "Done."}));
    let script = json!({"agents": [
        {"name": "main", "steps": [
            {"calls": [agent("w")]},
            {"say": "Waiting."},
            {"when": {"notifications": 1}, "say": "All done."},
        ]},
        {"name": "w", "steps": steps},
    ]});
    let before = sh(
        &place,
        "git config --list --local | sort; git rev-parse HEAD; git status --porcelain; cat f n.ipynb",
    );
    let ran = crew(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("not played"), "{}", ran.err);
    let after = sh(
        &place,
        "git config --list --local | sort; git rev-parse HEAD; git status --porcelain; cat f n.ipynb",
    );
    assert_eq!(before, after);
    assert!(!place.project().join("new").exists());
}
