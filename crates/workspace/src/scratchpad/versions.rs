//! What was written in a scratchpad, by whom, and what it was: an index with a line for each write,
//! and the contents by their hash.
//!
//! A content is on disk before its line is. Lines are never changed; contents are dropped, those
//! first that were written longest ago, when they take more room than they may.

use super::place::Own;
use gaffer_protocol::{AgentId, Timestamp};
use rustix::fs::{AtFlags, Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// An agent as a record names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    pub id: AgentId,
    pub name: String,
}

/// One write of one file: a line of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Below the scratchpad.
    pub path: String,
    pub at: Timestamp,
    /// Who wrote it. A command's write is found when the command has ended: where others ran at
    /// the time, each of them may have been it. Nobody, where it was found at the start.
    pub writers: Vec<Writer>,
    pub size: u64,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Sha256(String),
    /// Too large to be looked at, closed to its owner, or a file that also has a name elsewhere.
    Unread,
    /// The file was removed.
    Gone,
}

/// What is kept.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Larger files are listed, but their contents are not kept.
    pub file: u64,
    /// Of all contents together.
    pub total: u64,
    /// How many files and folders are looked at after a command.
    pub entries: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            file: 8 << 20,
            total: 256 << 20,
            entries: 5000,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("no write of it is recorded")]
    Unknown,
    #[error("there is no version {asked}; it has versions 1 to {last}")]
    Missing { asked: usize, last: usize },
    #[error("version {0} is that it was removed; read an earlier one")]
    Gone(usize),
    #[error("version {version} was not kept: its {size} bytes are more than is kept of a file")]
    TooLarge { version: usize, size: u64 },
    #[error("version {0} was not read: it was very large, a hard link, or not readable")]
    Unread(usize),
    #[error(
        "version {0} is no longer kept: old contents are dropped when all together grow too large"
    )]
    Dropped(usize),
    #[error("version {0} is damaged on disk")]
    Damaged(usize),
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
pub(super) struct Versions {
    caps: Caps,
    index: File,
    /// How long the index is, up to the end of its last whole line.
    length: u64,
    contents: OwnedFd,
    files: BTreeMap<String, Vec<Version>>,
    kept: HashMap<String, Kept>,
    /// The hashes of what is kept by when they were last written.
    order: BTreeMap<u64, String>,
    next: u64,
    total: u64,
    damaged: usize,
}

#[derive(Debug)]
struct Kept {
    size: u64,
    place: u64,
}

impl Versions {
    /// Opens what earlier runs of the session recorded.
    pub(super) fn open(folder: &Own, contents: Own, caps: Caps) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let index = rustix::fs::openat(&folder.handle, "index.jsonl", flags, mode)?;
        let mut versions = Self {
            caps,
            index: File::from(index),
            length: 0,
            contents: contents.handle,
            files: BTreeMap::new(),
            kept: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
            total: 0,
            damaged: 0,
        };
        versions.fold()?;
        Ok(versions)
    }

    fn fold(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.index.read_to_end(&mut bytes)?;
        // A line that was being written when gaffer was killed has no end, and says nothing.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        if whole < bytes.len() {
            self.index.set_len(whole as u64)?;
        }
        self.length = whole as u64;
        let mut present = self.present()?;
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let Ok(version) = serde_json::from_slice::<Version>(line) else {
                self.damaged += 1;
                continue;
            };
            if let Content::Sha256(hash) = &version.content {
                if let Some(size) = present.remove(hash) {
                    self.note_kept(hash, size);
                } else {
                    self.renew(hash);
                }
            }
            self.push(version);
        }
        // What has no line was being written, too.
        for name in present.keys() {
            self.remove(name);
        }
        self.drop_old();
        Ok(())
    }

    /// The contents on disk with their sizes.
    fn present(&self) -> io::Result<HashMap<String, u64>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.contents, ".", flags, Mode::empty())?;
        let mut present = HashMap::new();
        for entry in rustix::fs::Dir::new(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            let stat = rustix::fs::statat(&self.contents, name, AtFlags::SYMLINK_NOFOLLOW)?;
            present.insert(name.to_owned(), u64::try_from(stat.st_size).unwrap_or(0));
        }
        Ok(present)
    }

    /// Records a write. Whatever of it fails, the rest is done.
    pub(super) fn record(&mut self, version: Version, bytes: Option<&[u8]>) -> io::Result<()> {
        let kept = match (&version.content, bytes) {
            (Content::Sha256(hash), Some(bytes)) => self.keep(hash, bytes),
            _ => Ok(()),
        };
        let listed = self.append(&version);
        self.push(version);
        kept.and(listed)
    }

    fn push(&mut self, version: Version) {
        let of_file = self.files.entry(version.path.clone()).or_default();
        of_file.push(version);
    }

    fn append(&mut self, version: &Version) -> io::Result<()> {
        let mut line = serde_json::to_vec(version)?;
        line.push(b'\n');
        let written = self.index.write_all(&line);
        match written {
            Ok(()) => self.length += line.len() as u64,
            // Half a line would spoil the next one.
            Err(_) => self.index.set_len(self.length)?,
        }
        written
    }

    fn keep(&mut self, hash: &str, bytes: &[u8]) -> io::Result<()> {
        const UNFINISHED: &str = ".new";
        let size = bytes.len() as u64;
        if size > self.caps.file.min(self.caps.total) || self.renew(hash) {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.contents, UNFINISHED, flags, mode)?;
        let written = File::from(file).write_all(bytes).and_then(|()| {
            rustix::fs::renameat(&self.contents, UNFINISHED, &self.contents, hash)?;
            Ok(())
        });
        if written.is_err() {
            self.remove(UNFINISHED);
        }
        written?;
        self.note_kept(hash, size);
        self.drop_old();
        Ok(())
    }

    /// What cannot be removed takes room and does no other harm.
    fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.contents, name, AtFlags::empty());
    }

    fn note_kept(&mut self, hash: &str, size: u64) {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, hash.to_owned());
        self.kept.insert(hash.to_owned(), Kept { size, place });
        self.total += size;
    }

    /// Counts a content that is kept already as just written.
    fn renew(&mut self, hash: &str) -> bool {
        let Some(kept) = self.kept.get_mut(hash) else {
            return false;
        };
        self.order.remove(&kept.place);
        kept.place = self.next;
        self.order.insert(self.next, hash.to_owned());
        self.next += 1;
        true
    }

    fn drop_old(&mut self) {
        while self.total > self.caps.total {
            let Some((_, hash)) = self.order.pop_first() else {
                break;
            };
            if let Some(kept) = self.kept.remove(&hash) {
                self.total -= kept.size;
            }
            self.remove(&hash);
        }
    }

    pub(super) fn of(&self, path: &str) -> &[Version] {
        self.files.get(path).map_or(&[], Vec::as_slice)
    }

    /// The files that were there when they were last heard of.
    pub(super) fn there(&self) -> impl Iterator<Item = &str> {
        let last = self.files.values().filter_map(|versions| versions.last());
        let there = last.filter(|version| version.content != Content::Gone);
        there.map(|version| version.path.as_str())
    }

    pub(super) fn damaged(&self) -> usize {
        self.damaged
    }

    /// The index, which lies in the same file system as what it tells of.
    pub(super) fn index(&self) -> &File {
        &self.index
    }

    /// The content of a version, counted from 1.
    pub(super) fn read(&self, path: &str, asked: usize) -> Result<Vec<u8>, VersionError> {
        let versions = self.of(path);
        let last = versions.len();
        if last == 0 {
            return Err(VersionError::Unknown);
        }
        let version = asked.checked_sub(1).and_then(|at| versions.get(at));
        let version = version.ok_or(VersionError::Missing { asked, last })?;
        let hash = match &version.content {
            Content::Sha256(hash) => hash,
            Content::Unread => return Err(VersionError::Unread(asked)),
            Content::Gone => return Err(VersionError::Gone(asked)),
        };
        if !self.kept.contains_key(hash) {
            return Err(match version.size > self.caps.file {
                true => VersionError::TooLarge {
                    version: asked,
                    size: version.size,
                },
                false => VersionError::Dropped(asked),
            });
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.contents, hash, flags, Mode::empty());
        let mut bytes = Vec::new();
        File::from(file.map_err(io::Error::from)?)
            .take(version.size + 1)
            .read_to_end(&mut bytes)?;
        match sha256(&bytes) == *hash {
            true => Ok(bytes),
            false => Err(VersionError::Damaged(asked)),
        }
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
