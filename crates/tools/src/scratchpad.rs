//! Scratchpad: the crew's shared folder for an agent that has no other file tool.

use crate::context::{Context, Cwd};
use crate::read::{self, MOST_LINES, ReadInput};
use crate::tool::{Access, Output, Run};
use crate::write::{self, WriteInput};
use gaffer_workspace::fence::{FenceError, Fenced};
use gaffer_workspace::scratchpad::{Listed, Pen, Version, Writer};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

/// Longer lists are cut.
const MOST_LISTED: usize = 500;

/// Lists, reads and writes files of the scratchpad, the folder that the crew shares: for specs and
/// notes that several workers need, orders too long for a message, and what workers leave there.
/// Also reads the files that long results are kept in. No other files can be reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScratchpadInput {
    // Its values say it all.
    pub action: Action,
    /// The file, from the scratchpad's folder or absolute. For list: a folder; the whole
    /// scratchpad if not given.
    pub path: Option<String>,
    /// For write: all of the file's new text. A file that exists must have been read first.
    pub content: Option<String>,
    /// For read: the first line, from 1.
    pub offset: Option<usize>,
    /// For read: how many lines; 2000 if not given.
    pub limit: Option<usize>,
    /// For read: an earlier version by its number, from 1. The list tells how many there are.
    pub version: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Action {
    List,
    Read,
    Write,
}

#[derive(Debug, Clone, Copy)]
pub struct Scratchpad;

impl Run for Scratchpad {
    const NAME: &'static str = "Scratchpad";
    const ACCESS: Access = Access::Writes;
    type Input = ScratchpadInput;

    async fn run(&self, input: ScratchpadInput, context: &Context) -> Output {
        let Some(pen) = context.scratchpad.clone() else {
            return Output::error("This session has no scratchpad.");
        };
        let desk = Desk::of(pen, context);
        let done = tokio::task::spawn_blocking(move || desk.act(input)).await;
        match done {
            Ok(Ok(output)) => output,
            Ok(Err(why)) => Output::error(why),
            Err(why) => Output::error(format!("Not carried out: {why}.")),
        }
    }
}

/// An agent whose files are the scratchpad and the results, whatever else it may open.
struct Desk {
    pen: Pen,
    context: Context,
}

impl Desk {
    fn of(pen: Pen, context: &Context) -> Self {
        let pad = pen.pad();
        // From the handles that both folders were opened with: nobody can put another in their
        // place.
        let fence = match context.fence.reading(&context.spill) {
            Some(results) => pad.fence().join(&results),
            None => pad.fence().clone(),
        };
        let context = Context {
            fence,
            cwd: Cwd::new(pad.path()),
            ..context.clone()
        };
        Self { pen, context }
    }

    fn act(&self, input: ScratchpadInput) -> Result<Output, String> {
        input.check()?;
        let path = input.path.as_deref();
        let missing = |name| format!("Not carried out: `{name}` is missing.");
        match input.action {
            Action::List => {
                let listed = self.list(path.unwrap_or("."));
                listed
                    .map(Output::text)
                    .map_err(|why| format!("Cannot list {}: {why}.", path.unwrap_or_default()))
            }
            Action::Read => {
                let path = path.ok_or_else(|| missing("path"))?;
                let read = self.read(path, &input);
                read.map_err(|why| format!("Cannot read {path}: {why}."))
            }
            Action::Write => {
                let file_path = path.ok_or_else(|| missing("path"))?.to_owned();
                let content = input.content.ok_or_else(|| missing("content"))?;
                let written = self.locate(&file_path).and_then(|_| {
                    let input = WriteInput {
                        file_path: file_path.clone(),
                        content,
                    };
                    write::write(&input, &self.context)
                });
                written
                    .map(Output::text)
                    .map_err(|why| format!("{file_path} was not written: {why}."))
            }
        }
    }

    fn locate(&self, path: &str) -> Result<Fenced, String> {
        let located = self.context.fence.locate(&self.context.cwd.get(), path);
        located.map_err(|error| match error {
            FenceError::Outside { .. } => format!(
                "it is neither in the scratchpad ({}) nor in the results ({}), and nothing else can be reached from here; a worker can",
                self.pen.pad().path().display(),
                self.context.spill.display()
            ),
            error => error.to_string(),
        })
    }

    fn read(&self, path: &str, input: &ScratchpadInput) -> Result<Output, String> {
        let fenced = self.locate(path)?;
        let Some(version) = input.version else {
            let input = ReadInput {
                file_path: path.to_owned(),
                offset: input.offset,
                limit: input.limit,
                pages: None,
            };
            return read::read_plain(&input, &self.context);
        };
        let bytes = self.pen.pad().read_version(&fenced.path(), version);
        let bytes = bytes.map_err(|why| why.to_string())?;
        let first = input.offset.unwrap_or(1).max(1);
        let limit = input.limit.unwrap_or(MOST_LINES).max(1);
        read::lines(bytes.as_slice(), first, limit).map(Output::text)
    }

    fn list(&self, path: &str) -> Result<String, String> {
        let folder = self.locate(path)?;
        if !folder.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err("there is no such folder".to_owned());
        }
        let path = folder.path();
        match path.strip_prefix(self.pen.pad().path()) {
            Ok(below) => Ok(self.list_pad(&path, below)),
            Err(_) => list_results(&folder),
        }
    }

    fn list_pad(&self, folder: &Path, below: &Path) -> String {
        let pad = self.pen.pad();
        let listing = pad.list();
        let files: Vec<&Listed> = listing
            .files
            .iter()
            .filter(|file| Path::new(&file.path).starts_with(below))
            .collect();
        let mut out = format!("{}: {} files\n", folder.display(), files.len());
        for file in files.iter().take(MOST_LISTED) {
            out.push_str(&line(file));
        }
        let more = files.len().saturating_sub(MOST_LISTED);
        if more > 0 {
            out.push_str(&format!(
                "[{more} more; list one of the folders with `path`.]\n"
            ));
        }
        if listing.is_partial {
            out.push_str("[There is more than is looked at here, or some of it cannot be read.]\n");
        }
        if listing.damaged > 0 {
            let damaged = listing.damaged;
            out.push_str(&format!(
                "[{damaged} lines of the record of writes cannot be read.]\n"
            ));
        }
        let results = self.context.spill.display();
        out.push_str(&format!("[Long results are kept in {results}.]\n"));
        out
    }
}

impl ScratchpadInput {
    /// What does not go with the action was meant for another one.
    fn check(&self) -> Result<(), String> {
        let is_read = self.action == Action::Read;
        let members = [
            (
                "content",
                self.content.is_some(),
                self.action == Action::Write,
            ),
            ("offset", self.offset.is_some(), is_read),
            ("limit", self.limit.is_some(), is_read),
            ("version", self.version.is_some(), is_read),
        ];
        let stray = members.iter().find(|(_, given, fits)| *given && !fits);
        stray.map_or(Ok(()), |(name, ..)| {
            Err(format!(
                "Not carried out: `{name}` does not go with this action."
            ))
        })
    }
}

/// A file with who wrote it last.
fn line(file: &Listed) -> String {
    let Listed {
        path,
        size,
        modified,
        versions,
        last,
    } = file;
    match last {
        Some(last) => format!(
            "{path}  {size} bytes  {}  version {versions} by {}\n",
            last.at,
            names(last)
        ),
        None => format!("{path}  {size} bytes  {modified}  not recorded\n"),
    }
}

fn names(version: &Version) -> String {
    let names: Vec<&str> = version
        .writers
        .iter()
        .map(|Writer { name, .. }| name.as_str())
        .collect();
    match names.is_empty() {
        true => "nobody known".to_owned(),
        false => names.join(" or "),
    }
}

fn list_results(folder: &Fenced) -> Result<String, String> {
    let mut names = folder.entries().map_err(|error| error.to_string())?;
    names.sort();
    let mut out = format!("{}: {} files\n", folder.path().display(), names.len());
    for name in names.iter().take(MOST_LISTED) {
        let size = folder
            .join(Path::new(name))
            .and_then(|file| file.metadata().ok())
            .map_or(0, |metadata| metadata.len());
        out.push_str(&format!("{}  {size} bytes\n", name.to_string_lossy()));
    }
    let more = names.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        out.push_str(&format!("[{more} more.]\n"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
