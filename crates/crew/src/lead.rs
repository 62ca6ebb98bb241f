//! How the session's own agent works with a crew below it.

use crate::crew::Crew;
use gaffer_agent::Agent;
use gaffer_protocol::End;
use gaffer_store::book::{Change, Step};
use tokio_util::sync::CancellationToken;

/// So many letters are worth a sync.
const MANY_LETTERS: usize = 64;

impl Crew {
    /// Lets the session's own agent work, and rest while workers run who could wake it. It ends
    /// when nothing is left that could.
    pub async fn run_main(&self, agent: &mut Agent, stop: &CancellationToken) -> End {
        loop {
            if let Some(end) = self.work_main(agent, stop).await {
                return end;
            }
            if !agent.rest(stop).await {
                return End::Interrupted;
            }
        }
    }

    /// Lets the session's own agent work until it has nothing left to do for now. None if it is to
    /// rest: somebody runs who could wake it. What it comes to otherwise is the end of a run that
    /// nobody waits at; with somebody there, it is the end of one turn.
    pub async fn work_main(&self, agent: &mut Agent, stop: &CancellationToken) -> Option<End> {
        loop {
            let turn = self.0.begin_turn(stop);
            let end = agent.work(&turn).await;
            // What it has written is free for workers until it works again.
            self.leases().release(self.0.parts.main);
            self.tell_unrecorded();
            if end == End::Budget && self.0.purses().waits_to_wrap_up() {
                // It hears its workers' last words before it says its own.
                self.wind_up(stop).await;
                return Some(agent.work(&turn).await);
            }
            // An interrupt is for this turn alone: what runs below goes on, and may still wake it.
            let is_interrupted = turn.is_cancelled() && !stop.is_cancelled();
            let may_rest = is_interrupted || matches!(end, End::Done | End::EmptyAnswer);
            // First who runs, then the mail: a notification is sent before its worker counts as
            // ended.
            if !may_rest {
                return Some(end);
            }
            if !(self.is_busy() || agent.has_mail() || self.end_stuck().await) {
                match self.close_main(end, agent.last_words()) {
                    Some(end) => return Some(end),
                    None => continue,
                }
            }
            self.forget_heard(agent).await;
            return None;
        }
    }

    /// Takes letters out of the book that the session's own agent has heard, so that the book does
    /// not grow with them, and answers of its calls, which all have their results. Its transcript
    /// must be on the disk first. Where this fails it is done by whoever takes the session up.
    async fn forget_heard(&self, agent: &mut Agent) {
        if agent.heard_count() < MANY_LETTERS {
            return;
        }
        let Ok(record) = agent.transcript().file() else {
            return;
        };
        let parts = &self.0.parts;
        let step = Step::synced(vec![
            Change::Heard(agent.take_heard()),
            Change::Settled(parts.main),
        ]);
        drop(parts.book.write(step.after(record)).await);
    }
}
