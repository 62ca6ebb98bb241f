//! Glob on small trees: what matches, in which order, and what is never entered.

use super::*;
use crate::tool::erase;
use crate::walk::testing::Tree;
use serde_json::json;
use std::os::unix::fs::symlink;

async fn glob(tree: &Tree, pattern: &str) -> String {
    let tool = erase(Glob::default());
    let (text, is_error) = tree.call(&*tool, json!({"pattern": pattern})).await;
    assert!(!is_error, "{text}");
    text
}

/// A tree whose files are older the later they are named.
fn tree(files: &[&str]) -> Tree {
    let tree = Tree::new(&[]);
    for (age, file) in files.iter().enumerate() {
        tree.write(file, "");
        tree.date(file, 1000 - age as u64);
    }
    tree
}

#[tokio::test]
async fn patterns_and_their_separators() {
    let tree = tree(&[
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/d.ts",
        ".hidden/e.rs",
        "x[1].rs",
    ]);
    let rows = [
        ("*.rs", "a.rs\nx[1].rs\n"),
        ("./*.rs", "a.rs\nx[1].rs\n"),
        (
            "**/*.rs",
            "a.rs\nsrc/b.rs\nsrc/deep/c.rs\n.hidden/e.rs\nx[1].rs\n",
        ),
        ("src/*.rs", "src/b.rs\n"),
        ("src/**", "src/b.rs\nsrc/deep/c.rs\nsrc/d.ts\n"),
        ("src/*.{rs,ts}", "src/b.rs\nsrc/d.ts\n"),
        ("{a,src/b}.rs", "a.rs\nsrc/b.rs\n"),
        ("src/?.ts", "src/d.ts\n"),
        ("src/[a-c].rs", "src/b.rs\n"),
        ("*/*/c.rs", "src/deep/c.rs\n"),
        ("src/b.rs", "src/b.rs\n"),
        ("src/deep/../*.ts", "src/d.ts\n"),
        ("x[[]1].rs", "x[1].rs\n"),
    ];
    for (pattern, want) in rows {
        assert_eq!(glob(&tree, pattern).await, want, "{pattern}");
    }
    let whole = tree.path("src").canonicalize().unwrap();
    let absolute = glob(&tree, &format!("{}/*.ts", whole.display())).await;
    assert_eq!(absolute, "src/d.ts\n");
    let from = json!({"pattern": "*.rs", "path": "src"});
    let (text, _) = tree.call(&*erase(Glob::default()), from).await;
    assert_eq!(text, "src/b.rs\n");
}

#[tokio::test]
async fn what_is_outside_or_makes_no_sense_is_refused() {
    let tree = tree(&["a/b"]);
    let tool = erase(Glob::default());
    let rows = [
        (json!({"pattern": "/etc/*"}), "outside the folders"),
        (json!({"pattern": "../*"}), "outside the folders"),
        (
            json!({"pattern": "*", "path": "../.."}),
            "outside the folders",
        ),
        (json!({"pattern": "*/../../*"}), "put it in path"),
        (json!({"pattern": "{a"}), "The pattern is not valid"),
        (json!({"pattern": "[a"}), "The pattern is not valid"),
        (json!({"pattern": ""}), "names no files"),
        (json!({"pattern": "a/"}), "names no files"),
        (
            json!({"pattern": "*", "path": "none"}),
            "there is no such folder",
        ),
        (json!({"pattern": "*", "path": "a/b"}), "it is a file"),
    ];
    for (input, want) in rows {
        let (text, is_error) = tree.call(&*tool, input.clone()).await;
        assert!(is_error && text.contains(want), "{input}: {text}");
    }
}

#[tokio::test]
async fn nothing_found_comes_with_a_hint() {
    let tree = tree(&["src/a.rs"]);
    let want =
        "No file in the working folder matches *.rs. `**/*.rs` looks in all folders below.\n";
    assert_eq!(glob(&tree, "*.rs").await, want);
    let want = "No file matches lib/*.rs: there is no folder lib.\n";
    assert_eq!(glob(&tree, "lib/*.rs").await, want);
    assert_eq!(
        glob(&tree, "src/**/*.py").await,
        "No file in src matches src/**/*.py.\n"
    );
}

#[tokio::test]
async fn a_hundred_at_most_the_newest_first() {
    let tree = Tree::new(&[]);
    for number in 0..1500 {
        let name = format!("d{}/f{number:04}", number % 7);
        tree.write(&name, "");
        tree.date(&name, 10_000 - number / 2);
    }
    let text = glob(&tree, "**").await;
    let paths: Vec<&str> = text.lines().collect();
    assert_eq!(paths.len(), 101);
    // Of two that are equally old the name decides.
    assert_eq!(paths[..3], ["d0/f0000", "d1/f0001", "d2/f0002"]);
    assert_eq!(
        paths[100],
        "[1400 more, all older. A narrower pattern or path shows them.]"
    );
    for _ in 0..5 {
        assert_eq!(glob(&tree, "**").await, text);
    }
}

#[tokio::test]
async fn rules_are_obeyed_on_demand_and_version_control_is_never_entered() {
    let tree = tree(&[
        "a.log",
        "node_modules/b",
        ".git/c",
        "sub/.git/d",
        ".gitignore",
    ]);
    tree.write(".gitignore", "*.log\nnode_modules\n");
    tree.date(".gitignore", 1);
    let all = "a.log\nnode_modules/b\n.gitignore\n";
    assert_eq!(glob(&tree, "**").await, all);
    assert!(glob(&tree, ".git/*").await.starts_with("No file"));
    assert!(glob(&tree, "sub/.git/**").await.starts_with("No file"));
    let obeying = erase(Glob {
        respect_gitignore: true,
    });
    let (text, _) = tree.call(&*obeying, json!({"pattern": "**"})).await;
    assert_eq!(text, ".gitignore\n");
}

#[tokio::test]
async fn links_and_pipes_are_no_files() {
    let tree = tree(&["a"]);
    symlink("/etc", tree.path("etc")).unwrap();
    symlink("a", tree.path("b")).unwrap();
    symlink(".", tree.path("loop")).unwrap();
    tree.pipe("pipe");
    assert_eq!(glob(&tree, "**").await, "a\n");
}

#[tokio::test]
async fn what_a_rule_hides_is_not_listed() {
    let mut tree = tree(&["a/.env", "b/a.rs", ".env", "secrets/x/c.rs", "d.rs"]);
    tree.deny(&["Read(.env)", "Glob(secrets/**)", "Grep(d.rs)"]);
    let text = glob(&tree, "**").await;
    assert_eq!(text, "b/a.rs\nd.rs\n[3 files are hidden by a rule.]\n");
    // Only those are counted that the pattern asks for.
    let text = glob(&tree, "**/*.rs").await;
    assert_eq!(text, "b/a.rs\nd.rs\n[1 file is hidden by a rule.]\n");
    assert_eq!(glob(&tree, "*.rs").await, "d.rs\n");
    let text = glob(&tree, "secrets/x/*").await;
    assert!(text.starts_with("No file in secrets/x matches"), "{text}");
    assert!(text.ends_with("[1 file is hidden by a rule.]\n"), "{text}");
    for path in ["secrets", "secrets/x", "b/../secrets/x"] {
        let input = json!({"pattern": "**", "path": path});
        let (text, is_error) = tree.call(&*erase(Glob::default()), input).await;
        assert!(
            is_error && text.starts_with("Not allowed"),
            "{path}: {text}"
        );
    }
}
