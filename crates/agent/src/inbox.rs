//! What reaches an agent from outside, in order: prompts, mail, notifications.

use gaffer_protocol::Block;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Makes an inbox and the way into it.
pub fn inbox() -> (Sender, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let held = Vec::new();
    (Sender(sender), Inbox { receiver, held })
}

#[derive(Debug, Clone)]
pub struct Sender(mpsc::UnboundedSender<Block>);

impl Sender {
    /// Answers whether the agent is still there to read it.
    pub fn send(&self, block: Block) -> bool {
        self.0.send(block).is_ok()
    }
}

#[derive(Debug)]
pub struct Inbox {
    receiver: mpsc::UnboundedReceiver<Block>,
    /// What came while somebody waited for it.
    held: Vec<Block>,
}

/// Workers that began together often end together, and each turn costs. Whoever is woken waits
/// until nothing more has come for so long, but not longer than the other in all.
const QUIET: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

impl Inbox {
    /// Everything that has arrived by now.
    pub fn take(&mut self) -> Vec<Block> {
        let mut blocks = std::mem::take(&mut self.held);
        while let Ok(block) = self.receiver.try_recv() {
            blocks.push(block);
        }
        blocks
    }

    /// Waits until something is there, with what comes close behind it. False if nobody can send
    /// anything any more.
    pub async fn arrived(&mut self) -> bool {
        if self.held.is_empty() {
            self.held.extend(self.receiver.recv().await);
        }
        let latest = Instant::now() + LONGEST;
        while !self.held.is_empty() {
            let quiet = latest.min(Instant::now() + QUIET);
            match timeout_at(quiet, self.receiver.recv()).await {
                Ok(Some(block)) => self.held.push(block),
                Ok(None) | Err(_) => break,
            }
        }
        !self.held.is_empty()
    }

    pub(crate) fn has_mail(&self) -> bool {
        !self.held.is_empty() || !self.receiver.is_empty()
    }
}
