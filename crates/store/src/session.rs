//! Where sessions live: `{home}/projects/{folder-slug}/{session}/`.

use gaffer_protocol::{AgentId, SessionId};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Gaffer's own folder: `GAFFER_HOME`, or `.gaffer` in the user's home.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the session `{0}` exists already; choose another --session-id")]
    Exists(SessionId),
    #[error("cannot create {path}: {why}")]
    Create { path: PathBuf, why: io::Error },
}

impl Home {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the sessions of all folders are.
    pub(crate) fn projects(&self) -> PathBuf {
        self.path.join("projects")
    }

    /// Where the sessions of one folder are.
    pub(crate) fn project(&self, cwd: &Path) -> PathBuf {
        self.projects().join(slug(cwd))
    }

    /// Creates the folder of a new session. Only its owner can read it.
    pub fn create_session(
        &self,
        cwd: &Path,
        id: &SessionId,
    ) -> Result<SessionFolder, SessionError> {
        let project = self.project(cwd);
        let failed = |path: &Path, why| SessionError::Create {
            path: path.to_owned(),
            why,
        };
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder
            .recursive(true)
            .create(&project)
            .map_err(|why| failed(&project, why))?;
        let path = project.join(id.as_str());
        builder
            .recursive(false)
            .create(&path)
            .map_err(|why| match why.kind() {
                io::ErrorKind::AlreadyExists => SessionError::Exists(id.clone()),
                _ => failed(&path, why),
            })?;
        Ok(SessionFolder { path })
    }
}

/// One session's folder.
#[derive(Debug, Clone)]
pub struct SessionFolder {
    path: PathBuf,
}

impl SessionFolder {
    /// One that is there already.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The agents that have a transcript here, with where it is, in the order of their ids.
    pub fn agents(&self) -> io::Result<Vec<(AgentId, PathBuf)>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let id = stem.and_then(|stem| AgentId::parse(stem).ok());
            if let Some(id) = id.filter(|_| is_transcript) {
                all.push((id, path));
            }
        }
        all.sort();
        Ok(all)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where results are kept that are too long to be told.
    pub fn results(&self) -> PathBuf {
        self.path.join("results")
    }

    /// Where workers have worktrees of their own.
    pub fn worktrees(&self) -> PathBuf {
        self.path.join("worktrees")
    }

    /// The whole result of one run of an agent.
    pub fn result(&self, agent: AgentId, run: u32) -> PathBuf {
        self.results().join(format!("{agent}-{run}.md"))
    }

    /// Copies all that a session needs to go on, also while its owner writes: a transcript is
    /// sound wherever it is cut.
    pub fn copy_to(&self, other: &Self) -> io::Result<()> {
        for (agent, path) in self.agents()? {
            std::fs::copy(path, other.transcript(agent))?;
        }
        if self.results().is_dir() {
            DirBuilder::new().mode(0o700).create(other.results())?;
            for entry in std::fs::read_dir(self.results())? {
                let path = entry?.path();
                if let (true, Some(name)) = (path.is_file(), path.file_name()) {
                    std::fs::copy(&path, other.results().join(name))?;
                }
            }
        }
        let copied = self.book().copy_to(&other.book());
        copied.map_err(|error| io::Error::other(error.to_string()))
    }

    pub fn transcript(&self, agent: AgentId) -> PathBuf {
        self.path.join(format!("{agent}.jsonl"))
    }
}

/// A folder as one file name: what is not a letter or digit becomes `-`. Long paths are cut and
/// told apart by a hash.
pub fn slug(folder: &Path) -> String {
    const LONGEST: usize = 200;
    let text = folder.to_string_lossy();
    let slug: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if slug.len() <= LONGEST {
        return slug;
    }
    // FNV-1a: the value must be the same in every version, as it is part of a path.
    let hash = folder
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{}-{hash:016x}", &slug[..LONGEST])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_become_names() {
        assert_eq!(slug(Path::new("/srv/My App_1")), "-srv-My-App-1");
        let long = slug(Path::new(&format!("/{}", "é".repeat(400))));
        assert_eq!(long.len(), 217);
        assert_ne!(
            long,
            slug(Path::new(&format!("/{}", "è".repeat(400)))),
            "cut names differ by their hash"
        );
    }

    #[test]
    fn a_session_is_created_once_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("home"));
        let id = SessionId::parse("s1").unwrap();
        let folder = home.create_session(Path::new("/x"), &id).unwrap();
        let mode = folder.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let again = home.create_session(Path::new("/x"), &id);
        assert!(matches!(again, Err(SessionError::Exists(_))));
    }
}
