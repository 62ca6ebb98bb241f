//! Making a worktree: its branch and its entry one at a time, its files side by side.

use super::{BRANCHES, Base, Worktree, WorktreeError, Worktrees, include, name, walk};
use gaffer_protocol::Timestamp;
use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What a worktree is made for.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// The session's folder of worktrees.
    pub place: &'a Path,
    pub session: &'a str,
    /// The worker's id: the folder's name.
    pub name: &'a str,
    /// A few words on the task, for the branch's name.
    pub task: &'a str,
    pub now: Timestamp,
}

/// The reason of git's own lock on a worktree begins so.
pub(super) const REASON: &str = "gaffer: ";

/// What keeps a folder of branches from being taken away when it is empty. Git passes over names
/// like this one.
const STAYS: &str = "folder.lock";

impl Worktrees {
    /// Makes a worktree. If that fails, nothing of it is left.
    pub async fn create(&self, new: &New<'_>) -> Result<Worktree, WorktreeError> {
        if self.common.join("reftable").exists() {
            return Err(WorktreeError::Reftable);
        }
        let place = folder(new.place)?;
        let path = place.join(new.name);
        if let Some(old) = Worktree::find(&place, new.name).filter(|old| !old.is_whole) {
            // Its making was cut short, and nobody has been in it.
            self.undo(&old, true).await;
        }
        if path.symlink_metadata().is_ok() || Worktree::find(&place, new.name).is_some() {
            return Err(WorktreeError::Exists(path));
        }
        let (base, note) = self.start().await?;
        let mut tree = Worktree {
            name: new.name.to_owned(),
            task: new.task.to_owned(),
            session: new.session.to_owned(),
            branch: name::branch(new.session, new.task, new.name),
            path,
            base,
            made: new.now,
            prefix: self.prefix.clone(),
            included: Vec::new(),
            notes: note.into_iter().collect(),
            root: self.root.clone(),
            common: self.common.clone(),
            config: None,
            is_whole: false,
        };
        let mut has_branch = false;
        match self.make(&mut tree, &mut has_branch).await {
            Ok(()) => Ok(tree),
            Err(error) => {
                self.undo(&tree, has_branch).await;
                Err(error)
            }
        }
    }

    async fn make(&self, tree: &mut Worktree, has_branch: &mut bool) -> Result<(), WorktreeError> {
        let held = self.hold().await?;
        self.keep_branches()?;
        self.choose_branch(tree).await?;
        // The last worktree of the session may just have taken the folder with it.
        tree.path.parent().map(folder).transpose()?;
        // Written before anything is made, so that what is cut short is found later.
        tree.write()?;
        // There was none of this name, so whatever comes of this, it is ours.
        *has_branch = true;
        self.make_branch(tree).await?;
        let reason = format!("{REASON}{} of session {}", tree.name, tree.session);
        let (path, branch) = (tree.path.as_os_str(), OsStr::new(&tree.branch));
        let words = ["worktree", "add", "--no-checkout", "--lock", "--reason"].map(OsStr::new);
        let more = [OsStr::new(&reason), OsStr::new("--"), path, branch];
        let args = [&words[..], &more[..]].concat();
        self.git.surely(&self.root, &args).await?;
        // From here on nobody else is concerned: what follows has an index of its own.
        drop(held);
        let missing = || WorktreeError::Refused("git does not know the new worktree".to_owned());
        let own = self.own(&tree.path).ok_or_else(missing)?;
        tree.config = Some(own_config(&own)?);
        let git = self.git.at(&own, &tree.path);
        let fill = ["read-tree", "-m", "-u", "HEAD"];
        git.patiently(&tree.path, &fill).await?;
        self.say_what_is_missing(tree);
        self.include(tree).await?;
        tree.is_whole = true;
        tree.write()
    }

    /// The commit to begin from, and a word if it is not the one that was asked for.
    async fn start(&self) -> Result<(String, Option<String>), WorktreeError> {
        let head = self.commit("HEAD").await?.ok_or(WorktreeError::NoCommit)?;
        if self.base == Base::Head {
            return Ok((head, None));
        }
        for name in [
            "refs/remotes/origin/HEAD",
            "refs/heads/main",
            "refs/heads/master",
        ] {
            if let Some(commit) = self.commit(name).await? {
                return Ok((commit, None));
            }
        }
        let note = "This repository has no default branch that is known here, so the worktree begins from HEAD.";
        Ok((head, Some(note.to_owned())))
    }

    /// The folders of branches that workers write to. Git takes away the empty ones, when branches
    /// are packed for one; then the sandbox would have nothing left that it could allow.
    fn keep_branches(&self) -> Result<(), WorktreeError> {
        for folder in [
            self.common.join(BRANCHES),
            self.common.join("logs").join(BRANCHES),
        ] {
            let failed = |why| WorktreeError::Io {
                path: folder.clone(),
                why,
            };
            if folder.is_file() {
                return Err(WorktreeError::InTheWay("gaffer/…".to_owned()));
            }
            std::fs::create_dir_all(&folder).map_err(failed)?;
            std::fs::write(folder.join(STAYS), "").map_err(failed)?;
        }
        Ok(())
    }

    /// A worker that goes on may have left a branch when its first worktree was removed.
    async fn choose_branch(&self, tree: &mut Worktree) -> Result<(), WorktreeError> {
        let wanted = tree.branch.clone();
        let mut number = 1;
        while self.commit(&tree.reference()).await?.is_some() {
            number += 1;
            tree.branch = format!("{wanted}-{number}");
        }
        Ok(())
    }

    /// Makes the branch, and only if there is none of this name.
    async fn make_branch(&self, tree: &Worktree) -> Result<(), WorktreeError> {
        let reference = tree.reference();
        // What git takes for "there is none": as long as its digests are here.
        let none = "0".repeat(tree.base.len());
        let args = [
            "update-ref",
            "--no-deref",
            "--create-reflog",
            "-m",
            "gaffer: a worktree",
            &reference,
            &tree.base,
            &none,
        ];
        match self.git.surely(&self.root, &args).await {
            Ok(_) => Ok(()),
            Err(error) if error.to_string().contains("'refs/heads/gaffer' exists") => {
                Err(WorktreeError::InTheWay(tree.branch.clone()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn say_what_is_missing(&self, tree: &mut Worktree) {
        if tree.path.join(".gitmodules").is_file() {
            tree.notes.push("The project has submodules: they are empty here; `git submodule update --init` fetches them.".to_owned());
        }
        let attributes = std::fs::read_to_string(tree.path.join(".gitattributes"));
        if attributes.is_ok_and(|text| text.contains("filter=lfs")) {
            tree.notes.push("The project has files in Git LFS: they are pointers here; `git lfs pull` fetches them.".to_owned());
        }
    }

    async fn include(&self, tree: &mut Worktree) -> Result<(), WorktreeError> {
        let copied = include::copy(&self.git, &self.root, &tree.path).await?;
        tree.included = copied.files;
        tree.notes.extend(copied.notes);
        Ok(())
    }

    /// Takes back what was made of a worktree that did not come to be. Nobody has worked in it.
    pub(super) async fn undo(&self, tree: &Worktree, has_branch: bool) {
        if !walk::holds_nothing(&tree.path) {
            // Files are there already, git's own as far as we know. Once they are all there, the
            // end finds out whether that is so, and keeps it if not.
            drop(self.complete(tree).await);
            drop(self.finish(tree).await);
            return;
        }
        let Ok(_held) = self.hold().await else {
            return;
        };
        drop(std::fs::remove_file(tree.path.join(".git")));
        drop(std::fs::remove_dir(&tree.path));
        if self.own(&tree.path).is_some() && self.forget_entry(&tree.path).await.is_err() {
            return;
        }
        let reference = tree.reference();
        if !has_branch {
            tree.forget();
            return;
        }
        let is_gone = match self.commit(&reference).await {
            Ok(None) => true,
            Ok(Some(tip)) => tip == tree.base && self.delete_branch(tree, &tip).await.is_ok(),
            Err(_) => false,
        };
        if is_gone {
            tree.forget();
        }
    }

    /// Brings the files that are missing. Those that are there are not touched.
    async fn complete(&self, tree: &Worktree) -> Result<(), WorktreeError> {
        let own = self.genuine(tree).map_err(WorktreeError::Refused)?;
        let git = self.git.at(&own, &tree.path);
        git.patiently(&tree.path, &["read-tree", "HEAD"]).await?;
        // It says by its exit code whether files are missing, which they may be.
        let refresh = ["update-index", "-q", "--refresh"];
        git.run(&tree.path, &refresh, b"").await?;
        let fill = ["checkout-index", "--all", "-u", "-q"];
        git.patiently(&tree.path, &fill).await?;
        Ok(())
    }

    /// Takes a worktree from git's list. Git does so only for what is clean, or gone.
    pub(super) async fn forget_entry(&self, path: &Path) -> Result<(), WorktreeError> {
        let is_ours = |own: PathBuf| {
            let reason = std::fs::read_to_string(own.join("locked"));
            reason.is_ok_and(|reason| reason.starts_with(REASON))
        };
        let name = path.as_os_str();
        if self.own(path).is_some_and(is_ours) {
            let unlock = ["worktree", "unlock"].map(OsStr::new);
            let args = [&unlock[..], &[name]].concat();
            self.git.surely(&self.root, &args).await?;
        }
        let remove = ["worktree", "remove"].map(OsStr::new);
        let args = [&remove[..], &[name]].concat();
        self.git.surely(&self.root, &args).await?;
        Ok(())
    }
}

/// The folder of a session's worktrees, without links, for its owner alone.
pub(super) fn folder(place: &Path) -> Result<PathBuf, WorktreeError> {
    let failed = |why| WorktreeError::Io {
        path: place.to_owned(),
        why,
    };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(place).map_err(failed)?;
    place.canonicalize().map_err(failed)
}

/// A config of the checkout's own could name programs for git to run. One that is there can be
/// held by the sandbox, and one that was changed is seen.
pub(super) fn own_config(own: &Path) -> Result<String, WorktreeError> {
    let path = own.join("config.worktree");
    let made = std::fs::File::options()
        .append(true)
        .create(true)
        .open(&path);
    let digest = made.and_then(|_| walk::digest(&path));
    digest.map_err(|why| WorktreeError::Io { path, why })
}
