//! What is in a worktree on disk, whatever git makes of it.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Every file and link below a folder, but for the `.git` at its top. Links are not followed.
pub(super) fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                waiting.push(path);
            } else if path != Path::new(".git") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Whether there is no folder, or nothing in it but the file that says where it belongs.
pub(super) fn holds_nothing(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(entries) => entries.into_iter().all(|entry| {
            entry.is_ok_and(|entry| {
                entry.file_name() == ".git" && entry.file_type().is_ok_and(|kind| kind.is_file())
            })
        }),
    }
}

/// The digest of a file's bytes.
pub(super) fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            size => hash.update(&buffer[..size]),
        }
    }
}

pub(super) fn digest_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
