//! What the user can do: interrupt any agent, speak to it, let it wind down, end it now.

use crate::crew::{Crew, Stopped};
use crate::mail::{MailError, Receipt, Sender};
use crate::roster::{Progress, Task};
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, Block, End, Origin};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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

    /// Interrupts what a worker is doing. It rests until somebody writes to it, and keeps its
    /// place and what it holds. False if it does not work.
    pub fn interrupt_worker(&self, id: AgentId) -> bool {
        let roster = self.0.roster();
        let live = roster.get(id).and_then(Task::live);
        let live = live.filter(|live| live.progress == Progress::Running && live.stopped.is_none());
        if let Some(live) = live {
            live.turn.cancel();
        }
        live.is_some()
    }

    /// What ends the next turn of a worker: an interrupt, or its own end.
    pub(crate) fn begin_turn_of(&self, id: AgentId, stop: &CancellationToken) -> CancellationToken {
        let turn = stop.child_token();
        if let Some(live) = self.0.roster().get_mut(id).and_then(Task::live_mut) {
            live.turn = turn.clone();
        }
        turn
    }

    /// Steers an agent: a message of the user's, heard at its next step. One that has ended goes
    /// on with it.
    pub async fn steer(&self, to: &str, text: &str) -> Result<Vec<Receipt>, MailError> {
        self.send(Sender::Human, to, text).await
    }

    /// Has an agent's conversation compacted at its next step; the wish is what the summary is to
    /// heed. False if it does not work.
    pub fn compact(&self, agent: AgentId, wish: Option<&str>) -> bool {
        let text = format!("/compact {}", wish.unwrap_or_default());
        let block = Block::from_human(text.trim_end());
        if agent == self.parts().main {
            return self.parts().main_inbox.send(block);
        }
        let roster = self.0.roster();
        let live = roster.get(agent).and_then(Task::live);
        let live = live.filter(|live| live.reads_mail());
        live.is_some_and(|live| live.inbox.send(block))
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
