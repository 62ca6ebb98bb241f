//! What reaches an agent from outside, in order: prompts, mail, notifications.

use gaffer_protocol::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Makes an inbox and the way into it.
pub fn inbox() -> (Sender, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let coming = Arc::<AtomicUsize>::default();
    let inbox = Inbox {
        receiver,
        held: Vec::new(),
        coming: coming.clone(),
    };
    (Sender { sender, coming }, inbox)
}

#[derive(Debug, Clone)]
pub struct Sender {
    sender: mpsc::UnboundedSender<Block>,
    coming: Arc<AtomicUsize>,
}

impl Sender {
    /// Answers whether the agent is still there to read it.
    pub fn send(&self, block: Block) -> bool {
        self.sender.send(block).is_ok()
    }

    /// Something is about to be sent, right after what is returned is dropped.
    pub fn announce(&self) -> Announced {
        self.coming.fetch_add(1, Ordering::Relaxed);
        Announced(self.coming.clone())
    }
}

/// What is about to arrive. Whoever is woken by something else waits a moment for it.
#[derive(Debug)]
#[must_use]
pub struct Announced(Arc<AtomicUsize>);

impl Drop for Announced {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct Inbox {
    receiver: mpsc::UnboundedReceiver<Block>,
    /// What came while somebody waited for it.
    held: Vec<Block>,
    /// How many have announced something.
    coming: Arc<AtomicUsize>,
}

/// Workers that began together often end together, and each turn costs. Whoever is woken waits for
/// what is announced, and then until nothing more has come for so long, but not longer than the
/// other in all.
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
            let until = match self.coming.load(Ordering::Relaxed) {
                0 => latest.min(Instant::now() + QUIET),
                _ => latest,
            };
            match timeout_at(until, self.receiver.recv()).await {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gaffer_protocol::Origin;

    fn block() -> Block {
        Block::from(Origin::TaskNotification, "x".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_announced_is_waited_for_but_not_for_long() {
        let (sender, mut inbox) = inbox();
        let began = Instant::now();
        sender.send(block());
        let announced = sender.announce();
        let (_, arrived) = tokio::join!(
            async {
                tokio::time::sleep(LONGEST / 2).await;
                drop(announced);
                sender.send(block());
            },
            inbox.arrived()
        );
        assert!(arrived && inbox.take().len() == 2);
        assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());

        let (began, _announced) = (Instant::now(), sender.announce());
        sender.send(block());
        assert!(inbox.arrived().await && inbox.take().len() == 1);
        assert!(began.elapsed() <= LONGEST + QUIET, "{:?}", began.elapsed());
    }
}
