//! Counts what tools spend on models of their own, beside any agent's conversation.

use gaffer_model::Prices;
use gaffer_protocol::{AgentId, Answer, EventKind, EventSink};
use std::sync::{Arc, OnceLock};

/// Clones count together. Until it is connected there is nobody to tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<OnceLock<Connected>>);

#[derive(Debug)]
struct Connected {
    events: Arc<dyn EventSink>,
    /// On whose account it goes: the session's own agent's.
    agent: AgentId,
    prices: Arc<Prices>,
}

impl Meter {
    pub(crate) fn connect(&self, events: Arc<dyn EventSink>, agent: AgentId, prices: Arc<Prices>) {
        let connected = Connected {
            events,
            agent,
            prices,
        };
        // There is one session in a process.
        drop(self.0.set(connected));
    }

    /// `model` is the name that was asked for, where the provider's own has no price.
    pub(crate) fn count(&self, model: &str, answer: &Answer) {
        let Some(connected) = self.0.get() else {
            return;
        };
        let prices = &connected.prices;
        let known = prices.of(&answer.model).map(|_| answer.model.as_str());
        let cost = prices.cost(known.unwrap_or(model), answer.usage);
        let spent = EventKind::Spent {
            model: answer.model.clone(),
            usage: answer.usage,
            cost,
        };
        connected.events.emit(connected.agent, spent);
    }
}
