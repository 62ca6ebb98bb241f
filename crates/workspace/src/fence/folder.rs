//! A folder inside the fence that stays open: what is in it is listed and opened from its own
//! handle, so a walk of many files resolves each folder once and can be led nowhere else.

use super::{FenceError, Fenced, mount_of};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    mounts: Arc<Vec<u64>>,
}

/// What the file system says of a file. Times are in seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub inode: u64,
    pub size: u64,
    pub modified: (i64, u64),
    /// When anything about it was changed. Programs can set the other time back, but not this one.
    pub changed: (i64, u64),
}

impl Stamp {
    /// Milliseconds since 1970.
    pub fn modified_ms(&self) -> u64 {
        let (seconds, nanoseconds) = self.modified;
        u64::try_from(seconds).unwrap_or(0) * 1000 + nanoseconds / 1_000_000
    }
}

/// What stands behind a name, without following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    /// A link, a pipe, a device or a socket.
    Other,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            _ => Self::Other,
        }
    }
}

impl Fenced {
    /// Opens a folder to list it and to open what is in it.
    pub fn folder(&self) -> Result<Folder, FenceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        Ok(Folder {
            handle: self.open_with(flags, Mode::empty())?,
            mounts: self.mounts.clone(),
        })
    }
}

impl Folder {
    /// Calls `each` with every name and what stands behind it, in no order. The buffer serves one
    /// folder after another; its capacity is how much is read at once.
    pub fn list(
        &self,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(&CStr, Kind),
    ) -> Result<(), FenceError> {
        let mut entries = RawDir::new(&self.handle, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(io::Error::from)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match entry.file_type() {
                // Some file systems do not tell.
                FileType::Unknown => {
                    if let Ok(stat) = rustix::fs::statat(&self.handle, name, NO_LINKS) {
                        each(name, FileType::from_raw_mode(stat.st_mode).into());
                    }
                }
                kind => each(name, kind.into()),
            }
        }
        Ok(())
    }

    /// Opens a file of this folder for reading. A pipe or a device is never waited for.
    pub fn open(&self, name: &CStr) -> Result<File, FenceError> {
        let bytes = name.to_bytes();
        if matches!(bytes, b"." | b"..") || bytes.contains(&b'/') {
            return Err(FenceError::Odd("is not a name"));
        }
        let opened = self.open_name(name).map_err(|error| match error {
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => FenceError::Changed {
                path: name.to_string_lossy().into_owned(),
            },
            error => io::Error::from(error).into(),
        });
        Ok(File::from(opened?))
    }

    fn open_name(&self, name: &CStr) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A plain name that is not followed leads nowhere but to a mount.
        let here = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let plain = || rustix::fs::openat(&self.handle, name, flags, Mode::empty());
        match rustix::fs::openat2(&self.handle, name, flags, Mode::empty(), here) {
            Err(Errno::XDEV) => {
                let handle = plain()?;
                let mount = mount_of(handle.as_fd());
                let is_known = mount.is_some_and(|mount| self.mounts.contains(&mount));
                is_known.then_some(handle).ok_or(Errno::XDEV)
            }
            // Kernels before 5.6, and containers that forbid the call.
            Err(Errno::NOSYS | Errno::PERM) => plain(),
            opened => opened,
        }
    }

    /// What tells whether a file of this folder has been changed.
    pub fn stamp(&self, name: &CStr) -> Result<Stamp, FenceError> {
        let stat = rustix::fs::statat(&self.handle, name, NO_LINKS).map_err(io::Error::from)?;
        Ok(Stamp {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        })
    }

    /// When a file of this folder was last written, in seconds and nanoseconds.
    pub fn modified(&self, name: &CStr) -> Result<(i64, u64), FenceError> {
        let stat = rustix::fs::statat(&self.handle, name, NO_LINKS).map_err(io::Error::from)?;
        Ok((stat.st_mtime, stat.st_mtime_nsec))
    }
}

const NO_LINKS: AtFlags = AtFlags::SYMLINK_NOFOLLOW;
