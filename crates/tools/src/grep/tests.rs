//! Grep on small trees: what is found and how it is shown.

mod files;

use super::*;
use crate::tool::erase;
use crate::walk::testing::Tree;
use serde_json::{Value, json};

async fn grep(tree: &Tree, input: Value) -> String {
    let (text, is_error) = tree.call(&*erase(Grep), input).await;
    assert!(!is_error, "{text}");
    text
}

async fn refused(tree: &Tree, input: Value) -> String {
    let (text, is_error) = tree.call(&*erase(Grep), input).await;
    assert!(is_error, "{text}");
    text
}

/// The lines that Grep shows of a pattern, with more members of its input.
async fn lines(tree: &Tree, pattern: &str, more: Value) -> String {
    let mut input = json!({"pattern": pattern, "output_mode": "content"});
    for (name, value) in more.as_object().unwrap() {
        input[name] = value.clone();
    }
    grep(tree, input).await
}

#[tokio::test]
async fn paths_come_newest_first_then_by_name() {
    let tree = Tree::new(&[("b", "x"), ("a", "x"), ("sub/c", "x"), ("d", "y")]);
    tree.date("a", 100);
    tree.date("b", 100);
    tree.date("sub/c", 200);
    assert_eq!(grep(&tree, json!({"pattern": "x"})).await, "sub/c\na\nb\n");
}

#[tokio::test]
async fn lines_come_by_path_with_their_numbers() {
    let tree = Tree::new(&[("b.rs", "one\nfn two\n"), ("a.rs", "fn one\n\nfn Fn")]);
    let all = "a.rs:1:fn one\na.rs:3:fn Fn\nb.rs:2:fn two\n";
    assert_eq!(lines(&tree, "fn", json!({})).await, all);
    let plain = "a.rs:fn one\na.rs:fn Fn\nb.rs:fn two\n";
    assert_eq!(lines(&tree, "fn", json!({"-n": false})).await, plain);
    // Of a single file the name is known.
    let single = lines(&tree, "fn", json!({"path": "b.rs"})).await;
    assert_eq!(single, "2:fn two\n");
}

#[tokio::test]
async fn counts_are_of_lines_and_with_o_of_matches() {
    let tree = Tree::new(&[("a", "x x\nx\n"), ("b", "x\n"), ("c", "y\n")]);
    let count = json!({"pattern": "x", "output_mode": "count"});
    assert_eq!(grep(&tree, count).await, "a:2\nb:1\n[3 in 2 files]\n");
    let count = json!({"pattern": "x", "output_mode": "count", "-o": true});
    assert_eq!(grep(&tree, count).await, "a:3\nb:1\n[4 in 2 files]\n");
}

#[tokio::test]
async fn case_and_parts_of_lines() {
    let tree = Tree::new(&[("a", "let Foo = foo(1);\nbar\n")]);
    let both = lines(&tree, "foo", json!({"-i": true, "-o": true})).await;
    assert_eq!(both, "a:1:Foo\na:1:foo\n");
    assert_eq!(lines(&tree, "foo", json!({"-o": true})).await, "a:1:foo\n");
    let numbers = lines(&tree, r"\d", json!({"-o": true, "-n": false, "-C": 2})).await;
    assert_eq!(numbers, "a:1\n");
}

#[tokio::test]
async fn context_is_merged_and_groups_are_kept_apart() {
    let text = "1\n2\nx3\n4\nx5\n6\n7\n8\n9\nx10\n11\n";
    let tree = Tree::new(&[("a", text), ("b", "x\n")]);
    let want = "a-2-2\na:3:x3\na-4-4\na:5:x5\na-6-6\n--\na-9-9\na:10:x10\na-11-11\n--\nb:1:x\n";
    for name in ["-C", "context"] {
        assert_eq!(lines(&tree, "x", json!({ name: 1 })).await, want, "{name}");
    }
    let after = lines(&tree, "x3", json!({"-A": 1})).await;
    assert_eq!(after, "a:3:x3\na-4-4\n");
    let own = lines(&tree, "x10", json!({"-B": 2, "-C": 1})).await;
    assert_eq!(own, "a-8-8\na-9-9\na:10:x10\na-11-11\n");
    // A page cut out of the middle is the same lines.
    let page = lines(&tree, "x", json!({"-C": 1, "offset": 4, "head_limit": 3})).await;
    let want = "a-6-6\n--\na-9-9\n[lines 5 to 7 of 11. Go on with offset 7 or a larger head_limit, or narrow it with path, glob or type.]\n";
    assert_eq!(page, want);
    let last = lines(&tree, "x", json!({"-C": 1, "offset": 9})).await;
    assert_eq!(last, "--\nb:1:x\n");
    let huge = lines(&tree, "x5", json!({"-C": u32::MAX, "path": "a"})).await;
    assert_eq!(huge.lines().count(), 11);
}

#[tokio::test]
async fn all_modes_have_pages() {
    let tree = Tree::new(&[]);
    for number in 0..300 {
        tree.write(&format!("f{number:03}"), "x\n");
        tree.date(&format!("f{number:03}"), 1000 - number);
    }
    for mode in ["content", "files_with_matches", "count"] {
        let text = grep(&tree, json!({"pattern": "x", "output_mode": mode})).await;
        let what = if mode == "content" { "lines" } else { "files" };
        assert!(text.starts_with("f000"), "{text}");
        assert!(
            text.contains(&format!("[{what} 1 to 250 of 300. Go on with offset 250")),
            "{text}"
        );
        let rest = json!({"pattern": "x", "output_mode": mode, "offset": 250});
        let rest = grep(&tree, rest).await;
        assert!(
            rest.starts_with("f250") && !rest.contains("Go on"),
            "{rest}"
        );
        let all = json!({"pattern": "x", "output_mode": mode, "head_limit": 0});
        assert!(grep(&tree, all).await.contains("f299"));
        let past = json!({"pattern": "x", "output_mode": mode, "offset": 300});
        let past = grep(&tree, past).await;
        assert!(past.contains("only 300"), "{past}");
    }
}

#[tokio::test]
async fn a_result_ends_before_it_is_too_long() {
    let tree = Tree::new(&[("a", &format!("x{}\n", "y".repeat(400)).repeat(500))]);
    let text = lines(&tree, "x", json!({"head_limit": 0})).await;
    assert!(text.len() <= 30_000, "{}", text.len());
    assert!(text.contains("of 500. Go on with offset "), "{text}");
    assert!(!text.contains("larger head_limit"), "it would not help");
    // Going on from page to page shows every line once.
    let mut offset = 0;
    let mut shown = 0;
    while offset < 500 {
        let text = lines(&tree, "x", json!({"head_limit": 0, "offset": offset})).await;
        let here = text.lines().filter(|line| line.starts_with("a:")).count();
        assert!(here > 0 && text.starts_with(&format!("a:{}:", offset + 1)));
        offset += here;
        shown += here;
    }
    assert_eq!(shown, 500);
}

#[tokio::test]
async fn globs_and_types() {
    let tree = Tree::new(&[
        ("a.rs", "x"),
        ("src/b.rs", "x"),
        ("src/c.ts", "x"),
        ("d.md", "x"),
    ]);
    let rows = [
        (json!({"glob": "*.rs"}), "a.rs:1\nsrc/b.rs:1\n"),
        (json!({"glob": "src/*"}), "src/b.rs:1\nsrc/c.ts:1\n"),
        (json!({"glob": "!*.rs"}), "d.md:1\nsrc/c.ts:1\n"),
        (json!({"glob": "*.{ts,md}"}), "d.md:1\nsrc/c.ts:1\n"),
        (json!({"glob": "*.ts, *.md"}), "d.md:1\nsrc/c.ts:1\n"),
        (json!({"type": "rust"}), "a.rs:1\nsrc/b.rs:1\n"),
        (json!({"type": "ts", "path": "src"}), "src/c.ts:1\n"),
        (json!({"path": "src", "glob": "src/*.rs"}), "src/b.rs:1\n"),
        // A file that is named is searched whatever it is.
        (
            json!({"path": "d.md", "type": "rust", "glob": "*.rs"}),
            "d.md:1\n",
        ),
    ];
    for (mut input, want) in rows {
        input["pattern"] = "x".into();
        input["output_mode"] = "count".into();
        let text = grep(&tree, input.clone()).await;
        let (files, _) = text.split_once('[').unwrap();
        assert_eq!(files, want, "{input}");
    }
}

#[tokio::test]
async fn errors_say_what_to_change() {
    let tree = Tree::new(&[("a", "x")]);
    let rows = [
        (json!({"pattern": "interface{}"}), r"literal braces as `\{`"),
        (json!({"pattern": "foo("}), r"literal parentheses as `\(`"),
        (json!({"pattern": "[a"}), r"literal brackets as `\[`"),
        (json!({"pattern": "*a"}), "with a backslash"),
        (json!({"pattern": "(?=a)"}), "look-around"),
        (json!({"pattern": "a\\nb"}), "Set multiline to true"),
        (json!({"pattern": "(\\w{900}){900}"}), "smaller counts"),
        (
            json!({"pattern": "x", "type": "rst2"}),
            "There is no type \"rst2\"; the nearest is \"rst\"",
        ),
        (
            json!({"pattern": "x", "type": "tsx"}),
            "the nearest is \"ts\"",
        ),
        (
            json!({"pattern": "x", "type": "Rust"}),
            "the nearest is \"rust\"",
        ),
        (
            json!({"pattern": "x", "glob": "a[b"}),
            "The glob is not valid",
        ),
        (
            json!({"pattern": "x", "glob": "{a"}),
            "The glob is not valid",
        ),
        (
            json!({"pattern": "x", "path": "none"}),
            "there is no such file or folder",
        ),
        (
            json!({"pattern": "x", "path": "../.."}),
            "outside the folders",
        ),
        (json!({"pattern": "x", "speed": 1}), "unknown field `speed`"),
        (
            json!({"pattern": "x", "output_mode": "y"}),
            "unknown variant `y`",
        ),
    ];
    for (input, want) in rows {
        let text = refused(&tree, input.clone()).await;
        assert!(text.contains(want), "{input}: {text}");
        assert!(text.len() < 3500 && !text.contains("(?:"), "{text}");
    }
}

#[tokio::test]
async fn finding_nothing_is_no_error() {
    let tree = Tree::new(&[("a", "x"), ("b", "x")]);
    assert_eq!(
        grep(&tree, json!({"pattern": "y"})).await,
        "No match in 2 files.\n"
    );
    let one = grep(&tree, json!({"pattern": "y", "path": "a"})).await;
    assert_eq!(one, "No match in 1 file.\n");
    let filtered = grep(&tree, json!({"pattern": "x", "glob": "*.rs"})).await;
    assert!(
        filtered.contains("glob and type left no file"),
        "{filtered}"
    );
}

#[tokio::test]
async fn line_ends_of_two_bytes_are_no_part_of_lines() {
    let tree = Tree::new(&[("a", "one\r\ntwo\r\n"), ("b", "one\n")]);
    assert_eq!(lines(&tree, "one$", json!({})).await, "a:1:one\nb:1:one\n");
    assert_eq!(
        lines(&tree, "o.*", json!({"-o": true})).await,
        "a:1:one\na:2:o\nb:1:one\n"
    );
    // Who looks for them finds them.
    assert_eq!(grep(&tree, json!({"pattern": "\\r$"})).await, "a\n");
    let across = lines(&tree, "one\\r\\ntwo", json!({"multiline": true})).await;
    assert_eq!(across, "a:1:one\na:2:two\n");
}

#[tokio::test]
async fn matches_may_span_lines() {
    let tree = Tree::new(&[("a", "0\nstart\nmiddle\nend\nstart end\n")]);
    let all = lines(&tree, "start.*?end", json!({"multiline": true})).await;
    assert_eq!(all, "a:2:start\na:3:middle\na:4:end\na:5:start end\n");
    let parts = json!({"multiline": true, "-o": true});
    let parts = lines(&tree, "t\\n.*?end|d$", parts).await;
    assert_eq!(parts, "a:2:t\na:3:middle\na:4:end\na:5:d\n");
    let count = json!({"pattern": "start.*?end", "multiline": true, "output_mode": "count"});
    assert_eq!(grep(&tree, count).await, "a:2\n[2 in 1 file]\n");
    assert!(
        grep(&tree, json!({"pattern": "start.*end$", "path": "a"}))
            .await
            .starts_with('a')
    );
}

#[tokio::test]
async fn paths_outside_the_working_folder_are_whole() {
    let tree = Tree::new(&[("a/b", "x"), ("c/d", "x")]);
    tree.context.cwd.set(tree.path("a"));
    assert_eq!(grep(&tree, json!({"pattern": "x"})).await, "b\n");
    let beside = grep(&tree, json!({"pattern": "x", "path": "../c"})).await;
    let whole = tree.path("c/d").canonicalize().unwrap();
    assert_eq!(beside, format!("{}\n", whole.display()));
}
