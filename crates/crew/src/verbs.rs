//! What the user can do: interrupt the session's own agent; speak to any agent, let it wind down,
//! end it now.

use crate::crew::{Crew, Stopped};
use crate::mail::{MailError, Receipt, Sender};
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, Block, End, Origin};
use std::time::Duration;

/// What a worker is told that is to wind down.
const WIND_DOWN: &str = include_str!("../../../prompts/wind-down.md");

impl Crew {
    /// A message of the user's to the session's own agent. While workers run, their state goes
    /// with it, so that questions about them need no questions to them.
    pub fn tell_main(&self, text: impl Into<String>) {
        let inbox = &self.parts().main_inbox;
        self.0.clockwork.prompted();
        if let Some(state) = self.state_block() {
            inbox.send(state);
        }
        inbox.send(Block::from_human(text));
    }

    /// Interrupts what the session's own agent is doing. Workers go on, and their ends reach it.
    pub fn interrupt(&self) {
        self.0.turn().cancel();
    }

    /// Steers an agent: a message of the user's, heard at its next step. One that has ended goes
    /// on with it.
    pub async fn steer(&self, to: &str, text: &str) -> Result<Vec<Receipt>, MailError> {
        self.send(Sender::Human, to, text).await
    }

    /// Lets a worker wind down: it is told to report what it has, and ended when the time is up.
    /// None if there is no such worker.
    pub async fn cancel(&self, id: AgentId, why: &str, time: Duration) -> Option<Stopped> {
        let mut gone = {
            let roster = self.0.roster();
            match roster.get(id)?.live() {
                None => None,
                Some(live) => {
                    let why = escape(why);
                    let text = format!("{}\n\n{why}", WIND_DOWN.trim_end());
                    live.inbox.send(Block::from(Origin::Human, text));
                    Some(live.gone.clone())
                }
            }
        };
        if let Some(gone) = &mut gone {
            let waited = tokio::time::timeout(time, gone.wait_for(|gone| *gone)).await;
            if waited.is_ok() {
                return Some(Stopped::Gone);
            }
        }
        self.abort(id).await
    }

    /// Ends a worker now. Only the user can let it go on.
    pub async fn abort(&self, id: AgentId) -> Option<Stopped> {
        self.stop(id, End::StoppedByUser).await
    }
}
