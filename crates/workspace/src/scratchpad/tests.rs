//! Who wrote what and when, read back; folders that others made; what is lost and what is not.

use super::*;
use proptest::prelude::*;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that goes on by a second with each look at it.
#[derive(Debug, Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1000, Ordering::Relaxed))
    }
}

const CAPS: Caps = Caps {
    file: 1000,
    total: 2500,
    entries: 50,
};

struct World {
    temp: tempfile::TempDir,
    uid: u32,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        Self { temp, uid }
    }

    fn try_open(&self) -> Result<Scratchpad, ScratchpadError> {
        let place = Place {
            temp: self.temp.path(),
            uid: self.uid,
            folder: "-srv-app",
            session: "s1",
        };
        Scratchpad::open(place, Arc::new(Ticking::default()), CAPS)
    }

    fn open(&self) -> Scratchpad {
        self.try_open().unwrap()
    }

    fn below(&self, path: &str) -> PathBuf {
        let user = format!("gaffer-{}", self.uid);
        let temp = self.temp.path().canonicalize().unwrap();
        // A path with a slash at its end is not one of a link.
        temp.join(user).join(path).components().collect()
    }

    fn index(&self) -> PathBuf {
        self.below("-srv-app/s1/versions/index.jsonl")
    }
}

fn pen(pad: &Scratchpad, number: u32) -> Pen {
    let id = AgentId::parse(&format!("agent-{number:08x}")).unwrap();
    pad.pen(id, format!("worker-{number}"))
}

/// Writes as a file tool does.
fn write(pen: &Pen, path: &str, bytes: &[u8]) {
    let whole = pen.pad().path().join(path);
    let held = pen.hold(&whole).unwrap();
    let fenced = pen.pad().fence().locate(Path::new("/"), &whole).unwrap();
    fenced.replace(bytes, None).unwrap();
    held.written(bytes).unwrap();
}

/// Runs what a command would do.
fn command(pen: &Pen, what: impl FnOnce(&Path)) -> Scanned {
    let running = pen.command();
    what(&pen.pad().path());
    running.ended(false)
}

fn names(version: &Version) -> Vec<&str> {
    let names = version.writers.iter();
    names.map(|writer| writer.name.as_str()).collect()
}

fn version(pad: &Scratchpad, path: &str, n: usize) -> Result<Vec<u8>, VersionError> {
    pad.read_version(&pad.path().join(path), n)
}

fn versions(pad: &Scratchpad, path: &str) -> Vec<Version> {
    pad.versions(&pad.path().join(path))
}

#[test]
fn every_folder_is_the_users_alone() {
    let world = World::new();
    let pad = world.open();
    assert_eq!(pad.path(), world.below("-srv-app/s1/scratchpad"));
    for path in [
        "",
        "-srv-app",
        "-srv-app/s1",
        "-srv-app/s1/scratchpad",
        "-srv-app/s1/versions",
    ] {
        let mode = world.below(path).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{path}");
    }
    // What others could read is closed to them.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.below("-srv-app"), open).unwrap();
    drop(world.open());
    let mode = world
        .below("-srv-app")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_folder_that_another_made_is_refused() {
    for level in [
        "",
        "-srv-app",
        "-srv-app/s1",
        "-srv-app/s1/scratchpad",
        "-srv-app/s1/versions",
    ] {
        // A link, even to a folder of the user's.
        let world = World::new();
        let elsewhere = world.temp.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let path = world.below(level);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path.parent().unwrap())
            .unwrap();
        symlink(&elsewhere, &path).unwrap();
        let error = world.try_open().unwrap_err().to_string();
        assert!(error.contains("is a link or a file"), "{level}: {error}");
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
        // A folder that others may write to.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o770)).unwrap();
        let error = world.try_open().unwrap_err().to_string();
        assert!(
            error.contains("other users may write to"),
            "{level}: {error}"
        );
    }
    // Another user's: for whoever has another number, that is what ours are. The test's own
    // temporary folder would be refused first, so the level below is asked for by itself.
    let world = World::new();
    drop(world.open());
    let stranger = world.uid + 1;
    std::fs::rename(
        world.below(""),
        world.temp.path().join(format!("gaffer-{stranger}")),
    )
    .unwrap();
    let own = place::Own {
        path: world.temp.path().to_owned(),
        handle: std::fs::File::open(world.temp.path()).unwrap().into(),
    };
    let error = own
        .below(&format!("gaffer-{stranger}"), stranger)
        .unwrap_err();
    assert!(matches!(error, PlaceError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("set TMPDIR"), "{error}");
}

#[test]
fn a_shared_folder_without_the_sticky_bit_is_refused() {
    let world = World::new();
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(world.temp.path(), mode(0o777)).unwrap();
    assert!(matches!(
        world.try_open(),
        Err(ScratchpadError::Place(PlaceError::Open(_)))
    ));
    std::fs::set_permissions(world.temp.path(), mode(0o1777)).unwrap();
    drop(world.open());
    let place = Place {
        temp: world.temp.path(),
        uid: world.uid,
        folder: "..",
        session: "s1",
    };
    assert!(matches!(place.open(), Err(PlaceError::Name(_))));
}

#[test]
fn a_commands_writes_are_found_and_recorded_once() {
    let world = World::new();
    let pad = world.open();
    let (one, two) = (pen(&pad, 1), pen(&pad, 2));
    let scanned = command(&one, |folder| {
        std::fs::create_dir_all(folder.join("deep/er")).unwrap();
        std::fs::write(folder.join("deep/er/a"), "first").unwrap();
        symlink("/etc/passwd", folder.join("link")).unwrap();
    });
    assert_eq!(
        scanned,
        Scanned {
            recorded: 1,
            note: None
        }
    );
    assert_eq!(command(&two, |_| {}), Scanned::default());
    command(&two, |folder| {
        std::fs::write(folder.join("deep/er/a"), "again").unwrap();
    });
    // Of the same size, and with its old time.
    command(&one, |folder| {
        let path = folder.join("deep/er/a");
        let times = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "AGAIN").unwrap();
        std::fs::File::open(&path)
            .unwrap()
            .set_modified(times)
            .unwrap();
    });
    command(&two, |folder| {
        std::fs::remove_file(folder.join("deep/er/a")).unwrap();
    });
    let found = versions(&pad, "deep/er/a");
    let who: Vec<Vec<&str>> = found.iter().map(names).collect();
    assert_eq!(
        who,
        [["worker-1"], ["worker-2"], ["worker-1"], ["worker-2"]]
    );
    assert_eq!(found[3].content, Content::Gone);
    assert_eq!(version(&pad, "deep/er/a", 1).unwrap(), b"first");
    assert_eq!(version(&pad, "deep/er/a", 3).unwrap(), b"AGAIN");
    assert!(matches!(
        version(&pad, "deep/er/a", 4),
        Err(VersionError::Gone(4))
    ));
    assert!(matches!(
        version(&pad, "deep/er/a", 5),
        Err(VersionError::Missing { asked: 5, last: 4 })
    ));
    assert!(matches!(
        version(&pad, "deep/er/a", 0),
        Err(VersionError::Missing { .. })
    ));
    assert!(matches!(
        version(&pad, "link", 1),
        Err(VersionError::Unknown)
    ));
}

#[test]
fn whoever_may_have_written_is_named() {
    let world = World::new();
    let pad = world.open();
    let (one, two, three) = (pen(&pad, 1), pen(&pad, 2), pen(&pad, 3));
    let other = two.command();
    command(&one, |folder| {
        std::fs::write(folder.join("a"), "x").unwrap();
    });
    assert_eq!(names(&versions(&pad, "a")[0]), ["worker-1", "worker-2"]);
    // A command that was broken off is looked at by the next.
    std::fs::write(pad.path().join("b"), "x").unwrap();
    drop(other);
    command(&one, |_| {});
    assert_eq!(names(&versions(&pad, "b")[0]), ["worker-1", "worker-2"]);
    // A job goes on until its agent has no more of them, or is gone.
    three.command().ended(true);
    command(&one, |folder| {
        std::fs::write(folder.join("c"), "x").unwrap();
    });
    assert_eq!(names(&versions(&pad, "c")[0]), ["worker-1", "worker-3"]);
    three.command().ended(false);
    command(&one, |folder| {
        std::fs::write(folder.join("d"), "x").unwrap();
    });
    assert_eq!(names(&versions(&pad, "d")[0]), ["worker-1"]);
}

#[test]
fn a_list_finds_what_an_agent_left_behind() {
    let world = World::new();
    let pad = world.open();
    let gone = pen(&pad, 1);
    gone.command().ended(true);
    drop(gone);
    std::fs::write(pad.path().join("a"), "x").unwrap();
    let listing = pad.list();
    let [file] = &listing.files[..] else {
        panic!("{listing:?}")
    };
    assert_eq!((file.path.as_str(), file.size, file.versions), ("a", 1, 1));
    assert_eq!(names(file.last.as_ref().unwrap()), ["worker-1"]);
    std::fs::write(pad.path().join("a"), "y").unwrap();
    let listing = pad.list();
    assert_eq!(listing.files[0].versions, 2);
    assert!(listing.files[0].last.as_ref().unwrap().writers.is_empty());
}

#[test]
fn a_file_with_a_name_elsewhere_is_listed_and_not_read() {
    let world = World::new();
    let pad = world.open();
    let secret = world.temp.path().join("secret");
    std::fs::write(&secret, "what stands outside").unwrap();
    command(&pen(&pad, 1), |folder| {
        std::fs::hard_link(&secret, folder.join("hard")).unwrap();
    });
    assert_eq!(versions(&pad, "hard")[0].content, Content::Unread);
    assert!(matches!(
        version(&pad, "hard", 1),
        Err(VersionError::Unread(1))
    ));
}

#[test]
fn what_grows_too_large_is_listed_and_not_kept() {
    let world = World::new();
    let pad = world.open();
    let pen = pen(&pad, 1);
    write(&pen, "large", &[b'x'; 1001]);
    let error = version(&pad, "large", 1).unwrap_err();
    assert!(
        error.to_string().contains("more than is kept of a file"),
        "{error}"
    );
    assert!(matches!(
        versions(&pad, "large")[0].content,
        Content::Sha256(_)
    ));
    for n in 0..3 {
        write(&pen, "a", &[b'a' + n; 900]);
    }
    for pad in [pad, world.open()] {
        let error = version(&pad, "a", 1).unwrap_err();
        assert!(matches!(error, VersionError::Dropped(1)), "{error}");
        assert_eq!(version(&pad, "a", 2).unwrap(), [b'b'; 900]);
        assert_eq!(version(&pad, "a", 3).unwrap(), [b'c'; 900]);
    }
    let kept = world.below("-srv-app/s1/versions/contents");
    assert_eq!(kept.read_dir().unwrap().count(), 2);
}

#[test]
fn too_many_files_are_said_once() {
    let world = World::new();
    let pad = world.open();
    let pen = pen(&pad, 1);
    let scanned = command(&pen, |folder| {
        for n in 0..60 {
            std::fs::write(folder.join(format!("{n:02}")), "x").unwrap();
        }
    });
    assert_eq!(scanned.recorded, 50);
    assert!(scanned.note.unwrap().contains("more than 50 files"));
    assert_eq!(command(&pen, |_| {}), Scanned::default());
    let listing = pad.list();
    assert!(listing.is_partial && listing.files.len() == 50);
}

#[test]
fn what_is_damaged_or_torn_costs_only_itself() {
    let world = World::new();
    {
        let pad = world.open();
        for n in 0..4 {
            write(&pen(&pad, n), "a", format!("{n}").as_bytes());
        }
    }
    let whole = std::fs::read(world.index()).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    for cut in (0..=whole.len()).rev().step_by(7) {
        std::fs::write(world.index(), &whole[..cut]).unwrap();
        let pad = world.open();
        let lines = ends.iter().filter(|end| **end < cut).count();
        // What the file holds now but no line tells of is found at the start.
        let found = versions(&pad, "a");
        assert_eq!(found.len(), lines + usize::from(lines < 4), "{cut}");
        if lines < 4 {
            assert!(found[lines].writers.is_empty());
        }
        assert_eq!(version(&pad, "a", found.len()).unwrap(), b"3");
        write(&pen(&pad, 9), "b", b"after");
        drop(pad);
        assert_eq!(version(&world.open(), "b", 1).unwrap(), b"after", "{cut}");
    }
    let mut spoilt = whole;
    spoilt[ends[0] + 1] = b'?';
    std::fs::write(world.index(), spoilt).unwrap();
    let pad = world.open();
    assert_eq!((pad.list().damaged, versions(&pad, "a").len()), (1, 3));
    // A content that is not what it should be is not given out as if it were.
    let Content::Sha256(hash) = &versions(&pad, "a")[2].content else {
        panic!()
    };
    let content = world.below("-srv-app/s1/versions/contents").join(hash);
    std::fs::write(content, "?").unwrap();
    assert!(matches!(
        version(&pad, "a", 3),
        Err(VersionError::Damaged(3))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_version_can_be_read_back(
        writes in prop::collection::vec((0..3_u32, 0..3_u8, prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 1..20),
    ) {
        let world = World::new();
        let pad = world.open();
        let mut want: HashMap<String, Vec<(u32, Vec<u8>)>> = HashMap::new();
        for (who, file, bytes, by_command) in writes {
            let path = format!("f{file}");
            let pen = pen(&pad, who);
            let of_file = want.entry(path.clone()).or_default();
            if by_command {
                command(&pen, |folder| std::fs::write(folder.join(&path), &bytes).unwrap());
                // A command that writes what is there already leaves nothing to find.
                if of_file.last().is_some_and(|last| last.1 == bytes) {
                    continue;
                }
            } else {
                write(&pen, &path, &bytes);
            }
            of_file.push((who, bytes));
        }
        for pad in [pad, world.open()] {
            for (path, wanted) in &want {
                let found = versions(&pad, path);
                prop_assert_eq!(found.len(), wanted.len());
                for (n, (who, bytes)) in wanted.iter().enumerate() {
                    let name = format!("worker-{who}");
                    prop_assert_eq!(names(&found[n]), [name.as_str()]);
                    prop_assert_eq!(found[n].size, bytes.len() as u64);
                    prop_assert_eq!(&version(&pad, path, n + 1).unwrap(), bytes);
                }
            }
        }
    }
}
