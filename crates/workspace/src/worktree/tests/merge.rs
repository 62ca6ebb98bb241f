//! Differences, and merges into the user's branch.

use super::super::{Merged, Worktree, Worktrees};
use super::world::World;

async fn worked(script: &str) -> (World, Worktrees, Worktree) {
    let world = World::new().await;
    let trees = world.trees().await;
    let tree = world.create(&trees, "a").await;
    world.sh(&tree.path, script).await;
    (world, trees, tree)
}

#[tokio::test]
async fn a_difference_has_all_but_what_is_ignored() {
    let script = "echo a > committed && git add . && git commit -qm a && echo b >> kept && echo c > new && echo d > x.o";
    let (world, trees, tree) = worked(script).await;
    let before = world.sh(&tree.path, "git status --short").await;
    let text = String::from_utf8(trees.diff(&tree).await.unwrap()).unwrap();
    for name in ["+++ b/committed", "+++ b/kept", "+++ b/new", "+b", "+c"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(!text.contains("x.o"), "{text}");
    assert_eq!(world.sh(&tree.path, "git status --short").await, before);
    let left = std::fs::read_dir(world.place()).unwrap().count();
    assert_eq!(left, 2, "the worktree and what is known of it");
}

#[tokio::test]
async fn a_merge_brings_the_commits() {
    let (world, trees, tree) = worked("echo a > new && git add . && git commit -qm a").await;
    world.write("p/users", "untracked, and not in the way");
    let merged = trees.merge(&tree).await.unwrap();
    let into = "main".to_owned();
    assert_eq!(merged, Merged::Done { into, commits: 1 });
    assert_eq!(world.sh("p", "cat new").await, "a");
    assert_eq!(trees.merge(&tree).await.unwrap(), Merged::Nothing);
}

#[tokio::test]
async fn a_conflict_changes_nothing() {
    let (world, trees, tree) = worked("echo a > kept && git commit -qam a").await;
    world.sh("p", "echo b > kept && git commit -qam b").await;
    let look = "git status --porcelain; git rev-parse HEAD; cat kept; ls .git";
    let before = world.sh("p", look).await;
    let merged = trees.merge(&tree).await.unwrap();
    assert_eq!(merged, Merged::Conflicts(vec!["kept".to_owned()]));
    assert_eq!(world.sh("p", look).await, before);
}

#[tokio::test]
async fn what_is_not_ready_is_refused() {
    let (world, trees, tree) = worked("echo a > new && git add . && git commit -qm a").await;
    let why = async || trees.merge(&tree).await.unwrap_err().to_string();
    world.write("p/kept", "changed");
    assert!(why().await.contains("commit or stash them first"));
    world
        .sh("p", "git checkout -q kept && git switch -q --detach")
        .await;
    assert!(why().await.contains("is on no branch"));
    world.sh("p", "git switch -q main && echo x > new").await;
    let text = why().await;
    assert!(
        text.contains("nothing was merged") && text.contains("new"),
        "{text}"
    );
    world.sh("p", "rm new").await;
    // A hook of the user's has the last word, and a merge that it stops is taken back.
    world.sh("p", "git commit -qm b --allow-empty").await;
    world.write("p/.git/hooks/commit-msg", "#!/bin/sh\nexit 1\n");
    world.write(
        "p/.git/hooks/pre-merge-commit",
        "#!/bin/sh\necho not today >&2; exit 1\n",
    );
    world.sh("p", "chmod +x .git/hooks/*").await;
    let text = why().await;
    assert!(text.contains("not today"), "{text}");
    assert_eq!(
        world
            .sh("p", "git status --porcelain; ls .git | grep MERGE || true")
            .await,
        ""
    );
    world.write("home/worktrees/a/kept", "not committed");
    assert!(why().await.contains("Commit it there first"));
}
