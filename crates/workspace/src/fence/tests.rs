//! Attempts to get out: by dots, by links, by races, by odd names.

use super::*;
use proptest::prelude::*;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

const SECRET: &str = "what stands outside";

struct World {
    temp: tempfile::TempDir,
    fence: Fence,
}

impl World {
    /// A root with a file and folders in it, and a secret beside it.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        std::fs::create_dir_all(at("root/a/b")).unwrap();
        std::fs::create_dir_all(at("outside")).unwrap();
        std::fs::write(at("root/a/file"), "inside").unwrap();
        std::fs::write(at("outside/secret"), SECRET).unwrap();
        let fence = Fence::new([(at("root"), Access::Write)]);
        Self { temp, fence }
    }

    fn root(&self) -> PathBuf {
        self.temp.path().join("root").canonicalize().unwrap()
    }

    fn outside(&self) -> PathBuf {
        self.temp.path().join("outside").canonicalize().unwrap()
    }

    fn read(&self, path: &str) -> Result<String, FenceError> {
        let mut text = String::new();
        let fenced = self.fence.locate(&self.root(), path)?;
        fenced.open()?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), FenceError> {
        let fenced = self.fence.locate(&self.root(), path)?;
        fenced.replace(text.as_bytes(), None)
    }
}

#[test]
fn what_is_inside_opens_by_any_name() {
    let world = World::new();
    symlink("a", world.root().join("relative")).unwrap();
    symlink(world.root().join("a"), world.root().join("absolute")).unwrap();
    let whole = world.root().join("a/file").display().to_string();
    for path in [
        "a/file",
        "./a/./file",
        "a/b/../file",
        "relative/file",
        "absolute/file",
        &whole,
    ] {
        assert_eq!(world.read(path).unwrap(), "inside", "{path}");
    }
}

#[test]
fn what_is_outside_does_not() {
    let world = World::new();
    let (root, outside) = (world.root(), world.outside());
    symlink(outside.join("secret"), root.join("link")).unwrap();
    symlink(&outside, root.join("folder")).unwrap();
    symlink("../../outside/secret", root.join("a/up")).unwrap();
    symlink("link", root.join("twice")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let secret = outside.join("secret").display().to_string();
    let through_magic = format!("magic{secret}");
    let escapes = [
        "../outside/secret",
        "a/../../outside/secret",
        "a/b/../../../outside/secret",
        "link",
        "twice",
        "folder/secret",
        "a/up",
        "/etc/passwd",
        &secret,
        &through_magic,
        "..",
        "/",
        "/proc/self/environ",
    ];
    for path in escapes {
        let error = world.read(path).unwrap_err();
        assert!(
            matches!(error, FenceError::Outside { .. }),
            "{path}: {error}"
        );
        assert!(
            matches!(world.write(path, "x"), Err(FenceError::Outside { .. })),
            "{path}"
        );
    }
    assert_eq!(
        std::fs::read_to_string(outside.join("secret")).unwrap(),
        SECRET
    );
}

#[test]
fn a_name_that_only_begins_like_the_root_is_outside() {
    let world = World::new();
    let beside = world.temp.path().join("rooted");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("f"), "x").unwrap();
    assert!(world.read("../rooted/f").is_err());
}

#[test]
fn odd_paths_are_errors_that_say_so() {
    let world = World::new();
    symlink("nowhere", world.root().join("dangling")).unwrap();
    let long = "x/".repeat(2500);
    for (path, want) in [
        ("", "is empty"),
        (long.as_str(), "longer than 4,096 bytes"),
        ("a\0b", "NUL byte"),
        ("dangling", "link to nothing"),
        (
            "none/../../outside/secret",
            "goes up from a folder that does not exist",
        ),
    ] {
        assert!(
            world.read(path).unwrap_err().to_string().contains(want),
            "{path}"
        );
    }
    // The dangling link is not followed by a write either.
    assert!(world.write("dangling", "x").is_err());
    assert!(!world.root().join("nowhere").exists());
}

#[test]
fn a_pipe_is_not_waited_for() {
    let world = World::new();
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        world.root().join("pipe"),
        rustix::fs::FileType::Fifo,
        Mode::RWXU,
        0,
    );
    made.unwrap();
    let opened = world.fence.locate(&world.root(), "pipe").unwrap().open();
    assert!(!opened.unwrap().metadata().unwrap().is_file());
}

#[test]
fn writes_create_folders_keep_modes_and_break_no_hard_link() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.write("new/deep/file", "one").unwrap();
    assert_eq!(world.read("new/deep/file").unwrap(), "one");
    // A hard link to something outside is replaced here, not written through.
    std::fs::hard_link(world.outside().join("secret"), world.root().join("hard")).unwrap();
    world.write("hard", "mine").unwrap();
    assert_eq!(
        std::fs::read_to_string(world.outside().join("secret")).unwrap(),
        SECRET
    );
    let fenced = world.fence.locate(&world.root(), "script").unwrap();
    fenced.replace(b"#!/bin/sh\n", Some(0o755)).unwrap();
    assert_eq!(
        fenced.metadata().unwrap().permissions().mode() & 0o777,
        0o755
    );
    let left: Vec<_> = std::fs::read_dir(world.root())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().starts_with(".gaffer")),
        "{left:?}"
    );
}

#[test]
fn a_read_only_root_is_not_written_to() {
    let world = World::new();
    let fence = Fence::new([
        (world.root(), Access::Write),
        (world.root().join("a"), Access::Read),
    ]);
    let inner = fence.locate(&world.root(), "a/file").unwrap();
    assert!(matches!(
        inner.replace(b"x", None),
        Err(FenceError::ReadOnly(_))
    ));
    fence
        .locate(&world.root(), "other")
        .unwrap()
        .replace(b"x", None)
        .unwrap();
}

/// A path is located while a part of it is a folder, and opened while that part is a link to the
/// outside: whatever the timing, the secret is never read and nothing outside is written.
#[test]
fn a_folder_that_becomes_a_link_between_check_and_use() {
    let world = World::new();
    let (root, outside) = (world.root(), world.outside());
    std::fs::write(root.join("a/b/secret"), "inside").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, link) = (root.join("a/b"), root.join("a/link"));
            symlink(&outside, &link).unwrap();
            while !done.load(Ordering::Relaxed) {
                let (here, swap) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
                rustix::fs::renameat_with(here, &folder, here, &link, swap).unwrap();
            }
        });
        let mut read = 0;
        for _ in 0..5000 {
            if let Ok(text) = world.read("a/b/secret") {
                assert_eq!(text, "inside");
                read += 1;
            }
            drop(world.write("a/b/made", "x"));
        }
        done.store(true, Ordering::Relaxed);
        assert!(read > 0, "the file was there now and then");
    });
    assert!(!outside.join("made").exists());
}

#[test]
fn a_folder_lists_and_opens_what_is_in_it_and_nothing_else() {
    let world = World::new();
    let root = world.root();
    symlink(world.outside().join("secret"), root.join("link")).unwrap();
    std::fs::write(root.join("f"), "inside").unwrap();
    let folder = world.fence.locate(&root, ".").unwrap().folder().unwrap();
    let mut names = Vec::new();
    let listed = folder.list(&mut Vec::with_capacity(4096), |name, kind| {
        names.push((name.to_str().unwrap().to_owned(), kind));
    });
    listed.unwrap();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    let want = [
        ("a", Kind::Folder),
        ("f", Kind::File),
        ("link", Kind::Other),
    ];
    assert_eq!(names, want.map(|(name, kind)| (name.to_owned(), kind)));
    let mut text = String::new();
    let mut file = folder.open(c"f").unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "inside");
    for name in [
        c"link",
        c"..",
        c"../outside/secret",
        c"a/file",
        c"none",
        c"",
    ] {
        assert!(folder.open(name).is_err(), "{name:?}");
    }
    // It stays the same folder under another name, and keeps what was removed out of reach.
    let modified = folder.modified(c"f").unwrap();
    std::fs::rename(&root, world.temp.path().join("moved")).unwrap();
    assert_eq!(folder.modified(c"f").unwrap(), modified);
    assert!(folder.modified(c"none").is_err());
}

#[test]
fn the_way_by_hand_refuses_links_too() {
    let world = World::new();
    let fenced = world.fence.locate(&world.root(), "a/file").unwrap();
    assert!(
        fenced
            .walk(OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty())
            .is_ok()
    );
    std::fs::rename(world.root().join("a"), world.root().join("z")).unwrap();
    symlink(world.outside(), world.root().join("a")).unwrap();
    std::fs::write(world.outside().join("file"), SECRET).unwrap();
    assert!(
        fenced
            .walk(OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty())
            .is_err()
    );
    assert!(matches!(fenced.open(), Err(FenceError::Changed { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Random links and random paths: what opens is inside, by the system's own word.
    #[test]
    fn nothing_that_opens_is_outside(
        links in prop::collection::vec(("[a-c]{1}(/[a-c]{1}){0,2}", path()), 0..6),
        paths in prop::collection::vec(path(), 1..8),
    ) {
        let world = World::new();
        for (name, target) in &links {
            let place = world.root().join(name);
            if let Some(parent) = place.parent() {
                drop(std::fs::create_dir_all(parent));
            }
            drop(symlink(target.replace("ROOT", world.root().to_str().unwrap()), place));
        }
        for path in &paths {
            let path = path.replace("ROOT", world.root().to_str().unwrap());
            let real = world.root().join(&path).canonicalize();
            match world.fence.locate(&world.root(), &path) {
                Ok(fenced) => {
                    prop_assert!(fenced.path().starts_with(world.root()));
                    if let Ok(real) = real {
                        prop_assert_eq!(fenced.path(), real);
                    }
                }
                Err(_) => prop_assert!(real.is_err() || !real.unwrap().starts_with(world.root()), "{}", path),
            }
            let text = world.read(&path).unwrap_or_default();
            prop_assert_ne!(text, SECRET);
            drop(world.write(&path, "x"));
        }
        prop_assert_eq!(std::fs::read_to_string(world.outside().join("secret")).unwrap(), SECRET);
        prop_assert_eq!(std::fs::read_dir(world.outside()).unwrap().count(), 1);
    }
}

fn path() -> impl Strategy<Value = String> {
    "(ROOT/|/|)((\\.\\.|\\.|a|b|c|file|outside|secret|root)/){0,5}(a|b|file|secret|\\.\\.)"
}

#[test]
fn folders_are_made_with_their_mode_and_never_through_links() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let make = |path: &str| {
        let root = world.fence.locate(&world.root(), ".")?;
        root.join(Path::new(path)).unwrap().create_folder(0o700)
    };
    make("a/b/new").unwrap();
    make("a/b/new").unwrap();
    let made = world.root().join("a/b/new").metadata().unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o700);
    symlink(world.outside(), world.root().join("out")).unwrap();
    for bad in ["out", "out/x", "a/file", "a/file/x"] {
        assert!(make(bad).is_err(), "{bad}");
    }
    assert!(!world.outside().join("x").exists());
    let fence = Fence::new([(world.root(), Access::Read)]);
    let refused = fence
        .locate(&world.root(), "y")
        .unwrap()
        .create_folder(0o700);
    assert!(matches!(refused, Err(FenceError::ReadOnly(_))));
}

#[test]
fn a_promised_folder_is_made_when_it_is_needed() {
    let mut world = World::new();
    let own = world.temp.path().join("own");
    world.fence = world.fence.with_promised(&own, Access::Write);
    assert_eq!(world.read("a/file").unwrap(), "inside");
    assert!(!own.exists());

    let path = own.join("below/file").display().to_string();
    world.write(&path, "later").unwrap();
    assert_eq!(world.read(&path).unwrap(), "later");
}

#[test]
fn a_link_in_the_place_of_a_promised_folder_leads_nowhere() {
    let mut world = World::new();
    let own = world.temp.path().join("own");
    world.fence = world.fence.with_promised(&own, Access::Write);
    symlink(world.outside(), &own).unwrap();
    let path = own.join("secret").display().to_string();
    world.read(&path).unwrap_err();
    world.write(&path, "changed").unwrap_err();
    // Located before the link was there.
    std::fs::remove_file(&own).unwrap();
    let fenced = world.fence.locate(&world.root(), &path).unwrap();
    symlink(world.outside(), &own).unwrap();
    fenced.open().unwrap_err();
    fenced.replace(b"changed", None).unwrap_err();
    let secret = std::fs::read_to_string(world.outside().join("secret")).unwrap();
    assert_eq!(secret, SECRET);
}
