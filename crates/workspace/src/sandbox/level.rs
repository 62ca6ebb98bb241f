//! How much of a sandbox this system has.

use super::keep::{Hold, Kept};
use super::{files, mounts};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How much holds, from nothing to everything; see docs/sandbox.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// Nothing: the permission rules alone.
    Rules,
    /// Landlock and seccomp. What must stay as it is inside writable folders does not.
    Bound,
    /// That too.
    Kept(Means),
}

/// What mounts things read-only for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Means {
    /// A mount namespace that the sandbox makes by itself.
    Namespace,
    /// Bubblewrap, which may do it where others may not.
    Bubblewrap(PathBuf),
}

/// Where bubblewrap is looked for. Not by the search path: a project may be on it.
const BUBBLEWRAP: [&str; 3] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// What the sandbox is asked in place of a command: whether it may mount, or just to start.
const MAY_MOUNT: &str = "may-mount";
const START: &str = "start";

impl Level {
    /// Tries what there is. `program` plays the role of a sandbox.
    pub fn find(program: &Path) -> Self {
        if !files::is_supported() {
            return Self::Rules;
        }
        if works(&[
            program.as_os_str(),
            super::ROLE.as_ref(),
            MAY_MOUNT.as_ref(),
        ]) {
            return Self::Kept(Means::Namespace);
        }
        let mut wrappers = BUBBLEWRAP.iter().map(Path::new);
        let found = wrappers.find(|bwrap| bwrap.exists() && wraps(bwrap, program));
        match found {
            Some(bwrap) => Self::Kept(Means::Bubblewrap(bwrap.to_owned())),
            None => Self::Bound,
        }
    }

    pub fn means(&self) -> Option<&Means> {
        match self {
            Self::Kept(means) => Some(means),
            Self::Rules | Self::Bound => None,
        }
    }
}

/// Answers a question of [`Level::find`]'s, if it is one.
pub(super) fn answer(word: &OsStr) -> Option<u8> {
    if word == MAY_MOUNT {
        let root = Kept {
            path: "/proc".into(),
            how: Hold::ReadOnly,
        };
        return Some(u8::from(mounts::keep(&[root]).is_err()));
    }
    (word == START).then_some(0)
}

fn wraps(bwrap: &Path, program: &Path) -> bool {
    let proc = Kept {
        path: "/proc".into(),
        how: Hold::ReadOnly,
    };
    let mut line = bubblewrap(bwrap, &[proc]);
    line.extend([program.into(), super::ROLE.into(), START.into()]);
    works(&line)
}

/// The words before a command that bubblewrap is to run. It has everything as it is, but for what
/// is kept.
pub(super) fn bubblewrap(bwrap: &Path, kept: &[Kept]) -> Vec<OsString> {
    let mut line: Vec<OsString> = vec![bwrap.into()];
    line.extend(["--dev-bind", "/", "/", "--die-with-parent"].map(OsString::from));
    for Kept { path, how } in kept {
        let how = match how {
            Hold::InPlace | Hold::Writable => "--bind-try",
            Hold::ReadOnly => "--ro-bind-try",
        };
        line.extend([how.into(), path.into(), path.into()]);
    }
    line.push("--".into());
    line
}

#[expect(
    clippy::disallowed_methods,
    reason = "a question to the system, which ends by itself"
)]
fn works<W: AsRef<OsStr>>(line: &[W]) -> bool {
    let Some((program, args)) = line.split_first() else {
        return false;
    };
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
