//! The prompt: from the command line, from standard input, or both.

use crate::exit::Usage;
use crate::system;
use std::io::{IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// So long does a prompt on the command line wait for the first byte on standard input: a program
/// may have left us a pipe that nobody writes to.
const WAIT_FOR_MORE: Duration = Duration::from_secs(3);

/// The prompt of a session that may also go on without one.
pub(crate) fn further_prompt(given: Option<String>) -> anyhow::Result<Option<String>> {
    let stdin = std::io::stdin();
    if given.is_none() && !has_more(&stdin) {
        return Ok(None);
    }
    let text = match given {
        Some(given) => prompt(Some(given))?,
        None => read(Some(WAIT_FOR_MORE))?.unwrap_or_default(),
    };
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Puts the prompt together.
pub(crate) fn prompt(given: Option<String>) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let text = match given {
        Some(given) if has_more(&stdin) => match read(Some(WAIT_FOR_MORE))? {
            Some(more) if !more.trim().is_empty() => format!("{given}\n\n{more}"),
            _ => given,
        },
        Some(given) => given,
        None if stdin.is_terminal() => {
            return Err(Usage::new("no prompt: give one behind -p or on standard input").into());
        }
        None => read(None)?.unwrap_or_default(),
    };
    if text.trim().is_empty() {
        return Err(Usage::new("the prompt is empty").into());
    }
    Ok(text)
}

/// Whether standard input is something that was put there on purpose: a file or a pipe.
fn has_more(stdin: &std::io::Stdin) -> bool {
    use std::os::fd::AsFd;
    let Ok(handle) = stdin.as_fd().try_clone_to_owned() else {
        return false;
    };
    let metadata = std::fs::File::from(handle).metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() || metadata.file_type().is_fifo())
}

/// Reads all of standard input; `None` if its first byte did not come in time.
fn read(wait: Option<Duration>) -> anyhow::Result<Option<String>> {
    let (sender, receiver) = mpsc::channel();
    // It may block for ever in a read; the process ends without it.
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => return,
                Ok(size) => drop(sender.send(Ok(buffer[..size].to_vec()))),
                Err(error) => {
                    drop(sender.send(Err(error)));
                    return;
                }
            }
        }
    });
    let mut bytes = Vec::new();
    if let Some(wait) = wait {
        match receiver.recv_timeout(wait) {
            Ok(chunk) => bytes.extend(chunk?),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                system::say("gaffer: nothing came on standard input for 3 s; going on without it");
                return Ok(None);
            }
        }
    }
    for chunk in receiver {
        bytes.extend(chunk?);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Usage::new(format!("standard input is not UTF-8 text (at byte {at})"))
    })?;
    Ok(Some(text))
}
