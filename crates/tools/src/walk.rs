//! What Grep and Glob share: where a search starts, how it goes through a tree, how it stops.

mod queue;
mod rules;
#[cfg(test)]
pub(crate) mod testing;
mod tree;

pub(crate) use tree::{Entry, Visit, Walk, is_version_control};

use crate::context::Context;
use crate::permission::{Hiding, Policy};
use gaffer_workspace::fence::{FenceError, Fenced};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells a search that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a search where it may block. Dropping the future stops it.
pub(crate) async fn run<T: Send + 'static>(
    search: impl FnOnce(&Stop) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    struct StopOnDrop(Stop);
    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.set();
        }
    }
    let stop = Stop::default();
    let _guard = StopOnDrop(stop.clone());
    let searched = tokio::task::spawn_blocking(move || search(&stop)).await;
    searched.map_err(|why| format!("The search failed: {why}."))?
}

/// What rules hide from a search; `None` if nothing is.
pub(crate) fn hiding<'a>(
    policy: Option<&'a Policy>,
    tool: &str,
    base: &'a Base,
) -> Option<Hiding<'a>> {
    policy?.hiding(tool, &base.cwd)
}

/// Says how many files were hidden, so that nobody takes them for files that are not there.
pub(crate) fn hidden_note(files: usize) -> String {
    match files {
        0 => String::new(),
        1 => "[1 file is hidden by a rule.]\n".to_owned(),
        files => format!("[{files} files are hidden by a rule.]\n"),
    }
}

/// Where a search starts.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) fenced: Fenced,
    pub(crate) path: PathBuf,
    /// The working folder, without links.
    pub(crate) cwd: PathBuf,
    pub(crate) kind: BaseKind,
    /// What stands before the names below the base when they are shown.
    shown: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseKind {
    Folder,
    File,
    Missing,
}

impl Base {
    /// Finds the base of a search. An error says what is wrong with the path.
    pub(crate) fn find(context: &Context, path: &Path) -> Result<Self, String> {
        let cwd = context.cwd.get();
        let fenced = context.fence.locate(&cwd, path);
        let fenced = fenced.map_err(|why| format!("Cannot search: {why}."))?;
        let kind = match fenced.metadata() {
            Ok(metadata) if metadata.is_dir() => BaseKind::Folder,
            Ok(metadata) if metadata.is_file() => BaseKind::File,
            Ok(_) => {
                let path = path.display();
                return Err(format!(
                    "Cannot search {path}: it is neither a folder nor a regular file."
                ));
            }
            Err(why) if is_gone(&why) => BaseKind::Missing,
            Err(why) => return Err(format!("Cannot search {}: {why}.", path.display())),
        };
        let path = fenced.path();
        let cwd = cwd.canonicalize().unwrap_or(cwd);
        let shown = path.strip_prefix(&cwd).unwrap_or(&path).to_owned();
        Ok(Self {
            fenced,
            path,
            cwd,
            kind,
            shown,
        })
    }

    /// A path below the base as the model sees it: from the working folder, if it is below that.
    pub(crate) fn show(&self, below: &Path) -> String {
        if below.as_os_str().is_empty() {
            return self.to_string();
        }
        self.shown.join(below).to_string_lossy().into_owned()
    }
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.shown.as_os_str().is_empty() {
            f.write_str("the working folder")
        } else {
            write!(f, "{}", self.shown.display())
        }
    }
}

/// Whether an error says that something was removed in the meantime, which happens and is no
/// reason to complain.
pub(crate) fn is_gone(error: &FenceError) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error, FenceError::Io(why) if matches!(why.kind(), NotFound | NotADirectory))
}
