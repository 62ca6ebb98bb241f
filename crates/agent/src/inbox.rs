//! What reaches an agent from outside, in order: prompts, mail, notifications.

use gaffer_protocol::Block;
use tokio::sync::mpsc;

/// Makes an inbox and the way into it.
pub fn inbox() -> (Sender, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let held = None;
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
    held: Option<Block>,
}

impl Inbox {
    /// Everything that has arrived by now.
    pub fn take(&mut self) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.held.take().into_iter().collect();
        while let Ok(block) = self.receiver.try_recv() {
            blocks.push(block);
        }
        blocks
    }

    /// Waits until something is there. False if nobody can send anything any more.
    pub async fn arrived(&mut self) -> bool {
        if self.held.is_none() {
            self.held = self.receiver.recv().await;
        }
        self.held.is_some()
    }

    pub(crate) fn has_mail(&self) -> bool {
        self.held.is_some() || !self.receiver.is_empty()
    }
}
