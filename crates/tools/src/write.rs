//! Write: a whole file, new or in the place of one that was read.

use crate::context::Context;
use crate::file::{change, check_seen, explain, hold, load, locate, save};
use crate::tool::{Access, Output, Run};
use gaffer_workspace::fence::FenceError;
use schemars::JsonSchema;
use serde::Deserialize;

/// Writes a whole file, creating folders on the way. A file that exists must have been read first;
/// to change one, Edit is better.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// Absolute, or from the working folder.
    pub file_path: String,
    /// All of its new text.
    pub content: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Write;

impl Run for Write {
    const NAME: &'static str = "Write";
    const ACCESS: Access = Access::Writes;
    type Input = WriteInput;

    async fn run(&self, input: WriteInput, context: &Context) -> Output {
        let shown = input.file_path.clone();
        let done = change(context, &shown, move |context| write(&input, context)).await;
        match done {
            Ok(text) => Output::text(text),
            Err(why) => Output::error(format!("{shown} was not written: {why}.")),
        }
    }
}

pub(crate) fn write(input: &WriteInput, context: &Context) -> Result<String, String> {
    let fenced = locate(context, &input.file_path)?;
    let explain = |error| explain(context, &input.file_path, error);
    let held = hold(context, &fenced);
    let (mode, done) = match load(context, &fenced) {
        Ok(old) => {
            check_seen(context, &fenced, &old.bytes)?;
            (Some(old.mode), "replaced")
        }
        Err(FenceError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            (None, "created")
        }
        Err(error) => return Err(explain(error)),
    };
    let bytes = input.content.as_bytes();
    let note = save(context, &fenced, held, bytes, mode).map_err(explain)?;
    let lines = input.content.lines().count();
    Ok(format!(
        "{} {done}: {lines} lines, {} bytes.{note}",
        input.file_path,
        bytes.len()
    ))
}
