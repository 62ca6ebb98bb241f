//! What reaches an agent from outside, in order: prompts, mail, notifications.

use gaffer_protocol::Block;
use tokio::sync::mpsc;

/// Makes an inbox and the way into it.
pub fn inbox() -> (Sender, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Sender(sender), Inbox(receiver))
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
pub struct Inbox(mpsc::UnboundedReceiver<Block>);

impl Inbox {
    /// Everything that has arrived by now.
    pub(crate) fn take(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        while let Ok(block) = self.0.try_recv() {
            blocks.push(block);
        }
        blocks
    }

    pub(crate) fn has_mail(&self) -> bool {
        !self.0.is_empty()
    }
}
