//! A walk through a tree on all cores: every folder and file is opened from inside the fence, no
//! link is followed, no version control entered.

use super::queue::Queue;
use super::rules::{Marks, Rules};
use super::{Base, Stop, is_gone};
use crate::context::Context;
use gaffer_workspace::fence::{FenceError, Folder, Kind};
use ignore::overrides::Override;
use ignore::types::Types;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders of version control, whose content is never what is looked for.
const VERSION_CONTROL: [&str; 6] = [".git", ".hg", ".svn", ".jj", ".bzr", ".sl"];
/// More threads only wait for each other.
const MOST_THREADS: usize = 12;
/// How much of a folder is listed at once.
const LISTED: usize = 32 << 10;
/// How many files of one folder a thread keeps for itself.
const PORTION: usize = 128;

pub(crate) fn is_version_control(name: &[u8]) -> bool {
    VERSION_CONTROL.iter().any(|own| own.as_bytes() == name)
}

/// Which files are walked through.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) base: &'a Base,
    /// Whether .gitignore and its like are obeyed.
    pub(crate) obeys_rules: bool,
    /// The user's own list of what git leaves out.
    excludes: Option<&'a Path>,
    pub(crate) hidden: bool,
    pub(crate) globs: Override,
    pub(crate) types: Types,
    /// How far below the base; 1 is what is directly in it.
    pub(crate) depth: usize,
    pub(crate) stop: &'a Stop,
}

/// What is done with the files, on one thread.
pub(crate) trait Visit: Send {
    fn file(&mut self, entry: &Entry<'_>);

    fn unread(&mut self, below: &Path, why: &FenceError);
}

/// A file on the way.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    folder: &'a Folder,
    name: &'a CStr,
    /// Its path from the base.
    pub(crate) below: &'a Path,
    /// Its whole path, without links.
    pub(crate) path: &'a Path,
}

impl Entry<'_> {
    pub(crate) fn open(&self) -> Result<File, FenceError> {
        self.folder.open(self.name)
    }

    pub(crate) fn modified(&self) -> Result<(i64, u64), FenceError> {
        self.folder.modified(self.name)
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(context: &'a Context, base: &'a Base, stop: &'a Stop) -> Self {
        Self {
            base,
            obeys_rules: true,
            excludes: context.excludes.as_deref(),
            hidden: false,
            globs: Override::empty(),
            types: Types::empty(),
            depth: usize::MAX,
            stop,
        }
    }

    /// Shows each file to one of the visitors, of which each thread has one, and gives them back.
    pub(crate) fn run<V: Visit>(&self, visitor: impl Fn() -> V) -> Vec<V> {
        let rules = self
            .obeys_rules
            .then(|| Rules::around(&self.base.path, self.excludes));
        let queue = Queue::new(Job::Folder {
            below: PathBuf::new(),
            depth: 1,
            rules,
        });
        let work = |visitor: V| {
            let mut worker = Worker::new(self, &queue, visitor);
            while !self.stop.is_set()
                && let Some(turn) = queue.next()
            {
                worker.run(&turn.job);
            }
            worker.visitor
        };
        std::thread::scope(|scope| {
            let work = &work;
            let others = (1..threads()).map(|_| {
                let visitor = visitor();
                scope.spawn(move || work(visitor))
            });
            let others: Vec<_> = others.collect();
            let mut visitors = vec![work(visitor())];
            for other in others {
                visitors.push(
                    other
                        .join()
                        .unwrap_or_else(|why| std::panic::resume_unwind(why)),
                );
            }
            visitors
        })
    }

    /// Whether a path is in the walk, in ripgrep's order: globs decide first, then rules, then
    /// types, and hidden files are left out where nobody asked for them.
    fn keeps(&self, rules: Option<&Rules>, path: &Path, name: &[u8], kind: Kind) -> bool {
        let is_hidden = name.first() == Some(&b'.');
        if is_hidden && is_version_control(name) {
            return false;
        }
        let is_folder = kind == Kind::Folder;
        let globs = self.globs.matched(path, is_folder);
        if !globs.is_none() {
            return globs.is_whitelist();
        }
        let judged = rules.map(|rules| rules.judge(path, is_folder));
        if judged.as_ref().is_some_and(ignore::Match::is_ignore) {
            return false;
        }
        let types = self.types.matched(path, is_folder);
        if types.is_ignore() {
            return false;
        }
        let is_asked_for =
            types.is_whitelist() || judged.is_some_and(|judged| judged.is_whitelist());
        self.hidden || !is_hidden || is_asked_for
    }
}

fn threads() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(1, |cores| cores.get().min(MOST_THREADS))
}

#[derive(Debug)]
enum Job {
    Folder {
        below: PathBuf,
        depth: usize,
        rules: Option<Arc<Rules>>,
    },
    /// Some of the files of a large folder.
    Files(Arc<Listing>, std::ops::Range<usize>),
}

/// A folder and the files in it.
#[derive(Debug)]
struct Listing {
    folder: Folder,
    below: PathBuf,
    rules: Option<Arc<Rules>>,
    /// All names, each with the zero byte that ends it.
    names: Vec<u8>,
    /// Where in `names` those of files begin.
    files: Vec<usize>,
}

/// One thread, with buffers that stay.
struct Worker<'a, V> {
    walk: &'a Walk<'a>,
    queue: &'a Queue<Job>,
    visitor: V,
    listed: Vec<u8>,
    path: Vec<u8>,
}

impl<'a, V: Visit> Worker<'a, V> {
    fn new(walk: &'a Walk<'a>, queue: &'a Queue<Job>, visitor: V) -> Self {
        Self {
            walk,
            queue,
            visitor,
            listed: Vec::with_capacity(LISTED),
            path: root(walk.base).to_vec(),
        }
    }

    fn run(&mut self, job: &Job) {
        match job {
            Job::Files(listing, range) => self.files(listing, &listing.files[range.clone()]),
            Job::Folder {
                below,
                depth,
                rules,
            } => {
                if let Err(why) = self.folder(below, *depth, rules.as_ref())
                    && !is_gone(&why)
                {
                    self.visitor.unread(below, &why);
                }
            }
        }
    }

    fn folder(
        &mut self,
        below: &Path,
        depth: usize,
        rules: Option<&Arc<Rules>>,
    ) -> Result<(), FenceError> {
        let base = &self.walk.base.fenced;
        let folder = if below.as_os_str().is_empty() {
            base.folder()?
        } else {
            let inner = base.join(below);
            inner.ok_or(FenceError::Odd("is not plain"))?.folder()?
        };
        let (mut names, mut files, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        let mut marks = Marks::default();
        folder.list(&mut self.listed, |name, kind| {
            marks.note(name);
            match kind {
                Kind::File => files.push(names.len()),
                Kind::Folder => folders.push(names.len()),
                Kind::Other => return,
            }
            names.extend_from_slice(name.to_bytes_with_nul());
        })?;
        let start = self.enter(below);
        let path = self.walk.base.path.join(below);
        let rules = rules.map(|rules| rules.inside(&path, &folder, marks));
        let mut jobs = Vec::new();
        for place in folders {
            let name = name_at(&names, place);
            if depth < self.walk.depth && self.keeps(rules.as_deref(), start, name, Kind::Folder) {
                jobs.push(Job::Folder {
                    below: self.below().to_owned(),
                    depth: depth + 1,
                    rules: rules.clone(),
                });
            }
        }
        let listing = Listing {
            folder,
            below: below.to_owned(),
            rules,
            names,
            files,
        };
        if listing.files.len() <= PORTION {
            self.queue.push(jobs);
            self.files(&listing, &listing.files);
        } else {
            let listing = Arc::new(listing);
            let all = listing.files.len();
            // They come last to be taken first, before the folder's handle is one of many.
            jobs.extend(
                (0..all)
                    .step_by(PORTION)
                    .map(|first| Job::Files(listing.clone(), first..all.min(first + PORTION))),
            );
            self.queue.push(jobs);
        }
        Ok(())
    }

    fn files(&mut self, listing: &Listing, files: &[usize]) {
        let start = self.enter(&listing.below);
        for place in files {
            if self.walk.stop.is_set() {
                return;
            }
            let name = name_at(&listing.names, *place);
            if self.keeps(listing.rules.as_deref(), start, name, Kind::File) {
                let below = below(self.walk.base, &self.path);
                self.visitor.file(&Entry {
                    folder: &listing.folder,
                    name,
                    below,
                    path: Path::new(OsStr::from_bytes(&self.path)),
                });
            }
        }
    }

    /// Makes `path` that of a folder below the base, and says where names in it begin.
    fn enter(&mut self, below: &Path) -> usize {
        self.path.truncate(root(self.walk.base).len());
        if !below.as_os_str().is_empty() {
            self.path.push(b'/');
            self.path.extend_from_slice(below.as_os_str().as_bytes());
        }
        self.path.len()
    }

    /// Makes `path` that of a name in the folder, and says whether it is in the walk.
    fn keeps(&mut self, rules: Option<&Rules>, start: usize, name: &CStr, kind: Kind) -> bool {
        self.path.truncate(start);
        self.path.push(b'/');
        self.path.extend_from_slice(name.to_bytes());
        let path = Path::new(OsStr::from_bytes(&self.path));
        self.walk.keeps(rules, path, name.to_bytes(), kind)
    }

    fn below(&self) -> &Path {
        below(self.walk.base, &self.path)
    }
}

/// The base without a slash at its end, which only the root of all has.
fn root(base: &Base) -> &[u8] {
    let path = base.path.as_os_str().as_bytes();
    path.strip_suffix(b"/").unwrap_or(path)
}

/// The part of a path that is below the base.
fn below<'p>(base: &Base, path: &'p [u8]) -> &'p Path {
    let start = root(base).len() + 1;
    Path::new(OsStr::from_bytes(path.get(start..).unwrap_or_default()))
}

fn name_at(names: &[u8], place: usize) -> &CStr {
    CStr::from_bytes_until_nul(&names[place..]).unwrap_or_default()
}
