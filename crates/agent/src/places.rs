//! Where agent types and documents are looked for, and how far a file found there may reach.

use gaffer_workspace::fence::{Access, Fence, FenceError, Fenced};
use std::path::{Path, PathBuf};

/// The folders of one project and of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The repository's root, or the working folder outside of one; without links.
    pub root: PathBuf,
    /// From the root down to the working folder.
    pub folders: Vec<PathBuf>,
    pub home: Option<PathBuf>,
}

impl Places {
    pub fn of(cwd: &Path, home: Option<&Path>) -> Self {
        let plain = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let cwd = plain(cwd);
        let home = home.map(plain);
        let is_root = |folder: &Path| folder.join(".git").exists();
        // Some keep all of their home folder in a repository. What somebody else wrote and they
        // unpacked somewhere below is no part of that, and must not reach all that is theirs.
        let holds_home = |root: &Path| home.as_ref().is_some_and(|home| home.starts_with(root));
        let root = cwd.ancestors().find(|folder| is_root(folder));
        let root = root.filter(|root| !holds_home(root)).unwrap_or(&cwd);
        let inside = |folder: &&Path| folder.starts_with(root);
        let mut folders: Vec<PathBuf> = cwd
            .ancestors()
            .take_while(inside)
            .map(Path::to_owned)
            .collect();
        folders.reverse();
        Self {
            root: root.to_owned(),
            folders,
            home,
        }
    }

    /// A path as it is shown: from the project's root, or from the user's home. The same in every
    /// worktree of a project, so that workers in several of them share a prefix.
    pub(crate) fn shown(&self, path: &Path) -> String {
        if let Ok(below) = path.strip_prefix(&self.root) {
            return below.display().to_string();
        }
        let home = self.home.as_deref();
        match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }
}

/// How far links and imports lead. A repository is somebody else's work: what it holds must not
/// make gaffer read anything outside of it. The user's own files lead wherever the user says.
#[derive(Debug)]
pub(crate) struct Reach {
    fence: Fence,
    pub(crate) is_project: bool,
}

impl Reach {
    pub(crate) fn project(places: &Places) -> Self {
        Self {
            fence: Fence::new([(&places.root, Access::Read)]),
            is_project: true,
        }
    }

    pub(crate) fn user() -> Self {
        Self {
            fence: Fence::new([("/", Access::Read)]),
            is_project: false,
        }
    }

    /// Resolves a whole path.
    pub(crate) fn locate(&self, path: &Path) -> Result<Fenced, FenceError> {
        self.fence.locate(Path::new("/"), path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_its_repository_or_one_folder() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (home, repo) = (base.join("home"), base.join("home/repo"));
        let cwd = repo.join("a/b");
        std::fs::create_dir_all(&cwd).unwrap();
        let alone = Places::of(&cwd, Some(&home));
        assert_eq!(alone.folders, std::slice::from_ref(&cwd));
        std::fs::write(repo.join(".git"), "gitdir: elsewhere").unwrap();
        let places = Places::of(&cwd, Some(&home));
        assert_eq!(places.folders, [repo.clone(), repo.join("a"), cwd.clone()]);
        assert_eq!(places.root, repo);
        assert_eq!(places.shown(&cwd.join("x.md")), "a/b/x.md");
        assert_eq!(places.shown(&home.join("x.md")), "~/x.md");
        assert_eq!(places.shown(Path::new("/x.md")), "/x.md");
        // All of home in one repository.
        std::fs::remove_file(repo.join(".git")).unwrap();
        std::fs::create_dir(home.join(".git")).unwrap();
        assert_eq!(Places::of(&cwd, Some(&home)).root, cwd);
        assert_eq!(Places::of(&cwd, None).root, home);
        assert_eq!(Places::of(&home, Some(&home)).root, home);
    }
}
