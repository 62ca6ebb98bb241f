//! Glob: files by their names, the newest first.

#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::guard::Guard;
use crate::permission::Hiding;
use crate::tool::{Access, Output, Run};
use crate::walk::{self, Base, BaseKind, Entry, Stop, Visit, Walk};
use gaffer_workspace::fence::FenceError;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

const MOST_FILES: usize = 100;
/// How many files a thread collects before it drops those that cannot be shown any more.
const MOST_HELD: usize = 1000;

/// Finds files by name and returns their paths, newest first, 100 at most.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// Such as `**/*.rs` or `src/*.{ts,tsx}`; `*` does not match `/`.
    pub pattern: String,
    /// Where the pattern starts; the working folder if not given.
    pub path: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Glob {
    /// Whether what .gitignore names is left out.
    pub respect_gitignore: bool,
}

impl Run for Glob {
    const NAME: &'static str = "Glob";
    const ACCESS: Access = Access::Reads;
    type Input = GlobInput;

    async fn run(&self, input: GlobInput, context: &Context) -> Output {
        let (context, glob) = (context.clone(), *self);
        match walk::run(move |stop| glob.find(&input, &context, stop)).await {
            Ok(text) => Output::text(text),
            Err(why) => Output::error(why),
        }
    }
}

impl Glob {
    fn find(self, input: &GlobInput, context: &Context, stop: &Stop) -> Result<String, String> {
        let (folder, rest) = split(&input.pattern);
        let matcher = compile(rest)?;
        let path = input.path.as_deref().filter(|path| !path.is_empty());
        let start = Path::new(path.unwrap_or("."));
        // Joining nothing would add a slash, behind which only a folder can stand.
        let start = match folder {
            "" => start.to_owned(),
            folder => start.join(folder),
        };
        let base = Base::find(context, &start)?;
        if base.kind != BaseKind::Folder && folder.is_empty() {
            let what = match base.kind {
                BaseKind::File => "it is a file",
                _ => "there is no such folder",
            };
            return Err(format!("Cannot search {base}: {what}."));
        }
        let mut walk = Walk::new(context, &base, stop);
        walk.obeys_rules = self.respect_gitignore;
        walk.hidden = true;
        if !rest.contains("**") {
            // Nothing deeper than the pattern can match it.
            walk.depth = rest.matches('/').count() + 1;
        }
        let policy = context.guard.as_ref().map(Guard::policy);
        let hiding = walk::hiding(policy.as_deref(), Self::NAME, &base);
        let mut all = Findings::default();
        if base.kind == BaseKind::Folder {
            for thread in walk.run(|| Thread {
                matcher: &matcher,
                hiding: hiding.as_ref(),
                findings: Findings::default(),
            }) {
                all.add(thread.findings);
            }
        }
        Ok(show(input, &base, all))
    }
}

/// Splits a pattern into the folder that it starts in, which the fence judges, and what is left
/// to match.
fn split(pattern: &str) -> (&str, &str) {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
    let literal = pattern.find(special).unwrap_or(pattern.len());
    let mut end = pattern[..literal].rfind('/').map_or(0, |slash| slash + 1);
    let mut start = 0;
    for part in pattern[..end].split_inclusive('/') {
        // The walk has to meet it, to leave it out.
        if walk::is_version_control(part.trim_end_matches('/').as_bytes()) {
            end = start;
            break;
        }
        start += part.len();
    }
    pattern.split_at(end)
}

fn compile(rest: &str) -> Result<GlobSet, String> {
    if rest.is_empty() {
        return Err("The pattern names no files: `**` at its end stands for all below.".to_owned());
    }
    if rest.split('/').any(|part| part == "..") {
        return Err("The pattern has `..` behind a special character: put it in path.".to_owned());
    }
    let glob = GlobBuilder::new(rest).literal_separator(true).build();
    // A set knows short cuts for the usual patterns.
    let set = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build());
    set.map_err(|why| {
        let kind = why.kind();
        format!("The pattern is not valid: {kind}. Write a literal `{{`, `[` or `*` as `[{{]`, `[[]` or `[*]`.")
    })
}

#[derive(Debug)]
struct Found {
    below: PathBuf,
    modified: (i64, u64),
}

impl Found {
    /// The newest first, then by name.
    fn order(&self, other: &Self) -> Ordering {
        let by_time = other.modified.cmp(&self.modified);
        by_time.then_with(|| self.below.as_os_str().cmp(other.below.as_os_str()))
    }
}

/// The files that may be shown, and how many there are in all.
#[derive(Debug)]
struct Findings {
    files: Vec<Found>,
    total: usize,
    /// How many files match that a rule hides.
    hidden: usize,
    /// What is older cannot be shown any more.
    oldest: (i64, u64),
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            total: 0,
            hidden: 0,
            oldest: (i64::MIN, 0),
        }
    }
}

impl Findings {
    fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.total += other.total;
        self.hidden += other.hidden;
    }

    fn note(&mut self, below: &Path, modified: (i64, u64)) {
        self.total += 1;
        if modified >= self.oldest {
            self.files.push(Found {
                below: below.to_owned(),
                modified,
            });
        }
        if self.files.len() >= MOST_HELD {
            self.trim();
        }
    }

    /// Drops what cannot be shown any more.
    fn trim(&mut self) {
        if self.files.len() > MOST_FILES {
            let (_, last, _) = self
                .files
                .select_nth_unstable_by(MOST_FILES - 1, Found::order);
            self.oldest = last.modified;
            self.files.truncate(MOST_FILES);
        }
    }
}

/// One thread of a walk.
struct Thread<'a> {
    matcher: &'a GlobSet,
    hiding: Option<&'a Hiding<'a>>,
    findings: Findings,
}

impl Visit for Thread<'_> {
    fn file(&mut self, entry: &Entry<'_>) {
        if !self.matcher.is_match(entry.below) {
            return;
        }
        if self.hiding.is_some_and(|hiding| hiding.hides(entry.path)) {
            self.findings.hidden += 1;
            return;
        }
        // What is gone by now is not there.
        if let Ok(modified) = entry.modified() {
            self.findings.note(entry.below, modified);
        }
    }

    /// Nothing in a folder that cannot be read could be opened.
    fn unread(&mut self, _: &Path, _: &FenceError) {}
}

fn show(input: &GlobInput, base: &Base, mut all: Findings) -> String {
    all.trim();
    all.files.sort_unstable_by(Found::order);
    let shown = all.files.len();
    if shown == 0 {
        return nothing(input, base) + &walk::hidden_note(all.hidden);
    }
    let mut text = String::new();
    for file in &all.files {
        text.push_str(&base.show(&file.below));
        text.push('\n');
    }
    if all.total > shown {
        let more = all.total - shown;
        text.push_str(&format!(
            "[{more} more, all older. A narrower pattern or path shows them.]\n"
        ));
    }
    text + &walk::hidden_note(all.hidden)
}

/// Says that nothing was found, and why that may be.
fn nothing(input: &GlobInput, base: &Base) -> String {
    let pattern = &input.pattern;
    if base.kind == BaseKind::Missing {
        return format!("No file matches {pattern}: there is no folder {base}.\n");
    }
    let hint = if pattern.contains("**") {
        String::new()
    } else {
        let name = pattern.rsplit('/').next().unwrap_or(pattern);
        format!(" `**/{name}` looks in all folders below.")
    };
    format!("No file in {base} matches {pattern}.{hint}\n")
}
