//! A damaged book is put aside under another name, and never overwritten.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// So often one book is put aside.
const MOST: u32 = 10_000;
/// What stands beside a book and belongs to it.
const PARTS: [&str; 2] = ["-wal", "-shm"];

/// Renames a book with all that belongs to it. The book itself goes last: until then it is found
/// damaged again, and all is done once more.
pub(super) fn put(path: &Path) -> io::Result<PathBuf> {
    for n in 1..=MOST {
        let aside = with(path, &format!(".damaged-{n}"));
        if aside.try_exists()? {
            continue;
        }
        for part in PARTS {
            match fs::rename(with(path, part), with(&aside, part)) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
        }
        fs::rename(path, &aside)?;
        return Ok(aside);
    }
    Err(io::Error::other(
        "too many damaged books are kept beside it; remove some",
    ))
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}
