//! What a tree leaves out, as ripgrep reads it: .gitignore, .ignore, .rgignore and git's lists.

use gaffer_workspace::fence::Folder;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The files with rules, those that win first.
const LISTS: [&CStr; 3] = [c".rgignore", c".ignore", c".gitignore"];
/// Of a folder's lists, the first that only counts in a repository. `info/exclude` comes after it.
const FIRST_OF_GIT: usize = 2;
const MOST_BYTES: u64 = 1 << 20;

/// The rules of one folder and of all above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    lists: [Gitignore; LISTS.len() + 1],
    is_repository: bool,
    in_repository: bool,
    /// The user's own, for all repositories.
    global: Arc<Gitignore>,
}

/// Which names that matter here a folder holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    lists: [bool; LISTS.len()],
    git: bool,
    jujutsu: bool,
}

impl Marks {
    pub(super) fn note(&mut self, name: &CStr) {
        if name.to_bytes().first() != Some(&b'.') {
            return;
        }
        for (mark, list) in self.lists.iter_mut().zip(LISTS) {
            *mark |= name == list;
        }
        self.git |= name == c".git";
        self.jujutsu |= name == c".jj";
    }

    /// Those of a folder that is not listed.
    fn of(folder: &Path) -> Self {
        let mut marks = Self::default();
        for name in LISTS.into_iter().chain([c".git", c".jj"]) {
            if folder.join(text(name)).exists() {
                marks.note(name);
            }
        }
        marks
    }

    fn any(self) -> bool {
        self.git || self.jujutsu || self.lists.contains(&true)
    }
}

impl Rules {
    /// The rules that hold for a folder because of where it is. `excludes` is the user's own list.
    pub(super) fn around(folder: &Path, excludes: Option<&Path>) -> Arc<Self> {
        let global = excludes.and_then(open).and_then(read);
        let global = global.map_or_else(Gitignore::empty, |text| parse(folder, &text));
        let mut rules = Arc::new(Self {
            above: None,
            lists: std::array::from_fn(|_| Gitignore::empty()),
            is_repository: false,
            in_repository: false,
            global: Arc::new(global),
        });
        let above: Vec<&Path> = folder.ancestors().skip(1).collect();
        for folder in above.into_iter().rev() {
            let open = |name: &CStr| open(&folder.join(text(name)));
            rules = rules.and(folder, Marks::of(folder), open);
        }
        rules
    }

    /// The rules in a folder of the walk.
    pub(super) fn inside(
        self: &Arc<Self>,
        path: &Path,
        folder: &Folder,
        marks: Marks,
    ) -> Arc<Self> {
        self.and(path, marks, |name| folder.open(name).ok())
    }

    /// The rules with those of one more folder.
    fn and(
        self: &Arc<Self>,
        folder: &Path,
        marks: Marks,
        open: impl Fn(&CStr) -> Option<File>,
    ) -> Arc<Self> {
        if !marks.any() {
            return self.clone();
        }
        let list = |file: Option<File>| match file.and_then(read) {
            Some(text) => parse(folder, &text),
            None => Gitignore::empty(),
        };
        let lists = std::array::from_fn(|place| match LISTS.get(place) {
            Some(name) if marks.lists[place] => list(open(name)),
            Some(_) => Gitignore::empty(),
            None if marks.git => list(exclude(folder)),
            None => Gitignore::empty(),
        });
        let is_repository = marks.git || marks.jujutsu;
        Arc::new(Self {
            above: Some(self.clone()),
            lists,
            is_repository,
            in_repository: is_repository || self.in_repository,
            global: self.global.clone(),
        })
    }

    /// What the rules say of a path: of two lists of one kind the inner one wins, and git's lists
    /// end where their repository does.
    pub(super) fn judge(&self, path: &Path, is_folder: bool) -> Match<()> {
        let mut judged = [const { Match::None }; LISTS.len() + 1];
        let mut is_outside = !self.in_repository;
        let mut next = Some(self);
        while let Some(rules) = next {
            for (place, list) in rules.lists.iter().enumerate() {
                let counts = place < FIRST_OF_GIT || !is_outside;
                if counts && judged[place].is_none() {
                    judged[place] = list.matched(path, is_folder).map(|_| ());
                }
            }
            is_outside |= rules.is_repository;
            next = rules.above.as_deref();
        }
        let judged = judged.into_iter().fold(Match::None, Match::or);
        if judged.is_none() && self.in_repository {
            return self.global.matched(path, is_folder).map(|_| ());
        }
        judged
    }
}

fn parse(folder: &Path, text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        // A line that makes no sense leaves nothing out.
        drop(builder.add_line(None, line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// git's list of a repository, which worktrees share.
fn exclude(folder: &Path) -> Option<File> {
    let git = folder.join(".git");
    let git = match open(&git).and_then(read) {
        None => git,
        // A worktree: the file names its part of the repository, and a file there the whole.
        Some(text) => {
            let own = folder.join(text.lines().next()?.strip_prefix("gitdir: ")?);
            match open(&own.join("commondir")).and_then(read) {
                Some(text) => own.join(text.lines().next()?),
                None => own,
            }
        }
    };
    open(&git.join("info/exclude"))
}

/// Opens a file that may be outside the fence: what it says decides what is left out, and is
/// shown to nobody.
fn open(path: &Path) -> Option<File> {
    // A pipe is not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    Some(File::from(handle))
}

fn read(file: File) -> Option<String> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn text(name: &CStr) -> &str {
    name.to_str().unwrap_or_default()
}
