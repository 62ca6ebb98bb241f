//! The scratchpad: the crew's shared folder, one for each session, with a record of who wrote what.
//!
//! `{temp}/gaffer-{uid}/{folder}/{session}/scratchpad/` is what agents see; the record lies beside
//! it in `versions/`, outside of their roots. File tools record their own writes, under a lock that
//! is held from the look at the old file on, so that of two writers the second sees what the first
//! did. What commands write is found by a look through the folder when they have ended.

mod place;
mod running;
mod scan;
mod sole;
mod versions;

pub use place::{Place, PlaceError};
pub use running::{Pen, Running};
pub use versions::{Caps, Content, Version, VersionError, Writer};

use crate::fence::{Access, Fence, FenceError, Fenced, Stamp};
use gaffer_protocol::{AgentId, Clock, Timestamp};
use running::Crew;
use scan::Walk;
use sole::{Opened, Probe, TICK, TICKS};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use versions::Versions;

#[derive(Debug, thiserror::Error)]
pub enum ScratchpadError {
    #[error("no scratchpad: {0}")]
    Place(#[from] PlaceError),
    #[error("no scratchpad: {0}")]
    Fence(#[from] FenceError),
    #[error("no scratchpad: cannot read what was recorded of it: {0}")]
    Versions(#[from] io::Error),
}

/// One session's scratchpad. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Scratchpad(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fence: Fence,
    root: Fenced,
    clock: Arc<dyn Clock>,
    caps: Caps,
    probe: Probe,
    state: Mutex<State>,
    /// Of two looks through the folder the second would only find less.
    scanning: Mutex<()>,
}

#[derive(Debug)]
struct State {
    versions: Versions,
    /// Files as they were when their content was last read, as far as nothing can have changed
    /// them since without leaving a trace.
    known: HashMap<String, Stamp>,
    crew: Crew,
    /// Whether an agent has been told that not all is recorded.
    told: bool,
}

/// What a look through the folder brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// How many writes were recorded.
    pub recorded: usize,
    /// What the agent should hear, once: that not all is recorded, or why not.
    pub note: Option<String>,
}

/// A file in the scratchpad.
#[derive(Debug, Clone)]
pub struct Listed {
    pub path: String,
    pub size: u64,
    pub modified: Timestamp,
    /// How many writes are recorded, and the last of them.
    pub versions: usize,
    pub last: Option<Version>,
}

/// What is in the scratchpad.
#[derive(Debug)]
pub struct Listing {
    pub files: Vec<Listed>,
    /// Whether there is more.
    pub is_partial: bool,
    /// Lines of the record that cannot be read.
    pub damaged: usize,
}

impl Scratchpad {
    /// Opens a session's scratchpad, which is created if it is missing. What was changed there
    /// since it was last open is recorded as nobody's.
    pub fn open(
        place: Place<'_>,
        clock: Arc<dyn Clock>,
        caps: Caps,
    ) -> Result<Self, ScratchpadError> {
        let session = place.open()?;
        let folder = session.below("scratchpad", place.uid)?;
        let record = session.below("versions", place.uid)?;
        let contents = record.below("contents", place.uid)?;
        let fence = Fence::new([(&folder.path, Access::Write)]);
        let root = fence.locate(&folder.path, ".")?;
        let versions = Versions::open(&record, contents, caps)?;
        let probe = Probe::new(versions.index())?;
        let state = State {
            versions,
            known: HashMap::new(),
            crew: Crew::default(),
            told: false,
        };
        let pad = Self(Arc::new(Inner {
            fence,
            root,
            clock,
            caps,
            probe,
            state: Mutex::new(state),
            scanning: Mutex::new(()),
        }));
        pad.scan(None);
        Ok(pad)
    }

    /// The folder itself.
    pub fn path(&self) -> PathBuf {
        self.0.root.path()
    }

    /// Takes the folder away if nobody has ever written there, at the end of a session. Folders
    /// that hold anything stay: only empty ones can be removed this way.
    pub fn remove_unused(&self) {
        let path = self.path();
        let Some(session) = path.parent() else {
            return;
        };
        if std::fs::remove_dir(&path).is_err() {
            return;
        }
        let versions = session.join("versions");
        let index = versions.join("index.jsonl");
        if index.metadata().is_ok_and(|index| index.len() > 0) {
            return;
        }
        drop(std::fs::remove_file(index));
        // Nothing above the session's own folder: another session may be about to use it.
        for folder in [&versions.join("contents"), &versions, session] {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    /// A fence around the folder and nothing else.
    pub fn fence(&self) -> &Fence {
        &self.0.fence
    }

    /// The scratchpad in an agent's hand.
    pub fn pen(&self, id: AgentId, name: impl Into<String>) -> Pen {
        let name = name.into();
        Pen::new(self.clone(), Writer { id, name })
    }

    /// What a file is called in the record. Nothing for what is outside, or has no name in text.
    fn key(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(self.path()).ok()?;
        let text = below.to_str().filter(|text| !text.is_empty())?;
        Some(text.to_owned())
    }

    /// The writes of a file, oldest first: version 1 and on.
    pub fn versions(&self, path: &Path) -> Vec<Version> {
        let key = self.key(path).unwrap_or_default();
        self.state().versions.of(&key).to_vec()
    }

    /// The content of a version, counted from 1.
    pub fn read_version(&self, path: &Path, version: usize) -> Result<Vec<u8>, VersionError> {
        let key = self.key(path).ok_or(VersionError::Unknown)?;
        self.state().versions.read(&key, version)
    }

    /// The files that are there, and who wrote them last. What nobody has looked at yet is
    /// recorded first: this reads files, and is for a thread that may wait.
    pub fn list(&self) -> Listing {
        self.scan(None);
        let walk = scan::walk(&self.0.root, self.0.caps.entries);
        let state = self.state();
        let listed = |(path, stamp): (String, Stamp)| {
            let versions = state.versions.of(&path);
            Listed {
                size: stamp.size,
                modified: Timestamp(stamp.modified_ms()),
                versions: versions.len(),
                last: versions.last().cloned(),
                path,
            }
        };
        let mut files: Vec<Listed> = walk.files.into_iter().map(listed).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Listing {
            files,
            is_partial: walk.is_partial,
            damaged: state.versions.damaged(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.0.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for what has changed since the last look and records it as written by whoever has a
    /// command running, or had one that was not looked at; `first` is named first.
    fn scan(&self, first: Option<&Writer>) -> Scanned {
        let _alone = self.0.scanning.lock();
        let unseen = self.state().crew.take_unseen();
        let walk = scan::walk(&self.0.root, self.0.caps.entries);
        self.settle(&walk);
        let mut scanned = Scanned::default();
        let mut failed = None;
        let mut count = |outcome: io::Result<bool>| match outcome {
            Ok(true) => scanned.recorded += 1,
            Ok(false) => {}
            Err(why) => failed = Some(why),
        };
        let mut gone = BTreeSet::new();
        // Of what was not looked at nobody knows whether it is gone.
        if !walk.is_partial {
            gone.extend(self.state().versions.there().map(str::to_owned));
        }
        for (path, stamp) in &walk.files {
            gone.remove(path);
            // The lock is taken for each file, so that nobody waits for all of them.
            count(self.compare(path, *stamp, |state| state.crew.by(first, &unseen)));
        }
        for path in gone {
            count(self.miss(path, |state| state.crew.by(first, &unseen)));
        }
        let mut state = self.state();
        if walk.is_partial && !state.told && first.is_some() {
            state.told = true;
            let most = self.0.caps.entries;
            scanned.note = Some(format!(
                "The scratchpad holds more than {most} files and folders, or some that cannot be read: what commands write there is not all recorded."
            ));
        }
        if let Some(why) = failed {
            let note = format!("What was written in the scratchpad could not be recorded: {why}.");
            scanned.note = Some(note);
        }
        scanned
    }

    /// Waits until what was changed a moment ago can be told from what is changed now.
    fn settle(&self, walk: &Walk) {
        let newest = {
            let state = self.state();
            let files = walk.files.iter();
            let changed = files.filter(|(path, stamp)| state.known.get(path) != Some(stamp));
            changed.map(|(_, stamp)| stamp.changed).max()
        };
        for _ in 0..TICKS {
            let now = self.0.probe.now().ok();
            if newest.is_none_or(|newest| now.is_none_or(|now| newest < now)) {
                break;
            }
            std::thread::sleep(TICK);
        }
    }

    /// Opens a file of the scratchpad for reading, unless it has a second name: everyone of the
    /// crew can put a link there, and what it leads to would come in from outside. A file that was
    /// changed just now is waited for, for some milliseconds.
    pub fn open_file(&self, fenced: &Fenced) -> Result<File, FenceError> {
        for _ in 0..TICKS {
            match self.0.probe.open(fenced)? {
                Opened::Sole { file, .. } => return Ok(file),
                Opened::HardLink { .. } => {
                    let why = "it is a hard link, and its content may belong elsewhere; put a copy in its place";
                    return Err(io::Error::other(why).into());
                }
                Opened::Fresh => std::thread::sleep(TICK),
            }
        }
        let why = "it is being changed all the time; wait, or let a command copy it";
        Err(io::Error::other(why).into())
    }

    /// Records a file if it is not what it was. One that is being changed is left for later.
    fn compare(
        &self,
        path: &str,
        stamp: Stamp,
        by: impl FnOnce(&State) -> Vec<Writer>,
    ) -> io::Result<bool> {
        let mut state = self.state();
        if state.known.get(path) == Some(&stamp) {
            return Ok(false);
        }
        let was_known = state.known.remove(path).is_some();
        // It may be gone again, or be something else by now; then the next look tells.
        let look = scan::look(&self.0.root, path, self.0.caps.file, &self.0.probe);
        let Ok(Some(look)) = look else {
            return Ok(false);
        };
        if let Some(stamp) = look.stamp {
            state.known.insert(path.to_owned(), stamp);
        }
        let last = state.versions.of(path).last();
        let is_same = last.is_some_and(|last| {
            last.content == look.content
                && (look.content != Content::Unread || (last.size == look.size && !was_known))
        });
        if is_same {
            return Ok(false);
        }
        let version = Version {
            path: path.to_owned(),
            at: self.0.clock.now(),
            writers: by(&state),
            size: look.size,
            content: look.content,
        };
        state.versions.record(version, look.bytes.as_deref())?;
        Ok(true)
    }

    /// Records that a file is no longer there.
    fn miss(&self, path: String, by: impl FnOnce(&State) -> Vec<Writer>) -> io::Result<bool> {
        let mut state = self.state();
        let there = self.0.root.join(Path::new(&path));
        if there.is_some_and(|there| there.exists()) {
            return Ok(false);
        }
        state.known.remove(&path);
        let version = Version {
            path,
            at: self.0.clock.now(),
            writers: by(&state),
            size: 0,
            content: Content::Gone,
        };
        state.versions.record(version, None)?;
        Ok(true)
    }
}

/// The right to write in the scratchpad: while it is held, no other tool writes there.
#[derive(Debug)]
pub struct Held<'a> {
    pad: &'a Scratchpad,
    state: MutexGuard<'a, State>,
    writer: &'a Writer,
    key: String,
}

impl Held<'_> {
    /// Records what was just written.
    pub fn written(mut self, bytes: &[u8]) -> io::Result<()> {
        let version = Version {
            path: self.key.clone(),
            at: self.pad.0.clock.now(),
            writers: vec![self.writer.clone()],
            size: bytes.len() as u64,
            content: Content::Sha256(versions::sha256(bytes)),
        };
        // The next look reads it again and finds what is recorded, unless it changed meanwhile.
        self.state.known.remove(&self.key);
        self.state.versions.record(version, Some(bytes))
    }
}

#[cfg(test)]
mod tests;
