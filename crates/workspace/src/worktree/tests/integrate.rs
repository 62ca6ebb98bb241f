//! Integrations: what is merged, what is left out and why, and that nothing is ever half-way.

use super::super::{
    Checked, Checks, Integrated, Integration, Into, Outcome, Piece, Worktree, Worktrees,
};
use super::world::World;
use crate::process::{Bounds, How, Plan, run};
use futures_util::future::BoxFuture;
use gaffer_protocol::Timestamp;
use std::time::Duration;

/// Runs checks as a shell would.
struct Shell;

impl Checks for Shell {
    fn check<'a>(&'a self, command: &'a str, tree: &'a Worktree) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let plan = Plan::new("sh", tree.folder()).args(["-c", command]);
            let bounds = Bounds {
                time: Duration::from_secs(60),
                keep: 1 << 20,
            };
            let finished = run(&plan, bounds).await.unwrap();
            Checked {
                is_met: matches!(finished.how, How::Exited(status) if status.success()),
                output: finished.output.text(),
            }
        })
    }

    fn lets_go<'a>(&'a self, _: &'a Worktree) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

/// A worker's branch, with what it did there.
async fn piece(world: &World, trees: &Worktrees, name: &str, script: &str) -> Piece {
    let tree = world.create(trees, name).await;
    world.sh(&tree.path, script).await;
    Piece {
        tree,
        name: format!("w-{name}"),
        done_when: None,
        after: Vec::new(),
    }
}

fn write(file: &str, text: &str) -> String {
    format!("echo '{text}' > '{file}' && git add . && git commit -qm x")
}

fn order(pieces: &[&Piece], into: Into) -> Integration {
    Integration {
        pieces: pieces.iter().copied().cloned().collect(),
        into,
        test: None,
        is_trial: false,
        now: Timestamp(7),
    }
}

fn kinds(done: &Integrated) -> Vec<(&str, &'static str)> {
    let kind = |outcome: &Outcome| match outcome {
        Outcome::Merged { .. } => "merged",
        Outcome::Contained => "contained",
        Outcome::Nothing => "nothing",
        Outcome::Conflict { .. } => "conflict",
        Outcome::CheckFailed { .. } => "failed",
        Outcome::LeftOut { .. } => "left out",
    };
    let items = done.items.iter();
    items
        .map(|item| (item.side.task_id.as_str(), kind(&item.outcome)))
        .collect()
}

/// What a user could see of the repository, but for the worktrees of workers.
const LOOK: &str =
    "git status --porcelain; git rev-parse HEAD; git branch --list 'gaffer/integrated*'; ls .git";

async fn no_scratch(world: &World) {
    let left = world.sh("p", "git worktree list").await;
    assert!(!left.contains("gaffer-scratch"), "{left}");
    let mut names = std::fs::read_dir(world.place()).into_iter().flatten();
    let is_scratch = |name: String| name.contains("gaffer-scratch");
    assert!(!names.any(|it| is_scratch(it.unwrap().file_name().to_string_lossy().into())));
}

#[tokio::test]
async fn branches_come_into_a_new_one_and_their_worktrees_go() {
    let world = World::new().await;
    let trees = world.trees().await;
    let a = piece(&world, &trees, "a", &write("a", "1")).await;
    let b = piece(&world, &trees, "b", &write("un us\"ual\n日", "2")).await;
    let c = piece(&world, &trees, "c", "true").await;
    let before = world
        .sh("p", "git rev-parse HEAD; git status --porcelain")
        .await;
    let mut order = order(&[&a, &b, &c, &a], Into::New);
    order.test = Some("test -e a && touch junk && echo out > x.o".to_owned());
    let done = trees.integrate(&order, &Shell).await.unwrap();
    let expected = [("a", "merged"), ("b", "merged"), ("c", "nothing")];
    assert_eq!(kinds(&done), expected, "{done}");
    assert!(
        done.is_whole() && done.items.iter().all(|item| item.is_removed),
        "{done}"
    );
    let branch = done.into.clone().unwrap();
    assert!(branch.starts_with("gaffer/integrated-"), "{branch}");
    assert_eq!(
        world
            .sh("p", "git rev-parse HEAD; git status --porcelain")
            .await,
        before
    );
    let log = world
        .sh("p", &format!("git log --merges --format=%B {branch}"))
        .await;
    assert!(
        log.contains("Merge task w-a: Fix the parser") && log.contains("Task: b (w-b)"),
        "{log}"
    );
    let files = world
        .sh(
            "p",
            &format!("git ls-tree -r -z --name-only {branch} | tr '\\0' '|'"),
        )
        .await;
    assert!(
        files.contains("un us\"ual\n日|") && !files.contains("junk"),
        "{files}"
    );
    // Their own branches are gone, too, and the new one is all that is left.
    let branches = world
        .sh("p", "git branch --list 'gaffer/*' | tr -d ' '")
        .await;
    assert_eq!(branches, branch);
    no_scratch(&world).await;
}

#[tokio::test]
async fn a_conflict_names_both_sides_and_others_go_on() {
    let world = World::new().await;
    let trees = world.trees().await;
    let a = piece(&world, &trees, "a", &write("kept", "from a")).await;
    let b = piece(&world, &trees, "b", &write("kept", "from b")).await;
    let mut c = piece(&world, &trees, "c", &write("c", "1")).await;
    c.after = vec!["b".to_owned()];
    let d = piece(&world, &trees, "d", &write("d", "1")).await;
    let done = trees
        .integrate(&order(&[&c, &a, &b, &d], Into::New), &Shell)
        .await
        .unwrap();
    let expected = [
        ("a", "merged"),
        ("b", "conflict"),
        ("c", "left out"),
        ("d", "merged"),
    ];
    assert_eq!(kinds(&done), expected, "{done}");
    assert!(!done.is_whole());
    let text = done.to_string();
    for words in [
        "Merged 2 of 4 branches",
        "conflict: w-b (b, \"Fix the parser\")",
        "kept: changed by w-a (a, \"Fix the parser\"), too",
        "<<<<<<< w-a\n    from a\n    =======\n    from b\n    >>>>>>> w-b",
        "it depends on w-b (b, \"Fix the parser\"), which conflicts",
        "No test command",
        "Next:\n- w-b: in its worktree, merge gaffer/integrated-",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(b.tree.path.exists() && c.tree.path.exists() && !a.tree.path.exists());
    // Mended as the report says, it goes in.
    let into = done.into.unwrap();
    let mend = format!(
        "git merge -q {into} || true; echo both > kept && git add . && git commit -qm both"
    );
    world.sh(&b.tree.path, &mend).await;
    let again = order(&[&b, &c], Into::Branch(into.clone()));
    let done = trees.integrate(&again, &Shell).await.unwrap();
    assert_eq!(kinds(&done), [("b", "merged"), ("c", "merged")], "{done}");
    assert_eq!(
        world.sh("p", &format!("git show {into}:kept")).await,
        "both"
    );
}

#[tokio::test]
async fn a_conflict_with_the_target_and_with_a_removal_is_told() {
    let world = World::new().await;
    let trees = world.trees().await;
    let a = piece(&world, &trees, "a", &write("kept", "from a")).await;
    world.sh("p", "git rm -q kept && git commit -qm gone").await;
    let look = world.sh("p", LOOK).await;
    let done = trees
        .integrate(&order(&[&a], Into::Current), &Shell)
        .await
        .unwrap();
    let text = done.to_string();
    assert!(text.contains("Nothing was merged: main is at"), "{text}");
    assert!(
        text.contains("the target changed it, too") && text.contains("modify/delete"),
        "{text}"
    );
    let after = world.sh("p", LOOK).await;
    assert_eq!(
        after.replace("gaffer-integrate.lock\n", ""),
        look.replace("gaffer-integrate.lock\n", "")
    );
}

#[tokio::test]
async fn those_that_others_depend_on_come_first() {
    let world = World::new().await;
    let trees = world.trees().await;
    let mut a = piece(&world, &trees, "a", &write("a", "1")).await;
    let b = piece(&world, &trees, "b", &write("b", "1")).await;
    let mut c = piece(&world, &trees, "c", &write("c", "1")).await;
    a.after = vec!["c".to_owned()];
    c.after = vec!["b".to_owned(), "nobody".to_owned()];
    let done = trees
        .integrate(&order(&[&a, &b, &c], Into::New), &Shell)
        .await
        .unwrap();
    assert_eq!(
        kinds(&done),
        [("b", "merged"), ("c", "merged"), ("a", "merged")]
    );
}

#[tokio::test]
async fn what_fails_a_check_is_left_out() {
    let world = World::new().await;
    let trees = world.trees().await;
    let mut a = piece(&world, &trees, "a", &write("a", "1")).await;
    a.done_when = Some("test -e a && test ! -e b".to_owned());
    let mut b = piece(&world, &trees, "b", &write("b", "1")).await;
    // Whatever a check does there, the next one begins from what was merged.
    b.done_when = Some("rm -rf kept a; echo x > sub/deep; echo broken: 7; exit 3".to_owned());
    let c = piece(&world, &trees, "c", &write("c", "1")).await;
    let mut order = order(&[&a, &b, &c], Into::New);
    order.test =
        Some("test -e kept && test -e a && grep -q two sub/deep && test ! -e b".to_owned());
    let done = trees.integrate(&order, &Shell).await.unwrap();
    assert_eq!(
        kinds(&done),
        [("a", "merged"), ("b", "failed"), ("c", "merged")],
        "{done}"
    );
    let text = done.to_string();
    assert!(
        text.contains("the command: rm -rf kept") && text.contains("    broken: 7"),
        "{text}"
    );
    no_scratch(&world).await;
}

#[tokio::test]
async fn the_current_branch_goes_forward_only_when_nothing_is_in_the_way() {
    let world = World::new().await;
    let trees = world.trees().await;
    let a = piece(&world, &trees, "a", &write("new", "1")).await;
    let try_it = async || trees.integrate(&order(&[&a], Into::Current), &Shell).await;
    world.write("p/kept", "changed");
    let why = try_it().await.unwrap_err().to_string();
    assert!(why.contains("commit or stash them first"), "{why}");
    world
        .sh("p", "git checkout -q kept && echo mine > new")
        .await;
    let done = try_it().await.unwrap();
    assert!(
        done.after.is_none() && done.refused.as_ref().unwrap().contains("new"),
        "{done}"
    );
    assert_eq!(
        world.sh("p", "cat new; git status --short").await,
        "mine\n?? new"
    );
    // What git ignores is somebody's, too.
    world.sh("p", "echo new >> .git/info/exclude").await;
    let done = try_it().await.unwrap();
    assert!(done.refused.is_some() && a.tree.path.exists(), "{done}");
    assert_eq!(world.sh("p", "cat new; git status --short").await, "mine");
    world.sh("p", "rm new").await;
    let done = try_it().await.unwrap();
    assert!(done.is_whole(), "{done}");
    assert_eq!(done.into.as_deref(), Some("main"));
    assert_eq!(world.sh("p", "cat new; git status --short").await, "1");
    assert!(!a.tree.path.exists());
}

#[tokio::test]
async fn a_target_that_moved_meanwhile_stays_where_it_went() {
    let world = World::new().await;
    let trees = world.trees().await;
    let mut a = piece(&world, &trees, "a", &write("new", "1")).await;
    let main = world.at("p").display().to_string();
    a.done_when = Some(format!(
        "git -C {main} -c user.name=t -c user.email=t@t commit -q --allow-empty -m moved"
    ));
    let done = trees
        .integrate(&order(&[&a], Into::Current), &Shell)
        .await
        .unwrap();
    assert!(
        done.refused.as_ref().unwrap().contains("meanwhile"),
        "{done}"
    );
    assert_eq!(
        world
            .sh("p", "git log --format=%s -1; git status --short")
            .await,
        "moved"
    );
    world.sh("p", "git branch other").await;
    a.done_when = Some(format!("git -C {main} branch -qf other HEAD~1"));
    let done = trees
        .integrate(&order(&[&a], Into::Branch("other".to_owned())), &Shell)
        .await
        .unwrap();
    assert!(
        done.refused.as_ref().unwrap().contains("meanwhile"),
        "{done}"
    );
    assert!(a.tree.path.exists());
    let checked_out = Into::Branch(a.tree.branch.clone());
    let why = trees
        .integrate(&order(&[&a], checked_out), &Shell)
        .await
        .unwrap_err();
    assert!(
        why.to_string().contains("checked out in another worktree"),
        "{why}"
    );
}

#[tokio::test]
async fn what_is_not_committed_is_refused_and_a_trial_moves_nothing() {
    let world = World::new().await;
    let trees = world.trees().await;
    let a = piece(&world, &trees, "a", &write("new", "1")).await;
    let mut order = order(&[&a], Into::New);
    order.is_trial = true;
    let done = trees.integrate(&order, &Shell).await.unwrap();
    assert!(
        done.is_whole() && done.to_string().contains("Tried only: 1 of 1"),
        "{done}"
    );
    assert!(a.tree.path.exists());
    assert_eq!(
        world
            .sh("p", "git branch --list 'gaffer/integrated*'")
            .await,
        ""
    );
    world.sh(&a.tree.path, "echo more > more").await;
    let why = trees
        .integrate(&order, &Shell)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("Continue the worker and let it commit"),
        "{why}"
    );
}

#[tokio::test]
async fn who_is_stopped_leaves_nothing_and_one_works_at_a_time() {
    let world = World::new().await;
    let trees = world.trees().await;
    let mut a = piece(&world, &trees, "a", &write("new", "1")).await;
    let began = world.at("began");
    a.done_when = Some(format!("touch {}; sleep 600", began.display()));
    let order = order(&[&a], Into::Current);
    let look = world
        .sh("p", "git rev-parse HEAD; git status --short")
        .await;
    {
        let mut under_way = Box::pin(trees.integrate(&order, &Shell));
        while !began.exists() {
            let pause = tokio::time::sleep(Duration::from_millis(10));
            tokio::select! {
                done = &mut under_way => panic!("{done:?}"),
                () = pause => {}
            }
        }
        let other = trees.integrate(&order, &Shell).await.unwrap_err();
        assert!(other.to_string().contains("under way"), "{other}");
        assert_eq!(trees.clear_stale(&[world.place()]).await.unwrap(), None);
    }
    // It goes on a thread of its own; whoever comes next finds it gone, or removes it.
    trees.clear_stale(&[world.place()]).await.unwrap();
    no_scratch(&world).await;
    assert_eq!(
        world
            .sh("p", "git rev-parse HEAD; git status --short")
            .await,
        look
    );
}

#[tokio::test]
async fn a_stale_scratch_worktree_goes_and_nothing_else_does() {
    let world = World::new().await;
    let trees = world.trees().await;
    let mut a = piece(&world, &trees, "a", &write("new", "1")).await;
    // What a process leaves that is killed in a check: a copy, made while it runs.
    let place = world.place();
    let (place, git) = (place.display(), world.at("p/.git"));
    let git = git.display();
    a.done_when = Some(format!(
        "mkdir {place}/copy && cp -r {place}/gaffer-scratch-* {place}/copy/ && cp -r {git}/worktrees/gaffer-scratch-* {place}/copy/entry"
    ));
    let mut order = order(&[&a], Into::New);
    order.is_trial = true;
    trees.integrate(&order, &Shell).await.unwrap();
    no_scratch(&world).await;
    world
        .sh("", &format!("cd {place}/copy && n=$(ls -d gaffer-scratch-* | grep -v scratch$) && mv entry {git}/worktrees/$n && mv gaffer-scratch-* .. && cd .. && rmdir copy && git -C {git} worktree list | grep -q $n"))
        .await;
    // An entry that leads elsewhere is not followed.
    world.write("precious/gaffer-scratch-9-9/work", "mine");
    world.write(
        "p/.git/worktrees/gaffer-scratch-9-9/gitdir",
        &format!(
            "{}/.git\n",
            world.at("precious/gaffer-scratch-9-9").display()
        ),
    );
    assert_eq!(trees.clear_stale(&[]).await.unwrap(), Some(1));
    assert!(world.at("precious/gaffer-scratch-9-9/work").exists());
    world
        .sh("p", "rm -r .git/worktrees/gaffer-scratch-9-9")
        .await;
    no_scratch(&world).await;
    assert!(a.tree.path.join("new").exists());
    assert_eq!(trees.clear_stale(&[world.place()]).await.unwrap(), Some(0));
}
