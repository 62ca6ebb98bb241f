//! The scratchpad in an agent's hand, and whose commands may be writing there.

use super::{Held, Scanned, Scratchpad, Writer};
use gaffer_protocol::AgentId;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Agents whose commands may have written since the last look.
#[derive(Debug, Default)]
pub(super) struct Crew {
    running: BTreeMap<AgentId, Runs>,
    /// Those whose commands were broken off: nobody has looked yet at what they did.
    unseen: Vec<Writer>,
}

#[derive(Debug)]
struct Runs {
    writer: Writer,
    commands: usize,
    /// Whether a command of it goes on in the background.
    jobs: bool,
}

impl Crew {
    pub(super) fn take_unseen(&mut self) -> Vec<Writer> {
        std::mem::take(&mut self.unseen)
    }

    /// All who may have written something, `first` first.
    pub(super) fn by(&self, first: Option<&Writer>, unseen: &[Writer]) -> Vec<Writer> {
        let mut by: Vec<Writer> = first.into_iter().cloned().collect();
        let running = self.running.values().map(|runs| &runs.writer);
        for writer in running.chain(unseen) {
            if !by.contains(writer) {
                by.push(writer.clone());
            }
        }
        by
    }

    fn change(&mut self, writer: &Writer, change: impl FnOnce(&mut Runs)) {
        let runs = self.running.entry(writer.id).or_insert_with(|| Runs {
            writer: writer.clone(),
            commands: 0,
            jobs: false,
        });
        change(runs);
        if runs.commands == 0 && !runs.jobs {
            self.running.remove(&writer.id);
        }
    }
}

/// The scratchpad in one agent's hand: what is written with it is recorded under the agent's name.
#[derive(Debug, Clone)]
pub struct Pen(Arc<Hand>);

#[derive(Debug)]
struct Hand {
    pad: Scratchpad,
    writer: Writer,
}

impl Drop for Hand {
    /// The agent is gone, and its jobs with it.
    fn drop(&mut self) {
        let mut state = self.pad.state();
        if state.crew.running.remove(&self.writer.id).is_some() {
            state.crew.unseen.push(self.writer.clone());
        }
    }
}

impl Pen {
    pub(super) fn new(pad: Scratchpad, writer: Writer) -> Self {
        Self(Arc::new(Hand { pad, writer }))
    }

    pub fn pad(&self) -> &Scratchpad {
        &self.0.pad
    }

    pub fn writer(&self) -> &Writer {
        &self.0.writer
    }

    /// Takes the right to write a file, if it is in the scratchpad.
    pub fn hold(&self, path: &Path) -> Option<Held<'_>> {
        let key = self.0.pad.key(path)?;
        Some(Held {
            pad: &self.0.pad,
            state: self.0.pad.state(),
            writer: &self.0.writer,
            key,
        })
    }

    /// Says that a command of the agent's is about to run.
    pub fn command(&self) -> Running {
        let mut state = self.0.pad.state();
        state.crew.change(self.writer(), |runs| runs.commands += 1);
        Running {
            pen: self.clone(),
            is_seen: false,
        }
    }
}

/// A command that may be writing in the scratchpad. One that is dropped was broken off.
#[derive(Debug)]
pub struct Running {
    pen: Pen,
    is_seen: bool,
}

impl Running {
    /// Records what was written meanwhile. `has_jobs` says whether commands of the agent's go on.
    /// This reads files: it is for a thread that may wait.
    pub fn ended(mut self, has_jobs: bool) -> Scanned {
        let pen = self.pen.clone();
        let scanned = pen.pad().scan(Some(pen.writer()));
        self.is_seen = true;
        let mut state = pen.pad().state();
        state.crew.change(pen.writer(), |runs| runs.jobs = has_jobs);
        scanned
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.pen.pad().state();
        let writer = self.pen.writer();
        state.crew.change(writer, |runs| {
            runs.commands = runs.commands.saturating_sub(1);
        });
        if !self.is_seen {
            state.crew.unseen.push(writer.clone());
        }
    }
}
