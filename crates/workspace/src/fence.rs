//! The fence: a path is opened only after it was resolved against an agent's roots.
//!
//! [`Fence::locate`] is the only way to a [`Fenced`] path, and a `Fenced` path is the only thing
//! that opens files. Links and `..` are resolved once, when the path is located. Between that
//! check and its use nothing may change: files are opened from the root's own handle, and a part
//! of the path that has become a link since then makes the opening fail.

mod folder;
mod swap;

pub use folder::{Folder, Kind, Stamp};
pub use swap::Old;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A folder that an agent may work in.
#[derive(Debug)]
struct Root {
    /// Without links.
    path: PathBuf,
    /// Missing as long as nobody has needed a folder that was only promised.
    handle: OnceLock<OwnedFd>,
    access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// All folders that one agent may work in.
#[derive(Debug, Clone)]
pub struct Fence {
    roots: Vec<Arc<Root>>,
    /// The mounts that were there when the fence was made. What is mounted later was put there to
    /// get around it.
    mounts: Arc<Vec<u64>>,
}

impl Root {
    fn open(path: &Path, access: Access) -> Option<Arc<Self>> {
        let path = path.canonicalize().ok()?;
        let handle = OnceLock::from(open_folder(&path, OFlags::empty()).ok()?);
        Some(Arc::new(Self {
            path,
            handle,
            access,
        }))
    }

    /// A folder that is made when it is first needed. It costs neither a folder nor a handle
    /// before: of many agents most need none of their own.
    fn promise(path: &Path, access: Access) -> Option<Arc<Self>> {
        let above = path.parent()?.canonicalize().ok()?;
        Some(Arc::new(Self {
            path: above.join(path.file_name()?),
            handle: OnceLock::new(),
            access,
        }))
    }

    fn handle(&self) -> Result<&OwnedFd, Errno> {
        if let Some(handle) = self.handle.get() {
            return Ok(handle);
        }
        match rustix::fs::mkdir(&self.path, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let handle = open_folder(&self.path, OFlags::NOFOLLOW)?;
        Ok(self.handle.get_or_init(|| handle))
    }
}

fn open_folder(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    rustix::fs::open(path, flags, Mode::empty())
}

/// A path inside the fence, without links.
#[derive(Debug, Clone)]
pub struct Fenced {
    root: Arc<Root>,
    mounts: Arc<Vec<u64>>,
    /// Below the root; empty for the root itself.
    below: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    #[error("{path} is outside the folders that may be used here: {roots}")]
    Outside { path: String, roots: String },
    #[error("{0} may only be read")]
    ReadOnly(String),
    #[error("the path {0}")]
    Odd(&'static str),
    #[error("{path} changed while it was being opened")]
    Changed { path: String },
    #[error("somebody else changed it at the same time; read it again")]
    Overtaken,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Longer paths are refused by the system anyway; saying so is kinder than its error.
const LONGEST: usize = 4096;

impl Fence {
    /// Folders that cannot be opened are left out: nothing in them can be either.
    pub fn new<P: AsRef<Path>>(roots: impl IntoIterator<Item = (P, Access)>) -> Self {
        let open = |(path, access): (P, Access)| Root::open(path.as_ref(), access);
        Self {
            roots: roots.into_iter().filter_map(open).collect(),
            mounts: Arc::new(mounts()),
        }
    }

    /// These folders and one more that is made when it is first needed, with the handles and the
    /// mounts that are known.
    pub fn with_promised(&self, path: &Path, access: Access) -> Self {
        let mut fence = self.clone();
        fence.roots.extend(Root::promise(path, access));
        fence
    }

    /// These folders and those of another fence, from the handles that it has.
    pub fn join(&self, other: &Self) -> Self {
        let mut fence = self.clone();
        fence.roots.extend(other.roots.iter().cloned());
        fence
    }

    /// One of the folders and nothing else, only to be read.
    pub fn reading(&self, folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let root = self.roots.iter().find(|root| root.path == folder)?;
        let root = Root {
            path: folder,
            handle: OnceLock::from(root.handle().ok()?.try_clone().ok()?),
            access: Access::Read,
        };
        Some(Self {
            roots: vec![Arc::new(root)],
            mounts: self.mounts.clone(),
        })
    }

    /// The folders, the agent's own first.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.path.as_path())
    }

    /// Resolves a path as it is now. What does not exist yet is resolved as far as it exists.
    pub fn locate(&self, cwd: &Path, path: impl AsRef<Path>) -> Result<Fenced, FenceError> {
        let path = path.as_ref();
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.is_empty() {
            return Err(FenceError::Odd("is empty"));
        }
        if bytes.len() > LONGEST {
            return Err(FenceError::Odd("is longer than 4,096 bytes"));
        }
        if bytes.contains(&0) {
            return Err(FenceError::Odd("holds a NUL byte"));
        }
        let resolved = resolve(&cwd.join(path))?;
        let inside = |root: &&Arc<Root>| resolved.starts_with(&root.path);
        // Of nested roots the innermost decides.
        let root = self
            .roots
            .iter()
            .filter(inside)
            .max_by_key(|root| root.path.as_os_str().len());
        let Some(root) = root else {
            let roots: Vec<String> = self
                .roots()
                .map(|root| root.display().to_string())
                .collect();
            return Err(FenceError::Outside {
                path: path.display().to_string(),
                roots: roots.join(", "),
            });
        };
        let below = resolved.strip_prefix(&root.path).unwrap_or(Path::new(""));
        Ok(Fenced {
            root: root.clone(),
            mounts: self.mounts.clone(),
            below: below.to_owned(),
        })
    }
}

/// Where a path leads, for rules that speak of it; nothing is opened by it. What leads through a
/// link to nothing leads where the link says.
pub fn destination(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // More links than this no system follows.
    for _ in 0..40 {
        if let Ok(resolved) = resolve(&path) {
            return resolved;
        }
        let Some((above, link)) = dangling(&path) else {
            return path;
        };
        path = above.join(link);
    }
    path
}

/// The folder that a link to nothing lies in, and what the link says with the rest of the path.
fn dangling(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let above = path
        .ancestors()
        .find(|above| above.symlink_metadata().is_ok())?;
    let mut link = above.read_link().ok()?;
    link.extend(path.strip_prefix(above).ok()?);
    Some((above.parent()?.to_owned(), link))
}

/// A path without links and dots. The part that does not exist is kept by name.
fn resolve(path: &Path) -> Result<PathBuf, FenceError> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut exists = path.to_owned();
    loop {
        match exists.canonicalize() {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok(resolved);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link to nothing is not a name that is free.
                if exists.symlink_metadata().is_ok() {
                    return Err(FenceError::Odd("leads through a link to nothing"));
                }
                match exists.components().next_back() {
                    Some(Component::Normal(name)) => missing.push(name.to_owned()),
                    Some(Component::CurDir) => {}
                    _ => return Err(FenceError::Odd("goes up from a folder that does not exist")),
                }
                exists.pop();
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Fenced {
    /// The whole path, for showing and for keys.
    pub fn path(&self) -> PathBuf {
        // Joining nothing would leave a slash at the end.
        match self.is_root() {
            true => self.root.path.clone(),
            false => self.root.path.join(&self.below),
        }
    }

    pub fn is_root(&self) -> bool {
        self.below.as_os_str().is_empty()
    }

    /// A path below this one. It was not located, so what is opened through it is checked for
    /// links as everything else.
    pub fn join(&self, below: &Path) -> Option<Self> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        below.components().all(plain).then(|| Self {
            below: self.below.join(below),
            ..self.clone()
        })
    }

    /// Opens a regular file or a folder for reading. A pipe or a device is never waited for.
    pub fn open(&self) -> Result<File, FenceError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open_with(flags, Mode::empty())?);
        Ok(file)
    }

    pub fn metadata(&self) -> Result<std::fs::Metadata, FenceError> {
        let handle = self.open_with(OFlags::PATH, Mode::empty())?;
        Ok(File::from(handle).metadata()?)
    }

    pub fn exists(&self) -> bool {
        self.metadata().is_ok()
    }

    /// The names in a folder, unsorted.
    pub fn entries(&self) -> Result<Vec<OsString>, FenceError> {
        use std::os::unix::ffi::OsStrExt;
        let handle = self.open_with(OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(handle).map_err(io::Error::from)? {
            let entry = entry.map_err(io::Error::from)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(std::ffi::OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    /// Makes a folder where there is none. A link or a file in its place is an error.
    pub fn create_folder(&self, mode: u32) -> Result<(), FenceError> {
        if self.root.access == Access::Read {
            return Err(FenceError::ReadOnly(self.path().display().to_string()));
        }
        let (outer, name) = self.parent()?;
        match rustix::fs::mkdirat(&outer, &name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        self.open_with(OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
            .map(drop)
    }

    /// The handle of the folder that this path stands in, which is created where it is missing.
    fn parent(&self) -> Result<(OwnedFd, OsString), FenceError> {
        let name = self.below.file_name().map(OsString::from);
        let name = name.ok_or(FenceError::Odd("is a folder"))?;
        let above = self.below.parent().unwrap_or(Path::new(""));
        let folder = Self {
            below: above.to_owned(),
            ..self.clone()
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match folder.open_with(flags, Mode::empty()) {
            Err(FenceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                let (outer, missing) = folder.parent()?;
                match rustix::fs::mkdirat(&outer, &missing, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(io::Error::from(error).into()),
                }
                Ok((folder.open_with(flags, Mode::empty())?, name))
            }
            opened => Ok((opened?, name)),
        }
    }

    /// Opens from the root's handle, through no link, into no new mount.
    fn open_with(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, FenceError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let below = if self.is_root() {
            Path::new(".")
        } else {
            &self.below
        };
        let beneath =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let strict = beneath | ResolveFlags::NO_XDEV;
        let root = self.root.handle().map_err(|error| self.refused(error))?;
        let opened = rustix::fs::openat2(root, below, flags, mode, strict);
        let opened = match opened {
            // A mount on the way: fine if it was there from the start.
            Err(Errno::XDEV) => {
                let handle = rustix::fs::openat2(root, below, flags, mode, beneath);
                let handle = handle.map_err(|error| self.refused(error))?;
                return if self.is_known_mount(&handle) {
                    Ok(handle)
                } else {
                    Err(self.refused(Errno::XDEV))
                };
            }
            // Kernels before 5.6, and containers that forbid the call.
            Err(Errno::NOSYS | Errno::PERM) => self.walk(flags, mode),
            opened => opened,
        };
        opened.map_err(|error| self.refused(error))
    }

    fn refused(&self, error: Errno) -> FenceError {
        match error {
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => FenceError::Changed {
                path: self.path().display().to_string(),
            },
            error => io::Error::from(error).into(),
        }
    }

    /// The same by hand: one part after another, none of them a link.
    fn walk(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut parts: Vec<Component<'_>> = self.below.components().collect();
        let last = parts.pop();
        let mut folder = rustix::fs::openat(self.root.handle()?, ".", step, Mode::empty())?;
        for part in parts {
            folder = rustix::fs::openat(&folder, part.as_os_str(), step, Mode::empty())?;
        }
        let last = last.map_or(Path::new("."), |last| Path::new(last.as_os_str()));
        rustix::fs::openat(&folder, last, flags, mode)
    }

    fn is_known_mount(&self, handle: &OwnedFd) -> bool {
        mount_of(handle.as_fd()).is_some_and(|mount| self.mounts.contains(&mount))
    }
}

/// The id of the mount that a handle is in.
fn mount_of(handle: std::os::fd::BorrowedFd<'_>) -> Option<u64> {
    use std::os::fd::AsRawFd;
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

/// The ids of all mounts.
fn mounts() -> Vec<u64> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let id = |line: &str| line.split(' ').next()?.parse().ok();
    text.lines().filter_map(id).collect()
}

/// Hidden, beside the file, and not the same twice in this process.
fn temporary_name(name: &std::ffi::OsStr) -> OsString {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Names have a limit of 255 bytes; the file's own may be near it.
    let mut temporary = OsString::from(format!(".gaffer-{}-{number}-", std::process::id()));
    let text = name.to_string_lossy();
    temporary.push(text.chars().take(40).collect::<String>());
    temporary
}

#[cfg(test)]
mod tests;
