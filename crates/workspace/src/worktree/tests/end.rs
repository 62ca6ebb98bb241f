//! The end of a worktree: what is removed, what is kept and why.

use super::super::{Allowance, Fate, State, Trace, Worktree, Worktrees};
use super::world::World;

async fn one() -> (World, Worktrees, Worktree) {
    let world = World::new().await;
    let trees = world.trees().await;
    let tree = world.create(&trees, "agent-00c0ffee").await;
    (world, trees, tree)
}

fn traces(fate: Fate) -> Vec<Trace> {
    match fate {
        Fate::Kept { because, .. } => because,
        removed => panic!("{removed:?}"),
    }
}

#[tokio::test]
async fn untouched_it_goes_with_its_branch() {
    let (world, trees, tree) = one().await;
    assert_eq!(trees.finish(&tree).await, Fate::Removed { branch: None });
    assert!(!tree.path.exists() && !world.place().exists());
    assert_eq!(world.sh("p", "git worktree list | wc -l").await, "1");
    assert_eq!(world.sh("p", "git branch --list 'gaffer/*'").await, "");
    // A second time there is nothing to do.
    assert_eq!(trees.finish(&tree).await, Fate::Removed { branch: None });
}

#[tokio::test]
async fn whatever_was_done_keeps_it() {
    let rows: [(&str, Trace); 17] = [
        ("echo x >> kept", Trace::Changed(1)),
        ("rm kept", Trace::Changed(1)),
        ("git mv kept moved", Trace::Changed(1)),
        ("chmod +x kept", Trace::Changed(1)),
        ("echo x > new && git add new", Trace::Changed(1)),
        ("mkdir d && echo x > d/new", Trace::Untracked(1)),
        ("echo x > a.o; mkdir out; echo x > out/b", Trace::Ignored(2)),
        (
            "git init -q nested && echo x > nested/file",
            Trace::Untracked(6),
        ),
        (
            "git update-index --assume-unchanged kept && echo x >> kept",
            Trace::Overlooked(1),
        ),
        (
            "git update-index --skip-worktree kept && echo x >> kept",
            Trace::Overlooked(1),
        ),
        (
            "git commit -q --allow-empty -m x",
            Trace::Commits { count: 1, alone: 1 },
        ),
        (
            "git commit -q --allow-empty -m x && git reset -q --keep HEAD~1",
            Trace::LeftBehind(1),
        ),
        ("git switch -q --detach", Trace::Elsewhere(String::new())),
        ("git branch -qm other", Trace::Elsewhere("other".into())),
        ("echo x >> kept && git stash -q", Trace::Stashed(1)),
        (
            "git worktree unlock . && git worktree lock --reason mine .",
            Trace::Locked("mine".into()),
        ),
        (
            "git bisect start -q",
            Trace::UnderWay("BISECT_START".into()),
        ),
    ];
    for (script, want) in rows {
        let (world, trees, tree) = one().await;
        world.sh(&tree.path, script).await;
        let fate = trees.finish(&tree).await;
        let Fate::Kept {
            path,
            branch,
            because,
        } = &fate
        else {
            panic!("{script}: {fate:?}");
        };
        assert_eq!(path, &tree.path);
        let is_other = script.contains("-qm other");
        assert_eq!(branch, if is_other { "other" } else { &tree.branch });
        let is_it = |trace: &Trace| match (trace, &want) {
            (Trace::Elsewhere(_), Trace::Elsewhere(at)) if at.is_empty() => true,
            // What `git init` puts there depends on its templates.
            (Trace::Untracked(count), Trace::Untracked(6)) => *count > 3,
            _ => *trace == want,
        };
        assert!(because.iter().any(is_it), "{script}: {because:?}");
        // And so does everybody who asks for it.
        let asked = trees.remove(&tree, Allowance::default()).await.unwrap();
        assert!(matches!(asked, Fate::Kept { .. }), "{script}");
        assert!(tree.path.exists());
    }
}

#[tokio::test]
async fn a_conflict_under_way_keeps_it() {
    let (world, trees, tree) = one().await;
    world
        .sh("p", "echo other > kept && git commit -qam other")
        .await;
    let script = "echo mine > kept && git commit -qam mine && ! git merge -q main";
    world.sh(&tree.path, script).await;
    let because = traces(trees.finish(&tree).await);
    assert!(
        because.contains(&Trace::UnderWay("MERGE_HEAD".into())),
        "{because:?}"
    );
}

#[tokio::test]
async fn one_that_was_tampered_with_is_not_even_asked_about() {
    for script in [
        "mkdir evil && echo 'gitdir: evil' > .git",
        "rm .git && git init -q .",
        "own=$(git rev-parse --git-dir) && git init -q --bare ../evil && (cd ../evil; pwd) > $own/commondir",
        "own=$(git rev-parse --git-dir) && printf '[core]\\n\\tfsmonitor = touch RAN\\n' > $own/config.worktree",
        "rm $(git rev-parse --git-dir)/gitdir",
        "ln -sf $PWD/kept $(git rev-parse --git-dir)/logs/HEAD",
        "git symbolic-ref refs/heads/$(git branch --show-current) refs/heads/main",
    ] {
        let (world, trees, tree) = one().await;
        world
            .sh("p", "git config extensions.worktreeConfig true")
            .await;
        world.sh(&tree.path, script).await;
        let because = traces(trees.finish(&tree).await);
        assert!(
            matches!(because[..], [Trace::Unclear(_)]),
            "{script}: {because:?}"
        );
        assert!(!tree.path.join("RAN").exists(), "{script}");
        assert!(tree.path.join("kept").exists());
    }
}

#[tokio::test]
async fn people_may_say_what_can_go() {
    let (world, trees, tree) = one().await;
    world.sh(&tree.path, "echo x > a.o").await;
    let allowed = Allowance {
        ignored: true,
        ..Allowance::default()
    };
    let fate = trees.remove(&tree, allowed).await.unwrap();
    assert_eq!(fate, Fate::Removed { branch: None });

    let tree = world.create(&trees, "b").await;
    world
        .sh(
            &tree.path,
            "echo x > new && git add new && git commit -qm new",
        )
        .await;
    assert_eq!(
        traces(trees.remove(&tree, Allowance::default()).await.unwrap()),
        [Trace::Commits { count: 1, alone: 1 }]
    );
    let allowed = Allowance {
        keep_branch: true,
        ..Allowance::default()
    };
    let fate = trees.remove(&tree, allowed).await.unwrap();
    let branch = Some(tree.branch.clone());
    assert_eq!(fate, Fate::Removed { branch });
    assert_eq!(
        world
            .sh("p", &format!("git show {}:new", tree.branch))
            .await,
        "x"
    );

    // What is merged may go whole.
    let tree = world.create(&trees, "c").await;
    world
        .sh(
            &tree.path,
            "echo x > new && git add new && git commit -qm new",
        )
        .await;
    world
        .sh("p", &format!("git merge -q {}", tree.branch))
        .await;
    let fate = trees.remove(&tree, Allowance::default()).await.unwrap();
    assert_eq!(fate, Fate::Removed { branch: None });
}

#[tokio::test]
async fn only_what_is_gone_is_forgotten() {
    let (world, trees, gone) = one().await;
    let staged = world.create(&trees, "staged").await;
    let detached = world.create(&trees, "detached").await;
    let there = world.create(&trees, "there").await;
    world.sh(&staged.path, "echo x > new && git add new").await;
    world
        .sh(
            &detached.path,
            "git switch -q --detach && git commit -qm x --allow-empty",
        )
        .await;
    world.sh("p", "git worktree add -q ../users").await;
    for tree in [&gone, &staged, &detached] {
        std::fs::remove_dir_all(&tree.path).unwrap();
    }
    std::fs::rename(world.at("users"), world.at("away")).unwrap();
    let all = Worktree::all(&world.place());
    assert_eq!(all.len(), 4);
    let pruned = trees.prune(&all).await.unwrap();
    assert_eq!(pruned.forgotten, [(gone, None)]);
    let mut kept: Vec<String> = pruned.kept.iter().map(|(_, why)| why.to_string()).collect();
    kept.sort();
    assert_eq!(
        kept,
        [
            "1 commit left behind that only its log knows",
            "1 file changed and not committed"
        ]
    );
    assert_eq!(trees.state(&there).await, State::Untouched);
    let list = world.sh("p", "git worktree list").await;
    assert!(
        list.contains("users"),
        "the user's own is not ours to forget: {list}"
    );
}

#[tokio::test]
async fn a_making_that_was_cut_short_is_found_and_kept_or_taken_back() {
    let (world, trees, tree) = one().await;
    let mut cut = tree.clone();
    cut.is_whole = false;
    cut.write().unwrap();
    for file in ["kept", "sub/deep", ".gitignore"] {
        std::fs::remove_file(tree.path.join(file)).unwrap();
    }
    std::fs::remove_dir(tree.path.join("sub")).unwrap();
    trees.undo(&cut, true).await;
    assert!(!tree.path.exists());
    assert_eq!(
        world
            .sh(
                "p",
                "git worktree list | wc -l; git branch --list 'gaffer/*'"
            )
            .await,
        "1"
    );
}

#[tokio::test]
async fn locks_of_a_killed_git_go_unless_somebody_is_at_work() {
    let (world, trees, tree) = one().await;
    let own = world.at("p/.git/worktrees/agent-00c0ffee");
    let branch = world.at("p/.git").join(tree.reference() + ".lock");
    let of_all = world.at("p/.git/index.lock");
    let lock = || {
        for path in [&own.join("index.lock"), &own.join("HEAD.lock"), &branch] {
            std::fs::write(path, "").unwrap();
        }
    };
    lock();
    std::fs::write(&of_all, "").unwrap();
    let commit = "git commit -q --allow-empty -m x 2>&1";
    let refused = world.sh(&tree.path, &format!("{commit} || true")).await;
    assert!(refused.contains("lock"), "{refused}");
    trees.take_stale_locks(&tree).await;
    assert_eq!(world.sh(&tree.path, commit).await, "");
    assert!(of_all.exists(), "it may be the user's");

    lock();
    let at_work = "touch ../here; until [ -e ../go ]; do sleep 0.02; done; \
        ls $(git rev-parse --git-dir)/*.lock | wc -l";
    let (left, ()) = tokio::join!(world.sh(&tree.path, at_work), async {
        while !world.place().join("here").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        trees.take_stale_locks(&tree).await;
        std::fs::write(world.place().join("go"), "").unwrap();
    });
    assert_eq!(left, "2");
}
