//! Pain 10: a worker in a worktree, under the real sandbox, against the user's checkout.

use crate::sandbox::Place;
use crate::sandbox_kept::all_means;
use gaffer_protocol::Timestamp;
use gaffer_tools::{Context, Sandbox};
use gaffer_workspace::sandbox::{Binding, Means, kept, unmade};
use gaffer_workspace::worktree::{Base, Fate, Git, New, Trace, Worktree, Worktrees};
use std::path::{Path, PathBuf};

struct World {
    /// Its shell is the user's.
    user: Place,
    trees: Worktrees,
    tree: Worktree,
    worker: Place,
}

async fn world(means: Option<Means>) -> World {
    let user = Place::new(true);
    let script = "set -e; git init -q -b main .; git config user.name t; git config user.email t@t; \
        echo one > f; mkdir d; echo two > d/g; echo .env > .gitignore; echo .env > .worktreeinclude; \
        echo secret > .env; git add .; git commit -qm one; git branch other; git tag v0; \
        git worktree add -q ../sibling; echo x > .git/hooks/pre-commit; \
        git update-ref refs/remotes/origin/main main; echo changed >> d/g; git add d/g; echo again >> d/g";
    user.freely(script).await;
    let git = Git::default().with("GIT_CONFIG_GLOBAL", "/dev/null");
    let project = user.context.cwd.get();
    let trees = Worktrees::of(git, &project, Base::Head).await.unwrap();
    let new = New {
        place: &user.temp.path().join("session/worktrees"),
        session: "3f2b8a10",
        name: "agent-00c0ffee",
        task: "Fix the parser",
        now: Timestamp(1),
    };
    let tree = trees.create(&new).await.unwrap();
    let worker = worker(&user, &tree, means);
    World {
        user,
        trees,
        tree,
        worker,
    }
}

fn worker(user: &Place, tree: &Worktree, means: Option<Means>) -> Place {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_gaffer"));
    let (spill, temp) = (user.temp.path().join("spill"), user.temp.path().join("tmp"));
    let mut context = Context::in_folder(&tree.folder(), &spill, &temp, &program);
    let mut write = tree.writable();
    write.push(temp);
    let folders = [tree.path.clone()];
    let has_means = means.is_some();
    context.sandbox = Some(Sandbox {
        program,
        binding: Binding {
            kept: if has_means {
                kept(&folders, &write, &[])
            } else {
                Vec::new()
            },
            unmade: if has_means {
                unmade(&folders, &[])
            } else {
                Vec::new()
            },
            write,
            network: true,
            means,
        },
        may_leave: false,
    });
    Place {
        temp: tempfile::tempdir().unwrap(),
        context,
    }
}

/// Every byte of the user's checkout and of git's folder, but for what the worker may write.
fn snapshot(project: &Path, own: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![project.to_owned(), project.join("../sibling")];
    let free = [
        ".git/objects".to_owned(),
        ".git/refs/heads/gaffer".to_owned(),
        ".git/logs/refs/heads/gaffer".to_owned(),
        format!(".git/worktrees/{own}"),
    ];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                found.push((path.clone(), Vec::new()));
                if !free.iter().any(|free| path == project.join(free)) {
                    waiting.push(path);
                }
            } else {
                let bytes = std::fs::read(&path).unwrap_or_default();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

const ESCAPES: [&str; 36] = [
    "echo x > $M/f",
    "cd $M && echo x > f",
    "cd $M/d && rm g",
    "ln -s $M link; echo x > link/f; rm link",
    "ln $M/f hard; echo x > hard; rm -f hard",
    "mv $M/f .",
    "cp f $M/new",
    "echo x > $M/.env",
    "git -C $M commit --allow-empty -qm x",
    "git -C $M checkout -q -b other2",
    "git -C $M add -A",
    "git -C $M stash -q",
    "git -C $M reset -q --hard",
    "git -C $M clean -fdxq",
    "git -C $M checkout -q -- .",
    "git -C $M gc -q",
    "git -C $M worktree add -q ../another",
    "git -C $M/../sibling commit --allow-empty -qm x",
    "GIT_DIR=$M/.git git update-ref refs/heads/main HEAD",
    "GIT_DIR=$M/.git GIT_WORK_TREE=$M git checkout -qf HEAD",
    "GIT_WORK_TREE=$M git checkout -qf HEAD -- .",
    "GIT_INDEX_FILE=$M/.git/index git read-tree HEAD",
    "git --git-dir=$M/.git symbolic-ref HEAD refs/heads/other",
    "git --work-tree=$M checkout -f HEAD -- f",
    "git update-ref refs/heads/main HEAD",
    "git update-ref refs/tags/v1 HEAD",
    "git branch -f other HEAD",
    "git branch -D other",
    "git tag -d v0",
    "git checkout -q -b mine",
    "git config user.name evil; git config --worktree user.name evil",
    "git remote add evil /nowhere",
    "printf x > $M/.git/hooks/pre-commit; printf x > $M/.git/hooks/post-checkout",
    "rm -f $M/.git/index $M/.git/HEAD $M/.git/packed-refs; git pack-refs --all",
    "echo x >> $M/.git/info/exclude; echo x > $M/.git/shallow; touch $M/.git/gaffer.lock.x",
    "mkdir h && printf '#!/bin/sh\\necho x > $M/f' > h/post-commit && chmod +x h/* && git -c core.hooksPath=h commit --allow-empty -qm x",
];

#[tokio::test]
async fn not_a_byte_of_the_users_checkout_changes() {
    let [one, other] = all_means();
    // Without namespaces too: Landlock alone holds the user's checkout.
    for means in [Some(one), Some(other), None] {
        let world = world(means.clone()).await;
        let main = world.user.context.cwd.get();
        let before = snapshot(&main, "agent-00c0ffee");
        for escape in ESCAPES {
            let script = format!("M={}; export M; {escape}", main.display());
            let (text, _) = world.worker.run(&script).await;
            let now = snapshot(&main, "agent-00c0ffee");
            let differ: Vec<_> = now.iter().filter(|one| !before.contains(one)).collect();
            assert!(now == before, "{means:?}: {escape}: {text}\n{differ:?}");
        }
    }
}

#[tokio::test]
async fn it_can_work_and_commit() {
    for means in all_means() {
        let world = world(Some(means.clone())).await;
        for work in [
            "cat .env && test $(git branch --show-current) = gaffer/3f2b8a10/fix-the-parser-ffee",
            "echo two > f && mkdir new && echo x > new/file && git add . && git commit -qm two",
            "git log --oneline | wc -l && git diff HEAD~1 --stat && git status --short",
            "git commit -q --amend -m three && git reset -q --soft HEAD~1 && git commit -qm four",
            "git rebase -q main && git cherry-pick --allow-empty main~0 || git cherry-pick --abort",
            "git branch gaffer/3f2b8a10/second main",
            "git fsck",
        ] {
            let (text, is_error) = world.worker.run(work).await;
            assert!(!is_error, "{means:?}: {work}: {text}");
        }
        // Git takes away folders of branches when it packs them, while a worker works.
        world.user.freely("git pack-refs --all && git gc -q").await;
        let (text, is_error) = world
            .worker
            .run("echo five > f && git commit -qam five")
            .await;
        assert!(!is_error, "{means:?}: {text}");
        let fate = world.trees.finish(&world.tree).await;
        let Fate::Kept { because, .. } = fate else {
            panic!("{fate:?}")
        };
        let has_commits = |trace: &Trace| matches!(trace, Trace::Commits { count: 2, alone: 2 });
        assert!(because.iter().any(has_commits), "{because:?}");
    }
}

/// What a worker could use to make git run something for whoever looks at its worktree later.
#[tokio::test]
async fn it_cannot_lead_git_elsewhere() {
    for means in all_means() {
        let world = world(Some(means.clone())).await;
        world
            .user
            .freely("git config extensions.worktreeConfig true")
            .await;
        let own = "own=$(git rev-parse --git-dir); ";
        for attempt in [
            "mkdir evil; echo 'gitdir: evil' > .git",
            "rm .git && git init -q .",
            "echo /elsewhere > $own/commondir",
            "echo /elsewhere > $own/gitdir",
            "git config --worktree core.fsmonitor evil",
            "printf '[core]\\n\\tfsmonitor = evil\\n' > $own/config.worktree",
            "mv $own $own.2",
        ] {
            let (text, is_error) = world.worker.run(&format!("{own}{attempt}")).await;
            assert!(is_error, "{means:?}: {attempt}: {text}");
        }
    }
}

/// Where nothing can be mounted, it can; then it is seen, and git is not asked.
#[tokio::test]
async fn without_namespaces_what_was_led_elsewhere_is_kept_and_not_asked() {
    let world = world(None).await;
    let script = "mkdir evil && own=$(git rev-parse --git-dir) && echo $PWD/evil > $own/commondir";
    let (text, is_error) = world.worker.run(script).await;
    assert!(!is_error, "{text}");
    let fate = world.trees.finish(&world.tree).await;
    let Fate::Kept { because, .. } = &fate else {
        panic!("{fate:?}")
    };
    assert!(matches!(because[..], [Trace::Unclear(_)]), "{fate:?}");
}
