//! How the session's own agent works with a crew below it.

use crate::crew::Crew;
use gaffer_agent::Agent;
use gaffer_protocol::End;
use tokio_util::sync::CancellationToken;

impl Crew {
    /// Lets the session's own agent work, and rest while workers run who could wake it. It ends
    /// when nothing is left that could.
    pub async fn run_main(&self, agent: &mut Agent, stop: &CancellationToken) -> End {
        loop {
            let turn = self.0.begin_turn(stop);
            let end = agent.work(&turn).await;
            // An interrupt is for this turn alone: what runs below goes on, and may still wake it.
            let is_interrupted = turn.is_cancelled() && !stop.is_cancelled();
            let may_rest = is_interrupted || matches!(end, End::Done | End::EmptyAnswer);
            // First who runs, then the mail: a notification is sent before its worker counts as
            // ended.
            if !may_rest {
                return end;
            }
            if !(self.is_busy() || agent.has_mail() || self.end_stuck().await) {
                return end;
            }
            if !agent.rest(stop).await {
                return End::Interrupted;
            }
        }
    }
}
