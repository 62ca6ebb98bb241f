//! The git program, asked without a terminal, a pager, hooks or the caller's GIT_ variables.
//!
//! What gaffer does here is bookkeeping of its own, so hooks of the repository (`post-checkout`,
//! `reference-transaction`) do not run for it: they may be slow, ask questions or fail, and a
//! worktree has nothing to tell them. Only [`Git::for_user`] lets them run, for a merge into the
//! user's own branch.

use crate::process::{How, Limits, Plan, talk, through};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables that would send git elsewhere, or make it run or write something. What says who
/// commits, and where the user's own config is, stays. A worker's own commands do without them too.
pub const HIDDEN: [&str; 30] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ASKPASS",
    "GIT_ATTR_SOURCE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DEFAULT_HASH",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_TRACE",
    "GIT_WORK_TREE",
];

const SHOWN: [(&str, &str); 7] = [
    // Messages are looked at for locks, in English.
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    // Large files stay pointers: fetching them is a matter for whoever needs them.
    ("GIT_LFS_SKIP_SMUDGE", "1"),
];

/// Config that stands over the repository's: nothing is run that it names, and what git says of a
/// file is true of the file.
const CONFIG: [&str; 10] = [
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.quotePath=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "status.showUntrackedFiles=all",
    "advice.detachedHead=false",
];

/// So much output is held at most.
const MOST: usize = 64 << 20;

/// How long one command may take; a checkout of a large project is the longest.
const TIME: Duration = Duration::from_secs(300);

/// How often a lock of somebody else's is waited for, a little longer each time: about 6 s in all.
const TRIES: u32 = 24;
const PAUSE: Duration = Duration::from_millis(20);

/// What git did not do.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("cannot run git: {0}")]
    Start(io::Error),
    #[error("git {what} took longer than {} s and was ended", TIME.as_secs())]
    Slow { what: String },
    #[error("git {what} failed: {said}")]
    Failed { what: String, said: String },
    #[error("git {what} printed more than {} MB", MOST >> 19)]
    Long { what: String },
}

impl GitError {
    /// Whether another git held a lock, which passes.
    pub(super) fn is_lock(&self) -> bool {
        let Self::Failed { said, .. } = self else {
            return false;
        };
        let locks = [
            ".lock': File exists",
            "could not lock config file",
            "Unable to create",
        ];
        said.contains(".lock") && locks.iter().any(|text| said.contains(text))
    }
}

/// What git answered.
#[derive(Debug)]
pub(super) struct Said {
    what: String,
    /// None if it was ended by a signal.
    pub(super) code: Option<i32>,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Said {
    pub(super) fn failed(self) -> GitError {
        let mut said = self.err.trim().to_owned();
        if said.is_empty() {
            said = match self.code {
                Some(code) => format!("exit code {code}"),
                None => "it was ended by a signal".to_owned(),
            };
        }
        GitError::Failed {
            what: self.what,
            said,
        }
    }

    fn well(self) -> Result<Vec<u8>, GitError> {
        match self.code {
            Some(0) => Ok(self.out),
            _ => Err(self.failed()),
        }
    }
}

/// The git program.
#[derive(Debug, Clone)]
pub struct Git {
    program: OsString,
    hooks: bool,
    /// A checkout's own folder of git's, the checkout, and the index to use instead of its own.
    at: Option<(PathBuf, PathBuf)>,
    index: Option<String>,
    env: Vec<(String, String)>,
}

impl Default for Git {
    fn default() -> Self {
        Self::new("git")
    }
}

impl Git {
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            hooks: false,
            at: None,
            index: None,
            env: Vec::new(),
        }
    }

    /// The same with a further variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with the repository's hooks.
    pub(super) fn for_user(&self) -> Self {
        Self {
            hooks: true,
            ..self.clone()
        }
    }

    /// The same for one checkout, whatever the `.git` in it says.
    pub(super) fn at(&self, own: &Path, tree: &Path) -> Self {
        Self {
            at: Some((own.to_owned(), tree.to_owned())),
            ..self.clone()
        }
    }

    /// The same with another index.
    pub(super) fn with_index(&self, file: &str) -> Self {
        Self {
            index: Some(file.to_owned()),
            ..self.clone()
        }
    }

    /// Runs git and gives what it said, however it ended.
    pub(super) async fn run<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
        input: &[u8],
    ) -> Result<Said, GitError> {
        let what = what(args);
        let plan = self.plan(cwd, args);
        let limits = Limits {
            time: TIME,
            stdout: MOST,
            stderr: 8 << 10,
        };
        let talked = talk(&plan, input, limits).await.map_err(GitError::Start)?;
        let How::Exited(status) = talked.how else {
            return Err(GitError::Slow { what });
        };
        let Some(out) = talked.stdout.bytes() else {
            return Err(GitError::Long { what });
        };
        Ok(Said {
            what,
            code: status.code(),
            out,
            err: talked.stderr.text(),
        })
    }

    /// The same, and once it has begun nothing cuts it short: not the end of whoever waits, nor of
    /// this process. For what would leave the user's checkout half-way.
    pub(super) async fn through<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
    ) -> Result<Said, GitError> {
        let what = what(args);
        let plan = self.plan(cwd, args);
        let ran = tokio::task::spawn_blocking(move || through(&plan)).await;
        let ran = ran.map_err(io::Error::other).flatten();
        let ran = ran.map_err(GitError::Start)?;
        Ok(Said {
            what,
            code: ran.status.code(),
            out: ran.stdout,
            err: String::from_utf8_lossy(&ran.stderr).into_owned(),
        })
    }

    fn plan<A: AsRef<OsStr>>(&self, cwd: &Path, args: &[A]) -> Plan {
        let mut plan = Plan::new(&self.program, cwd).args(["--no-pager"]);
        if let Some((own, tree)) = &self.at {
            plan = plan.args([
                OsStr::new("--git-dir"),
                own.as_os_str(),
                OsStr::new("--work-tree"),
                tree.as_os_str(),
            ]);
        }
        for line in CONFIG {
            plan = plan.args(["-c", line]);
        }
        if !self.hooks {
            plan = plan.args(["-c", "core.hooksPath=/dev/null"]);
        }
        let mut plan = plan.args(args);
        plan.hidden = HIDDEN.map(str::to_owned).into();
        plan.env = SHOWN
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        plan.env.extend(self.env.iter().cloned());
        if let Some(index) = &self.index {
            plan.env.push(("GIT_INDEX_FILE".into(), index.clone()));
        }
        plan
    }

    /// What git prints, if it ends well.
    pub(super) async fn ask<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
    ) -> Result<Vec<u8>, GitError> {
        self.run(cwd, args, b"").await?.well()
    }

    /// The same as one line of text.
    pub(super) async fn line<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
    ) -> Result<String, GitError> {
        let out = self.ask(cwd, args).await?;
        Ok(String::from_utf8_lossy(&out).trim_end().to_owned())
    }

    /// The same, and again for a while if another git holds a lock.
    pub(super) async fn patiently<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
    ) -> Result<Vec<u8>, GitError> {
        self.again(cwd, args, false).await
    }

    /// The same, and nothing cuts it short once it has begun. For short steps that lock what all
    /// checkouts share: a lock that is left there would stop the user's own git as well.
    pub(super) async fn surely<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
    ) -> Result<Vec<u8>, GitError> {
        self.again(cwd, args, true).await
    }

    async fn again<A: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: &[A],
        is_sure: bool,
    ) -> Result<Vec<u8>, GitError> {
        let mut tried = 1;
        loop {
            let done = match is_sure {
                true => self.through(cwd, args).await.and_then(Said::well),
                false => self.ask(cwd, args).await,
            };
            match done {
                Err(error) if error.is_lock() && tried < TRIES => {
                    tokio::time::sleep(PAUSE * tried).await;
                    tried += 1;
                }
                done => return done,
            }
        }
    }
}

fn what<A: AsRef<OsStr>>(args: &[A]) -> String {
    let first = args.first().map(|arg| arg.as_ref().to_string_lossy());
    first.unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_told_from_what_does_not_pass() {
        let failed = |said: &str| GitError::Failed {
            what: "x".into(),
            said: said.into(),
        };
        for said in [
            "fatal: Unable to create '/p/.git/index.lock': File exists.\n\nAnother git process",
            "error: could not lock config file .git/config: File exists .lock",
            "fatal: cannot lock ref 'refs/heads/a': Unable to create '/p/a.lock': File exists.",
        ] {
            assert!(failed(said).is_lock(), "{said}");
        }
        assert!(!failed("fatal: not a git repository").is_lock());
        assert!(!GitError::Slow { what: "x".into() }.is_lock());
    }
}
