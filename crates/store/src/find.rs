//! Finds a session by its id, its name or the beginning of its id, in one folder first and then in
//! all.

use crate::session::{Home, SessionFolder};
use gaffer_protocol::SessionId;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A session on disk.
#[derive(Debug, Clone)]
pub struct Found {
    pub id: SessionId,
    pub folder: SessionFolder,
}

/// Why no session was found. The sessions are those that could have been meant, the newest first.
#[derive(Debug)]
pub enum NotFound {
    Unknown(Vec<Found>),
    /// Several begin so, or have this id in several folders.
    Several(Vec<Found>),
}

/// So many are worth naming.
const MOST: usize = 5;

impl Home {
    /// The session that was worked on last in a folder.
    pub fn newest_session(&self, cwd: &Path) -> Result<Found, NotFound> {
        let mut here = newest(sessions(&self.project(cwd)));
        match here.is_empty() {
            true => Err(NotFound::Unknown(newest(self.all_sessions()))),
            false => Ok(here.swap_remove(0)),
        }
    }

    /// A session by its id, its name, or a beginning of its id that is its alone.
    pub fn find_session(&self, cwd: &Path, text: &str) -> Result<Found, NotFound> {
        let here = sessions(&self.project(cwd));
        let all = self.all_sessions();
        let is_it = |found: &&Found| found.id.as_str() == text;
        let is_called = |found: &&Found| {
            let about = found.folder.about();
            about.is_some_and(|about| about.name.as_deref() == Some(text))
        };
        let begins = |found: &&Found| !text.is_empty() && found.id.as_str().starts_with(text);
        // A whole id goes before a name and a name before a beginning, wherever they are.
        let choices: [Vec<Found>; 6] = [
            here.iter().filter(is_it).cloned().collect(),
            all.iter().filter(is_it).cloned().collect(),
            here.iter().filter(is_called).cloned().collect(),
            all.iter().filter(is_called).cloned().collect(),
            here.iter().filter(begins).cloned().collect(),
            all.iter().filter(begins).cloned().collect(),
        ];
        for mut fitting in choices {
            match fitting.len() {
                0 => {}
                1 => return Ok(fitting.swap_remove(0)),
                _ => return Err(NotFound::Several(newest(fitting))),
            }
        }
        let near = if here.is_empty() { all } else { here };
        Err(NotFound::Unknown(newest(near)))
    }

    /// The sessions of all folders.
    pub fn all_sessions(&self) -> Vec<Found> {
        let projects = folders(&self.projects());
        projects.iter().flat_map(|path| sessions(path)).collect()
    }
}

/// The sessions of one project. A folder that cannot be read has none for us.
pub(crate) fn sessions(project: &Path) -> Vec<Found> {
    let session = |path: PathBuf| {
        let id = SessionId::parse(path.file_name()?.to_str()?).ok()?;
        let folder = SessionFolder::at(path);
        Some(Found { id, folder })
    };
    folders(project).into_iter().filter_map(session).collect()
}

pub(crate) fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut all: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    all.sort();
    all
}

/// A few of them, those that were written last first.
fn newest(all: Vec<Found>) -> Vec<Found> {
    let mut dated: Vec<(SystemTime, Found)> = all
        .into_iter()
        .map(|found| (written(&found.folder), found))
        .collect();
    dated.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    dated.truncate(MOST);
    dated.into_iter().map(|(_, found)| found).collect()
}

/// When anything was last written to one of its transcripts.
pub(crate) fn written(folder: &SessionFolder) -> SystemTime {
    let time = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    let agents = folder.agents().unwrap_or_default();
    let times = agents.iter().filter_map(|(_, path)| time(path));
    times
        .max()
        .or_else(|| time(folder.path()))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(temp: &tempfile::TempDir) -> Home {
        let home = Home::new(temp.path().to_owned());
        for (cwd, id) in [
            ("/a", "one-1"),
            ("/a", "one-2"),
            ("/b", "one-1"),
            ("/b", "two"),
        ] {
            let id = SessionId::parse(id).unwrap();
            let folder = home.create_session(Path::new(cwd), &id).unwrap();
            let name = folder.path().join("agent-00000001.jsonl");
            std::fs::write(name, "").unwrap();
            // Files of one instant have no order.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        home
    }

    #[test]
    fn a_session_is_found_here_first_and_then_anywhere() {
        let temp = tempfile::tempdir().unwrap();
        let home = home(&temp);
        let find = |cwd: &str, text: &str| home.find_session(Path::new(cwd), text);
        let path = |cwd: &str, text: &str| find(cwd, text).unwrap().folder.path().to_owned();
        assert_eq!(path("/a", "one-1"), temp.path().join("projects/-a/one-1"));
        assert_eq!(path("/b", "one"), temp.path().join("projects/-b/one-1"));
        assert_eq!(path("/a", "tw"), temp.path().join("projects/-b/two"));
        assert_eq!(path("/c", "one-2"), temp.path().join("projects/-a/one-2"));
        let several = |cwd: &str, text: &str| match find(cwd, text) {
            Err(NotFound::Several(all)) => all.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(several("/a", "one"), 2);
        assert_eq!(several("/c", "one-1"), 2);
        for unknown in ["", "..", "x"] {
            let Err(NotFound::Unknown(near)) = find("/a", unknown) else {
                panic!("{unknown}");
            };
            assert_eq!(near[0].id.as_str(), "one-2");
        }
    }

    #[test]
    fn the_newest_is_the_one_that_was_written_last() {
        let temp = tempfile::tempdir().unwrap();
        let home = home(&temp);
        let newest = home.newest_session(Path::new("/a")).unwrap();
        assert_eq!(newest.id.as_str(), "one-2");
        let old = temp.path().join("projects/-a/one-1/agent-00000001.jsonl");
        std::fs::write(old, "x").unwrap();
        let newest = home.newest_session(Path::new("/a")).unwrap();
        assert_eq!(newest.id.as_str(), "one-1");
        assert!(home.newest_session(Path::new("/c")).is_err());
    }
}
