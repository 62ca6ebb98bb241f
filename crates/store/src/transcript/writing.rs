//! An open transcript: records are appended whole or not at all.

use super::record::{Entry, Record};
use super::secrets;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How long one record may be. A line that is longer was not written here.
pub const MOST_RECORD: usize = 64 << 20;
/// How long a transcript may become.
pub const MOST_TRANSCRIPT: u64 = 2 << 30;
/// Room behind that for the end: how a run ended is told even where nothing else fits.
const LAST_WORDS: u64 = 64 << 10;
/// One large result must not hold its memory for the agent's whole life.
const KEPT: usize = 64 << 10;

/// A record that is not written because of its size. It is inside the `io::Error` of the append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error(
        "a record of more than {0} bytes is not written: have the output put into a file and read \
         a part of it"
    )]
    Record(usize),
    #[error(
        "the transcript has reached its limit of {0} bytes: begin a new session or a new worker, \
         and give it what it needs to know"
    )]
    Transcript(u64),
}

impl From<TooLarge> for io::Error {
    fn from(why: TooLarge) -> Self {
        Self::new(ErrorKind::FileTooLarge, why)
    }
}

/// What could not be done with which file. It is inside an `io::Error` of the same kind.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {path}: {why}")]
pub(super) struct Failed {
    pub(super) what: &'static str,
    pub(super) path: String,
    pub(super) why: io::Error,
}

/// Says what was tried with which file.
pub(super) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |why| {
        let path = path.display().to_string();
        io::Error::new(why.kind(), Failed { what, path, why })
    }
}

/// An open transcript. One owner appends to it.
///
/// What looks like a key of a provider is not written: the conversation in memory keeps it, the
/// record has a marker in its place.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// How long the file is; behind this there may be a part of a record that failed.
    len: u64,
    is_torn: bool,
    /// Whether the file's name itself is known to be on the disk.
    is_named: bool,
    most: (usize, u64),
}

impl Transcript {
    /// Opens a transcript that is new, or known to be whole.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open the transcript", &path))?;
        Self::over(file, path)
    }

    /// Takes a file that is open for appending and ends with a whole line.
    pub(super) fn over(file: File, path: PathBuf) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self {
            file,
            path,
            buffer: Vec::new(),
            len,
            is_torn: false,
            is_named: false,
            most: (MOST_RECORD, MOST_TRANSCRIPT),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long it is: a place from which on it can be folded.
    pub fn end(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The file, for whoever has to see it on the disk itself.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Appends one record in one write: when this returns, a killed process has not lost it. If it
    /// fails the file is as it was before, and the next append may work.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        self.mend();
        self.buffer.clear();
        if self.is_torn {
            // What cannot be taken back is at least ended, and costs only itself.
            self.buffer.push(b'\n');
        }
        let written = self.serialise(record).and_then(|()| self.write());
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        written
    }

    /// Waits until all that was appended is on the disk itself, the file's name included.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if !self.is_named {
            sync_folder(&self.path)?;
            self.is_named = true;
        }
        Ok(())
    }

    /// Ends a last line that lacks nothing but its end.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        let written = self.write();
        self.buffer.clear();
        written
    }

    fn serialise(&mut self, record: &Record) -> io::Result<()> {
        let start = self.buffer.len();
        let (record_most, whole_most) = self.most;
        line(record, record_most, &mut self.buffer)?;
        let spare = match record.entry {
            Entry::End(_) => LAST_WORDS,
            _ => 0,
        };
        let added = (self.buffer.len() - start) as u64;
        if self.len + added > whole_most + spare {
            return Err(TooLarge::Transcript(whole_most).into());
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        match self.file.write_all(&self.buffer) {
            Ok(()) if self.is_torn => {
                self.len = self.file.metadata()?.len();
                self.is_torn = false;
                Ok(())
            }
            Ok(()) => {
                self.len += self.buffer.len() as u64;
                Ok(())
            }
            Err(why) => {
                self.is_torn = true;
                self.mend();
                Err(why)
            }
        }
    }

    /// Takes back what a failed write left.
    fn mend(&mut self) {
        if self.is_torn {
            self.is_torn = self.file.set_len(self.len).is_err();
        }
    }

    #[cfg(test)]
    pub(super) fn limit(&mut self, record: usize, whole: u64) {
        self.most = (record, whole);
    }
}

/// Adds a record as one line, without secrets.
pub(super) fn line(record: &Record, most: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    let mut bounded = Bounded {
        out,
        most: start + most,
        is_over: false,
    };
    let written = serde_json::to_writer(&mut bounded, record);
    if bounded.is_over {
        return Err(TooLarge::Record(most).into());
    }
    written?;
    secrets::leave_out(out, start);
    out.push(b'\n');
    Ok(())
}

/// The names in a file's folder are on the disk once this returns.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("sync the folder", folder))
}

/// Stops a record that is too long while it is made, not after.
struct Bounded<'a> {
    out: &'a mut Vec<u8>,
    most: usize,
    is_over: bool,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.len() + bytes.len() > self.most {
            self.is_over = true;
            return Err(ErrorKind::FileTooLarge.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
