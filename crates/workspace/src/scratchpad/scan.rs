//! Looking through a scratchpad: which files there are, and which a command has changed.

use super::sole::{Opened, Probe};
use super::versions::{Content, hex};
use crate::fence::{FenceError, Fenced, Kind, Stamp};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Larger files are not read after a command.
const LARGEST: u64 = 64 << 20;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) files: Vec<(String, Stamp)>,
    /// Whether there was more than may be looked at, or something that could not be.
    pub(super) is_partial: bool,
}

/// Goes through all folders, those nearest to the top first.
pub(super) fn walk(root: &Fenced, most: usize) -> Walk {
    let mut found = Walk::default();
    let mut folders = VecDeque::from([PathBuf::new()]);
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut left = most;
    while let Some(path) = folders.pop_front() {
        let Some(fenced) = root.join(&path) else {
            continue;
        };
        let folder = match fenced.folder() {
            Ok(folder) => folder,
            // It was removed meanwhile.
            Err(FenceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => {
                found.is_partial = true;
                continue;
            }
        };
        let mut names: Vec<(CString, Kind)> = Vec::new();
        let listed = folder.list(&mut buffer, |name, kind| {
            // One more than may be looked at tells that there is more.
            if names.len() <= left {
                names.push((name.to_owned(), kind));
            }
        });
        found.is_partial |= listed.is_err();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in names {
            if left == 0 {
                found.is_partial = true;
                return found;
            }
            left -= 1;
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            match (kind, folder.stamp(&name)) {
                (Kind::Folder, _) => folders.push_back(below),
                (Kind::File, Ok(stamp)) => match below.into_os_string().into_string() {
                    Ok(path) => found.files.push((path, stamp)),
                    // Lines of the index are text.
                    Err(_) => found.is_partial = true,
                },
                _ => {}
            }
        }
    }
    found
}

/// A file as it is now.
#[derive(Debug)]
pub(super) struct Look {
    /// By which a change after this look will show. Without one the next look reads it again.
    pub(super) stamp: Option<Stamp>,
    pub(super) size: u64,
    pub(super) content: Content,
    /// Where the content may be kept.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Look {
    fn unread(stamp: Option<Stamp>, size: u64) -> Self {
        Self {
            stamp,
            size,
            content: Content::Unread,
            bytes: None,
        }
    }
}

/// Reads a file, into memory only if it may be kept. Nothing, if it is being changed.
pub(super) fn look(
    root: &Fenced,
    path: &str,
    keep: u64,
    probe: &Probe,
) -> Result<Option<Look>, FenceError> {
    let fenced = root.join(Path::new(path));
    let fenced = fenced.ok_or(FenceError::Odd("is not a plain one"))?;
    let (mut file, stamp) = match probe.open(&fenced) {
        Ok(Opened::Sole { file, stamp }) => (file, stamp),
        Ok(Opened::HardLink { size }) => return Ok(Some(Look::unread(None, size))),
        Ok(Opened::Fresh) => return Ok(None),
        Err(FenceError::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            let size = fenced.metadata()?.len();
            return Ok(Some(Look::unread(None, size)));
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file").into());
    }
    if stamp.size > LARGEST {
        return Ok(Some(Look::unread(Some(stamp), stamp.size)));
    }
    let mut hasher = Sha256::new();
    let mut kept = Vec::new();
    let mut read = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        // A file may grow while it is read.
        let n = match file.read(&mut buffer)? {
            0 => break,
            _ if read > LARGEST => break,
            n => n,
        };
        read += n as u64;
        hasher.update(&buffer[..n]);
        if read <= keep {
            kept.extend_from_slice(&buffer[..n]);
        }
    }
    Ok(Some(Look {
        stamp: Some(stamp),
        size: read,
        content: Content::Sha256(hex(&hasher.finalize())),
        bytes: (read <= keep).then_some(kept),
    }))
}
