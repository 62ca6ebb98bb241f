//! When an agent worked and when it stood in the queue, for the timeline.

use gaffer_protocol::Timestamp;

/// Older stretches are joined.
const MOST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Queue,
    Work,
    /// It waits for the user's word.
    User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) kind: Kind,
    pub(crate) from: Timestamp,
    /// None while it lasts.
    pub(crate) to: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Stretches(Vec<Stretch>);

impl Stretches {
    pub(crate) fn all(&self) -> &[Stretch] {
        &self.0
    }

    /// From now on it is this; nothing, where it rests or has ended.
    pub(crate) fn turn(&mut self, kind: Option<Kind>, at: Timestamp) {
        if let Some(last) = self.0.last_mut().filter(|last| last.to.is_none()) {
            if Some(last.kind) == kind {
                return;
            }
            last.to = Some(at);
        }
        let Some(kind) = kind else {
            return;
        };
        if self.0.len() >= MOST {
            let first = self.0.remove(0);
            if let Some(next) = self.0.first_mut() {
                next.from = first.from;
            }
        }
        self.0.push(Stretch {
            kind,
            from: at,
            to: None,
        });
    }
}
