//! What stays as it is inside folders that commands may write: what git, gaffer and its kin run or
//! obey later, outside of any sandbox.

use super::git::Checkout;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A path and how it is held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    pub path: PathBuf,
    pub how: Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// It can be written, but neither moved away nor replaced.
    InPlace,
    /// It cannot be changed, nor anything below it.
    ReadOnly,
    /// It can be written, though what is above it is read-only.
    Writable,
}

impl Hold {
    const ALL: [Self; 3] = [Self::InPlace, Self::ReadOnly, Self::Writable];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::ReadOnly => "read-only",
            Self::Writable => "writable",
        }
    }

    pub(super) fn read(word: &OsStr) -> Option<Self> {
        Self::ALL.into_iter().find(|hold| word == hold.word())
    }
}

/// Settings, skills, agent types and servers of a project: the next session obeys them.
const OBEYED: [&str; 3] = [".claude", ".gaffer", ".mcp.json"];

/// In a checkout's own folder of git's: what git runs, what names what it runs, and where other
/// checkouts have their HEAD and index.
const GIT: [&str; 6] = [
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "worktrees",
];

/// What must stay as it is, for commands that work in `folders` and may write `write`. What is in
/// `lifted` the user has given free. What does not exist cannot be held.
pub fn kept(folders: &[PathBuf], write: &[PathBuf], lifted: &[PathBuf]) -> Vec<Kept> {
    let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let paths = paths.iter();
        paths.filter_map(|path| path.canonicalize().ok()).collect()
    };
    let (write, lifted) = (real(write), real(lifted));
    let mut kept = Vec::new();
    for folder in real(folders) {
        let checkout = Checkout::of(&folder);
        let mut places = vec![folder.as_path()];
        if let Some(checkout) = &checkout {
            git(checkout, &lifted, &mut kept);
            places.push(&checkout.root);
        }
        for place in places {
            let obeyed = OBEYED.iter().map(|name| place.join(name));
            kept.extend(obeyed.filter_map(|path| Kept::new(Hold::ReadOnly, &path)));
        }
    }
    // What lies outside the writable folders is held by Landlock already.
    kept.retain(|one| {
        write.iter().any(|write| one.path.starts_with(write)) && !lifted.contains(&one.path)
    });
    let free: Vec<PathBuf> = kept.iter().flat_map(|one| writable(one, &write)).collect();
    let free = free.iter().map(|path| Kept {
        path: path.clone(),
        how: Hold::Writable,
    });
    kept.extend(free);
    // By path, so that what is above comes first.
    kept.sort();
    kept.dedup_by(|later, earlier| later.path == earlier.path);
    kept
}

/// The same for commands that may write one more folder, which exists and is named without links.
pub fn kept_but(kept: &[Kept], write: &Path) -> Vec<Kept> {
    let is_above = |one: &Kept| write.starts_with(&one.path) && write != one.path;
    let mut kept = kept.to_vec();
    if kept
        .iter()
        .any(|one| one.how == Hold::ReadOnly && is_above(one))
    {
        kept.push(Kept {
            path: write.to_owned(),
            how: Hold::Writable,
        });
        kept.sort();
    }
    kept
}

/// What would name another place for a checkout's config and hooks, and never exists in a plain one.
pub fn unmade(folders: &[PathBuf], lifted: &[PathBuf]) -> Vec<PathBuf> {
    let lifted = |own: &PathBuf| {
        lifted
            .iter()
            .any(|one| one.canonicalize().ok().as_ref() == Some(own))
    };
    let checkouts = folders.iter().filter_map(|folder| Checkout::of(folder));
    let plain = checkouts.filter(|checkout| !checkout.is_linked() && !lifted(&checkout.own));
    let mut unmade: Vec<PathBuf> = plain
        .map(|checkout| checkout.own.join("commondir"))
        .collect();
    unmade.retain(|path| path.symlink_metadata().is_err());
    unmade
}

impl Kept {
    /// Nothing for a path that does not exist. Of a link, what it leads to is held.
    fn new(how: Hold, path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        Some(Self { path, how })
    }
}

fn git(checkout: &Checkout, lifted: &[PathBuf], kept: &mut Vec<Kept>) {
    if lifted.contains(&checkout.own) {
        return;
    }
    // A mount point cannot be moved away: else a folder with other hooks could take its place.
    kept.extend(Kept::new(Hold::InPlace, &checkout.own));
    let names = GIT.iter().map(|name| checkout.own.join(name));
    kept.extend(names.filter_map(|path| Kept::new(Hold::ReadOnly, &path)));
    let dot_git = checkout.root.join(".git");
    if dot_git.is_file() {
        kept.extend(Kept::new(Hold::ReadOnly, &dot_git));
    }
}

/// What is to be written below something read-only: an agent's memory, worktrees, and folders that
/// were given by name.
fn writable(one: &Kept, write: &[PathBuf]) -> Vec<PathBuf> {
    if one.how != Hold::ReadOnly {
        return Vec::new();
    }
    let below = |path: &&PathBuf| path.starts_with(&one.path) && **path != one.path;
    let mut free: Vec<PathBuf> = write.iter().filter(below).cloned().collect();
    let entries = std::fs::read_dir(&one.path).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_free = match one.path.file_name().and_then(OsStr::to_str) {
            Some(".gaffer") => name.starts_with("agent-memory"),
            Some(".claude") => name == "worktrees",
            _ => false,
        };
        if is_free && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            free.push(entry.path());
        }
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn new(files: &[&str]) -> Self {
            let world = Self(tempfile::tempdir().unwrap());
            for file in files {
                let path = world.at(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            world
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn kept(&self, folder: &str, write: &[&str], lifted: &[&str]) -> Vec<String> {
            let all = |names: &[&str]| -> Vec<PathBuf> {
                names.iter().map(|name| self.at(name)).collect()
            };
            let kept = kept(&[self.at(folder)], &all(write), &all(lifted));
            let root = self.at("");
            let show = |one: Kept| {
                let path = one.path.strip_prefix(&root).unwrap();
                format!("{} {}", one.how.word(), path.display())
            };
            kept.into_iter().map(show).collect()
        }
    }

    const FILES: [&str; 6] = [
        "p/.git/config",
        "p/.git/hooks/sample",
        "p/.git/HEAD",
        "p/.gaffer/settings.json",
        "p/.gaffer/agent-memory/reviewer/MEMORY.md",
        "p/sub/file",
    ];

    #[test]
    fn what_runs_later_is_held_where_it_exists() {
        let world = World::new(&FILES);
        let want = [
            "read-only p/.gaffer",
            "writable p/.gaffer/agent-memory",
            "in-place p/.git",
            "read-only p/.git/config",
            "read-only p/.git/hooks",
        ];
        assert_eq!(world.kept("p", &["p"], &[]), want);
        // In a folder of the checkout only git's own is writable beside it.
        assert_eq!(world.kept("p/sub", &["p/sub", "p/.git"], &[]), want[2..]);
        assert!(
            world
                .kept("p/sub/file/..", &["p/none"], &["p/none"])
                .is_empty()
        );
    }

    #[test]
    fn what_the_user_gives_free_is_free() {
        let world = World::new(&FILES);
        let lift = |path: &str| world.kept("p", &["p", path], &[path]).join(", ");
        assert!(!lift("p/.git/config").contains("config"));
        assert!(lift("p/.git/config").contains("p/.git/hooks"));
        assert!(!lift("p/.git").contains(".git"));
        assert!(!lift("p/.gaffer").contains("read-only p/.gaffer"));
        std::fs::create_dir(world.at("p/.gaffer/skills")).unwrap();
        assert!(lift("p/.gaffer/skills").contains("writable p/.gaffer/skills"));
        // A folder far above says nothing about these.
        assert!(lift("").contains("read-only p/.git/config"));
    }

    #[test]
    fn a_worktree_holds_what_says_where_it_belongs() {
        let world = World::new(&["main/.git/worktrees/w/HEAD", "main/.git/config"]);
        let own = world.at("main/.git/worktrees/w");
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        std::fs::create_dir(world.at("w")).unwrap();
        let text = format!("gitdir: {}\n", own.display());
        std::fs::write(world.at("w/.git"), text).unwrap();
        assert_eq!(
            world.kept("w", &["w", "main/.git/worktrees/w"], &[]),
            [
                "in-place main/.git/worktrees/w",
                "read-only main/.git/worktrees/w/commondir",
                "read-only w/.git",
            ]
        );
    }
}
