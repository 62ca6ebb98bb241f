//! Pain 9: real repositories in random states, cleaned up in every way, with a git that fails now
//! and then. What was there before must be there after: in a file, or in something that a branch,
//! a tag, a stash, a log or an index leads to.
//!
//! `PROPTEST_CASES=500` tries more of them.

use super::super::{Allowance, Base, Fate, Git, Worktree, Worktrees};
use super::world::{World, new};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeSet;

/// What a worker or its user does, in the worktree. `$T` is a text that nobody else writes, `$P`
/// the user's checkout, `$O` the worktree's own folder of git's, `$B` its branch.
const DEEDS: [&str; 47] = [
    "echo $T >> kept",
    "sed -i s/one/onf/ kept",
    "mkdir -p d$T && echo $T > d$T/f",
    "echo $T > $T.o",
    "mkdir -p out && echo $T > out/$T",
    "echo $T > c && git add -A && git commit -qm $T",
    "echo $T > $T.o && git add -f . && git commit -qm $T",
    "echo $T > c && git add -A && git commit -q --amend -m $T",
    "git reset -q --keep HEAD~1",
    "git reset -q --soft HEAD~1",
    "git switch -q --detach",
    "git switch -q --detach && echo $T > c && git add -A && git commit -qm $T && git switch -q -",
    "git switch -qc other-$T",
    "git branch -qm renamed-$T",
    "git branch -q -f keep-$T",
    "echo $T >> kept && git stash -q",
    "echo $T > u && git stash -qu",
    "echo $T > kept && git commit -qam $T; (cd $P && echo p$T > kept && git commit -qam p); git merge -q main",
    "echo $T > kept && git commit -qam $T; (cd $P && echo p$T > kept && git commit -qam p); git rebase -q main",
    "git merge --abort || git rebase --abort",
    "(cd $P && echo p$T > kept && git commit -qam p); git cherry-pick main",
    "rm -r sub",
    "git rm -rq sub && git commit -qm $T",
    "git mv kept kept-$T",
    "echo $T > s && git add s && rm s",
    "echo $T > s && git add s && git commit -qm $T && git rm -q s && git commit -qm $T",
    "git update-index --assume-unchanged kept && echo $T >> kept",
    "git update-index --skip-worktree kept && echo $T >> kept",
    "git worktree unlock . && git worktree lock --reason $T .",
    "git worktree unlock .",
    "ln -s $P/kept link-$T && ln -s nowhere-$T link2-$T",
    "rm -rf sub && ln -s $P/sub sub",
    "git init -q nested-$T && cd nested-$T && echo $T > f && git add f && git -c user.name=t -c user.email=t@t commit -qm $T && rm f",
    "touch $O/index.lock",
    "echo $T > .env",
    "rm -f .env",
    "echo '*' >> $P/.git/info/exclude",
    "git -C $P config status.showUntrackedFiles no; echo $T > hidden",
    "git tag t-$T",
    "(cd $P && git merge -q $B)",
    "git symbolic-ref refs/heads/$B refs/heads/main",
    "git symbolic-ref HEAD refs/heads/main",
    "ln -sf $P/kept $O/logs/HEAD",
    "rm .git",
    "rm -rf $PWD",
    "mv $PWD $PWD.moved",
    "(cd $P && git pack-refs --all && git gc -q --prune=now)",
];

/// How it is cleaned up.
#[derive(Debug, Clone, Copy)]
enum Way {
    Finish,
    Remove,
    RemoveKeepingBranch,
    Prune,
    /// Several programs at once.
    AtOnce,
}

const WAYS: [Way; 6] = [
    Way::Finish,
    Way::Finish,
    Way::Remove,
    Way::RemoveKeepingBranch,
    Way::Prune,
    Way::AtOnce,
];

/// The call of git that fails, and whether it does its work before.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: usize,
    after: bool,
}

/// A git that fails at one call.
fn shim(world: &World, fault: Option<Fault>) -> Git {
    let Some(Fault { call, after }) = fault else {
        return World::git();
    };
    let (count, program) = (world.at("count"), world.at("shim"));
    let did = if after { "git \"$@\"; " } else { "" };
    let text = format!(
        "#!/bin/sh\necho x >> {0}\nif [ $(wc -l < {0}) = {call} ]; then {did}echo broken >&2; exit 128; fi\nexec git \"$@\"\n",
        count.display()
    );
    std::fs::write(&program, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    Git::new(program)
        .with("GIT_CONFIG_GLOBAL", "/dev/null")
        .with("GIT_CONFIG_SYSTEM", "/dev/null")
}

/// All that there is, by git's digests: what something leads to, and every file in a checkout.
async fn treasure(world: &World) -> BTreeSet<String> {
    let list =
        "git rev-list --objects --all --reflog --indexed-objects --no-object-names 2>/dev/null";
    let reached = world.sh("p", list).await;
    assert!(reached.lines().count() > 3, "{reached}");
    // Files of repositories in the worktree count too, but not what git notes of ours.
    let files = "find home p -type f -not -path 'p/.git/*' -not -name '*.json' -not -path 'home/worktrees/*/.git' | git hash-object --no-filters --stdin-paths";
    let files = world.sh("", files).await;
    let links = world
        .sh("", "find home p -type l -printf 'link %l\\n'")
        .await;
    let lines = reached.lines().chain(files.lines()).chain(links.lines());
    lines.map(str::to_owned).collect()
}

async fn do_deeds(world: &World, trees: &Worktrees, tree: &Worktree, deeds: &[usize]) {
    let own = trees.own(&tree.path).unwrap();
    for (number, deed) in deeds.iter().enumerate() {
        let script = format!(
            "T=t{number}; P={}; O={}; B={}; {}",
            world.at("p").display(),
            own.display(),
            tree.branch,
            DEEDS[*deed]
        );
        if tree.path.is_dir() {
            // What cannot be done in this state is not done.
            world.try_sh(&tree.path, &script).await;
        }
    }
}

async fn clean_up(world: &World, git: &Git, tree: &Worktree, way: Way) -> Vec<Fate> {
    let open = async || Worktrees::of(git.clone(), &world.at("p"), Base::Head).await;
    let Ok(trees) = open().await else {
        return Vec::new();
    };
    let all = Worktree::all(&world.place());
    let keeping = Allowance {
        keep_branch: true,
        ..Allowance::default()
    };
    match way {
        Way::Finish => vec![trees.finish(tree).await],
        Way::Remove => trees
            .remove(tree, Allowance::default())
            .await
            .into_iter()
            .collect(),
        Way::RemoveKeepingBranch => trees.remove(tree, keeping).await.into_iter().collect(),
        Way::Prune => {
            drop(trees.prune(&all).await);
            Vec::new()
        }
        Way::AtOnce => {
            let Ok(others) = open().await else {
                return Vec::new();
            };
            let (one, other, _, removed) = tokio::join!(
                trees.finish(tree),
                others.finish(tree),
                others.prune(&all),
                trees.remove(tree, keeping)
            );
            [one, other].into_iter().chain(removed).collect()
        }
    }
}

async fn try_one(deeds: &[usize], way: Way, fault: Option<Fault>) -> Result<bool, TestCaseError> {
    let world = World::new().await;
    world.write("p/.worktreeinclude", ".env\n");
    world.write("p/.env", "secret\n");
    world.sh("p", "git add . && git commit -qm two").await;
    let trees = world.trees().await;
    let tree = world.create(&trees, "agent-00c0ffee").await;
    let bystander = world.create(&trees, "bystander").await;
    do_deeds(&world, &trees, &tree, deeds).await;
    let before = treasure(&world).await;
    let users = "git for-each-ref refs/heads/main refs/tags refs/remotes; git symbolic-ref HEAD; git status --porcelain";
    let users_before = world.sh("p", users).await;
    let git = shim(&world, fault);
    let fates = clean_up(&world, &git, &tree, way).await;
    let after = treasure(&world).await;
    let lost: Vec<&String> = before.difference(&after).collect();
    let names: Vec<&str> = deeds.iter().map(|deed| DEEDS[*deed]).collect();
    prop_assert!(lost.is_empty(), "{names:?} {fates:?}: lost {lost:?}");
    prop_assert_eq!(&world.sh("p", users).await, &users_before, "{:?}", names);
    // Whoever reads that it was kept finds it.
    let is_gone = !tree.path.exists();
    for fate in &fates {
        if let Fate::Kept { path, .. } = fate {
            let found = path.exists()
                || matches!(way, Way::AtOnce | Way::Remove | Way::RemoveKeepingBranch);
            prop_assert!(found, "{names:?}: {fate:?}");
        }
    }
    prop_assert!(bystander.path.join("kept").is_file());
    let removed = is_gone
        && fates
            .iter()
            .any(|fate| matches!(fate, Fate::Removed { .. }));
    // The repository is sound, and the next worktree can be made.
    let (is_sound, said) = world.try_sh("p", "git fsck --connectivity-only 2>&1").await;
    prop_assert!(is_sound, "{names:?}: {said}");
    world.create(&trees, "next").await;
    Ok(removed)
}

fn config() -> Config {
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 24;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_byte_is_lost(
        deeds in proptest::collection::vec(0..DEEDS.len(), 0..4),
        way in proptest::sample::select(&WAYS[..]),
        fault in proptest::option::of((1usize..24, any::<bool>())),
    ) {
        let fault = fault.map(|(call, after)| Fault { call, after });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(try_one(&deeds, way, fault))?;
    }
}

/// Each deed alone, so that none of them depends on luck; and without any, it goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_deed_is_tried() {
    for (deed, script) in DEEDS.iter().enumerate() {
        let tried = try_one(&[deed], Way::Finish, None).await;
        tried.unwrap_or_else(|error| panic!("{script}: {error}"));
    }
    assert!(try_one(&[], Way::Finish, None).await.unwrap());
}

/// A making that fails at any call leaves nothing, and the next one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_call_fails_a_making_leaves_nothing() {
    for call in 1..12 {
        for after in [false, true] {
            let world = World::new().await;
            world.write("p/.worktreeinclude", ".env\n");
            world.write("p/.env", "secret\n");
            let git = shim(&world, Some(Fault { call, after }));
            let place = world.place();
            let made = match Worktrees::of(git, &world.at("p"), Base::Head).await {
                Ok(trees) => trees.create(&new(&place, "a")).await,
                Err(error) => Err(error),
            };
            if let Err(error) = &made {
                let left = "git worktree list | wc -l; git branch --list 'gaffer/*'";
                assert_eq!(world.sh("p", left).await, "1", "{call} {after}: {error}");
                assert!(Worktree::all(&place).is_empty(), "{call} {after}: {error}");
            }
            let trees = world.trees().await;
            world
                .create(&trees, if made.is_ok() { "b" } else { "a" })
                .await;
        }
    }
}

/// Each deed, and then somebody takes the folder away: what git still notes of it is all there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_may_still_lead_to_something() {
    let gone = DEEDS
        .iter()
        .position(|deed| *deed == "rm -rf $PWD")
        .unwrap();
    for (deed, script) in DEEDS.iter().enumerate() {
        let way = [Way::Finish, Way::Remove, Way::Prune][deed % 3];
        let tried = try_one(&[deed, gone], way, None).await;
        tried.unwrap_or_else(|error| panic!("{script}: {error}"));
        if script.contains("git add s && rm s") || script.contains("--detach &&") {
            for way in [Way::Finish, Way::Remove, Way::Prune] {
                try_one(&[deed, gone], way, None).await.unwrap();
            }
        }
    }
}

/// A git that fails at any one call, for a worktree that would be removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_call_fails_nothing_is_lost() {
    for call in 1..24 {
        for after in [false, true] {
            let fault = Some(Fault { call, after });
            try_one(&[], Way::Finish, fault).await.unwrap();
        }
    }
}
