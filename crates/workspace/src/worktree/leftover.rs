//! What git keeps for a worktree beside its files: its HEAD, its logs, what is under way.

use super::create::REASON;
use super::{GitError, Trace, Worktree, Worktrees, walk};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// What a worktree has that nothing was ever begun in. Anything else in its folder of git's is
/// something under way, or something that we do not know and therefore keep.
const PLAIN: [&str; 14] = [
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "ORIG_HEAD",
    "commondir",
    "config.worktree",
    "description",
    "gitdir",
    "index",
    "info",
    "locked",
    "logs",
    "refs",
];

impl Worktrees {
    /// Whether a worktree is what it was made as. If its worker could send git elsewhere, asking
    /// git about it could run anything: so this is found out without git, and first.
    pub(super) fn genuine(&self, tree: &Worktree) -> Result<PathBuf, String> {
        let own = self.own(&tree.path);
        let own = own.ok_or("git's list of worktrees does not have it")?;
        let link = tree.path.join(".git");
        let is_file = link.symlink_metadata().is_ok_and(|kind| kind.is_file());
        let text = std::fs::read_to_string(&link).unwrap_or_default();
        let named = text.strip_prefix("gitdir: ").map(str::trim_end);
        if !is_file || named.map(Path::new) != Some(own.as_path()) {
            return Err("its .git was changed".to_owned());
        }
        self.genuine_own(tree, &own)?;
        Ok(own)
    }

    /// The same for its folder of git's.
    pub(super) fn genuine_own(&self, tree: &Worktree, own: &Path) -> Result<(), String> {
        let common = std::fs::read_to_string(own.join("commondir")).unwrap_or_default();
        let common = own.join(common.trim_end()).canonicalize();
        if common.ok().as_ref() != Some(&self.common) {
            return Err("its folder in .git/worktrees was changed".to_owned());
        }
        // Git would write through a link, to wherever it leads.
        let mut files = walk::files(own).map_err(|why| why.to_string())?;
        files.push(self.common.join("logs").join(tree.reference()));
        let is_link = |file: &PathBuf| own.join(file).is_symlink();
        if let Some(link) = files.iter().find(|file| is_link(file)) {
            return Err(format!("{} is a link", own.join(link).display()));
        }
        let config = own.join("config.worktree");
        // Where its making was cut short, nobody had taken note of it.
        if walk::digest(&config).ok() != tree.config && (tree.is_whole || tree.config.is_some()) {
            return Err("its own git config was changed".to_owned());
        }
        Ok(())
    }

    /// What stands in the folder of git's: a lock of somebody's, something under way.
    pub(super) fn under_way(own: &Path) -> Vec<Trace> {
        let mut traces = Vec::new();
        let entries = match std::fs::read_dir(own) {
            Ok(entries) => entries,
            Err(why) => return vec![Trace::Unclear(why.to_string())],
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !PLAIN.contains(&name.as_str()) && !name.starts_with("sharedindex.") {
                traces.push(Trace::UnderWay(name));
            }
        }
        match walk::files(&own.join("refs")) {
            Ok(refs) if refs.is_empty() => {}
            Ok(_) => traces.push(Trace::UnderWay("refs".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(why) => traces.push(Trace::Unclear(why.to_string())),
        }
        match std::fs::read_to_string(own.join("locked")) {
            Ok(reason) if reason.starts_with(REASON) => {}
            Ok(reason) => traces.push(Trace::Locked(reason.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(why) => traces.push(Trace::Unclear(why.to_string())),
        }
        traces
    }

    /// Whether its branch is only a name for another one, which its worker can make it.
    pub(super) async fn stands_for_another(&self, tree: &Worktree) -> Result<bool, GitError> {
        let args = ["symbolic-ref", "--quiet", &tree.reference()];
        let said = self.git.run(&self.root, &args, b"").await?;
        match said.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            // A branch that is gone is told of elsewhere.
            _ if said.err.contains("No such ref") => Ok(false),
            _ => Err(said.failed()),
        }
    }

    /// Where HEAD is, as git wrote it: a branch's whole name or a commit.
    pub(super) fn head(own: &Path) -> io::Result<String> {
        let text = std::fs::read_to_string(own.join("HEAD"))?;
        let text = text.trim_end();
        Ok(text.strip_prefix("ref: ").unwrap_or(text).to_owned())
    }

    /// How many commits the worktree's logs know that no branch or tag leads to, nor what it began
    /// from.
    pub(super) async fn left_behind(&self, tree: &Worktree, own: &Path) -> Result<usize, GitError> {
        let mut known = BTreeSet::new();
        known.extend(digest(&Self::head(own).unwrap_or_default()));
        for name in ["ORIG_HEAD", "FETCH_HEAD"] {
            let text = std::fs::read_to_string(own.join(name)).unwrap_or_default();
            known.extend(text.lines().filter_map(digest));
        }
        for log in [
            own.join("logs/HEAD"),
            self.common.join("logs").join(tree.reference()),
        ] {
            // A log holds names of people in any encoding.
            let bytes = std::fs::read(log).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            for line in text.lines() {
                known.extend(line.splitn(3, ' ').take(2).filter_map(digest));
            }
        }
        known.remove(&tree.base);
        if known.is_empty() {
            return Ok(0);
        }
        let mut range: Vec<&str> = known.iter().map(String::as_str).collect();
        range.extend(["--not", "--branches", "--tags", "--remotes", &tree.base]);
        self.count(&range).await
    }

    pub(super) async fn count(&self, range: &[&str]) -> Result<usize, GitError> {
        let args = [&["rev-list", "--count"][..], range, &["--"]].concat();
        let count = self.git.line(&self.root, &args).await?;
        // What is no number speaks for keeping it.
        Ok(count.parse().unwrap_or(usize::MAX))
    }

    /// Stashes that were made on the worktree's branch. All checkouts share one list of them.
    pub(super) fn stashed(&self, tree: &Worktree) -> usize {
        let bytes = std::fs::read(self.common.join("logs/refs/stash")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let on = format!("n {}: ", tree.branch);
        text.lines().filter(|line| line.contains(&on)).count()
    }
}

/// A commit's digest at the beginning of a text, if there is one that is not all zeros.
fn digest(text: &str) -> Option<String> {
    let word = text.split(char::is_whitespace).next()?;
    let is_digest = matches!(word.len(), 40 | 64)
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte != b'0');
    is_digest.then(|| word.to_owned())
}
