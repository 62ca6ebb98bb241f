//! Paths in a tree full of links: nothing outside the fence is opened or changed.
//!
//! An input is lines. All but the last make a link in the fenced folder: `name>where it leads`.
//! The last is a path to try, with one letter before it that says where it starts. An `@` at the
//! start of a path stands for the folder that the whole tree is in, whose name nobody can guess.
//!
//! The fence is never asked whether it was right: where an open file lies is read from `/proc`,
//! and where a path leads is asked from the system.

mod world;

use gaffer_workspace::fence::{FenceError, Fenced};
use rustix::fd::AsFd;
use std::ffi::{CString, OsStr};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use world::{TEMPORARY, World, must};

pub(crate) fn run(bytes: &[u8]) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let Some(last) = lines.pop() else { return };
    let Some((start, path)) = last.split_first() else {
        return;
    };
    let world = World::new();
    for line in lines.iter().take(8) {
        world.link(line);
    }
    let cwd = match start {
        b'a' => world.root.join("a/b"),
        b'o' => world.outside.clone(),
        b'k' => world.root.join("kept"),
        _ => world.root.clone(),
    };
    let path = world.path(path);
    let real = cwd.join(OsStr::from_bytes(&path)).canonicalize().ok();
    match world.fence.locate(&cwd, OsStr::from_bytes(&path)) {
        Ok(fenced) => is_inside(&world, &fenced, &cwd, real.as_deref()),
        Err(error) => is_rightly_refused(&world, &error, real.as_deref()),
    }
    world.outside_is_as_it_was();
}

/// What the system resolves to a place inside is refused for no reason but an odd path.
fn is_rightly_refused(world: &World, error: &FenceError, real: Option<&Path>) {
    if let Some(real) = real {
        match error {
            FenceError::Outside { .. } => {
                assert!(!world.is_fenced(real), "{} is inside", real.display());
            }
            FenceError::Odd(_) => {}
            error => panic!("{}: {error}", real.display()),
        }
    }
}

fn is_inside(world: &World, fenced: &Fenced, cwd: &Path, real: Option<&Path>) {
    let path = fenced.path();
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
    assert!(path.components().all(is_plain), "{}", path.display());
    assert!(world.is_fenced(&path), "{}", path.display());
    if let Some(real) = real {
        assert_eq!(path, real, "the system finds another file");
    }
    match world.fence.locate(cwd, &path) {
        Ok(again) => assert_eq!(again.path(), path, "located twice"),
        Err(error) => panic!("{} is not found again: {error}", path.display()),
    }
    if let Ok(file) = fenced.open() {
        lies_at(&file, &path);
    }
    assert_eq!(
        fenced.metadata().is_ok(),
        real.is_some(),
        "{}",
        path.display()
    );
    if let Ok(folder) = fenced.folder() {
        let mut names: Vec<CString> = Vec::new();
        let mut buffer = Vec::with_capacity(1024);
        let listed = folder.list(&mut buffer, |name, _| names.push(name.to_owned()));
        assert!(listed.is_ok(), "{}", path.display());
        for name in names {
            if let Ok(file) = folder.open(&name) {
                lies_at(&file, &path.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
    writing_changes_this_file_alone(world, fenced, &path);
}

/// The file that is open is the one at a path, as the system tells it.
fn lies_at(file: impl AsFd, path: &Path) {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let open = must("what is open", std::fs::read_link(link));
    assert_eq!(open, path, "another file is open");
}

fn writing_changes_this_file_alone(world: &World, fenced: &Fenced, path: &Path) {
    // If the fence has a hole, it must be found without writing through it.
    let above = path.ancestors().find_map(|above| above.canonicalize().ok());
    assert!(above.is_some_and(|above| world.is_fenced(&above) || above == world.root));
    let written = fenced.replace(b"new", None);
    let is_kept = path.starts_with(&world.kept);
    match written {
        Ok(()) => {
            assert!(!is_kept, "{} may only be read", path.display());
            let kind = must("what was written", path.symlink_metadata());
            assert!(kind.is_file(), "{}", path.display());
            assert_eq!(must("what was written", std::fs::read(path)), b"new");
        }
        Err(FenceError::ReadOnly(_)) => assert!(is_kept, "{}", path.display()),
        Err(_) => assert!(!is_kept, "{}: another error", path.display()),
    }
    if !path.to_string_lossy().contains(TEMPORARY) {
        world.nothing_is_left_over();
    }
}

/// An owned path of any bytes.
fn owned(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}
