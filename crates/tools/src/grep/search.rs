//! The search itself: all files of a walk on all cores, then the lines that are shown.

use super::feed::Feeder;
use super::page::Page;
use super::sink::{Counter, Writer};
use super::{OutputMode, Style};
use crate::permission::Hiding;
use crate::walk::{Base, Entry, Stop, Visit, Walk, hidden_note, is_gone};
use gaffer_workspace::fence::FenceError;
use grep_regex::RegexMatcher;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Stands between groups of lines that do not follow each other.
pub(super) const BETWEEN: &str = "--";

pub(super) struct Search<'a> {
    pub(super) base: &'a Base,
    pub(super) hiding: Option<&'a Hiding<'a>>,
    pub(super) matcher: RegexMatcher,
    pub(super) style: Style,
    pub(super) stop: &'a Stop,
}

/// A file with matches.
#[derive(Debug)]
pub(super) struct Found {
    /// Its path from the base; empty for the base itself.
    pub(super) below: PathBuf,
    pub(super) modified: (i64, u64),
    /// Of matches or of lines to show, by the output mode.
    pub(super) count: usize,
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) found: Vec<Found>,
    pub(super) searched: usize,
    /// How many files a rule hides.
    pub(super) hidden: usize,
    /// Of a single file.
    pub(super) is_binary: bool,
    unread: usize,
    /// The first by name of what could not be read, with the reason.
    example: Option<(String, String)>,
}

impl Findings {
    fn add(&mut self, other: Self) {
        self.found.extend(other.found);
        self.searched += other.searched;
        self.hidden += other.hidden;
        self.unread += other.unread;
        let examples = [self.example.take(), other.example];
        self.example = examples.into_iter().flatten().min();
    }

    /// What was not searched, and why.
    pub(super) fn notes(&self) -> String {
        self.unread_note() + &hidden_note(self.hidden)
    }

    fn unread_note(&self) -> String {
        match &self.example {
            None => String::new(),
            Some((name, why)) if self.unread == 1 => format!("[{name} could not be read: {why}]\n"),
            Some((name, why)) => {
                let others = self.unread - 1;
                format!("[{name} could not be read: {why}; nor could {others} more]\n")
            }
        }
    }
}

impl Search<'_> {
    /// Searches all files of a walk.
    pub(super) fn folder(&self, walk: &Walk<'_>) -> Findings {
        let mut all = Findings::default();
        for thread in walk.run(|| Thread::new(self, false)) {
            all.add(thread.findings);
        }
        all
    }

    /// Searches the file that is the base.
    pub(super) fn file(&self) -> Findings {
        let mut thread = Thread::new(self, false);
        if !thread.is_hidden(&self.base.path) {
            thread.search(Path::new(""), || self.base.fenced.open());
        }
        thread.findings
    }

    /// Writes the lines of files to a page, in their order; gives the number of all lines.
    pub(super) fn show_lines(&self, found: &[&Found], page: &mut Page) -> usize {
        let mut thread = Thread::new(self, self.style.line_numbers);
        let mut total = 0;
        for (place, file) in found.iter().enumerate() {
            if place > 0 && self.style.has_context() {
                if total >= page.offset() {
                    page.push(BETWEEN);
                }
                total += 1;
            }
            let end = total + file.count;
            if end > page.offset() && !page.is_full() && !self.stop.is_set() {
                let skip = page.offset().saturating_sub(total);
                // What has been removed since it was found shows nothing.
                drop(thread.write(&file.below, skip, page));
            }
            total = end;
        }
        total
    }
}

/// What one thread needs to search files one after another.
struct Thread<'a> {
    job: &'a Search<'a>,
    /// Its own: clones share no scratch space, so that threads do not wait for each other.
    matcher: RegexMatcher,
    feeder: Feeder,
    findings: Findings,
}

impl Visit for Thread<'_> {
    fn file(&mut self, entry: &Entry<'_>) {
        if self.is_hidden(entry.path) {
            return;
        }
        self.search(entry.below, || entry.open());
    }

    fn unread(&mut self, below: &Path, why: &FenceError) {
        self.findings.add(Findings {
            unread: 1,
            example: Some((self.job.base.show(below), why.to_string())),
            ..Findings::default()
        });
    }
}

impl<'a> Thread<'a> {
    fn new(job: &'a Search<'a>, line_numbers: bool) -> Self {
        Self {
            job,
            matcher: job.matcher.clone(),
            feeder: Feeder::new(&job.matcher, job.style, line_numbers),
            findings: Findings::default(),
        }
    }

    /// Whether a rule hides a file; if so, it is counted.
    fn is_hidden(&mut self, path: &Path) -> bool {
        let is_hidden = self.job.hiding.is_some_and(|hiding| hiding.hides(path));
        self.findings.hidden += usize::from(is_hidden);
        is_hidden
    }

    fn search(&mut self, below: &Path, open: impl FnOnce() -> Result<File, FenceError>) {
        match open().and_then(|file| self.count(&file)) {
            Ok((0, _)) => {}
            Ok((count, modified)) => self.findings.found.push(Found {
                below: below.to_owned(),
                modified,
                count,
            }),
            Err(why) if is_gone(&why) => return,
            Err(why) => return self.unread(below, &why),
        }
        self.findings.searched += 1;
    }

    fn count(&mut self, file: &File) -> Result<(usize, (i64, u64)), FenceError> {
        let (style, stop) = (self.job.style, self.job.stop);
        let mut counter = Counter::new(&self.matcher, style, stop);
        self.feeder.feed(file, &self.matcher, stop, &mut counter)?;
        let modified = match style.mode {
            OutputMode::FilesWithMatches if counter.count > 0 => {
                let metadata = file.metadata()?;
                (metadata.mtime(), metadata.mtime_nsec().unsigned_abs())
            }
            _ => (0, 0),
        };
        self.findings.is_binary = counter.is_binary;
        Ok((counter.count, modified))
    }

    fn write(&mut self, below: &Path, skip: usize, page: &mut Page) -> Result<(), FenceError> {
        let base = self.job.base;
        let name = base.show(below);
        let (file, name) = if below.as_os_str().is_empty() {
            // Nobody asks in which file, when there is only one.
            (base.fenced.open()?, None)
        } else {
            let fenced = base.fenced.join(below);
            let fenced = fenced.ok_or(FenceError::Odd("is not plain"))?;
            (fenced.open()?, Some(name.as_str()))
        };
        let writer = Writer {
            matcher: &self.matcher,
            style: self.job.style,
            stop: self.job.stop,
            name,
            skip,
            page,
        };
        let fed = self
            .feeder
            .feed(&file, &self.matcher, self.job.stop, writer);
        Ok(fed?)
    }
}
