//! Merges as objects: nothing but git's store of objects changes, so nothing can be half-way.

use super::super::{WorktreeError, Worktrees, path};
use super::Piece;
use super::report::{Clash, Side};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What is shown of the conflicts of one file.
const MOST_LINES: usize = 40;
const LONGEST_LINE: usize = 200;
/// So many files are shown with their conflicts; others only by name.
const MOST_FILES: usize = 8;
/// Larger files are not looked into.
const LARGEST: usize = 4 << 20;
const LONGEST_DESCRIPTION: usize = 120;

/// What a merge came to.
pub(super) enum Tried {
    Commit(String),
    Conflict(Conflict),
}

/// What git says of a merge that conflicts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conflict {
    /// What the merge would look like, with both sides of each conflict.
    tree: String,
    files: Vec<PathBuf>,
    /// By file, in git's words.
    messages: Vec<(Vec<PathBuf>, String)>,
}

/// A branch that this integration has merged.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) side: Side,
    /// The files that came with it.
    pub(super) files: BTreeSet<PathBuf>,
}

impl Worktrees {
    /// Merges a commit onto another, as a commit of its own that no branch has yet.
    pub(super) async fn try_merge(
        &self,
        onto: &str,
        tip: &str,
        piece: &Piece,
    ) -> Result<Tried, WorktreeError> {
        let words = ["merge-tree", "--write-tree", "--messages", "--name-only"];
        let args = [&words[..], &["-z", onto, tip]].concat();
        let said = self.git.run(&self.root, &args, b"").await?;
        match said.code {
            Some(0) => {}
            Some(1) => return Ok(Tried::Conflict(read_conflict(&said.out))),
            _ => return Err(said.failed().into()),
        }
        let tree = said.out.split(|byte| *byte == 0).next().unwrap_or_default();
        let tree = String::from_utf8_lossy(tree).trim().to_owned();
        let message = message(piece);
        let args = ["commit-tree", &tree, "-p", onto, "-p", tip, "-m", &message];
        Ok(Tried::Commit(self.git.line(&self.root, &args).await?))
    }

    /// The files that differ between two commits.
    pub(super) async fn changed(
        &self,
        one: &str,
        other: &str,
    ) -> Result<BTreeSet<PathBuf>, WorktreeError> {
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"];
        let args = [&args[..], &[one, other]].concat();
        let out = self.git.ask(&self.root, &args).await?;
        let names = out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(path).collect())
    }

    /// Both sides of each file that conflicts.
    pub(super) async fn clashes(
        &self,
        conflict: &Conflict,
        piece: &Piece,
        merged: &[Merged],
    ) -> Vec<Clash> {
        let own = piece.side();
        let mut clashes = Vec::new();
        for (count, file) in conflict.files.iter().enumerate() {
            let others = merged.iter().filter(|other| other.files.contains(file));
            let others: Vec<Side> = others.map(|other| other.side.clone()).collect();
            let theirs = match others.is_empty() {
                true => "the target".to_owned(),
                false => names(&others),
            };
            let hunks = match count < MOST_FILES {
                true => self.hunks(conflict, file, (&theirs, own.short())).await,
                false => String::new(),
            };
            clashes.push(Clash {
                file: file.to_string_lossy().into_owned(),
                others,
                hunks,
            });
        }
        clashes
    }

    async fn hunks(&self, conflict: &Conflict, file: &Path, sides: (&str, &str)) -> String {
        let mut object = OsString::from(&conflict.tree);
        object.push(":");
        object.push(file);
        let args = [OsStr::new("cat-file"), OsStr::new("blob"), &object];
        let text = match self.git.ask(&self.root, &args).await {
            Ok(bytes) if bytes.len() <= LARGEST => cut(&String::from_utf8_lossy(&bytes), sides),
            _ => String::new(),
        };
        if !text.is_empty() {
            return text;
        }
        let is_about = |files: &[PathBuf]| files.iter().any(|one| one == file);
        let said = conflict.messages.iter().filter(|it| is_about(&it.0));
        let said: Vec<&str> = said.map(|(_, text)| text.trim()).collect();
        said.join("\n")
    }
}

/// What a merge says of itself in the log.
fn message(piece: &Piece) -> String {
    let side = piece.side();
    let words: Vec<&str> = side.description.split_whitespace().collect();
    let words: String = words.join(" ").chars().take(LONGEST_DESCRIPTION).collect();
    let name = match side.name.is_empty() {
        true => String::new(),
        false => format!(" ({})", side.name),
    };
    format!(
        "Merge task {}: {words}\n\nTask: {}{name}\nBranch: {}",
        side.short(),
        side.task_id,
        piece.tree.branch
    )
}

fn names(sides: &[Side]) -> String {
    let names: Vec<&str> = sides.iter().map(Side::short).collect();
    names.join(", ")
}

/// Reads what `merge-tree -z --name-only --messages` prints of a conflict.
pub(super) fn read_conflict(bytes: &[u8]) -> Conflict {
    let mut parts = bytes.split(|byte| *byte == 0);
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    let mut conflict = Conflict {
        tree: text(parts.next().unwrap_or_default()),
        ..Conflict::default()
    };
    for part in parts.by_ref() {
        if part.is_empty() {
            break;
        }
        conflict.files.push(path(part));
    }
    while let Some(count) = parts.next().and_then(|part| text(part).parse().ok()) {
        let files: Vec<PathBuf> = parts.by_ref().take(count).map(path).collect();
        let (Some(kind), Some(words)) = (parts.next(), parts.next()) else {
            break;
        };
        if kind.starts_with(b"CONFLICT") {
            conflict.messages.push((files, text(words)));
        }
    }
    conflict
}

/// The places of a file that conflict, with the sides' names in place of git's.
fn cut(text: &str, (theirs, own): (&str, &str)) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_inside = false;
    let mut left_out = 0;
    for line in text.lines() {
        let shown = match line {
            _ if line.starts_with("<<<<<<< ") => {
                is_inside = true;
                format!("<<<<<<< {theirs}")
            }
            _ if line.starts_with(">>>>>>> ") && is_inside => {
                is_inside = false;
                format!(">>>>>>> {own}")
            }
            _ if is_inside => line.chars().take(LONGEST_LINE).collect(),
            _ => continue,
        };
        match lines.len() < MOST_LINES {
            true => lines.push(shown),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        lines.push(format!("[… {left_out} more lines …]"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_of_a_conflict_is_read() {
        let said = b"abc\0a b\0c\nd\0\x001\0a b\0Auto-merging\0Auto-merging a b\n\x002\0a b\0c\nd\0CONFLICT (contents)\0CONFLICT (content): words\n\0";
        let conflict = read_conflict(said);
        let files = [PathBuf::from("a b"), PathBuf::from("c\nd")];
        assert_eq!(conflict.tree, "abc");
        assert_eq!(conflict.files, files);
        assert_eq!(conflict.messages.len(), 1);
        assert_eq!(conflict.messages[0].0, files);
        assert_eq!(read_conflict(b""), Conflict::default());
    }

    #[test]
    fn only_conflicts_are_shown_and_no_more_than_can_be_read() {
        let text = "same\n<<<<<<< 1234\none\n=======\ntwo\n>>>>>>> 5678\nsame\n";
        let shown = cut(text, ("a", "b"));
        assert_eq!(shown, "<<<<<<< a\none\n=======\ntwo\n>>>>>>> b");
        let long = format!("<<<<<<< x\n{}>>>>>>> y\n", "z\n".repeat(100));
        let shown = cut(&long, ("a", "b"));
        assert_eq!(shown.lines().count(), MOST_LINES + 1);
        assert!(shown.ends_with("[… 62 more lines …]"), "{shown}");
        assert_eq!(cut("no conflict\n", ("a", "b")), "");
    }
}
