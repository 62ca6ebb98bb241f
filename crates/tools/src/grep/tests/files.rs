//! Grep on trees that are not plain: rules, odd files, races, very many files.

use super::*;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn rules_hidden_files_and_version_control() {
    let tree = Tree::new(&[
        (".gitignore", "*.log\n/build/\n"),
        (".git/config", "x"),
        ("sub/.gitignore", "!keep.log\nlocal\n"),
        ("sub/.ignore", "other\n"),
        (".rgignore", "third\n"),
        (".git/info/exclude", "fourth\n"),
    ]);
    for name in [
        "a",
        "b.log",
        "build/c",
        "sub/keep.log",
        "sub/local",
        "sub/other",
        "third",
        "fourth",
        ".hidden",
        "sub/.h/d",
        ".svn/e",
    ] {
        tree.write(name, "x");
        tree.date(name, 1);
    }
    assert_eq!(
        grep(&tree, json!({"pattern": "x"})).await,
        "a\nsub/keep.log\n"
    );
    // What is named is searched; rules from above hold below.
    let hidden = grep(&tree, json!({"pattern": "x", "path": ".hidden"})).await;
    assert_eq!(hidden, ".hidden\n");
    let below = grep(&tree, json!({"pattern": "x", "path": "sub"})).await;
    assert_eq!(below, "sub/keep.log\n");
    // A glob that names hidden files brings no version control.
    let globbed = grep(&tree, json!({"pattern": "x", "glob": ".*"})).await;
    assert!(
        globbed.contains(".hidden") && !globbed.contains(".git/"),
        "{globbed}"
    );
}

#[tokio::test]
async fn gitignore_counts_in_repositories_only_and_worktrees_share_excludes() {
    let tree = Tree::new(&[
        (".gitignore", "a\n"),
        (".ignore", "c\n"),
        ("a", "x"),
        ("b", "x"),
        ("c", "x"),
    ]);
    tree.date("a", 2);
    tree.date("b", 1);
    assert_eq!(grep(&tree, json!({"pattern": "x"})).await, "a\nb\n");
    // A worktree's .git is a file.
    let main = tree.path("../main/.git");
    std::fs::create_dir_all(main.join("info")).unwrap();
    std::fs::create_dir_all(main.join("worktrees/w")).unwrap();
    std::fs::write(main.join("info/exclude"), "b\n").unwrap();
    std::fs::write(main.join("worktrees/w/commondir"), "../..\n").unwrap();
    tree.write(
        ".git",
        format!("gitdir: {}\n", main.join("worktrees/w").display()),
    );
    let none = grep(&tree, json!({"pattern": "x"})).await;
    assert!(none.starts_with("No file was searched"), "{none}");
}

#[tokio::test]
async fn the_users_own_list_is_the_one_that_is_passed_in() {
    let mut tree = Tree::new(&[
        ("a.swp", "x"),
        ("b", "x"),
        ("c.swp", "x"),
        (".gitignore", "!c.swp"),
    ]);
    let list = tree.path("../list");
    std::fs::write(&list, "\u{feff}*.swp\n[\nother\n").unwrap();
    let all = json!({"pattern": "x"});
    for name in ["a.swp", "b", "c.swp"] {
        tree.date(name, 1);
    }
    tree.context.excludes = Some(list);
    // It is git's, so it counts in repositories only.
    assert_eq!(grep(&tree, all.clone()).await, "a.swp\nb\nc.swp\n");
    tree.write(".git/config", "");
    assert_eq!(grep(&tree, all.clone()).await, "b\nc.swp\n");
    for other in [None, Some(tree.path("none")), Some(tree.path("."))] {
        tree.context.excludes = other;
        assert_eq!(grep(&tree, all.clone()).await, "a.swp\nb\nc.swp\n");
    }
}

#[tokio::test]
async fn binary_files_and_files_that_are_not_utf8() {
    let tree = Tree::new(&[]);
    tree.write("binary", b"needle\n\0needle\n");
    tree.write("latin", b"caf\xe9 needle\n\xff\n");
    tree.write("wide", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    let text = lines(&tree, "needle", json!({})).await;
    assert_eq!(text, "latin:1:caf\u{FFFD} needle\nwide:1:needle\n");
    let binary = grep(&tree, json!({"pattern": "needle", "path": "binary"})).await;
    assert_eq!(binary, "binary is a binary file, which is not searched.");
    // What is no character is matched by no dot.
    let dot = lines(&tree, ".*needle$", json!({"-o": true, "path": "latin"})).await;
    assert_eq!(
        dot,
        "1: needle
"
    );
}

#[tokio::test]
async fn large_files_are_searched_to_their_end() {
    let tree = Tree::new(&[]);
    let filler = "some words that are not looked for\n".repeat(10_000);
    tree.write("a", format!("{filler}needle\n{filler}needle"));
    let text = lines(&tree, "needle", json!({"path": "a"})).await;
    assert_eq!(text, "10001:needle\n20002:needle\n");
    // Exactly as much as is read at once.
    tree.write(
        "b",
        [b"x".repeat((64 << 10) - 7), b"\nneedle".to_vec()].concat(),
    );
    assert_eq!(
        lines(&tree, "needle", json!({"path": "b"})).await,
        "2:needle\n"
    );
    let long = format!("{}needle{}\n", "a".repeat(200_000), "b".repeat(200_000));
    tree.write("c", long);
    let text = lines(&tree, "needle", json!({"path": "c"})).await;
    assert!(
        text.len() < 600 && text.contains("aneedleb") && text.contains("[… "),
        "{text}"
    );
}

#[tokio::test]
async fn pipes_and_links_are_left_alone() {
    let tree = Tree::new(&[("a", "needle"), ("sub/b", "needle")]);
    std::fs::write(tree.path("../secret"), "needle").unwrap();
    symlink(tree.path("../secret"), tree.path("link")).unwrap();
    symlink(tree.path(".."), tree.path("folder")).unwrap();
    tree.pipe("pipe");
    // Where rules are looked for, too; a device there would be read for ever.
    tree.pipe(".gitignore");
    symlink("/dev/zero", tree.path("sub/.ignore")).unwrap();
    let text = lines(&tree, "needle", json!({})).await;
    assert_eq!(text, "a:1:needle\nsub/b:1:needle\n");
    assert!(
        refused(&tree, json!({"pattern": "needle", "path": "link"}))
            .await
            .contains("outside")
    );
    assert!(
        refused(&tree, json!({"pattern": "needle", "path": "pipe"}))
            .await
            .contains("regular file")
    );
}

#[tokio::test]
async fn files_that_come_and_go_do_no_harm() {
    let tree = std::sync::Arc::new(Tree::new(&[("stays", "needle")]));
    let stop = Stop::default();
    let (theirs, their_stop) = (tree.clone(), stop.clone());
    let other = std::thread::spawn(move || {
        while !their_stop.is_set() {
            for number in 0..50 {
                theirs.write(&format!("d{number}/f"), "needle");
            }
            for number in 0..50 {
                std::fs::remove_dir_all(theirs.path(&format!("d{number}"))).unwrap();
            }
        }
    });
    for _ in 0..100 {
        let text = lines(&tree, "needle", json!({})).await;
        assert!(text.contains("stays:1:needle"), "{text}");
        assert!(!text.contains("could not"), "{text}");
    }
    stop.set();
    other.join().unwrap();
}

/// Whatever the timing, a folder that becomes a link leads nowhere outside.
#[tokio::test]
async fn a_link_that_comes_during_the_walk_leads_nowhere() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let tree = std::sync::Arc::new(Tree::new(&[("a/b/own", "needle inside")]));
    let outside = tree.path("../outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "needle outside").unwrap();
    symlink(&outside, tree.path("a/link")).unwrap();
    let stop = Stop::default();
    let (theirs, their_stop) = (tree.clone(), stop.clone());
    let other = std::thread::spawn(move || {
        let (folder, link) = (theirs.path("a/b"), theirs.path("a/link"));
        while !their_stop.is_set() {
            renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
    });
    let all = erase(crate::glob::Glob::default());
    for _ in 0..300 {
        let (found, _) = tree
            .call(
                &*erase(Grep),
                json!({"pattern": "needle", "output_mode": "content"}),
            )
            .await;
        let (named, _) = tree.call(&*all, json!({"pattern": "**"})).await;
        assert!(
            !found.contains("outside") && !named.contains("secret"),
            "{found} {named}"
        );
    }
    stop.set();
    other.join().unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::new(&[("a", "x"), ("b/c", "x")]);
    let forbidden = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(tree.path("b"), forbidden).unwrap();
    // The superuser reads everything.
    let is_refused = std::fs::read_dir(tree.path("b")).is_err();
    let text = grep(&tree, json!({"pattern": "x"})).await;
    assert_eq!(
        text.contains("[b could not be read: "),
        is_refused,
        "{text}"
    );
    let allowed = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(tree.path("b"), allowed).unwrap();
}

#[tokio::test]
async fn a_search_that_nobody_waits_for_stops() {
    use std::time::{Duration, Instant};
    let tree = Tree::new(&[]);
    // All hole; to read it takes a minute.
    let file = std::fs::File::create(tree.path("endless")).unwrap();
    file.set_len(1 << 38).unwrap();
    let stop = Stop::default();
    // A pattern that is in no line; NUL bytes are text here, or the search would end at once.
    let input = GrepInput {
        pattern: "needle".to_owned(),
        ..GrepInput::default()
    };
    std::thread::scope(|scope| {
        let search = scope.spawn(|| endless(&input, &tree.context, &stop));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!search.is_finished(), "it reads");
        stop.set();
        let start = Instant::now();
        let read = search.join().unwrap();
        assert!(read.unwrap_err().to_string().contains("stopped"));
        assert!(start.elapsed() < Duration::from_secs(5));
    });
    // Dropping the future sets the same flag.
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let kept = seen.clone();
    let run = walk::run(move |stop: &Stop| {
        *kept.lock().unwrap() = Some(stop.clone());
        while !stop.is_set() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let ended = tokio::time::timeout(Duration::from_millis(50), run).await;
    assert!(ended.is_err(), "it was dropped");
    assert!(seen.lock().unwrap().as_ref().unwrap().is_set());
}

/// Feeds a file whose end is never reached.
fn endless(input: &GrepInput, context: &Context, stop: &Stop) -> std::io::Result<()> {
    let style = Style::of(input);
    let matcher = pattern::compile(input, style).unwrap();
    let base = Base::find(context, Path::new("endless")).unwrap();
    let file = base.fenced.open().unwrap();
    let mut feeder = feed::Feeder::new(&matcher, style, false);
    feeder.read_all_as_text();
    let counter = sink::Counter::new(&matcher, style, stop);
    feeder.feed(&file, &matcher, stop, counter)
}

#[tokio::test]
async fn twenty_thousand_files_in_the_same_order_each_time() {
    let tree = Tree::new(&[]);
    for number in 0..20_000 {
        let folder = if number % 2 == 0 {
            "flat".to_owned()
        } else {
            format!("d{}", number % 99)
        };
        tree.write(&format!("{folder}/f{number}"), "needle\n");
    }
    let count = json!({"pattern": "needle", "output_mode": "count", "head_limit": 5});
    let first = grep(&tree, count.clone()).await;
    assert!(
        first.contains("[files 1 to 5 of 20000.") && first.contains("[20000 in 20000 files]"),
        "{first}"
    );
    let pages = [
        json!({}),
        json!({"offset": 9000}),
        json!({"output_mode": "content", "offset": 19_900}),
    ];
    for mut input in pages {
        input["pattern"] = "needle".into();
        let one = grep(&tree, input.clone()).await;
        for _ in 0..3 {
            assert_eq!(grep(&tree, input.clone()).await, one);
        }
    }
    let all = json!({"pattern": "needle", "output_mode": "content", "offset": 19_999});
    assert!(grep(&tree, all).await.ends_with("f9998:1:needle\n"));
}

#[tokio::test]
async fn what_a_rule_hides_is_not_searched() {
    let mut tree = Tree::new(&[
        ("a.rs", "x"),
        ("keys/b.rs", "x"),
        ("keys/deep/c.rs", "x"),
        ("sub/d.pem", "x"),
    ]);
    tree.deny(&["Read(keys/**)", "Read(*.pem)"]);
    let modes = [
        ("files_with_matches", "a.rs\n"),
        ("content", "a.rs:1:x\n"),
        ("count", "a.rs:1\n[1 in 1 file]\n"),
    ];
    for (mode, want) in modes {
        let found = grep(&tree, json!({"pattern": "x", "output_mode": mode})).await;
        assert_eq!(found, format!("{want}[3 files are hidden by a rule.]\n"));
    }
    let none = grep(&tree, json!({"pattern": "y", "glob": "*.rs"})).await;
    assert_eq!(
        none,
        "No match in 1 file.\n[2 files are hidden by a rule.]\n"
    );
    let none = grep(&tree, json!({"pattern": "x", "path": "sub"})).await;
    assert_eq!(
        none,
        "No file was searched in sub.\n[1 file is hidden by a rule.]\n"
    );
    for path in ["keys", "keys/deep", "keys/b.rs", "sub/d.pem"] {
        let text = refused(&tree, json!({"pattern": "x", "path": path})).await;
        assert!(text.starts_with("Not allowed"), "{path}: {text}");
    }
    // A folder that the agent has gone into is no way around.
    tree.context.cwd.set(tree.path("keys"));
    let text = refused(&tree, json!({"pattern": "x"})).await;
    assert!(text.starts_with("Not allowed"), "{text}");
}
