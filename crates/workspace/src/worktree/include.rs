//! `.worktreeinclude`: files that git ignores and that a worktree needs all the same, such as `.env`.

use super::git::{Git, GitError};
use super::record::Included;
use super::{WorktreeError, path, walk};
use crate::fence::{Access, Fence, FenceError};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FILE: &str = ".worktreeinclude";

/// This is for settings and keys, not for what is built or fetched.
const LARGEST: u64 = 10 << 20;
const LARGEST_ALL: u64 = 50 << 20;
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) files: Vec<Included>,
    pub(super) notes: Vec<String>,
}

/// Why a file was not copied.
enum Skipped {
    TooLarge,
    Unfit(String),
}

/// Copies what matches and is ignored. What cannot be copied is said, and is no error.
pub(super) async fn copy(git: &Git, root: &Path, tree: &Path) -> Result<Copied, WorktreeError> {
    let mut copied = Copied::default();
    if !root.join(FILE).is_file() {
        return Ok(copied);
    }
    let wanted = wanted(git, root).await?;
    let (from, to) = (
        Fence::new([(root, Access::Read)]),
        Fence::new([(tree, Access::Write)]),
    );
    let mut room = LARGEST_ALL;
    let mut large = 0;
    for (count, file) in wanted.iter().enumerate() {
        let one = match count < MOST {
            true => copy_one((&from, root), (&to, tree), file, room),
            false => Err(Skipped::TooLarge),
        };
        match one {
            Ok((included, size)) => {
                room -= size;
                copied.files.push(included);
            }
            Err(Skipped::TooLarge) => large += 1,
            Err(Skipped::Unfit(why)) => copied
                .notes
                .push(format!("{} was not copied: {why}.", file.display())),
        }
    }
    if large > 0 {
        copied.notes.push(format!(
            "{large} files that .worktreeinclude names were not copied: it is for up to {MOST} files of {} MB, {} MB in all.",
            LARGEST >> 20,
            LARGEST_ALL >> 20
        ));
    }
    Ok(copied)
}

/// What the file names, git does not track, and git ignores.
async fn wanted(git: &Git, root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-from"];
    let args = [&args[..], &[FILE]].concat();
    let named = git.ask(root, &args).await?;
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let args = ["check-ignore", "-z", "--stdin"];
    let said = git.run(root, &args, &named).await?;
    match said.code {
        Some(0) => {}
        Some(1) => return Ok(Vec::new()),
        _ => return Err(said.failed()),
    }
    let names = said.out.split(|byte| *byte == 0);
    // A repository in the repository is named as a folder.
    let files = names.filter(|name| !name.is_empty() && !name.ends_with(b"/"));
    Ok(files.map(path).collect())
}

fn copy_one(
    (from, root): (&Fence, &Path),
    (to, tree): (&Fence, &Path),
    file: &Path,
    room: u64,
) -> Result<(Included, u64), Skipped> {
    let unfit = |why: &str| Skipped::Unfit(why.to_owned());
    let refused = |error: FenceError| Skipped::Unfit(error.to_string());
    let kind = root.join(file).symlink_metadata();
    if !kind.is_ok_and(|kind| kind.is_file()) {
        return Err(unfit("it is no regular file"));
    }
    let source = from.locate(root, file).map_err(refused)?;
    // A folder on the way may be a link.
    if source.path() != root.join(file) {
        return Err(unfit("it lies behind a link"));
    }
    let opened = source.open().map_err(refused)?;
    let metadata = opened.metadata().map_err(|error| refused(error.into()))?;
    let size = metadata.len();
    if size > LARGEST.min(room) {
        return Err(Skipped::TooLarge);
    }
    let mut bytes = Vec::new();
    let read = opened.take(LARGEST.min(room) + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(error.into()))?;
    if bytes.len() as u64 > LARGEST.min(room) {
        return Err(Skipped::TooLarge);
    }
    let target = to.locate(tree, file).map_err(refused)?;
    if target.path() != tree.join(file) || is_of_git(file) {
        return Err(unfit("it lies behind a link"));
    }
    if target.exists() {
        return Err(unfit("the commit that the worktree begins from has it"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    target.replace(&bytes, Some(mode)).map_err(refused)?;
    let included = Included {
        path: file.to_owned(),
        digest: walk::digest_of(&bytes),
    };
    Ok((included, bytes.len() as u64))
}

fn is_of_git(file: &Path) -> bool {
    let mut parts = file.components();
    parts.any(|part| part.as_os_str().as_bytes().eq_ignore_ascii_case(b".git"))
}
