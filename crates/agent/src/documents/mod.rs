//! Project documents: what AGENTS.md and CLAUDE.md tell everybody who works in a project.
//!
//! A repository is somebody else's work. Its documents, by links or by `@path`, bring in nothing
//! from outside of it, and nothing that the user keeps from being read.

mod imports;

use crate::places::{Places, Reach};
use crate::prompt;
use gaffer_protocol::tags::escape;
use gaffer_workspace::fence::{FenceError, Fenced};
use imports::scan;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The user's own, below home.
const OF_USER: [&str; 2] = [".gaffer/AGENTS.md", ".claude/CLAUDE.md"];
/// A project's, in each folder. The last one is the user's in this project.
const OF_FOLDER: [&str; 4] = [
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "CLAUDE.local.md",
];
/// Where the user's own documents lie. What they import from elsewhere may be somebody else's, and
/// imports nothing further.
const CONFIG: [&str; 3] = [".gaffer", ".claude", ".agents"];
/// All documents together are no longer than this.
const LARGEST: usize = 64 << 10;
/// Less room than this is of no use for the beginning of a document.
const LEAST: usize = 512;
/// More files are not read.
const MOST: usize = 64;
const DEEPEST: usize = 5;
const MOST_IMPORTS: usize = 256;
const MOST_NAMED: usize = 16;

/// One document as it is given to agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Without links.
    pub path: PathBuf,
    /// The path as agents see it.
    shown: String,
    text: String,
}

/// All documents, the general ones first, and those that could not be read with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents {
    all: Vec<Document>,
    /// Those that have no room.
    left_out: Vec<String>,
    pub problems: Vec<String>,
}

impl Documents {
    /// Reads what there is. `hidden` answers whether a file is kept from being read: a document
    /// must not bring in what a rule denies.
    pub fn find(places: &Places, hidden: &dyn Fn(&Path) -> bool) -> Self {
        let mut gathering = Gathering {
            places,
            hidden,
            seen: BTreeSet::new(),
            refused: BTreeSet::new(),
            texts: BTreeSet::new(),
            all: Vec::new(),
            left_out: Vec::new(),
            problems: Vec::new(),
        };
        let (user, project) = (Reach::user(), Reach::project(places));
        if let Some(home) = &places.home {
            for name in OF_USER {
                gathering.top(&home.join(name), &user);
            }
        }
        for folder in &places.folders {
            for name in OF_FOLDER {
                gathering.top(&folder.join(name), &project);
            }
        }
        gathering.fit()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Document> {
        self.all.iter()
    }

    /// What stands in the prefix: the same bytes for the same documents. Empty without any.
    pub fn text(&self) -> String {
        if self.all.is_empty() && self.left_out.is_empty() {
            return String::new();
        }
        let mut out = prompt::DOCUMENTS.text.trim_end().to_owned();
        for document in &self.all {
            let path = attribute(&document.shown);
            let text = &document.text;
            out.push_str(&format!(
                "\n\n<document path=\"{path}\">\n{text}\n</document>"
            ));
        }
        if !self.left_out.is_empty() {
            let names = self.left_out.iter().take(MOST_NAMED);
            let names: Vec<String> = names.map(|name| attribute(name)).collect();
            let more = match self.left_out.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names = names.join(", ");
            out.push_str(&format!(
                "\n\n[Left out, because all documents together have {} KiB: {names}{more}.]",
                LARGEST >> 10,
            ));
        }
        out
    }
}

/// A path that stands in a tag.
pub(crate) fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// What was read so far.
struct Gathering<'a> {
    places: &'a Places,
    hidden: &'a dyn Fn(&Path) -> bool,
    /// What was taken, or has no room.
    seen: BTreeSet<PathBuf>,
    /// What is there and is no document.
    refused: BTreeSet<PathBuf>,
    texts: BTreeSet<String>,
    all: Vec<Document>,
    left_out: Vec<String>,
    problems: Vec<String>,
}

impl Gathering<'_> {
    /// Takes a document that stands in its own place.
    fn top(&mut self, path: &Path, reach: &Reach) {
        match self.add(path, reach, 0) {
            Ok(()) => {}
            Err(FenceError::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => self.problems.push(format!("{}: {error}", path.display())),
        }
    }

    /// Takes a document with what it imports. It is fine if it is here already.
    fn add(&mut self, path: &Path, reach: &Reach, depth: usize) -> Result<(), FenceError> {
        let fenced = reach.locate(path)?;
        let real = fenced.path();
        if self.seen.contains(&real) {
            return Ok(());
        }
        let is_refused = self.refused.contains(&real);
        if is_refused || (self.hidden)(path) || (self.hidden)(&real) {
            return Err(std::io::Error::from(ErrorKind::NotFound).into());
        }
        // A document holds for the folder that it stands in, also where it is a link.
        let shown = self.places.shown(if depth == 0 { path } else { &real });
        if self.seen.len() + self.refused.len() >= MOST {
            fenced.metadata()?;
            self.seen.insert(real);
            self.left_out.push(shown);
            return Ok(());
        }
        let text = read(&fenced).inspect_err(|error| {
            if matches!(error, FenceError::Odd(_)) {
                self.refused.insert(real.clone());
            }
        })?;
        self.seen.insert(real.clone());
        let scanned = scan(&text);
        let text = scanned.text.trim().to_owned();
        let place = self.all.len();
        // A copy, as of AGENTS.md in CLAUDE.md, is not given twice.
        let is_new = !text.is_empty() && self.texts.insert(text.clone());
        if is_new {
            let path = real.clone();
            let text = text.clone();
            self.all.push(Document { path, shown, text });
        }
        let may_import = reach.is_project || depth == 0 || self.is_config(&real);
        if depth == DEEPEST || !may_import {
            return Ok(());
        }
        let mut taken = BTreeSet::new();
        for import in scanned.imports.into_iter().take(MOST_IMPORTS) {
            if self.import(&import, path, reach, depth) {
                taken.insert(import);
            }
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_import = |line: &str| line.strip_prefix('@').is_some_and(|it| taken.contains(it));
        if is_new && lines.all(is_import) {
            // Nothing is left to say: what it names is there itself.
            self.all.remove(place);
        }
        Ok(())
    }

    /// Takes what a document names, if there is such a file within reach.
    fn import(&mut self, import: &str, from: &Path, reach: &Reach, depth: usize) -> bool {
        // A path at the end of a sentence has its full stop.
        let bare = import.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
        let mut names = vec![import];
        names.extend((bare != import && !bare.is_empty()).then_some(bare));
        names.into_iter().any(|name| {
            let home = self.places.home.as_deref();
            let path = match name.strip_prefix("~/") {
                Some(below) => home.map(|home| home.join(below)),
                None => from.parent().map(|folder| folder.join(name)),
            };
            path.is_some_and(|path| self.add(&path, reach, depth + 1).is_ok())
        })
    }

    fn is_config(&self, path: &Path) -> bool {
        let home = self.places.home.as_deref();
        home.is_some_and(|home| CONFIG.iter().any(|name| path.starts_with(home.join(name))))
    }

    /// Makes all of it fit. The nearer to the working folder, the more a document counts.
    fn fit(self) -> Documents {
        let mut room = LARGEST;
        let mut all = Vec::new();
        let mut left_out = Vec::new();
        for mut document in self.all.into_iter().rev() {
            let text = escape(&document.text).into_owned();
            let around = document.shown.len() + 64;
            let free = room.saturating_sub(around);
            if text.len() > free && free < LEAST {
                left_out.push(document.shown);
                continue;
            }
            document.text = cut(text, free);
            room = free.saturating_sub(document.text.len());
            all.push(document);
        }
        all.reverse();
        left_out.reverse();
        left_out.extend(self.left_out);
        Documents {
            all,
            left_out,
            problems: self.problems,
        }
    }
}

/// The beginning of a text that has this much room, in whole lines where there are any.
fn cut(mut text: String, room: usize) -> String {
    if text.len() <= room {
        return text;
    }
    let whole = text.len();
    let end = text.floor_char_boundary(room.saturating_sub(64));
    let end = text[..end].rfind('\n').unwrap_or(end);
    text.truncate(end);
    text.push_str(&format!("\n[cut: the first {end} of {whole} bytes]"));
    text
}

/// A document's text. What is no text, or far too large for a document, is not read.
fn read(fenced: &Fenced) -> Result<String, FenceError> {
    let file = fenced.open()?;
    if !file.metadata()?.is_file() {
        return Err(FenceError::Odd("is no regular file"));
    }
    let most = 4 * LARGEST;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(FenceError::Odd("leads to a file that is too large"));
    }
    if bytes.contains(&0) {
        return Err(FenceError::Odd("leads to a file that is no text"));
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_start_matches('\u{feff}').replace("\r\n", "\n"))
}

#[cfg(test)]
mod tests;
