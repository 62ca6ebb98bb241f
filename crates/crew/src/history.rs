//! What a worker has before it: files that it read and wrote, symbols that it spoke of. By it is
//! measured how much of a new order it knows already.

use crate::orders::{FileNames, is_same, symbols};
use gaffer_protocol::EventKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Older ones are forgotten.
const MOST_FILES: usize = 500;
const MOST_SYMBOLS: usize = 500;
/// So many files are taken from one command.
const MOST_OF_COMMAND: usize = 20;
/// Who read more files than these has explored widely.
const BROAD: usize = 12;
/// So much of what it read an order must be about, or the rest is noise.
const LEAST_FOCUS: f64 = 0.25;

const WRITERS: [&str; 3] = ["Edit", "NotebookEdit", "Write"];

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct History {
    /// The newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    written: Vec<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    symbols: BTreeSet<u32>,
}

/// What an order names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    pub(crate) files: Vec<String>,
    pub(crate) symbols: BTreeSet<u32>,
}

impl Named {
    pub(crate) fn of(text: &str, names: &FileNames) -> Self {
        Self {
            files: names.paths(text),
            symbols: symbols(text),
        }
    }
}

/// How much of an order a worker knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Overlap {
    /// Files of the order that it has before it.
    pub(crate) files: Vec<String>,
    /// Whether it wrote one of them.
    pub(crate) wrote: bool,
    /// Whether it knows the folder of one, though not the file.
    pub(crate) is_near: bool,
    pub(crate) symbols: usize,
    /// Which part of what it read these files are.
    pub(crate) focus: f64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    file_path: Option<String>,
    notebook_path: Option<String>,
    path: Option<String>,
    command: Option<String>,
}

/// What an event says about files and symbols.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    read: Vec<String>,
    symbols: BTreeSet<u32>,
}

impl Traces {
    pub(crate) fn of(kind: &EventKind, names: &FileNames) -> Option<Self> {
        match kind {
            EventKind::ToolStarted { tool_use } => {
                let input: Input = serde_json::from_str(tool_use.input.as_text()).ok()?;
                let mut read: Vec<String> = Vec::new();
                let named = [input.file_path, input.notebook_path, input.path];
                for path in named.into_iter().flatten() {
                    // A search below a folder has seen nothing of its files yet.
                    let is_file =
                        WRITERS.contains(&tool_use.name.as_str()) || tool_use.name == "Read";
                    if is_file || !names.paths(&path).is_empty() && tool_use.name == "Grep" {
                        read.push(path);
                    }
                }
                let command = input.command.unwrap_or_default();
                read.extend(names.paths(&command).into_iter().take(MOST_OF_COMMAND));
                Some(Self {
                    read,
                    symbols: BTreeSet::new(),
                })
            }
            EventKind::Answered { answer, .. } => Some(Self {
                read: Vec::new(),
                symbols: symbols(&answer.text()),
            }),
            _ => None,
        }
    }
}

impl History {
    pub(crate) fn add(&mut self, traces: Traces) {
        for path in traces.read {
            keep(&mut self.read, path);
        }
        let room = MOST_SYMBOLS.saturating_sub(self.symbols.len());
        self.symbols.extend(traces.symbols.into_iter().take(room));
    }

    pub(crate) fn add_written(&mut self, files: &[String]) {
        for path in files {
            keep(&mut self.written, path.clone());
        }
    }

    pub(crate) fn has_written(&self) -> bool {
        !self.written.is_empty()
    }

    pub(crate) fn written(&self) -> &[String] {
        &self.written
    }

    pub(crate) fn read(&self) -> &[String] {
        &self.read
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.written.is_empty()
    }

    /// Whether it explored so widely that most of it is noise for what comes.
    pub(crate) fn is_broad(&self) -> bool {
        self.read.len() > BROAD
    }

    fn knows(&self, path: &str) -> bool {
        let mut known = self.read.iter().chain(&self.written);
        known.any(|it| is_same(it, path) || is_below(it, path))
    }

    pub(crate) fn overlap(&self, named: &Named) -> Overlap {
        let files: Vec<String> = named
            .files
            .iter()
            .filter(|path| self.knows(path))
            .cloned()
            .collect();
        let is_written = |path: &String| {
            let mut written = self.written.iter();
            written.any(|it| is_same(it, path) || is_below(it, path))
        };
        let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let is_near = |path: &String| {
            let Some(folder) = folder(path).filter(|folder| !folder.is_empty()) else {
                return false;
            };
            let mut known = self.read.iter().chain(&self.written);
            known.any(|it| is_below(it, &folder))
        };
        let all = self.read.len().max(1);
        let hit = self
            .read
            .iter()
            .filter(|it| {
                files
                    .iter()
                    .any(|path| is_same(it, path) || is_below(it, path))
            })
            .count();
        Overlap {
            wrote: files.iter().any(is_written),
            is_near: named.files.iter().any(is_near),
            symbols: named.symbols.intersection(&self.symbols).count(),
            focus: hit as f64 / all as f64,
            files,
        }
    }
}

impl Overlap {
    pub(crate) fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.symbols == 0 && !self.is_near
    }

    pub(crate) fn is_focused(&self) -> bool {
        self.focus >= LEAST_FOCUS
    }
}

fn keep(list: &mut Vec<String>, path: String) {
    list.retain(|known| *known != path);
    list.push(path);
    if list.len() > MOST_FILES {
        list.remove(0);
    }
}

/// Whether a file lies below a folder that may be told from elsewhere.
fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    let Some(at) = path.find(folder).filter(|_| !folder.is_empty()) else {
        return false;
    };
    let starts = at == 0 || path[..at].ends_with('/');
    starts && path[at + folder.len()..].starts_with('/')
}
