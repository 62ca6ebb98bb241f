//! Files as the file tools handle them: found through the fence, read whole up to a limit, written
//! back with the line endings, the byte order mark and the mode that they had.

use crate::context::{Context, State};
use crate::lease;
use gaffer_workspace::fence::{FenceError, Fenced, Old};
use gaffer_workspace::scratchpad::{Held, Pen};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Larger files are not taken into memory.
pub(crate) const LARGEST: u64 = 32 << 20;

/// A text file that is in memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// Does something with files on a thread where it holds up nobody.
pub(crate) async fn aside<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Context) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let context = context.clone();
    let done = tokio::task::spawn_blocking(move || work(&context)).await;
    done.map_err(|why| why.to_string())?
}

/// The same for what changes a file: first it must be this agent's to write.
pub(crate) async fn change(
    context: &Context,
    path: &str,
    work: impl FnOnce(&Context) -> Result<String, String> + Send + 'static,
) -> Result<String, String> {
    let claimed = lease::claim(context, path).await?;
    aside(context, move |context| {
        let done = work(context);
        done.map(|text| text + claimed.as_ref().map_or("", lease::Claimed::note))
    })
    .await
}

/// Finds a file. Errors are sentences for the model.
pub(crate) fn locate(context: &Context, path: &str) -> Result<Fenced, String> {
    let located = context.fence.locate(&context.cwd.get(), path);
    located.map_err(|error| explain(context, path, error))
}

/// What a path that cannot be used means, with what is near it.
pub(crate) fn explain(context: &Context, path: &str, error: FenceError) -> String {
    match error {
        FenceError::Outside { .. } => format!("{error}. Other folders are added with --add-dir"),
        FenceError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            let near = nearest(context, path);
            let near = near.map(|near| format!("; did you mean {near}?"));
            format!("there is no such file{}", near.unwrap_or_default())
        }
        error => error.to_string(),
    }
}

/// Loads a regular file whole.
pub(crate) fn load(context: &Context, fenced: &Fenced) -> Result<Loaded, FenceError> {
    let mut file = open(context, fenced)?;
    let metadata = file.metadata()?;
    let other = |what: &str| io::Error::other(what.to_owned()).into();
    if metadata.is_dir() {
        return Err(other("it is a folder"));
    }
    if !metadata.is_file() {
        return Err(other("it is not a regular file"));
    }
    if metadata.len() > LARGEST {
        return Err(other("it is larger than 32 MB"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // A file may grow while it is read; the limit holds all the same.
    file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes)?;
    let mode = metadata.permissions().mode() & 0o7777;
    Ok(Loaded { bytes, mode })
}

/// Opens a file or a folder for reading; a file of the scratchpad only if it is not from elsewhere.
pub(crate) fn open(context: &Context, fenced: &Fenced) -> Result<File, FenceError> {
    let pad = context.scratchpad.as_ref().map(Pen::pad);
    match pad.filter(|pad| fenced.path().starts_with(pad.path())) {
        Some(pad) => pad.open_file(fenced),
        None => fenced.open(),
    }
}

/// Taken before a tool looks at what it is about to change: no other tool writes to the scratchpad
/// until it is done. Elsewhere nothing is taken.
pub(crate) fn hold<'a>(context: &'a Context, fenced: &Fenced) -> Option<Held<'a>> {
    context.scratchpad.as_ref()?.hold(&fenced.path())
}

/// Puts new bytes in the place of a file: where all tools write. What it returns is to be said
/// behind the result.
pub(crate) fn save(
    context: &Context,
    fenced: &Fenced,
    held: Option<Held<'_>>,
    bytes: &[u8],
    mode: Option<u32>,
) -> Result<String, FenceError> {
    let seen = |file: File| is_seen(context, fenced, file);
    let old = match mode {
        Some(_) => Old::If(&seen),
        None => Old::None,
    };
    fenced.swap(bytes, mode, &old)?;
    context.seen.note(fenced.path(), bytes);
    context.changed.note(fenced.path());
    let recorded = held.map_or(Ok(()), |held| held.written(bytes));
    Ok(match recorded {
        Ok(()) => String::new(),
        Err(why) => format!("\n[It was written, but that could not be recorded: {why}.]"),
    })
}

/// Whether a file that is being replaced is the one that was looked at. Somebody may have written
/// it since, in gaffer or elsewhere.
fn is_seen(context: &Context, fenced: &Fenced, mut file: File) -> bool {
    let mut bytes = Vec::new();
    let read = file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes);
    read.is_ok() && context.seen.state(&fenced.path(), &bytes) == State::Current
}

/// A file may be changed only by who has seen it as it is now.
pub(crate) fn check_seen(context: &Context, fenced: &Fenced, bytes: &[u8]) -> Result<(), String> {
    match context.seen.state(&fenced.path(), bytes) {
        State::Current => Ok(()),
        State::Unseen => Err("it has not been read yet; read it first".to_owned()),
        State::Changed => Err("it has changed since it was last read; read it again".to_owned()),
    }
}

/// The file that was probably meant: of the same name elsewhere near, or of a similar one.
fn nearest(context: &Context, path: &str) -> Option<String> {
    let path = Path::new(path);
    let name = path.file_name()?.to_string_lossy().into_owned();
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let folder = context.fence.locate(&context.cwd.get(), parent).ok()?;
    let close = crate::nearest::nearest(&name, names(context, &folder))?;
    Some(if parent == Path::new(".") {
        close
    } else {
        parent.join(close).display().to_string()
    })
}

/// The names in a folder, without those of files that a rule hides.
pub(crate) fn names(context: &Context, folder: &Fenced) -> Vec<String> {
    let (path, cwd) = (folder.path(), context.cwd.get());
    let policy = context.guard.as_ref().map(|guard| guard.policy());
    let hiding = policy
        .as_ref()
        .and_then(|policy| policy.hiding("Read", &cwd));
    let entries = folder.entries().unwrap_or_default();
    let shown = entries.iter().filter(|name| {
        let hiding = hiding.as_ref();
        !hiding.is_some_and(|hiding| hiding.hides(&path.join(name)))
    });
    shown
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}
