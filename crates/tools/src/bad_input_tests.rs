//! What models get wrong, and files that are none: an error that says what to change, never a
//! panic or a wait without end.

use crate::bash::Bash;
use crate::edit::Edit;
use crate::glob::Glob;
use crate::grep::Grep;
use crate::notebook_edit::NotebookEdit;
use crate::read::Read;
use crate::tool::{Tool, erase};
use crate::walk::testing::Tree;
use crate::write::Write;
use crate::{Context, testing};
use gaffer_protocol::message::ToolInput;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The tools that take a path, each with an input that is right but for it.
fn with_path(path: &Value) -> [(Arc<dyn Tool>, Value); 6] {
    [
        (erase(Read), json!({ "file_path": path })),
        (erase(Write), json!({"file_path": path, "content": "x"})),
        (
            erase(Edit),
            json!({"file_path": path, "old_string": "a", "new_string": "b"}),
        ),
        (
            erase(NotebookEdit),
            json!({"notebook_path": path, "new_source": "x", "cell_id": "0"}),
        ),
        (erase(Grep), json!({"pattern": "x", "path": path})),
        (
            erase(Glob::default()),
            json!({"pattern": "*", "path": path}),
        ),
    ]
}

/// What a call is told; it must be an error, and soon.
async fn refused(tool: &dyn Tool, input: &Value, context: &Context) -> String {
    let input = ToolInput::from_text(&input.to_string());
    let call = tool.call(&input, context);
    let output = tokio::time::timeout(Duration::from_secs(20), call).await;
    let output = output.unwrap_or_else(|_| panic!("{} hangs", tool.spec().name));
    assert!(output.is_error, "{}: {output:?}", tool.spec().name);
    testing::text(&output)
}

#[tokio::test]
async fn paths_that_cannot_be_are_told_why() {
    let tree = Tree::new(&[("a", "x")]);
    let rows = [
        (json!("a\0b"), "holds a NUL byte"),
        (json!("x/".repeat(2500)), "longer than 4,096 bytes"),
        (json!("y".repeat(5000)), "longer than 4,096 bytes"),
        (json!("z".repeat(300)), "ame too long"),
        (json!(5), "invalid type: integer `5`, expected a string"),
        (json!(["a"]), "invalid type: sequence, expected a string"),
        (json!({"a": 1}), "invalid type: map, expected a string"),
    ];
    for (path, want) in rows {
        for (tool, input) in with_path(&path) {
            let text = refused(&*tool, &input, &tree.context).await;
            let name = &tool.spec().name;
            assert!(text.contains(want), "{name} {want}: {text}");
        }
    }
}

#[tokio::test]
async fn pipes_and_devices_are_not_waited_for() {
    let tree = Tree::new(&[]);
    tree.pipe("pipe");
    for (tool, input) in with_path(&json!("pipe")) {
        let text = refused(&*tool, &input, &tree.context).await;
        let is_told = ["regular file", "no such folder"]
            .iter()
            .any(|want| text.contains(want));
        assert!(is_told, "{}: {text}", tool.spec().name);
    }
    // Endless, where the agent's folder is the one with the devices.
    let temp = tempfile::tempdir().unwrap();
    let devices = Context::in_folder(Path::new("/dev"), temp.path(), temp.path(), temp.path());
    for path in ["zero", "null"] {
        for (tool, input) in with_path(&json!(path)) {
            // What writes has been shown above to open nothing but files.
            if tool.access() == crate::Access::Reads {
                let text = refused(&*tool, &input, &devices).await;
                assert!(text.contains("regular file"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn names_and_contents_need_not_be_utf8() {
    let tree = Tree::new(&[("sub/a", "")]);
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::write(tree.path("sub").join(name), b"caf\xe9 here\n").unwrap();
    std::fs::write(tree.path("latin"), b"caf\xe9 here\n").unwrap();
    let (text, _) = tree
        .call(&*erase(Glob::default()), json!({"pattern": "sub/c*"}))
        .await;
    assert_eq!(text, "sub/caf\u{fffd}\n");
    let search = json!({"pattern": "here", "path": "sub", "output_mode": "content"});
    let (text, _) = tree.call(&*erase(Grep), search).await;
    assert_eq!(text, "sub/caf\u{fffd}:1:caf\u{fffd} here\n");
    let (text, _) = tree.call(&*erase(Read), json!({"file_path": "sub"})).await;
    assert!(text.contains("it holds a, caf\u{fffd}"), "{text}");
    // Written back, the letter would be another one.
    let (text, is_error) = tree
        .call(&*erase(Read), json!({"file_path": "latin"}))
        .await;
    assert!(!is_error && text.ends_with("caf\u{fffd} here\n"), "{text}");
    let edit = json!({"file_path": "latin", "old_string": "here", "new_string": "there"});
    let (text, is_error) = tree.call(&*erase(Edit), edit).await;
    assert!(is_error && text.contains("it is not UTF-8 text"), "{text}");
}

#[tokio::test]
async fn arguments_of_a_wrong_type_are_named() {
    let tree = Tree::new(&[("a", "x")]);
    let rows: [(Arc<dyn Tool>, Value, &str); 9] = [
        (
            erase(Bash),
            json!({"command": ["ls"]}),
            "`command`: invalid type: sequence",
        ),
        (
            erase(Bash),
            json!({"command": "ls", "timeout": "long"}),
            "`timeout`: invalid type",
        ),
        (
            erase(Bash),
            json!({"command": "a\0b"}),
            "The command holds a NUL byte",
        ),
        (
            erase(Read),
            json!({"file_path": "a", "offset": -1}),
            "`offset`: invalid value",
        ),
        (
            erase(Read),
            json!({"file_path": "a", "limit": 1.5}),
            "`limit`: invalid type",
        ),
        (
            erase(Read),
            json!({"file_path": "a", "pages": 3}),
            "`pages`: invalid type",
        ),
        (
            erase(Write),
            json!({"file_path": "b", "content": {}}),
            "`content`: invalid type: map",
        ),
        (
            erase(Edit),
            json!({"file_path": "a", "old_string": null, "new_string": ""}),
            "`old_string`: invalid type: null",
        ),
        (
            erase(Grep),
            json!({"pattern": "x", "-i": "yes"}),
            "`-i`: invalid type: string",
        ),
    ];
    for (tool, input, want) in rows {
        let text = refused(&*tool, &input, &tree.context).await;
        assert!(text.contains(want), "{input}: {text}");
    }
}
