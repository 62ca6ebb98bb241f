//! The tree that paths are tried in: a fenced folder with a part that may only be read, links and
//! a pipe, and a folder outside with a secret.

use super::owned;
use gaffer_workspace::fence::{Access, Fence};
use rustix::fs::{CWD, FileType, Mode};
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// How the names of files begin that are written before they are put in their place.
pub(super) const TEMPORARY: &str = ".gaffer-";

const SECRET: &str = "what stands outside";

pub(super) struct World {
    /// The folder of everything; removed in the end.
    temp: tempfile::TempDir,
    pub(super) root: PathBuf,
    /// In the root, and only for reading.
    pub(super) kept: PathBuf,
    pub(super) outside: PathBuf,
    pub(super) fence: Fence,
}

impl World {
    pub(super) fn new() -> Self {
        let temp = must("a folder", tempfile::tempdir());
        let base = must("a folder", temp.path().canonicalize());
        let (root, outside) = (base.join("root"), base.join("outside"));
        let kept = root.join("kept");
        for folder in [&root.join("a/b"), &kept, &outside, &base.join("rooted")] {
            must("a folder", fs::create_dir_all(folder));
        }
        must("a file", fs::write(root.join("a/file"), "inside"));
        must("a file", fs::write(kept.join("file"), "kept"));
        must("a file", fs::write(outside.join("secret"), SECRET));
        let links = [
            ("in", "a"),
            ("out", "../outside"),
            ("up", ".."),
            ("nothing", "not/there"),
            ("round", "round"),
            ("magic", "/proc/self/root"),
            ("a/b/back", "../../kept"),
        ];
        for (name, target) in links {
            must("a link", symlink(target, root.join(name)));
        }
        let (pipe, readable) = (root.join("pipe"), Mode::from_raw_mode(0o600));
        must(
            "a pipe",
            rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, readable, 0),
        );
        let fence = Fence::new([(&root, Access::Write), (&kept, Access::Read)]);
        Self {
            temp,
            root,
            kept,
            outside,
            fence,
        }
    }

    /// A path of an input, with the `@` at its start put right.
    pub(super) fn path(&self, given: &[u8]) -> Vec<u8> {
        match given.strip_prefix(b"@") {
            Some(rest) => {
                let base = self.outside.parent().unwrap_or(self.temp.path());
                [base.as_os_str().as_encoded_bytes(), rest].concat()
            }
            None => given.to_vec(),
        }
    }

    /// Makes a link that an input asks for, if it can be made.
    pub(super) fn link(&self, line: &[u8]) {
        let Some(place) = line.iter().position(|byte| *byte == b'>') else {
            return;
        };
        let (name, target) = (&line[..place], self.path(&line[place + 1..]));
        // Names without folders, so that this test cannot write elsewhere by itself.
        if name.is_empty() || name.contains(&b'/') || name.contains(&0) || target.contains(&0) {
            return;
        }
        let name = self.root.join(owned(name.to_vec()));
        drop(symlink(owned(target), name));
    }

    pub(super) fn is_fenced(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    pub(super) fn outside_is_as_it_was(&self) {
        let names = |folder: &Path| -> Vec<_> {
            let entries = must("a folder", fs::read_dir(folder));
            let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&self.outside), ["secret"]);
        let secret = must(
            "the secret",
            fs::read_to_string(self.outside.join("secret")),
        );
        assert_eq!(secret, SECRET);
        let base = self.outside.parent().unwrap_or(self.temp.path());
        assert_eq!(names(base), ["outside", "root", "rooted"]);
        assert_eq!(names(&self.kept), ["file"]);
        assert_eq!(names(&base.join("rooted")).len(), 0);
    }

    /// No file that was to be put in another's place may stay.
    pub(super) fn nothing_is_left_over(&self) {
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in must("a folder", fs::read_dir(folder)).flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                assert!(!name.starts_with(TEMPORARY), "{name} is left over");
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                }
            }
        }
    }
}

/// The world has to be there, or nothing is tried.
pub(super) fn must<T, E: Display>(what: &str, made: Result<T, E>) -> T {
    match made {
        Ok(made) => made,
        Err(error) => panic!("{what} cannot be had: {error}"),
    }
}
