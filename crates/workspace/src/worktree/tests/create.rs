//! Making worktrees: where, from what, with which files, and many at once.

use super::super::{Base, State, Worktree, WorktreeError, Worktrees};
use super::world::{World, new};
use futures_util::future::join_all;
use std::path::PathBuf;
use std::time::Instant;

#[tokio::test]
async fn a_worktree_is_a_checkout_with_a_branch_of_its_own() {
    let world = World::new().await;
    let trees = world.trees().await;
    let tree = world.create(&trees, "agent-00c0ffee").await;
    assert_eq!(tree.branch, "gaffer/3f2b8a10/fix-the-parser-ffee");
    assert_eq!(tree.path, world.place().join("agent-00c0ffee"));
    assert_eq!(world.sh(&tree.path, "cat kept sub/deep").await, "one\ntwo");
    let branch = world.sh(&tree.path, "git branch --show-current").await;
    assert_eq!(branch, tree.branch);
    assert_eq!(world.sh("p", "git rev-parse HEAD").await, tree.base);
    assert_eq!(world.sh("p", "git status --short; git fsck").await, "");
    assert_eq!(trees.state(&tree).await, State::Untouched);
    let again = Worktree::find(&world.place(), "agent-00c0ffee");
    assert_eq!(again, Some(tree));
    let place = world.place();
    let twice = trees.create(&new(&place, "agent-00c0ffee")).await;
    assert!(matches!(twice, Err(WorktreeError::Exists(_))), "{twice:?}");
}

#[tokio::test]
async fn no_hook_runs_for_it() {
    let world = World::new().await;
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        let path = format!("p/.git/hooks/{hook}");
        world.write(
            &path,
            &format!("#!/bin/sh\ntouch {}\n", world.at("ran").display()),
        );
        world.sh("p", &format!("chmod +x .git/hooks/{hook}")).await;
    }
    let trees = world.trees().await;
    let tree = world.create(&trees, "a").await;
    trees.finish(&tree).await;
    assert!(!world.at("ran").exists());
}

#[tokio::test]
async fn it_begins_from_head_or_from_the_default_branch() {
    let world = World::new().await;
    let main = world.sh("p", "git rev-parse HEAD").await;
    world
        .sh(
            "p",
            "git switch -qc topic && git commit -qm two --allow-empty",
        )
        .await;
    let head = world.sh("p", "git rev-parse HEAD").await;
    let trees = world.trees().await;
    assert_eq!(world.create(&trees, "a").await.base, head);
    let trees = world.trees_with(World::git(), Base::DefaultBranch).await;
    assert_eq!(world.create(&trees, "b").await.base, main);
    // What the remote has goes before what is here.
    world
        .sh("p", "git update-ref refs/remotes/origin/trunk topic && git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/trunk")
        .await;
    assert_eq!(world.create(&trees, "c").await.base, head);
}

#[tokio::test]
async fn what_cannot_be_is_said_and_leaves_nothing() {
    let world = World::new().await;
    std::fs::create_dir(world.at("plain")).unwrap();
    let none = Worktrees::of(World::git(), &world.at("plain"), Base::Head).await;
    assert!(
        matches!(none, Err(WorktreeError::NoRepository(_))),
        "{none:?}"
    );
    world.sh("plain", "git init -q .").await;
    let empty = Worktrees::of(World::git(), &world.at("plain"), Base::Head).await;
    let place = world.place();
    let made = empty.unwrap().create(&new(&place, "a")).await;
    assert!(matches!(made, Err(WorktreeError::NoCommit)), "{made:?}");
    world.sh("p", "git branch gaffer").await;
    let trees = world.trees().await;
    let made = trees.create(&new(&place, "a")).await;
    assert!(matches!(made, Err(WorktreeError::InTheWay(_))), "{made:?}");
    assert!(Worktree::all(&place).is_empty() && !place.join("a").exists());
    assert_eq!(world.sh("p", "git worktree list | wc -l").await, "1");
    // The same where the branch is packed.
    world.sh("p", "git pack-refs --all").await;
    let made = trees.create(&new(&place, "a")).await;
    assert!(matches!(made, Err(WorktreeError::InTheWay(_))), "{made:?}");
}

/// A branch of that name is somebody's; and a making that was cut short is begun again.
#[tokio::test]
async fn what_is_there_already_is_let_be() {
    let world = World::new().await;
    let trees = world.trees().await;
    let branch = "gaffer/3f2b8a10/fix-the-parser-a";
    world.sh("p", &format!("git branch {branch}")).await;
    let tree = world.create(&trees, "a").await;
    assert_eq!(tree.branch, format!("{branch}-2"));
    let mut cut = tree.clone();
    cut.is_whole = false;
    cut.write().unwrap();
    world.sh(&tree.path, "rm -r kept sub .gitignore").await;
    let again = world.create(&trees, "a").await;
    assert_eq!(again.branch, tree.branch);
    assert_eq!(trees.state(&again).await, State::Untouched);
    trees.finish(&again).await;
    world.sh("p", &format!("git rev-parse {branch}")).await;
}

#[tokio::test]
async fn a_project_may_be_a_part_of_its_repository() {
    let world = World::new().await;
    let trees = Worktrees::of(World::git(), &world.at("p/sub"), Base::Head).await;
    let tree = world.create(&trees.unwrap(), "a").await;
    assert_eq!(tree.folder(), world.place().join("a/sub"));
    assert!(tree.folder().join("deep").is_file());
}

#[tokio::test]
async fn ignored_files_come_along_by_name_and_no_others() {
    let world = World::new().await;
    world.write(
        "p/.worktreeinclude",
        ".env*\nkept\nnotes\nout/\nbig.o\nlink.o\n!.env.no\n",
    );
    world.write("p/.env", "secret");
    world.write("p/.env.no", "not this one");
    world.write("p/sub/.env.local", "deep");
    world.write("p/notes", "untracked, but not ignored");
    world.write("p/other.o", "ignored, but not named");
    world.write("p/out/a/b", "in a folder");
    world.write("elsewhere/file", "outside");
    let script = "chmod 600 .env; truncate -s 11M big.o; ln -s ../elsewhere/file link.o";
    world.sh("p", script).await;
    let trees = world.trees().await;
    let tree = world.create(&trees, "a").await;
    let mut names: Vec<PathBuf> = tree.included.iter().map(|one| one.path.clone()).collect();
    names.sort();
    assert_eq!(
        names,
        [".env", "out/a/b", "sub/.env.local"].map(PathBuf::from)
    );
    let modes = world.sh(&tree.path, "stat -c %a .env; cat .env").await;
    assert_eq!(modes, "600\nsecret");
    assert!(
        tree.notes.iter().any(|note| note.contains("1 files")),
        "{:?}",
        tree.notes
    );
    assert!(
        tree.notes.iter().any(|note| note.contains("link.o")),
        "{:?}",
        tree.notes
    );
    assert_eq!(trees.state(&tree).await, State::Untouched);
    std::fs::write(tree.path.join(".env"), "changed").unwrap();
    assert_eq!(
        trees.state(&tree).await.to_string(),
        "1 file from .worktreeinclude changed"
    );
}

#[tokio::test]
async fn an_included_file_never_goes_through_a_link() {
    let world = World::new().await;
    world.write("elsewhere/x", "");
    world
        .sh("p", "rm -r sub && ln -s ../../../elsewhere sub && git add -A && git commit -qm link && rm sub && mkdir sub")
        .await;
    world.write("p/.worktreeinclude", ".env\n");
    world.write("p/sub/.env", "secret");
    let trees = world.trees().await;
    let tree = world.create(&trees, "a").await;
    assert!(tree.path.join("sub").is_symlink());
    assert!(tree.included.is_empty(), "{:?}", tree.included);
    assert!(!world.at("elsewhere/.env").exists());
    assert_eq!(tree.notes.len(), 1, "{:?}", tree.notes);
}

#[tokio::test]
async fn submodules_and_large_files_are_left_alone_with_a_word() {
    let world = World::new().await;
    world.write("p/.gitattributes", "*.bin filter=lfs\n");
    world.write("p/.gitmodules", "");
    world.sh("p", "git add . && git commit -qm more").await;
    let trees = world.trees().await;
    let tree = world.create(&trees, "a").await;
    let notes = tree.notes.join(" ");
    assert!(
        notes.contains("submodule") && notes.contains("LFS"),
        "{notes}"
    );
}

/// Pain 29: from two programs at once, while the user works in the same repository.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thirty_two_at_once() {
    let world = World::new().await;
    for number in 0..300 {
        world.write(&format!("p/many/{}/{number}", number % 20), "some text\n");
    }
    world.write("p/.worktreeinclude", ".env\n");
    world.write("p/.env", "secret");
    world.sh("p", "git add . && git commit -qm many").await;
    // Two of them share no lock but the one on disk.
    let (one, other) = (world.trees().await, world.trees().await);
    let place = world.place();
    let names: Vec<String> = (0..32)
        .map(|number| format!("agent-{number:08x}"))
        .collect();
    let began = Instant::now();
    let busy = world.sh(
        "p",
        "for i in 1 2 3 4 5 6 7 8 9 10; do git commit -q --allow-empty -m $i && git branch b$i && git config x.y $i; done",
    );
    let orders: Vec<_> = names.iter().map(|name| new(&place, name)).collect();
    let making = orders.iter().enumerate().map(|(number, order)| {
        let trees = if number % 2 == 0 { &one } else { &other };
        trees.create(order)
    });
    let (made, _) = tokio::join!(join_all(making), busy);
    let took = began.elapsed();
    let made: Vec<Worktree> = made.into_iter().map(Result::unwrap).collect();
    println!("32 worktrees in {took:?}");
    for tree in &made {
        assert_eq!(one.state(tree).await, State::Untouched, "{}", tree.name);
        assert!(tree.path.join(".env").is_file() && tree.path.join("many/7/287").is_file());
    }
    // And the end of all of them at once.
    let began = Instant::now();
    let ends = made.iter().enumerate().map(|(number, tree)| {
        let trees = if number % 2 == 0 { &one } else { &other };
        trees.finish(tree)
    });
    join_all(ends).await;
    println!("removed in {:?}", began.elapsed());
    assert_eq!(world.sh("p", "git worktree list | wc -l").await, "1");
    assert_eq!(world.sh("p", "git branch --list 'gaffer/*'").await, "");
    assert!(!place.exists());
}
