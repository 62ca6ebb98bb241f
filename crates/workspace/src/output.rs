//! A command's output: its beginning and its end in memory, the whole in a file up to a cap.

use crate::floor::Floor;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How output is kept.
#[derive(Debug, Clone)]
pub struct Keeper {
    /// So many bytes are kept at the beginning, and as many at the end.
    pub keep: usize,
    /// The file that the whole goes to once it is longer than what is kept.
    pub file: Option<PathBuf>,
    /// The file grows no further than this; the rest is counted and thrown away.
    pub file_cap: u64,
    /// Below it the file grows no further either.
    pub floor: Floor,
}

/// What has been kept so far.
#[derive(Debug)]
pub struct Kept {
    keeper: Keeper,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    file: Option<File>,
    in_file: u64,
    /// The file could not be written, or the cap was reached.
    is_cut: bool,
    /// Why nothing more goes to the file, where it is not the cap.
    why: Option<String>,
    is_closed: bool,
    /// How much a reader of the running command has been shown.
    shown: u64,
}

impl Kept {
    pub fn new(keeper: Keeper) -> Self {
        Self {
            keeper,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut state = self.lock();
        let keep = self.keeper.keep;
        state.total += bytes.len() as u64;
        if state.file.is_some() || state.total > 2 * keep as u64 {
            self.to_file(&mut state, bytes);
        }
        let room = keep.saturating_sub(state.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        state.head.extend_from_slice(head);
        let skip = rest.len().saturating_sub(keep);
        state.tail.extend(&rest[skip..]);
        let over = state.tail.len().saturating_sub(keep);
        state.tail.drain(..over);
    }

    /// The first bytes that make the output too long bring all before them into the file.
    fn to_file(&self, state: &mut State, bytes: &[u8]) {
        let Some(path) = self.keeper.file.as_ref().filter(|_| !state.is_cut) else {
            return;
        };
        if let Err(low) = self.keeper.floor.check() {
            state.is_cut = true;
            state.why = Some(low.to_string());
            return;
        }
        if state.file.is_none() {
            match File::create(path) {
                Ok(mut file) => {
                    let before: Vec<u8> = state.head.iter().chain(&state.tail).copied().collect();
                    state.is_cut |= file.write_all(&before).is_err();
                    state.in_file = before.len() as u64;
                    state.file = Some(file);
                }
                Err(_) => {
                    state.is_cut = true;
                    return;
                }
            }
        }
        let room = self.keeper.file_cap.saturating_sub(state.in_file);
        let part = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let written = state
            .file
            .as_mut()
            .is_some_and(|file| file.write_all(part).is_ok());
        state.in_file += part.len() as u64;
        state.is_cut |= !written || part.len() < bytes.len();
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.file = state.file.take().filter(|_| false);
        state.is_closed = true;
    }

    /// Whether somebody has seen all of it.
    pub fn is_read(&self) -> bool {
        let state = self.lock();
        state.is_closed && state.shown == state.total
    }

    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// The text, with a word about what is missing and where it is.
    pub fn text(&self) -> String {
        let mut state = self.lock();
        state.shown = state.total;
        let tail: Vec<u8> = state.tail.iter().copied().collect();
        let (head, tail_text) = (
            String::from_utf8_lossy(&state.head),
            String::from_utf8_lossy(&tail),
        );
        let left = state.total - (state.head.len() + tail.len()) as u64;
        if left == 0 {
            return format!("{head}{tail_text}");
        }
        let place = match &self.keeper.file {
            Some(path) if state.in_file > 0 && state.is_cut => {
                format!(
                    "; the first {} bytes are in {}",
                    state.in_file,
                    path.display()
                )
            }
            Some(path) if state.in_file > 0 => format!("; the whole is in {}", path.display()),
            _ => String::new(),
        };
        let why = state.why.as_ref();
        let why = why.map_or_else(String::new, |why| format!("; not all was kept: {why}"));
        format!("{head}\n[… {left} bytes left out{place}{why} …]\n{tail_text}")
    }

    /// What came since the last time, as far as it is still kept.
    pub fn news(&self) -> String {
        let mut state = self.lock();
        let (total, head) = (state.total, state.head.len() as u64);
        let from = std::mem::replace(&mut state.shown, total);
        let tail_from = total - state.tail.len() as u64;
        let mut bytes = Vec::new();
        if from < head {
            bytes.extend_from_slice(&state.head[usize::try_from(from).unwrap_or(0)..]);
        }
        let missing = tail_from.saturating_sub(from.max(head));
        if missing > 0 {
            bytes.extend_from_slice(format!("\n[… {missing} bytes left out …]\n").as_bytes());
        }
        let skip = from.saturating_sub(tail_from);
        bytes.extend(
            state
                .tail
                .iter()
                .skip(usize::try_from(skip).unwrap_or(usize::MAX)),
        );
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(file: Option<PathBuf>) -> Kept {
        Kept::new(Keeper {
            keep: 10,
            file,
            file_cap: 100,
            floor: Floor::default(),
        })
    }

    #[test]
    fn short_output_is_whole_and_long_output_keeps_both_ends() {
        let kept = kept(None);
        kept.add(b"0123456789abcde");
        assert_eq!(kept.text(), "0123456789abcde");
        kept.add(b"fghijklmnopqrstuvwxyz");
        assert_eq!(
            kept.text(),
            "0123456789\n[… 16 bytes left out …]\nqrstuvwxyz"
        );
    }

    #[test]
    fn the_whole_goes_to_a_file_up_to_its_cap() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out");
        let kept = kept(Some(path.clone()));
        for _ in 0..5 {
            kept.add(b"0123456789");
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "0123456789".repeat(5)
        );
        assert!(kept.text().contains("the whole is in"));
        for _ in 0..1000 {
            kept.add(b"0123456789");
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100);
        assert!(kept.text().contains("the first 100 bytes are in"));
        assert_eq!(kept.total(), 10_050);
    }

    #[test]
    fn on_a_full_disk_the_file_stops_and_the_reader_hears_why() {
        #[derive(Debug)]
        struct Stopped;
        impl gaffer_protocol::Clock for Stopped {
            fn now(&self) -> gaffer_protocol::Timestamp {
                gaffer_protocol::Timestamp(0)
            }
        }
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out");
        let full = |_: &std::path::Path| Ok(1_000_000);
        let kept = Kept::new(Keeper {
            keep: 10,
            file: Some(path.clone()),
            file_cap: 1000,
            floor: Floor::with(
                temp.path(),
                2_000_000,
                std::sync::Arc::new(Stopped),
                Box::new(full),
            ),
        });
        for _ in 0..50 {
            kept.add(b"0123456789");
        }
        assert!(!path.exists());
        let text = kept.text();
        assert!(text.starts_with("0123456789\n[… 480 bytes left out; not all was kept: only 1 MB"));
        assert!(text.ends_with(" …]\n0123456789"), "{text}");
    }

    #[test]
    fn news_are_told_once() {
        let kept = kept(None);
        kept.add(b"hello ");
        assert_eq!(kept.news(), "hello ");
        kept.add(b"world, how are you");
        assert_eq!(kept.news(), "worl\n[… 4 bytes left out …]\now are you");
        assert_eq!(kept.news(), "");
        kept.add(b"0123456789ABCDEF");
        assert_eq!(kept.news(), "\n[… 6 bytes left out …]\n6789ABCDEF");
    }
}
