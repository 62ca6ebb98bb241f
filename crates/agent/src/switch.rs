//! How an agent goes on with another model in the middle of its conversation.

use crate::agent::{Agent, Parts};
use crate::compact::Gauge;
use gaffer_model::{Model, Prefix, Who};
use gaffer_store::{Entry, Start};
use std::io;
use std::sync::Arc;

/// Room for an answer that the context is to leave, at most: more is seldom asked for.
const LONGEST_ANSWER: u32 = 32_000;

impl Agent {
    /// Goes on with another model, from the next turn on: it gets the conversation as the record
    /// has it. `start` says in the record what holds from there.
    pub async fn change_model(
        &mut self,
        model: Arc<dyn Model>,
        (prefix, who): (&Prefix, Who),
        start: Box<Start>,
    ) -> io::Result<()> {
        let fold = self.reread().await?;
        self.record(Entry::Start(start))?;
        let mut conversation = model.open(prefix, who);
        for message in &fold.messages {
            conversation.push(message);
        }
        self.answered = conversation.checkpoint();
        self.parts.conversation = conversation;
        self.parts.model = model;
        self.gauge = gauge(&self.parts);
        Ok(())
    }
}

/// How full the conversation is, by what its model has room for.
pub(crate) fn gauge(parts: &Parts) -> Gauge {
    let price = parts.prices.of(parts.model.name());
    let known = price.and_then(|price| price.context);
    let most = parts.compaction.limits.window;
    let window = known.into_iter().chain(most).min();
    let longest = price.and_then(|price| price.max_output).unwrap_or(0);
    let answer = u64::from(longest.min(LONGEST_ANSWER));
    Gauge::new(window, answer)
}
