//! The sandbox of commands: each row of the table in docs/sandbox.md, tried for real.

use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Json, ResultPart};
use gaffer_tools::bash::Bash;
use gaffer_tools::{Context, Sandbox, erase};
use gaffer_workspace::sandbox::{Binding, Level, Means, git_paths, kept, unmade};
use serde_json::json;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) struct Place {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) context: Context,
}

impl Place {
    /// A project, and beside it an outside with a file that must not change.
    pub(crate) fn new(network: bool) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        for folder in ["project", "spill", "tmp", "outside"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("outside/file"), "untouched").unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_gaffer"));
        let context = Context::in_folder(&at("project"), &at("spill"), &at("tmp"), &program);
        let mut place = Self { temp, context };
        place.bind(network, Some(Means::Namespace));
        place
    }

    /// The sandbox for what is in the project now.
    pub(crate) fn bind(&mut self, network: bool, means: Option<Means>) {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_gaffer"));
        let level = Level::find(&program);
        assert_ne!(
            level,
            Level::Rules,
            "this kernel has no Landlock; the sandbox cannot be tested"
        );
        assert_ne!(
            level,
            Level::Bound,
            "namespaces are refused here; the sandbox cannot be tested"
        );
        let project = self.context.cwd.get();
        let write = vec![project.clone(), self.context.temp.clone()];
        let binding = Binding {
            kept: kept(std::slice::from_ref(&project), &write, &[]),
            unmade: unmade(&[project], &[]),
            write,
            network,
            means,
        };
        self.context.sandbox = Some(Sandbox {
            program,
            binding,
            may_leave: false,
        });
    }

    /// Runs a command as the user would, without a sandbox.
    pub(crate) async fn freely(&self, command: &str) {
        let mut context = self.context.clone();
        context.sandbox = None;
        let input = ToolInput::Json(Json::of(&json!({"command": command})));
        let output = erase(Bash).call(&input, &context).await;
        assert!(!output.is_error, "{command}: {:?}", output.parts);
    }

    pub(crate) async fn run(&self, command: &str) -> (String, bool) {
        let input = ToolInput::Json(Json::of(&json!({"command": command})));
        let output = erase(Bash).call(&input, &self.context).await;
        let ResultPart::Text(text) = &output.parts[0] else {
            panic!("no text")
        };
        (text.clone(), output.is_error)
    }

    fn untouched(&self) {
        let outside = self.temp.path().join("outside");
        assert_eq!(
            std::fs::read_to_string(outside.join("file")).unwrap(),
            "untouched"
        );
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn writes_stay_in_the_folders_they_belong_to() {
    let place = Place::new(true);
    let (text, is_error) = place.run("echo hi > made; mkdir -p d/e; mv made d/e/; ln -s e d/l; rm -r d; echo $TMPDIR; touch $TMPDIR/x; echo ok > /dev/null").await;
    assert!(!is_error, "{text}");
    let attempts = [
        "echo x > ../outside/file",
        "echo x >> ../outside/new",
        "rm ../outside/file",
        "mv ../outside/file .",
        "cp /bin/true ../outside/",
        "ln ../outside/file hard && echo x > hard",
        "ln -s ../outside/file soft; echo x > soft",
        "truncate -s 0 ../outside/file",
        "chmod 777 ../outside/new || mkdir ../outside/new",
        "sh -c 'cd ../outside && touch deep'",
        "setsid sh -c 'touch ../outside/late'",
        "python3 -c 'open(\"../outside/file\", \"w\")'",
        "mount --bind ../outside . ",
        "mknod disk b 7 0",
        "echo x > $HOME/.gaffer-sandbox-test",
        "echo x > /tmp/gaffer-sandbox-test-$$",
    ];
    for attempt in attempts {
        let (text, is_error) = place.run(attempt).await;
        assert!(is_error, "{attempt}: {text}");
        place.untouched();
    }
}

#[tokio::test]
async fn signals_reach_nobody_outside() {
    let place = Place::new(true);
    let pid = std::process::id();
    let (text, is_error) = place.run(&format!("kill -0 {pid}")).await;
    assert!(is_error && text.contains("not permitted"), "{text}");
    // The warden in particular: a command cannot free itself by killing it.
    let warden = "warden=$(cut -d' ' -f4 /proc/$$/stat); kill -9 $warden; echo still here";
    let (text, _) = place.run(warden).await;
    assert!(text.contains("still here"), "{text}");
    // Its own children it may end.
    assert!(!place.run("sleep 300 & kill $!; wait $! || true").await.1);
}

#[tokio::test]
async fn the_network_is_there_or_not_by_choice() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let on = Place::new(true);
    assert!(on.run(&connect).await.0.contains("connected"));
    let off = Place::new(false);
    let (text, is_error) = off.run(&connect).await;
    assert!(is_error && !text.contains("connected"), "{text}");
    let udp = format!("echo x > /dev/udp/127.0.0.1/{port}");
    assert!(off.run(&udp).await.1);
    // Local sockets are left: many tools talk to themselves.
    let unix = "python3 -c 'import socket; socket.socketpair(); print(\"fine\")'";
    assert!(off.run(unix).await.0.contains("fine"));
}

/// Not held, and said so: whoever relies on it must know.
#[tokio::test]
async fn reading_and_sockets_with_a_path_are_free() {
    let place = Place::new(false);
    let socket = place.temp.path().join("outside/socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(
        place
            .run("cat ../outside/file")
            .await
            .0
            .contains("untouched")
    );
    let connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"../outside/socket\"); print(\"fine\")'";
    assert!(place.run(connect).await.0.contains("fine"));
    drop(listener);
}

#[tokio::test]
async fn a_worktree_can_commit_and_touch_nothing_of_the_main_checkout() {
    let place = Place::new(true);
    let main = place.temp.path().join("main");
    let tree = place.temp.path().join("tree");
    // The user's own shell, without a sandbox, makes the repository and the worktree.
    let (main_text, tree_text) = (main.display().to_string(), tree.display().to_string());
    let setup = format!(
        "set -e; git init -q -b main {main_text}; cd {main_text}; git config user.name t; git config user.email t@t; echo one > f; git add f; git commit -qm one; git worktree add -q -b gaffer/task {tree_text}; mkdir -p .git/refs/heads/gaffer .git/logs/refs/heads/gaffer"
    );
    place.freely(&setup).await;

    let program = PathBuf::from(env!("CARGO_BIN_EXE_gaffer"));
    let spill = place.temp.path().join("spill");
    let temp = place.temp.path().join("tmp");
    let mut context = Context::in_folder(&tree, &spill, &temp, &program);
    let mut write = git_paths(&tree, OsStr::new("refs/heads/gaffer"));
    write.extend([tree.clone(), temp]);
    context.sandbox = Some(Sandbox {
        program,
        binding: Binding {
            kept: kept(std::slice::from_ref(&tree), &write, &[]),
            unmade: unmade(std::slice::from_ref(&tree), &[]),
            write,
            network: true,
            means: Some(Means::Namespace),
        },
        may_leave: false,
    });
    let worker = Place {
        temp: tempfile::tempdir().unwrap(),
        context,
    };

    let (text, is_error) = worker
        .run("echo two > f && git commit -qam two && git log --oneline | wc -l")
        .await;
    assert!(!is_error && text.ends_with('2'), "{text}");
    let before = snapshot(&main);
    let escapes = [
        format!("echo x > {main_text}/f"),
        format!("cd {main_text} && echo x > f"),
        format!("git -C {main_text} commit --allow-empty -qm x"),
        format!("git -C {main_text} checkout -q -b other"),
        format!("git -C {main_text} reset -q --hard gaffer/task"),
        format!("GIT_DIR={main_text}/.git git update-ref refs/heads/main gaffer/task"),
        format!("GIT_DIR={main_text}/.git GIT_WORK_TREE={main_text} git checkout -qf gaffer/task"),
        "git update-ref refs/heads/main HEAD".to_owned(),
        "git branch -f main HEAD".to_owned(),
        "git tag v1".to_owned(),
        "git config user.name evil".to_owned(),
        format!("printf '#!/bin/sh' > {main_text}/.git/hooks/pre-commit"),
        format!("ln -s {main_text} link; echo x > link/f"),
        format!("echo 'ref: refs/heads/gaffer/task' > {main_text}/.git/HEAD"),
        format!("rm -f {main_text}/.git/index"),
        format!("git --work-tree={main_text} checkout -f HEAD -- f"),
    ];
    for escape in escapes {
        let (text, _) = worker.run(&escape).await;
        assert_eq!(snapshot(&main), before, "{escape}: {text}");
    }
    // Nor can it make git look for config and hooks elsewhere, for the user who looks at it later.
    let own = git_paths(&tree, OsStr::new("refs"))[0]
        .display()
        .to_string();
    for attempt in [
        "mkdir evil; echo 'gitdir: evil' > .git".to_owned(),
        "rm .git && git init -q .".to_owned(),
        "mv .git away".to_owned(),
        format!("echo /elsewhere > {own}/commondir"),
        format!("rm {own}/commondir"),
        format!("mv {own} {own}2"),
    ] {
        let (text, is_error) = worker.run(&attempt).await;
        assert!(is_error, "{attempt}: {text}");
    }
    let (text, is_error) = worker.run("git status --short").await;
    assert!(!is_error, "{text}");
}

/// Everything of a checkout that a worktree must not touch: files, HEAD, index, config, hooks and
/// refs outside `gaffer/`.
fn snapshot(main: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![main.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let own = ["objects", "worktrees", "gaffer"]
                .iter()
                .any(|name| path.ends_with(name));
            if path.is_dir() && !own {
                waiting.push(path);
            } else if path.is_file() {
                found.push((path.clone(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
