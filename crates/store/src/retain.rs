//! Which sessions are too old or too many, and removing them: the oldest first, once a day.

use crate::delete::DeleteError;
use crate::find::Found;
use crate::list::{Listed, State};
use crate::session::Home;
use gaffer_protocol::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A session with a name is kept for so many periods.
pub const NAMED_PERIODS: u64 = 4;

/// A session that was written so little ago may be about to begin: it does not go for its size.
const FRESH: u64 = 60 * 60 * 1000;

/// How long sessions are kept, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A session that was last written longer ago than this goes.
    pub period: Duration,
    /// So many bytes all sessions may take together; no limit without one.
    pub max_size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Age,
    Size,
}

/// What a cleaning did, or would do.
#[derive(Debug, Default)]
pub struct Cleaned {
    pub removed: Vec<(Listed, Why)>,
    /// What should have gone and could not, with why.
    pub failed: Vec<(Listed, DeleteError)>,
    /// Whether its time ran out before all was done.
    pub is_cut: bool,
}

impl Cleaned {
    pub fn bytes(&self) -> u64 {
        self.removed.iter().map(|(it, _)| it.size).sum()
    }
}

impl Rules {
    /// Which of these sessions are to go, the oldest first. One that runs or holds work is never
    /// among them, and one with a name goes by its age alone, as does one of the last hour.
    pub fn choose(&self, mut all: Vec<Listed>, now: Timestamp) -> Vec<(Listed, Why)> {
        all.sort_by_key(|it| it.written);
        let mut total: u64 = all.iter().map(|it| it.size).sum();
        let period = u64::try_from(self.period.as_millis()).unwrap_or(u64::MAX);
        let mut chosen = Vec::new();
        let mut rest = Vec::new();
        for it in all {
            let longest = match it.name() {
                Some(_) => period.saturating_mul(NAMED_PERIODS),
                None => period,
            };
            let may_go = !matches!(it.state, State::Running(_)) && it.kept.is_none();
            if may_go && now.0.saturating_sub(it.written.0) > longest {
                total = total.saturating_sub(it.size);
                chosen.push((it, Why::Age));
            } else if may_go && it.name().is_none() && now.0.saturating_sub(it.written.0) > FRESH {
                rest.push(it);
            }
        }
        for it in rest {
            if self.max_size.is_none_or(|most| total <= most) {
                break;
            }
            total = total.saturating_sub(it.size);
            chosen.push((it, Why::Size));
        }
        chosen
    }
}

impl Home {
    /// What retention would remove now.
    pub fn would_clean(&self, rules: &Rules, now: Timestamp, spared: Option<&Path>) -> Cleaned {
        let mut all = self.list(None);
        all.retain(|it| Some(it.found.folder.path()) != spared);
        Cleaned {
            removed: rules.choose(all, now),
            ..Cleaned::default()
        }
    }

    /// Removes what is too old or too much, for as long as there is time. `beside` removes what
    /// belongs to a session and lies elsewhere.
    pub fn clean(
        &self,
        rules: &Rules,
        now: Timestamp,
        spared: Option<&Path>,
        has_time: &dyn Fn() -> bool,
        beside: &dyn Fn(&Found),
    ) -> Cleaned {
        self.sweep();
        let mut done = Cleaned::default();
        for (it, why) in self.would_clean(rules, now, spared).removed {
            // One goes in any case: however slow the disk is, every cleaning comes further.
            let has_begun = !done.removed.is_empty() || !done.failed.is_empty();
            if has_begun && !has_time() {
                done.is_cut = true;
                break;
            }
            match it.found.folder.delete() {
                Ok(()) => {
                    beside(&it.found);
                    done.removed.push((it, why));
                }
                Err(error) => done.failed.push((it, error)),
            }
        }
        done
    }

    /// The right to clean, if nobody has cleaned for a day and nobody is at it.
    pub fn due(&self, now: Timestamp) -> Option<Due> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path().join("cleaned"))
            .ok()?;
        file.try_lock().ok()?;
        let mut text = Vec::new();
        (&file).take(100).read_to_end(&mut text).ok()?;
        let last = Timestamp::parse(String::from_utf8_lossy(&text).trim());
        // A time that has not come yet is a clock's mistake and must not stop cleaning for good.
        let is_recent = last.is_some_and(|last| last <= now && now.0 - last.0 < DAY);
        (!is_recent).then_some(Due { file })
    }
}

/// The right to clean: one process has it at a time.
#[derive(Debug)]
pub struct Due {
    file: File,
}

impl Due {
    /// All is done: for a day nobody cleans again. Without this the next run goes on.
    pub fn done(mut self, now: Timestamp) {
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| writeln!(self.file, "{now}"));
        // Where it cannot be written, the next run looks again.
        drop(written);
    }
}

#[cfg(test)]
mod tests;
