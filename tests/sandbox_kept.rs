//! What stays as it is inside the folder that commands may write: by a mount namespace of the
//! sandbox's own, and by bubblewrap.

use crate::harness::{Place as Project, run};
use crate::sandbox::Place;
use gaffer_workspace::sandbox::{Hold, Means};
use rustix::process::{getgid, getuid};
use std::path::{Path, PathBuf};

const BUBBLEWRAP: &str = "/usr/bin/bwrap";

pub(crate) fn all_means() -> [Means; 2] {
    assert!(
        Path::new(BUBBLEWRAP).exists(),
        "bubblewrap is missing: `cargo xtask test` installs it"
    );
    [Means::Namespace, Means::Bubblewrap(BUBBLEWRAP.into())]
}

/// A project with everything that is kept, and one commit.
async fn project(means: Means) -> Place {
    let mut place = Place::new(true);
    place
        .freely(
            "set -e; git init -q -b main .; git config user.name t; git config user.email t@t; \
             mkdir -p .git/hooks .gaffer/agent-memory/me .claude/worktrees .claude/skills sub; \
             echo '{}' > .gaffer/settings.json; echo '{}' > .mcp.json; echo one > file; \
             git add file; git commit -qm one; git worktree add -q ../other",
        )
        .await;
    place.bind(true, Some(means));
    place
}

/// Everything in the project that must not change.
fn snapshot(place: &Place) -> Vec<(PathBuf, Vec<u8>)> {
    let project = place.temp.path().join("project");
    let mut found = Vec::new();
    let names = [
        ".git/config",
        ".git/hooks",
        ".git/worktrees",
        ".git/commondir",
        ".gaffer",
        ".claude",
        ".mcp.json",
    ];
    let mut waiting: Vec<PathBuf> = names.iter().map(|name| project.join(name)).collect();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
            found.push((path, Vec::new()));
        } else if path.exists() {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn what_runs_later_stays_as_it_is() {
    const ATTEMPTS: [&str; 27] = [
        "echo x > .git/hooks/pre-commit",
        "cp /bin/true .git/hooks/post-checkout",
        "echo x >> .git/config",
        "git config core.hooksPath sub",
        "git config core.fsmonitor ./sub/run",
        "rm -f .git/config",
        "mv .git/config sub/",
        "mv .git/hooks sub/",
        "rm -rf .git/hooks",
        "mv .git gone",
        "mv sub/x .git/hooks/x || ln -f file .git/hooks/x",
        "ln -sfn ../sub .git/hooks/link",
        "(cd .git/hooks && touch here)",
        "echo ref > .git/worktrees/other/HEAD",
        "echo ../../sub > .git/worktrees/other/commondir",
        "echo x > .gaffer/settings.json",
        "echo x > .gaffer/settings.local.json",
        "mv .gaffer gone",
        "echo x > .claude/settings.json",
        "touch .claude/skills/new",
        "rm -rf .claude",
        "echo x > .mcp.json",
        "rm .mcp.json",
        "umount .git/hooks",
        "mount -o remount,rw,bind .git/hooks",
        "unshare -Urm umount .git/hooks",
        "chmod 777 .git/hooks",
    ];
    for means in all_means() {
        let place = project(means.clone()).await;
        let before = snapshot(&place);
        for attempt in ATTEMPTS {
            let (text, is_error) = place.run(attempt).await;
            assert!(is_error, "{means:?}: {attempt}: {text}");
            let is_same = snapshot(&place) == before;
            assert!(is_same, "{means:?}: {attempt}: {text}");
        }
        // Where a command began does not matter, nor another process's view of the files.
        place.run("cd .git/hooks").await;
        let (text, is_error) = place.run("pwd; echo x > pre-push").await;
        assert!(is_error && text.contains(".git/hooks"), "{text}");
        let through = format!(
            "echo x > /proc/{}/root$PWD/pre-push; echo x > /proc/{0}/cwd/pre-push; false",
            std::process::id()
        );
        place.run(&through).await;
        place
            .run("w=$(cut -d' ' -f4 /proc/$$/stat); echo x > /proc/$w/root$PWD/x")
            .await;
        assert!(snapshot(&place) == before, "{means:?}");
    }
}

#[tokio::test]
async fn work_goes_on_as_usual() {
    const WORK: [&str; 13] = [
        "echo two > file && git commit -qam two && git log --oneline | wc -l",
        "git checkout -q -b topic && echo 3 > file && git commit -qam three && git checkout -q main && git merge -q topic",
        "echo 4 > file; git stash -q && git stash pop -q && git checkout -q file",
        "git tag v1 && git branch x && git branch -D x && git repack -adq && git fsck",
        "git branch -q y && git checkout -q -b z --track y && git checkout -q main",
        "git init -q sub/new && git -C sub/new config user.name x",
        "git clone -q . sub/copy && git -C sub/copy log --oneline",
        "git reset -q --hard HEAD~1 && git clean -fdq sub",
        "echo note > .gaffer/agent-memory/me/MEMORY.md",
        "touch .claude/worktrees/w",
        "python3 -c 'import threading; t = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()'",
        "(sleep 0 & wait) && sh -c 'true | cat' && printf x | tee sub.txt > /dev/null",
        "mkdir -p d/e && mv d e && rm -r e && ln -s file l && rm l",
    ];
    for means in all_means() {
        let place = project(means.clone()).await;
        for work in WORK {
            let (text, is_error) = place.run(work).await;
            assert!(!is_error, "{means:?}: {work}: {text}");
        }
    }
}

#[tokio::test]
async fn a_refusal_says_what_is_kept() {
    let place = project(Means::Namespace).await;
    let (text, is_error) = place.run("git config user.name x").await;
    assert!(is_error, "{text}");
    assert!(
        text.contains("The sandbox keeps these as they are: ") && text.contains("/.git/config"),
        "{text}"
    );
    let (text, _) = place.run("echo no; exit 3").await;
    assert!(!text.contains("The sandbox"), "{text}");
}

/// Below bubblewrap and in namespaces, too, nothing outlives the agent.
#[tokio::test]
async fn whatever_hides_is_ended_with_the_agent() {
    for means in all_means() {
        let place = project(means.clone()).await;
        let hide = "setsid nohup sh -c '(sleep 301 & echo $! > pid1; wait) & sleep 302 & echo $! > pid2; wait' > /dev/null 2>&1 & \
                    while [ ! -s pid1 ] || [ ! -s pid2 ]; do sleep 0.01; done";
        let (text, is_error) = place.run(hide).await;
        assert!(!is_error && text.contains("left running"), "{text}");
        let project = place.context.cwd.get();
        let pids = ["pid1", "pid2"].map(|name| {
            let pid = std::fs::read_to_string(project.join(name)).unwrap();
            pid.trim().to_owned()
        });
        assert!(pids.iter().all(|pid| is_alive(pid)), "{means:?}");
        place.context.jobs.end_all().await.unwrap();
        assert!(!pids.iter().any(|pid| is_alive(pid)), "{means:?}");
    }
}

/// What has ended may still be listed until somebody has taken note.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[tokio::test]
async fn git_cannot_be_sent_elsewhere_for_its_config() {
    let place = project(Means::Namespace).await;
    let file = place.context.cwd.get().join(".git/commondir");
    place.run("echo ../sub > .git/commondir").await;
    assert!(!file.exists(), "it is taken away when the command ends");
    place
        .run("(sleep 0.3; mkdir .git/commondir) > /dev/null 2>&1 & true")
        .await;
    for entry in place.context.jobs.alive() {
        entry.job.gone().await;
    }
    assert!(!file.exists(), "and when nothing of it runs any more");
}

#[tokio::test]
async fn without_means_the_rest_still_holds() {
    let mut place = project(Means::Namespace).await;
    place.bind(true, None);
    assert!(!place.run("echo x > .git/hooks/pre-commit").await.1);
    assert!(place.run("echo x > ../outside/file").await.1);
}

#[tokio::test]
async fn paths_that_went_away_are_no_obstacle() {
    for means in all_means() {
        let place = project(means).await;
        place.freely("rm -rf .claude .mcp.json").await;
        let (text, is_error) = place.run("true").await;
        assert!(!is_error, "{text}");
    }
}

/// The user and the group of a command, and of what it makes, by a user namespace where the
/// tests run as root.
#[tokio::test]
async fn a_command_is_who_its_user_is() {
    let place = project(Means::Namespace).await;
    let project = place.context.cwd.get();
    let (text, _) = place
        .run("id -u; id -g; touch made; stat -c %u:%g made")
        .await;
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    assert_eq!(text, format!("{user}\n{group}\n{user}:{group}"));
    if user != 0 {
        return;
    }
    // As somebody else, and as root without the right to mount.
    let program = place.temp.path().join("gaffer");
    std::fs::copy(env!("CARGO_BIN_EXE_gaffer"), &program).unwrap();
    let sandbox = place.context.sandbox.clone().unwrap();
    let check = "id -u; id -g; touch new; stat -c %u:%g new; rm new; echo x > .git/config; echo x > .mcp.json; cat /proc/self/setgroups";
    for (who, user) in [
        ("--reuid=1234 --regid=1234 --clear-groups", "1234"),
        ("--bounding-set=-sys_admin", "0"),
    ] {
        place
            .freely(&format!(
                "chmod 755 {}; chown -R {user}:{user} .",
                place.temp.path().display()
            ))
            .await;
        let before = snapshot(&place);
        let line = ["sh", "-c", check].map(Into::into).to_vec();
        let line = sandbox.binding.wrap(&program, line);
        let words: Vec<String> = line
            .iter()
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let command = format!("setpriv {who} {} 2>&1 || true", words.join(" "));
        let mut free = place.context.clone();
        free.sandbox = None;
        free.cwd.set(project.clone());
        let free = Place {
            temp: tempfile::tempdir().unwrap(),
            context: free,
        };
        let (text, _) = free.run(&command).await;
        let want = format!("{user}\n{user}\n{user}:{user}\n");
        assert!(text.starts_with(&want), "{who}: {text}");
        assert!(text.ends_with("deny"), "{who}: {text}");
        assert!(snapshot(&place) == before, "{who}");
    }
}

/// In its own sandbox gaffer may make no namespaces, as in many containers.
#[tokio::test]
async fn where_namespaces_are_refused_it_is_said_once_or_refused() {
    let place = Place::new(true);
    let gaffer = env!("CARGO_BIN_EXE_gaffer");
    let home = place.context.temp.display().to_string();
    std::fs::write(
        place.context.cwd.get().join("s.yaml"),
        "agents: [{ steps: [{ calls: [{ tool: Bash, input: { command: 'echo x > made' } }, { tool: Bash, input: { command: 'echo x > ../outside/file' } }] }, { say: Done. }] }]",
    )
    .unwrap();
    let run = |more: &str| {
        format!(
            "GAFFER_HOME={home} {gaffer} -p go --mode normal --provider scripted --model s.yaml {more} 2>&1"
        )
    };
    let (text, is_error) = place.run(&run("")).await;
    assert!(!is_error && text.contains("Done."), "{text}");
    assert_eq!(
        text.matches("the sandbox is not whole here").count(),
        1,
        "{text}"
    );
    assert!(place.context.cwd.get().join("made").exists());
    let (text, is_error) = place.run(&run("--sandbox require")).await;
    assert!(is_error && text.contains("[exit code 2]"), "{text}");
    assert!(text.contains("install bubblewrap"), "{text}");
}

/// A script that runs a file of the project: rules do not see what it does.
const RUN: &str = "agents: [{ steps: [{ calls: [{ tool: Bash, input: { command: 'sh run.sh' } }] }, { say: Done. }] }]";

#[test]
fn the_program_keeps_what_runs_later_unless_it_is_given_free() {
    let place = Project::new();
    place.write("project/.gaffer/settings.json", "{}");
    place.write(
        "project/run.sh",
        "echo x > .gaffer/new; echo x > $HOME/.gaffer/evil; echo x > $HOME/evil; echo x > made",
    );
    let ran = run(place.scripted(RUN, &["-p", "go", "--sandbox", "require"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let new = place.project().join(".gaffer/new");
    assert!(place.project().join("made").exists() && !new.exists());
    // Gaffer's own things are out of reach.
    assert!(place.home().join(".gaffer").exists());
    assert!(!place.home().join(".gaffer/evil").exists() && !place.home().join("evil").exists());
    place.write(
        "home/.gaffer/settings.json",
        r#"{"sandbox": {"allowWrite": [".gaffer"]}}"#,
    );
    let ran = run(place.scripted(RUN, &["-p", "go"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(new.exists(), "{ran:?}");
}

#[test]
fn in_the_users_home_only_the_agents_own_files_are_free() {
    let place = Project::new();
    place.write("project/.gaffer/settings.json", "{}");
    place.write(
        "project/run.sh",
        "echo x > .gaffer/new; echo x > $TMPDIR/a && cat $TMPDIR/a > made",
    );
    let mut command = place.scripted(RUN, &["-p", "go"]);
    command.env("HOME", place.project());
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.project().join("made").exists(), "{ran:?}");
    assert!(!place.project().join(".gaffer/new").exists());
}

/// What the documentation says is lost.
#[tokio::test]
async fn some_work_with_git_is_refused() {
    let place = project(Means::Namespace).await;
    for work in [
        "git remote add x y",
        "git worktree add -q sub/tree",
        "git gc -q",
        "git branch -m main other-name",
        "rm -rf .git",
    ] {
        assert!(place.run(work).await.1, "{work}");
    }
}

/// Not held, and said so; but rules see it where the text names it.
#[tokio::test]
async fn what_is_not_there_cannot_be_kept() {
    let place = Place::new(true);
    let (text, is_error) = place
        .run("mkdir .claude && touch .claude/settings.json")
        .await;
    assert!(!is_error, "{text}");
}

#[tokio::test]
async fn what_is_kept_is_ordered_from_the_outside_in() {
    let place = project(Means::Namespace).await;
    let kept = place.context.sandbox.unwrap().binding.kept;
    for (number, one) in kept.iter().enumerate() {
        let above = |other: &Path| one.path.starts_with(other) && one.path != other;
        assert!(!kept[number..].iter().any(|other| above(&other.path)));
    }
    assert!(kept.iter().any(|one| one.how == Hold::Writable));
}
