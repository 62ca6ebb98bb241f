//! Looking at a worktree: whether anything is there that was not there at the beginning.

use super::{Trace, Worktree, WorktreeError, Worktrees, path, walk};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How a worktree is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// As it was made.
    Untouched,
    Touched(Vec<Trace>),
    /// Its folder is gone.
    Gone,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Untouched => f.write_str("untouched"),
            Self::Gone => f.write_str("its folder is gone"),
            Self::Touched(traces) => {
                let said: Vec<String> = traces.iter().map(Trace::to_string).collect();
                f.write_str(&said.join("; "))
            }
        }
    }
}

/// What git says of the files.
#[derive(Debug, Default)]
struct Files {
    changed: usize,
    untracked: Vec<PathBuf>,
    /// Files, and folders that are ignored as a whole.
    ignored: Vec<PathBuf>,
}

/// What git's index has.
#[derive(Debug, Default)]
struct Index {
    paths: HashSet<PathBuf>,
    /// Files that are there, and whose changes git does not look for.
    overlooked: usize,
    has_submodules: bool,
}

impl Worktrees {
    /// Looks at a worktree. Whatever cannot be looked at is a trace: it speaks for keeping it.
    pub async fn state(&self, tree: &Worktree) -> State {
        match tree.path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return State::Gone,
            Err(why) => return State::Touched(vec![Trace::Unclear(why.to_string())]),
            Ok(kind) if !kind.is_dir() => {
                let why = "something else is in its place".to_owned();
                return State::Touched(vec![Trace::Unclear(why)]);
            }
            Ok(_) => {}
        }
        let own = match self.genuine(tree) {
            Ok(own) => own,
            Err(why) => return State::Touched(vec![Trace::Unclear(why)]),
        };
        let traces = match self.traces(tree, &own).await {
            Ok(traces) => traces,
            Err(error) => vec![Trace::Unclear(error.to_string())],
        };
        match traces.is_empty() {
            true => State::Untouched,
            false => State::Touched(traces),
        }
    }

    async fn traces(&self, tree: &Worktree, own: &Path) -> Result<Vec<Trace>, WorktreeError> {
        let mut traces = Self::under_way(own);
        let git = self.git.at(own, &tree.path);
        let files = read_status(&git.ask(&tree.path, &STATUS).await?);
        let index = read_index(&git.ask(&tree.path, &INDEX).await?, &tree.path);
        let (root, included) = (tree.path.clone(), tree.included.clone());
        let found = tokio::task::spawn_blocking(move || strangers(&root, &index, &included));
        let found = found.await.map_err(|error| {
            WorktreeError::Refused(format!("its files could not be listed: {error}"))
        })?;
        let found = found.map_err(|why| WorktreeError::Io {
            path: tree.path.clone(),
            why,
        })?;
        let some = |count: usize, trace: fn(usize) -> Trace| (count > 0).then(|| trace(count));
        // What git did not name counts as untracked: it is there, and nobody else has it.
        let is_ignored = |path: &&PathBuf| files.ignored.iter().any(|over| path.starts_with(over));
        let ignored = found.strange.iter().filter(is_ignored).count();
        traces.extend(some(files.changed, Trace::Changed));
        traces.extend(some(found.strange.len() - ignored, Trace::Untracked));
        traces.extend(some(ignored, Trace::Ignored));
        traces.extend(some(found.changed, Trace::Included));
        traces.extend(some(found.overlooked, Trace::Overlooked));
        traces.extend(found.has_submodules.then_some(Trace::Submodules));
        traces.extend(self.commits(tree, own).await?);
        traces.extend(some(self.left_behind(tree, own).await?, Trace::LeftBehind));
        traces.extend(some(self.stashed(tree), Trace::Stashed));
        Ok(traces)
    }

    /// Whether HEAD and the branch are where they began.
    async fn commits(&self, tree: &Worktree, own: &Path) -> Result<Vec<Trace>, WorktreeError> {
        let mut traces = Vec::new();
        let reference = tree.reference();
        let head = Self::head(own).map_err(|why| WorktreeError::Io {
            path: own.join("HEAD"),
            why,
        })?;
        if head != reference {
            let shown = head.strip_prefix("refs/heads/").unwrap_or(&head);
            traces.push(Trace::Elsewhere(shown.to_owned()));
        }
        if self.stands_for_another(tree).await? {
            let why = format!("its branch {} stands for another one", tree.branch);
            traces.push(Trace::Unclear(why));
            return Ok(traces);
        }
        match self.commit(&reference).await? {
            None => traces.push(Trace::Unclear(format!(
                "its branch {} is gone",
                tree.branch
            ))),
            Some(tip) if tip == tree.base => {}
            Some(tip) => {
                let count = self.count(&[&tip, "--not", &tree.base]).await?;
                let besides = format!("--exclude={}", tree.branch);
                let others = ["--not", &besides, "--branches", "--tags", "--remotes"];
                let alone = [&[tip.as_str()][..], &others[..], &[&tree.base]].concat();
                let alone = self.count(&alone).await?;
                traces.push(Trace::Commits { count, alone });
            }
        }
        Ok(traces)
    }
}

/// A submodule is not looked into: it has a config that its worker could write.
const STATUS: [&str; 6] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--untracked-files=all",
    "--ignored=matching",
    "--ignore-submodules=all",
];

const INDEX: [&str; 4] = ["ls-files", "-z", "-v", "-s"];

fn read_status(bytes: &[u8]) -> Files {
    let mut files = Files::default();
    let mut parts = bytes.split(|byte| *byte == 0);
    while let Some(part) = parts.next() {
        match part.first() {
            Some(b'?') => files.untracked.extend(part.get(2..).map(path)),
            Some(b'!') => files.ignored.extend(part.get(2..).map(path)),
            Some(b'2') => {
                files.changed += 1;
                // A rename names where it came from as well.
                parts.next();
            }
            Some(b'#') | None => {}
            Some(_) => files.changed += 1,
        }
    }
    files
}

fn read_index(bytes: &[u8], root: &Path) -> Index {
    let mut index = Index::default();
    for line in bytes.split(|byte| *byte == 0) {
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let name = path(&line[tab + 1..]);
        let words: Vec<&[u8]> = line[..tab].split(|byte| *byte == b' ').collect();
        index.has_submodules |= words.get(1) == Some(&&b"160000"[..]);
        // Small letters are files that are taken to be as they were, S those that need not be there.
        let tag = line[0];
        let is_there = || root.join(&name).symlink_metadata().is_ok();
        if tag.is_ascii_lowercase() || (tag == b'S' && is_there()) {
            index.overlooked += 1;
        }
        index.paths.insert(name);
    }
    index
}

/// What is on disk and not in the index.
#[derive(Debug, Default)]
struct Found {
    strange: Vec<PathBuf>,
    /// Of the included files.
    changed: usize,
    overlooked: usize,
    has_submodules: bool,
}

fn strangers(root: &Path, index: &Index, included: &[super::Included]) -> std::io::Result<Found> {
    let mut found = Found {
        overlooked: index.overlooked,
        has_submodules: index.has_submodules,
        ..Found::default()
    };
    for file in walk::files(root)? {
        if index.paths.contains(&file) {
            continue;
        }
        match included.iter().find(|one| one.path == file) {
            None => found.strange.push(file),
            Some(one) => {
                let path = root.join(&file);
                let is_file = path.symlink_metadata()?.is_file();
                let is_same = is_file && walk::digest(&path)? == one.digest;
                found.changed += usize::from(!is_same);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_is_read() {
        let said = b"1 .M N... 100644 100644 100644 a a f\x002 R. N... 100644 100644 100644 a a R100 new\0old\0? un\xfftracked\0! target/\0u UU x\0";
        let files = read_status(said);
        assert_eq!(files.changed, 3);
        assert_eq!(files.untracked, [path(b"un\xfftracked")]);
        assert_eq!(files.ignored, [PathBuf::from("target/")]);
        let said =
            b"H 100644 aa 0\tf\0h 100644 aa 0\tg\0S 100644 aa 0\tnot-there\0H 160000 aa 0\tsub\0";
        let index = read_index(said, Path::new("/nowhere"));
        assert_eq!((index.paths.len(), index.overlooked), (4, 1));
        assert!(index.has_submodules);
    }
}
