//! Where a scratchpad is: folders below the shared temporary folder that nobody else can have made.
//!
//! Everyone may create a folder there under any name, and so under the one that we will use. Each
//! level is opened from the handle of the one above it, never through a link, and is used only if
//! it belongs to the user and only the user can write to it.

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The parts of a scratchpad's path: `{temp}/gaffer-{uid}/{folder}/{session}/`.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The system's folder for temporary files.
    pub temp: &'a Path,
    /// Who runs this.
    pub uid: u32,
    /// The project's folder as one name.
    pub folder: &'a str,
    pub session: &'a str,
}

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("{path} belongs to user {owner}, not to you: {HINT}", path = .path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{path} is a link or a file where a folder of yours should be: {HINT}", path = .0.display())]
    NoFolder(PathBuf),
    #[error("other users may write to {path}: {HINT}", path = .0.display())]
    Open(PathBuf),
    #[error("`{0}` cannot be the name of a folder")]
    Name(String),
    #[error("cannot create {path}: {why}", path = .path.display())]
    Io { path: PathBuf, why: io::Error },
}

const HINT: &str = "remove it, or set TMPDIR to a folder of your own";

/// What only its owner may do.
const PRIVATE: Mode = Mode::RWXU;

/// A folder that was made or found to be the user's alone.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) path: PathBuf,
    pub(super) handle: OwnedFd,
}

impl Place<'_> {
    /// Opens the session's folder, making what is missing.
    pub(super) fn open(&self) -> Result<Own, PlaceError> {
        let failed = |why| PlaceError::Io {
            path: self.temp.to_owned(),
            why,
        };
        let path = self.temp.canonicalize().map_err(failed)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty());
        let handle = handle.map_err(|errno| failed(errno.into()))?;
        let temp = Own { path, handle };
        self.check_shared(&temp)?;
        let user = temp.below(&format!("gaffer-{}", self.uid), self.uid)?;
        let project = user.below(self.folder, self.uid)?;
        project.below(self.session, self.uid)
    }

    /// The session's folder, if it is there and belongs to the user: nothing is made.
    pub fn find(&self) -> Option<PathBuf> {
        let mut path = self.temp.canonicalize().ok()?;
        for name in [&*format!("gaffer-{}", self.uid), self.folder, self.session] {
            if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
                return None;
            }
            path.push(name);
            let meta = path.symlink_metadata().ok()?;
            let is_own = meta.is_dir() && meta.uid() == self.uid && meta.mode() & 0o022 == 0;
            if !is_own {
                return None;
            }
        }
        Some(path)
    }

    /// Where others may write, only the sticky bit keeps them from moving our folders away and
    /// putting theirs in their place; and the folder's owner may do that in any case.
    fn check_shared(&self, temp: &Own) -> Result<(), PlaceError> {
        let stat = temp.stat()?;
        if stat.st_uid != 0 && stat.st_uid != self.uid {
            return Err(PlaceError::Foreign {
                path: temp.path.clone(),
                owner: stat.st_uid,
            });
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX) {
            return Err(PlaceError::Open(temp.path.clone()));
        }
        Ok(())
    }
}

impl Own {
    /// Opens a folder in this one, making it if it is missing.
    pub(super) fn below(&self, name: &str, uid: u32) -> Result<Self, PlaceError> {
        if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
            return Err(PlaceError::Name(name.to_owned()));
        }
        let path = self.path.join(name);
        let failed = |errno: Errno| PlaceError::Io {
            path: path.clone(),
            why: errno.into(),
        };
        match rustix::fs::mkdirat(&self.handle, name, PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(PlaceError::NoFolder(path)),
            opened => opened.map_err(failed)?,
        };
        let own = Self {
            path: path.clone(),
            handle,
        };
        let stat = own.stat()?;
        if stat.st_uid != uid {
            let owner = stat.st_uid;
            return Err(PlaceError::Foreign { path, owner });
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.intersects(Mode::WGRP | Mode::WOTH) {
            return Err(PlaceError::Open(path));
        }
        // Others may have been able to read it, or the umask took something from its owner.
        if mode & (Mode::RWXU | Mode::RWXG | Mode::RWXO) != PRIVATE {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(&own.handle, ".", flags, Mode::empty());
            opened
                .and_then(|handle| rustix::fs::fchmod(handle, PRIVATE))
                .map_err(failed)?;
        }
        Ok(own)
    }

    fn stat(&self) -> Result<Stat, PlaceError> {
        rustix::fs::fstat(self.handle.as_fd()).map_err(|errno| PlaceError::Io {
            path: self.path.clone(),
            why: errno.into(),
        })
    }
}
