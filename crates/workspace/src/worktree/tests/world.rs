//! A repository with one commit, and a place for worktrees beside it.

use super::super::{Base, Git, New, Worktree, Worktrees};
use crate::process::{Bounds, How, Plan, run};
use gaffer_protocol::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) struct World {
    temp: tempfile::TempDir,
}

impl World {
    pub(super) async fn new() -> Self {
        let world = Self {
            temp: tempfile::tempdir().unwrap(),
        };
        world.write("p/kept", "one\n");
        world.write("p/sub/deep", "two\n");
        world.write("p/.gitignore", "*.o\n.env*\nout/\n");
        world
            .sh("p", "git init -q -b main . && git config user.name t && git config user.email t@t && git add . && git commit -qm one")
            .await;
        world
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn git() -> Git {
        Git::default()
            .with("GIT_CONFIG_GLOBAL", "/dev/null")
            .with("GIT_CONFIG_SYSTEM", "/dev/null")
    }

    pub(super) async fn trees(&self) -> Worktrees {
        self.trees_with(Self::git(), Base::Head).await
    }

    pub(super) async fn trees_with(&self, git: Git, base: Base) -> Worktrees {
        Worktrees::of(git, &self.at("p"), base).await.unwrap()
    }

    pub(super) fn place(&self) -> PathBuf {
        self.at("home/worktrees")
    }

    pub(super) async fn create(&self, trees: &Worktrees, name: &str) -> Worktree {
        let place = self.place();
        trees.create(&new(&place, name)).await.unwrap()
    }

    /// Runs a script in a folder, as a worker or the user would. It must end well.
    pub(super) async fn sh(&self, folder: impl AsRef<Path>, script: &str) -> String {
        let (is_well, text) = self.try_sh(folder, script).await;
        assert!(is_well, "{script}: {text}");
        text
    }

    pub(super) async fn try_sh(&self, folder: impl AsRef<Path>, script: &str) -> (bool, String) {
        let mut plan = Plan::new("sh", self.at("").join(folder)).args(["-c", script]);
        plan.env = [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_EDITOR", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let bounds = Bounds {
            time: Duration::from_secs(60),
            keep: 1 << 20,
        };
        let finished = run(&plan, bounds).await.unwrap();
        let is_well = matches!(finished.how, How::Exited(status) if status.success());
        (is_well, finished.output.text().trim_end().to_owned())
    }
}

pub(super) fn new<'a>(place: &'a Path, name: &'a str) -> New<'a> {
    New {
        place,
        session: "3f2b8a10-0000",
        name,
        task: "Fix the parser",
        now: Timestamp(1),
    }
}
