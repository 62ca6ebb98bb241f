//! Deletes sessions: never one that is in use or holds work that is nowhere else, and never by
//! halves.

use crate::find::folders;
use crate::owner::OwnerError;
use crate::session::{Home, SessionFolder};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How the name of a folder begins that is about to be gone. No session's id begins so.
const DELETED: &str = ".deleted-";

#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    #[error(transparent)]
    Owner(#[from] OwnerError),
    #[error("it is kept: {0}")]
    Kept(String),
    #[error("cannot delete {path}: {why}", path = .path.display())]
    Io { path: PathBuf, why: io::Error },
}

/// Why a session must stay although somebody wants it gone: it has worktrees, which may hold what
/// is merged nowhere. What cannot be looked into is kept.
pub fn kept_because(folder: &SessionFolder) -> Option<String> {
    let path = folder.path().join("worktrees");
    match std::fs::read_dir(&path) {
        Ok(mut entries) => entries
            .next()
            .map(|_| format!("{} has worktrees that were not merged", path.display())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => Some(format!("cannot look into {}: {why}", path.display())),
    }
}

impl SessionFolder {
    /// Deletes the session. It gets another name first: whatever happens then, it is whole or it
    /// is not there.
    pub fn delete(&self) -> Result<(), DeleteError> {
        if let Some(why) = kept_because(self) {
            return Err(DeleteError::Kept(why));
        }
        let _held = self.hold()?;
        // Until here another process could have made one.
        if let Some(why) = kept_because(self) {
            return Err(DeleteError::Kept(why));
        }
        let failed = |path: &Path, why| DeleteError::Io {
            path: path.to_owned(),
            why,
        };
        let aside = self.set_aside().map_err(|why| failed(self.path(), why))?;
        remove_all(&aside).map_err(|why| failed(&aside, why))
    }

    fn set_aside(&self) -> io::Result<PathBuf> {
        const TRIES: u32 = 100;
        let name = self.path().file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let mut n = 0;
        loop {
            let aside = self.path().with_file_name(format!("{DELETED}{name}-{n}"));
            match std::fs::rename(self.path(), &aside) {
                // One of a session of the same id, of which not all could be removed.
                Err(why) if why.kind() == io::ErrorKind::DirectoryNotEmpty && n < TRIES => n += 1,
                done => return done.map(|()| aside),
            }
        }
    }
}

impl Home {
    /// Removes what is left of sessions whose deletion was cut short.
    pub fn sweep(&self) {
        for project in folders(&self.projects()) {
            for path in folders(&project) {
                let name = path.file_name().unwrap_or_default();
                if name.to_string_lossy().starts_with(DELETED) {
                    // The next sweep comes by here again.
                    drop(remove_all(&path));
                }
            }
        }
    }
}

/// Removes a folder with all below it. Commands leave folders behind that nobody may write to,
/// such as those of module caches; they are the user's all the same.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let gone = |removed: io::Result<()>| match removed {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    match gone(std::fs::remove_dir_all(path)) {
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
            unlock(path)?;
            gone(std::fs::remove_dir_all(path))
        }
        other => other,
    }
}

/// Gives the owner the right to empty a folder and those below it. Links are not followed.
fn unlock(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(path)? {
        unlock(&entry?.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gaffer_protocol::{SessionId, Timestamp};

    fn session(temp: &tempfile::TempDir) -> (Home, SessionFolder) {
        let home = Home::new(temp.path().to_owned());
        let id = SessionId::parse("s1").unwrap();
        let folder = home.create_session(Path::new("/a"), &id).unwrap();
        std::fs::write(folder.path().join("agent-00000001.jsonl"), "x").unwrap();
        (home, folder)
    }

    #[test]
    fn a_session_in_use_or_with_worktrees_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (_, folder) = session(&temp);
        let owned = folder.own(Timestamp(1)).unwrap();
        let refused = folder.delete().unwrap_err();
        let told = format!("in use by process {}", std::process::id());
        assert!(refused.to_string().contains(&told), "{refused}");
        drop(owned);
        let trees = folder.path().join("worktrees");
        std::fs::create_dir_all(trees.join("fix")).unwrap();
        assert!(matches!(folder.delete(), Err(DeleteError::Kept(_))));
        std::fs::remove_dir(trees.join("fix")).unwrap();
        assert_eq!(kept_because(&folder), None, "an empty folder holds nothing");
        std::fs::remove_dir(&trees).unwrap();
        std::fs::write(&trees, "not a folder").unwrap();
        assert!(matches!(folder.delete(), Err(DeleteError::Kept(_))));
        std::fs::remove_file(&trees).unwrap();
        folder.delete().unwrap();
        assert!(!folder.path().exists());
        assert_eq!(
            folders(folder.path().parent().unwrap()),
            Vec::<PathBuf>::new()
        );
    }

    #[test]
    fn folders_that_nobody_may_write_are_removed_and_links_are_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (_, folder) = session(&temp);
        let outside = temp.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("mine"), "x").unwrap();
        let deep = folder.path().join("agent-00000001.tmp/cache");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, deep.join("link")).unwrap();
        std::fs::set_permissions(&deep, Permissions::from_mode(0o500)).unwrap();
        folder.delete().unwrap();
        assert!(!folder.path().exists());
        assert!(outside.join("mine").exists());
    }

    #[test]
    fn what_a_crash_left_is_no_session_and_is_swept() {
        let temp = tempfile::tempdir().unwrap();
        let (home, folder) = session(&temp);
        let aside = folder.set_aside().unwrap();
        assert!(home.list(None).is_empty());
        let again = home.create_session(Path::new("/a"), &SessionId::parse("s1").unwrap());
        let again = again.unwrap();
        std::fs::write(again.path().join("x"), "x").unwrap();
        assert_ne!(again.set_aside().unwrap(), aside);
        home.sweep();
        assert!(!aside.exists());
    }
}
