//! A transcript is taken up again: what is damaged is kept beside it, the rest is made whole.
//!
//! A crash at any point leaves the file as it was or repaired, and repairing again is harmless.

use super::calls::Known;
use super::fold::Fold;
use super::reading::{self, CHUNK, Kept};
use super::writing::{MOST_RECORD, Transcript, failed, line, sync_folder};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// So often one transcript is repaired.
const MOST_KEPT: u32 = 10_000;

impl Transcript {
    /// Opens a transcript to go on with it; one that is not there yet begins empty.
    ///
    /// If it is damaged, the original is kept beside it (`….damaged-1`, never overwritten), and the
    /// file is written anew with all that can be read. Calls without a result get an honest one,
    /// so that the next fold sees the same conversation. It blocks: it reads the whole file.
    pub fn resume(path: PathBuf) -> io::Result<(Self, Fold)> {
        Self::resume_knowing(path, &Known::new())
    }

    /// The same where something is known about calls that have no result: those that took effect
    /// are answered so.
    pub fn resume_knowing(path: PathBuf, known: &Known) -> io::Result<(Self, Fold)> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => {
                return Ok((Self::create(path)?, Fold::default()));
            }
            Err(why) => return Err(failed("read the transcript", &path)(why)),
        };
        let mut made = Vec::new();
        let reader = BufReader::with_capacity(CHUNK, &file);
        let begin = Fold::knowing(known.clone());
        let (fold, tail) = reading::fold(begin, reader, &mut |kept| {
            match kept {
                Kept::Made(record) => made.push(record),
                // Only what is made up behind the last record is still to be written.
                Kept::Read(_) => made.clear(),
            }
            Ok(())
        })
        .map_err(failed("read the transcript", &path))?;
        if !fold.damaged.is_empty() {
            // Both folds at once could be twice the memory.
            drop(fold);
            drop(made);
            return repair(path, &file, known);
        }
        drop(file);
        let mut transcript = Self::create(path)?;
        if !tail.is_ended {
            transcript.end_line()?;
        }
        for record in &made {
            transcript.append(record)?;
        }
        Ok((transcript, fold))
    }
}

fn repair(path: PathBuf, file: &File, known: &Known) -> io::Result<(Transcript, Fold)> {
    let kept = keep(&path, file)?;
    // The original must be safe under its other name before this one is taken from it.
    sync_folder(&path)?;
    let new = beside(&path, "repairing");
    let fold = rewrite(file, &new, known).map_err(failed("write", &new))?;
    fs::rename(&new, &path)
        .map_err(failed("put the repaired transcript in the place of", &path))?;
    sync_folder(&path)?;
    let mut fold = fold;
    fold.damaged.keep(kept);
    Ok((Transcript::create(path)?, fold))
}

/// Writes what a whole record consists of into a file of its own.
fn rewrite(mut file: &File, new: &Path, known: &Known) -> io::Result<Fold> {
    io::Seek::rewind(&mut file)?;
    let out = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(new)?;
    let mut out = BufWriter::with_capacity(CHUNK, out);
    let reader = BufReader::with_capacity(CHUNK, file);
    let begin = Fold::knowing(known.clone());
    let (fold, _) = reading::fold(begin, reader, &mut |kept| match kept {
        Kept::Read(bytes) => {
            out.write_all(bytes)?;
            out.write_all(b"\n")
        }
        Kept::Made(record) => {
            let mut bytes = Vec::new();
            line(&record, MOST_RECORD, &mut bytes)?;
            out.write_all(&bytes)
        }
    })?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(fold)
}

/// Gives the original another name beside its own.
fn keep(path: &Path, file: &File) -> io::Result<PathBuf> {
    let own = file.metadata()?;
    for n in 1..=MOST_KEPT {
        let name = beside(path, &format!("damaged-{n}"));
        match fs::hard_link(path, &name) {
            Ok(()) => return Ok(name),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {
                // A repair that was cut short has kept it before.
                let other = fs::symlink_metadata(&name)?;
                if (other.dev(), other.ino()) == (own.dev(), own.ino()) {
                    return Ok(name);
                }
            }
            // Not every file system has links.
            Err(_) if name.try_exists()? => {}
            Err(_) => {
                copy(file, &name).map_err(failed("keep the damaged original as", &name))?;
                return Ok(name);
            }
        }
    }
    let why = io::Error::other("too many damaged originals are kept beside it; remove some");
    Err(failed("repair", path)(why))
}

/// The copy has its name only when it is whole.
fn copy(mut file: &File, name: &Path) -> io::Result<()> {
    let unfinished = beside(name, "copying");
    let mut out = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    io::Seek::rewind(&mut file)?;
    io::copy(&mut file, &mut out)?;
    out.sync_all()?;
    fs::rename(&unfinished, name)
}

/// A file's path with something behind its name.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(what);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
