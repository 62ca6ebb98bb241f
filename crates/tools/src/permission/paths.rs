//! Patterns of paths: gitignore patterns with four places to start from.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// A gitignore pattern and where it starts.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    pub(super) start: Start,
    /// How many folders above the start it begins.
    up: usize,
    glob: Gitignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// `//path`
    Root,
    /// `~/path`
    Home,
    /// `/path`: where the settings are for.
    Settings,
    /// `path` and `./path`
    Folder,
}

impl PathPattern {
    /// Reads a pattern; an error says what was expected.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('!') {
            return Err("no `!`: what a rule leaves out stands in another list".to_owned());
        }
        let (start, mut body) = if let Some(body) = text.strip_prefix("//") {
            (Start::Root, format!("/{body}"))
        } else if text == "~" {
            (Start::Home, "/".to_owned())
        } else if let Some(body) = text.strip_prefix("~/") {
            (Start::Home, format!("/{body}"))
        } else if text.starts_with('/') {
            (Start::Settings, text.to_owned())
        } else {
            (Start::Folder, text.to_owned())
        };
        // Gitignore knows neither `.` nor `..`.
        let mut up = 0;
        if start == Start::Folder {
            while let Some(rest) = below(&body) {
                up += usize::from(body.trim_start_matches('/').starts_with(".."));
                body = format!("/{}", rest.trim_start_matches('/'));
            }
        }
        if body.split('/').any(|part| part == "..") {
            return Err("`..` only at the start of a path".to_owned());
        }
        if body.chars().all(|c| c == '/') {
            body = "/**".to_owned();
        }
        if body.starts_with('#') {
            body.insert(0, '\\');
        }
        // Rules are matched against paths below their start, so the root here does not matter.
        let mut builder = GitignoreBuilder::new("/");
        builder
            .allow_unclosed_class(false)
            .add_line(None, &body)
            .and_then(|builder| builder.build())
            .map(|glob| Self { start, up, glob })
            .map_err(|why| format!("a pattern as in .gitignore ({why})"))
    }

    /// Whether a path, or a folder that it is in, fits below one of the places. `may_be_folder`
    /// lets a pattern that ends in `/` fit the path itself.
    pub(super) fn matches<'p>(
        &self,
        path: &Path,
        starts: impl IntoIterator<Item = &'p Path>,
        may_be_folder: bool,
    ) -> bool {
        starts.into_iter().any(|start| {
            let start = start.ancestors().nth(self.up).unwrap_or(Path::new("/"));
            match path.strip_prefix(start) {
                Ok(below) if below.as_os_str().is_empty() => false,
                Ok(below) => self
                    .glob
                    .matched_path_or_any_parents(below, may_be_folder)
                    .is_ignore(),
                Err(_) => false,
            }
        })
    }

    /// A pattern for one file below the folder that relative patterns start from, or anywhere.
    pub(super) fn exactly(path: &Path, folder: &Path) -> Option<String> {
        let (lead, path) = match path.strip_prefix(folder) {
            Ok(below) => ("./", below),
            Err(_) => ("//", path.strip_prefix("/").ok()?),
        };
        let text = path.to_str().filter(|text| !text.is_empty())?;
        let mut out = lead.to_owned();
        for c in text.chars() {
            if "*?[]{}\\!#".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
        // A space at the end would be cut off.
        (!out.ends_with(char::is_whitespace)).then_some(out)
    }
}

/// What follows `.` or `..` at the start of a pattern.
fn below(body: &str) -> Option<&str> {
    let body = body.strip_prefix('/').unwrap_or(body);
    let rest = body.strip_prefix("..").or_else(|| body.strip_prefix('.'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// A path from the root without `.` and `..`, by its text alone.
pub(super) fn absolute(path: &Path, cwd: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in cwd.join(path).components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Whether a path lies in one of the folders.
pub(super) fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// Folders whose contents decide what programs do. Writing there is never approved unasked.
const FOLDERS: [&str; 12] = [
    ".cargo",
    ".claude",
    ".devcontainer",
    ".gaffer",
    ".git",
    ".gnupg",
    ".husky",
    ".idea",
    ".mvn",
    ".ssh",
    ".vscode",
    ".yarn",
];

/// Such folders below `.config`.
const CONFIG_FOLDERS: [(&str, &str); 2] = [("fish", ".config/fish"), ("git", ".config/git")];

/// Files that decide what programs do.
const FILES: [&str; 33] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bazeliskrc",
    ".bazelrc",
    ".claude.json",
    ".cshrc",
    ".curlrc",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".inputrc",
    ".kshrc",
    ".login",
    ".mcp.json",
    ".netrc",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".profile",
    ".pypirc",
    ".ripgreprc",
    ".tcshrc",
    ".wgetrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// The protected name that a path goes through. `.claude` and `.gaffer` count only below a root:
/// worktrees and scratchpads lie in them.
pub(super) fn protected(path: &Path, roots: &[PathBuf]) -> Option<&'static str> {
    let below_root = roots
        .iter()
        .filter_map(|root| path.strip_prefix(root).ok())
        .min_by_key(|below| below.components().count());
    let own = below_root.map_or(0, |below| {
        path.components().count() - below.components().count()
    });
    let names: Vec<&OsStr> = path.components().map(Component::as_os_str).collect();
    for (place, name) in names.iter().enumerate() {
        // Some file systems do not tell capitals from small letters.
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let next = names.get(place + 1).and_then(|next| next.to_str());
        if is(".config") {
            let folder = CONFIG_FOLDERS
                .iter()
                .find(|(name, _)| next.is_some_and(|next| next.eq_ignore_ascii_case(name)));
            if let Some((_, whole)) = folder {
                return Some(whole);
            }
        }
        let found = FOLDERS.iter().chain(&FILES).copied().find(|name| is(name));
        let is_free = match found {
            Some(".claude") => place < own || next == Some("worktrees"),
            Some(".gaffer") => {
                place < own || next.is_some_and(|next| next.starts_with("agent-memory"))
            }
            _ => false,
        };
        if found.is_some() && !is_free {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests;
