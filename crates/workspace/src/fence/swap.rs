//! Putting a file in the place of another without losing what somebody wrote meanwhile: the two
//! change places in one step, and what came out is looked at before it is thrown away.

use super::{Access, FenceError, Fenced, temporary_name};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// So often a file is put back that others keep replacing.
const TRIES: u32 = 100;

/// What must be true of the old file for the new one to take its place.
pub enum Old<'a> {
    /// Whatever there is goes.
    Any,
    /// There is none.
    None,
    /// There is one that passes.
    If(&'a dyn Fn(File) -> bool),
}

impl std::fmt::Debug for Old<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Any => "Any",
            Self::None => "None",
            Self::If(_) => "If",
        })
    }
}

/// Two names in one folder: the new file under a hidden name, and the place where it is to go.
struct Pair<'a> {
    folder: &'a OwnedFd,
    hidden: &'a OsStr,
    name: &'a OsStr,
    /// What is under the hidden name is somebody else's and could not be put back.
    is_stuck: Cell<bool>,
}

impl Fenced {
    /// Puts a whole file in the place of what is there: readers see the old bytes or the new ones,
    /// nothing between. Folders on the way are created. The mode of an old file is kept.
    pub fn replace(&self, bytes: &[u8], mode: Option<u32>) -> Result<(), FenceError> {
        self.swap(bytes, mode, &Old::Any)
    }

    /// The same, if the old file is as it must be. Where it is not, it stays.
    ///
    /// Whoever replaces the file or writes to it before the two change places is found out. Whoever
    /// opened it before and writes to it later writes to a file that nobody sees any more: no
    /// system call can tell. Where files cannot change places, as on some network file systems,
    /// the old file is looked at just before it is replaced.
    pub fn swap(&self, bytes: &[u8], mode: Option<u32>, old: &Old<'_>) -> Result<(), FenceError> {
        use std::io::Write;
        if self.root.access == Access::Read {
            return Err(FenceError::ReadOnly(self.path().display().to_string()));
        }
        let (folder, name) = self.parent()?;
        let hidden: OsString = temporary_name(&name);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created = Mode::from_raw_mode(mode.unwrap_or(0o666));
        let handle =
            rustix::fs::openat(&folder, &hidden, flags, created).map_err(io::Error::from)?;
        let mut file = File::from(handle);
        let pair = Pair {
            folder: &folder,
            hidden: &hidden,
            name: &name,
            is_stuck: Cell::new(false),
        };
        let written = file.write_all(bytes).map_err(FenceError::from);
        let written = written.and_then(|()| {
            // The umask took bits from a mode that is to be kept.
            if mode.is_some() {
                rustix::fs::fchmod(&file, created).map_err(io::Error::from)?;
            }
            match pair.place(&file, old).map_err(io::Error::from)? {
                true => Ok(()),
                false => Err(FenceError::Overtaken),
            }
        });
        if pair.is_stuck.get() {
            let left = hidden.display();
            let why = format!("others kept replacing it; what one of them wrote is kept as {left}");
            return Err(io::Error::other(why).into());
        }
        // What is left under the hidden name is the new file, or the old one that was replaced.
        let _ = rustix::fs::unlinkat(&folder, &hidden, AtFlags::empty());
        written
    }
}

impl Pair<'_> {
    /// Whether the new file is in its place.
    fn place(&self, new: &File, old: &Old<'_>) -> Result<bool, Errno> {
        match old {
            Old::Any => self.rename(RenameFlags::empty()).map(|()| true),
            Old::None => match self.rename(RenameFlags::NOREPLACE) {
                Ok(()) => Ok(true),
                Err(Errno::EXIST) => Ok(false),
                Err(Errno::INVAL | Errno::NOSYS) => {
                    let link = rustix::fs::linkat(
                        self.folder,
                        self.hidden,
                        self.folder,
                        self.name,
                        AtFlags::empty(),
                    );
                    match link {
                        Ok(()) => Ok(true),
                        Err(Errno::EXIST) => Ok(false),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
            },
            Old::If(passes) => match self.rename(RenameFlags::EXCHANGE) {
                Ok(()) => {
                    if self.file(self.hidden).is_some_and(passes) {
                        return Ok(true);
                    }
                    self.put_back(new)
                        .inspect_err(|_| self.is_stuck.set(true))?;
                    Ok(false)
                }
                Err(Errno::NOENT) => Ok(false),
                Err(Errno::INVAL | Errno::NOSYS) => {
                    match self.file(self.name).is_some_and(passes) {
                        true => self.rename(RenameFlags::empty()).map(|()| true),
                        false => Ok(false),
                    }
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Puts back what came out. Somebody may have replaced the new file in the meantime: then
    /// theirs is the latest, comes out now, and has to go back in turn.
    fn put_back(&self, new: &File) -> Result<(), Errno> {
        // A number alone may have been given to another file.
        let known = |it: &rustix::fs::Stat| {
            (
                it.st_dev,
                it.st_ino,
                it.st_size,
                it.st_mtime,
                it.st_mtime_nsec,
            )
        };
        let mut latest = known(&rustix::fs::fstat(new)?);
        for _ in 0..TRIES {
            let out = rustix::fs::statat(self.folder, self.hidden, AtFlags::SYMLINK_NOFOLLOW)?;
            match self.rename(RenameFlags::EXCHANGE) {
                Ok(()) => {}
                // It was removed: whoever did that did not know of what came out.
                Err(Errno::NOENT) => return self.rename(RenameFlags::NOREPLACE),
                Err(error) => return Err(error),
            }
            let now = rustix::fs::statat(self.folder, self.hidden, AtFlags::SYMLINK_NOFOLLOW)?;
            if known(&now) == latest {
                return Ok(());
            }
            latest = known(&out);
        }
        Err(Errno::BUSY)
    }

    fn rename(&self, flags: RenameFlags) -> Result<(), Errno> {
        if flags.is_empty() {
            return rustix::fs::renameat(self.folder, self.hidden, self.folder, self.name);
        }
        rustix::fs::renameat_with(self.folder, self.hidden, self.folder, self.name, flags)
    }

    /// A regular file, to be read.
    fn file(&self, name: &OsStr) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(self.folder, name, flags, Mode::empty()).ok()?;
        let file = File::from(handle);
        file.metadata().ok()?.is_file().then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fence;
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn text(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    fn fenced(folder: &Path, name: &str) -> Fenced {
        let fence = Fence::new([(folder, Access::Write)]);
        fence.locate(folder, name).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        entries
            .map(|it| it.file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_file_that_is_not_as_expected_stays() {
        let temp = tempfile::tempdir().unwrap();
        let file = fenced(temp.path(), "a");
        let is = |wanted: &'static str| move |file: File| text(file) == wanted;
        assert!(matches!(
            file.swap(b"x", None, &Old::If(&is(""))),
            Err(FenceError::Overtaken)
        ));
        file.swap(b"one", None, &Old::None).unwrap();
        assert!(matches!(
            file.swap(b"two", None, &Old::None),
            Err(FenceError::Overtaken)
        ));
        assert!(matches!(
            file.swap(b"two", None, &Old::If(&is("other"))),
            Err(FenceError::Overtaken)
        ));
        assert_eq!(std::fs::read(temp.path().join("a")).unwrap(), b"one");
        file.swap(b"two", None, &Old::If(&is("one"))).unwrap();
        assert_eq!(std::fs::read(temp.path().join("a")).unwrap(), b"two");
        std::fs::remove_file(temp.path().join("a")).unwrap();
        std::fs::create_dir(temp.path().join("a")).unwrap();
        let refused = file.swap(b"x", None, &Old::If(&|_| true));
        assert!(refused.is_err() && temp.path().join("a").is_dir());
        assert_eq!(names(temp.path()), ["a"], "nothing hidden is left");
    }

    /// Another process that replaces the file all the time, and knows what it replaced.
    fn foreigner(folder: &Path, stop: &AtomicBool) -> Vec<(String, String)> {
        let handle = File::open(folder).unwrap();
        let mut replaced = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let own = format!("foreign {n}");
            drop(std::fs::remove_file(folder.join(".foreign")));
            std::fs::write(folder.join(".foreign"), &own).unwrap();
            let flags = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(&handle, ".foreign", &handle, "a", flags).unwrap();
            let old = std::fs::read_to_string(folder.join(".foreign")).unwrap();
            replaced.push((old, own));
            if n % 3 == 0 {
                std::thread::yield_now();
            }
        }
        replaced
    }

    #[test]
    fn no_race_with_another_writer_loses_its_work_in_silence() {
        let temp = tempfile::tempdir().unwrap();
        let (folder, path) = (temp.path(), temp.path().join("a"));
        std::fs::write(&path, "first").unwrap();
        let stop = AtomicBool::new(false);
        // What each of our writes was made from, and which of them were refused.
        let (mut based, mut refused) = (BTreeSet::new(), BTreeSet::new());
        let mut won = BTreeSet::from(["first".to_owned()]);
        let replaced = std::thread::scope(|scope| {
            let other = scope.spawn(|| foreigner(folder, &stop));
            for n in 0..4000 {
                let file = fenced(folder, "a");
                let seen = text(file.open().unwrap());
                let own = format!("own {n}");
                match file.swap(own.as_bytes(), None, &Old::If(&|file| text(file) == seen)) {
                    Ok(()) => {
                        based.insert(seen);
                        won.insert(own);
                    }
                    Err(FenceError::Overtaken) => {
                        refused.insert(own);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            stop.store(true, Ordering::Relaxed);
            other.join().unwrap()
        });
        let last = std::fs::read_to_string(&path).unwrap();
        let overwritten: BTreeSet<&String> = replaced.iter().map(|(old, _)| old).collect();
        // While a write of ours is taken back, it or an older file is there for a moment. Whoever
        // replaces that replaces the latest file with it, without looking, as they always do.
        let mut excused = BTreeSet::new();
        for (n, pair) in replaced.windows(2).enumerate() {
            // How much older depends on how long our thread did not run in between.
            let is_older = replaced[..n].iter().any(|(_, own)| *own == pair[1].0);
            if is_older || refused.contains(&pair[1].0) {
                excused.insert(&pair[0].1);
            }
        }
        if last.starts_with("foreign") {
            assert_eq!(Some(&last), replaced.last().map(|(_, own)| own));
        }
        let theirs = replaced.iter().map(|(_, own)| own);
        for version in theirs.chain(&won) {
            let is_kept = based.contains(version)
                || overwritten.contains(version)
                || excused.contains(version)
                || *version == last;
            assert!(is_kept, "{version} was lost in silence");
        }
        assert!(!refused.is_empty(), "there was no race");
        assert!(won.len() > 1, "nothing was written");
    }
}
