//! All jobs of one agent: found by their id, and ended together.

use crate::job::{Job, Launcher, Order, StillAlive};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The jobs of one agent. Clones are the same list.
#[derive(Debug, Clone)]
pub struct Jobs {
    launcher: Launcher,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    started: u64,
    entries: Vec<Entry>,
}

/// A job with what people call it.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: String,
    /// The command, for showing.
    pub label: String,
    pub job: Arc<Job>,
}

impl Jobs {
    pub fn new(launcher: Launcher) -> Self {
        Self {
            launcher,
            state: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the job that is started next; its output may be named after it.
    pub fn next_id(&self) -> String {
        let mut state = self.lock();
        state.started += 1;
        format!("bash_{}", state.started)
    }

    /// Starts a job. It is on the list from its first moment until nothing of it runs any more.
    pub fn start(&self, id: String, label: &str, order: &Order) -> io::Result<Held> {
        let job = self.launcher.start(order)?;
        let entry = Entry {
            id,
            label: label.to_owned(),
            job,
        };
        let mut state = self.lock();
        // Jobs that are gone are forgotten, but for those whose end nobody has read yet.
        state
            .entries
            .retain(|entry| entry.job.is_alive() || !entry.job.output.is_read());
        state.entries.push(entry.clone());
        Ok(Held { entry, keep: false })
    }

    pub fn get(&self, id: &str) -> Option<Entry> {
        self.lock()
            .entries
            .iter()
            .find(|entry| entry.id == id)
            .cloned()
    }

    /// What still runs.
    pub fn alive(&self) -> Vec<Entry> {
        let state = self.lock();
        state
            .entries
            .iter()
            .filter(|entry| entry.job.is_alive())
            .cloned()
            .collect()
    }

    /// Ends all jobs; answers when nothing of them is left.
    pub async fn end_all(&self) -> Result<(), StillAlive> {
        let entries = std::mem::take(&mut self.lock().entries);
        let ends = entries.iter().map(|entry| entry.job.end());
        let mut left = 0;
        for end in futures_util::future::join_all(ends).await {
            left += end.err().map_or(0, |still| still.0);
        }
        if left == 0 {
            Ok(())
        } else {
            Err(StillAlive(left))
        }
    }
}

/// A job that somebody waits for. If they go away without letting it live on, it ends.
#[derive(Debug)]
pub struct Held {
    pub entry: Entry,
    keep: bool,
}

impl Held {
    /// Lets the job live on in the background.
    pub fn let_live(mut self) -> Entry {
        self.keep = true;
        self.entry.clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.keep {
            self.entry.job.let_go();
        }
    }
}
