//! Grep: which files, and where in them, match a regular expression. Built from ripgrep's parts.

mod feed;
mod filter;
mod line;
mod page;
mod pattern;
mod search;
mod sink;
#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::guard::Guard;
use crate::tool::{Access, Output, Run};
use crate::walk::{self, Base, BaseKind, Stop};
use page::Page;
use schemars::JsonSchema;
use search::{Findings, Found, Search};
use serde::Deserialize;
use std::cmp::Reverse;
use std::path::Path;

const DEFAULT_LIMIT: usize = 250;
/// More would be read as a whole file.
const MOST_CONTEXT: usize = 1000;

/// Searches files for a regular expression, as ripgrep does: what .gitignore names, hidden files
/// and binary files are left out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// In ripgrep's syntax; literal braces are written `\{`.
    pub pattern: String,
    /// File or folder; the working folder if not given.
    pub path: Option<String>,
    /// Which files, such as `*.rs` or `src/**/*.{ts,tsx}`; `!` in front leaves them out.
    pub glob: Option<String>,
    /// Which files, by ripgrep's name of their type: rust, py, ts.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Matching lines, paths (newest first; the default), or how many lines match in each file.
    #[serde(default)]
    pub output_mode: OutputMode,
    /// Ignore case.
    #[serde(rename = "-i")]
    pub ignore_case: Option<bool>,
    /// Only the parts of lines that match.
    #[serde(rename = "-o")]
    pub only_matching: Option<bool>,
    /// Line numbers; true if not given.
    #[serde(rename = "-n")]
    pub line_numbers: Option<bool>,
    /// Lines to show after each match.
    #[serde(rename = "-A")]
    pub after: Option<usize>,
    /// Lines before.
    #[serde(rename = "-B")]
    pub before: Option<usize>,
    /// Lines before and after.
    #[serde(rename = "-C")]
    pub around: Option<usize>,
    /// The same as -C, and taken because models know it; naming it twice would only cost tokens.
    #[schemars(skip)]
    pub context: Option<usize>,
    /// Lines or paths at most: 250 if not given, 0 for all that fit.
    pub head_limit: Option<usize>,
    /// Lines or paths to leave out first.
    pub offset: Option<usize>,
    /// Let matches span lines, and `.` match line ends.
    pub multiline: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

/// How matches are looked for and shown.
#[derive(Debug, Clone, Copy)]
struct Style {
    mode: OutputMode,
    only_matching: bool,
    line_numbers: bool,
    before: usize,
    after: usize,
    multiline: bool,
}

impl Style {
    fn of(input: &GrepInput) -> Self {
        let only_matching = input.only_matching.unwrap_or(false);
        let around = input.around.or(input.context);
        let lines = |own: Option<usize>| match own.or(around) {
            // Parts of lines have no lines around them.
            Some(lines) if input.output_mode == OutputMode::Content && !only_matching => {
                lines.min(MOST_CONTEXT)
            }
            _ => 0,
        };
        Self {
            mode: input.output_mode,
            only_matching,
            line_numbers: input.line_numbers.unwrap_or(true),
            before: lines(input.before),
            after: lines(input.after),
            multiline: input.multiline.unwrap_or(false),
        }
    }

    fn has_context(self) -> bool {
        self.before + self.after > 0
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Grep;

impl Run for Grep {
    const NAME: &'static str = "Grep";
    const ACCESS: Access = Access::Reads;
    type Input = GrepInput;

    async fn run(&self, input: GrepInput, context: &Context) -> Output {
        let context = context.clone();
        match walk::run(move |stop| grep(&input, &context, stop)).await {
            Ok(text) => Output::text(text),
            Err(why) => Output::error(why),
        }
    }
}

fn grep(input: &GrepInput, context: &Context, stop: &Stop) -> Result<String, String> {
    let style = Style::of(input);
    let matcher = pattern::compile(input, style)?;
    let path = input.path.as_deref().filter(|path| !path.is_empty());
    let base = Base::find(context, Path::new(path.unwrap_or(".")))?;
    let policy = context.guard.as_ref().map(Guard::policy);
    let hiding = walk::hiding(policy.as_deref(), Grep::NAME, &base);
    let search = Search {
        base: &base,
        hiding: hiding.as_ref(),
        matcher,
        style,
        stop,
    };
    let findings = match base.kind {
        BaseKind::Folder => search.folder(&filter::walk(input, context, &base, stop)?),
        BaseKind::File => search.file(),
        BaseKind::Missing => {
            let cwd = base.cwd.display();
            return Err(format!(
                "Cannot search {base}: there is no such file or folder. The working folder is {cwd}."
            ));
        }
    };
    if findings.found.is_empty() {
        return Ok(nothing(input, &base, &findings));
    }
    let limit = match input.head_limit.unwrap_or(DEFAULT_LIMIT) {
        0 => usize::MAX,
        limit => limit,
    };
    let page = Page::new(input.offset.unwrap_or(0), limit);
    let mut text = show(&search, &findings, page);
    text.push_str(&findings.notes());
    Ok(text)
}

/// Findings as text, in an order that never varies.
fn show(search: &Search<'_>, findings: &Findings, mut page: Page) -> String {
    // As bytes: part for part, as paths compare, takes many times longer.
    let by_name = |a: &Found, b: &Found| a.below.as_os_str().cmp(b.below.as_os_str());
    let mut found: Vec<_> = findings.found.iter().collect();
    if search.style.mode == OutputMode::FilesWithMatches {
        let key = |file: &Found| Reverse(file.modified);
        found.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| by_name(a, b)));
    } else {
        found.sort_unstable_by(|a, b| by_name(a, b));
    }
    let name = |file: &Found| search.base.show(&file.below);
    match search.style.mode {
        OutputMode::Content => {
            let total = search.show_lines(&found, &mut page);
            page.finish(total, "lines")
        }
        OutputMode::FilesWithMatches => {
            for file in page.wanted(&found) {
                if !page.push(&name(file)) {
                    break;
                }
            }
            page.finish(found.len(), "files")
        }
        OutputMode::Count => {
            for file in page.wanted(&found) {
                if !page.push(&format!("{}:{}", name(file), file.count)) {
                    break;
                }
            }
            let all: usize = found.iter().map(|file| file.count).sum();
            let files = found.len();
            let page = page.finish(files, "files");
            format!("{page}[{all} in {}]\n", counted(files))
        }
    }
}

/// Says that nothing was found, and why that may be.
fn nothing(input: &GrepInput, base: &Base, findings: &Findings) -> String {
    if findings.is_binary {
        return format!("{base} is a binary file, which is not searched.");
    }
    let note = findings.notes();
    if findings.searched > 0 {
        let files = counted(findings.searched);
        return format!("No match in {files}.\n{note}");
    }
    if findings.hidden > 0 {
        return format!("No file was searched in {base}.\n{note}");
    }
    let filters = match (&input.glob, &input.kind) {
        (None, None) => "hidden files and what .gitignore names are left out",
        _ => "glob and type left no file; a glob with a slash starts at the working folder",
    };
    format!("No file was searched in {base}: {filters}.\n{note}")
}

fn counted(files: usize) -> String {
    let plural = if files == 1 { "" } else { "s" };
    format!("{files} file{plural}")
}
