//! The work of a walk, shared by its threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is still to do. Its last entry is taken first, which goes into the depth and so keeps the
/// queue short.
#[derive(Debug)]
pub(super) struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<J> {
    jobs: Vec<J>,
    busy: usize,
    waiting: usize,
}

/// A job that is being done. Others may wait for what comes of it, so its end is always told.
#[derive(Debug)]
pub(super) struct Turn<'a, J> {
    pub(super) job: J,
    queue: &'a Queue<J>,
}

impl<J> Drop for Turn<'_, J> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.busy -= 1;
        if state.busy == 0 {
            self.queue.changed.notify_all();
        }
    }
}

impl<J> Queue<J> {
    pub(super) fn new(first: J) -> Self {
        Self {
            state: Mutex::new(State {
                jobs: vec![first],
                busy: 0,
                waiting: 0,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; none when all is done.
    pub(super) fn next(&self) -> Option<Turn<'_, J>> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop() {
                state.busy += 1;
                return Some(Turn { job, queue: self });
            }
            if state.busy == 0 {
                return None;
            }
            state.waiting += 1;
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    pub(super) fn push(&self, jobs: impl IntoIterator<Item = J>) {
        let mut state = self.lock();
        state.jobs.extend(jobs);
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}
