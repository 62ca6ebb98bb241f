//! How the crew and its agents use the purses: what is charged, asked, opened and closed.

use super::admit::Applicant;
use super::purse::Amount;
use super::{News, Purses};
use crate::crew::{Crew, Shared};
use crate::orders::Level;
use crate::roster::{Progress, Spending, Task};
use crate::start::Order;
use futures_util::future::BoxFuture;
use gaffer_agent::{Allowance, Say};
use gaffer_protocol::event::Advice;
use gaffer_protocol::{AgentId, Block, BudgetNews, BudgetSum, Cost, End, EventKind, Usage};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What one agent may use.
#[derive(Debug)]
struct Grant {
    crew: Weak<Shared>,
    agent: AgentId,
}

impl Allowance for Grant {
    fn say(&self) -> Say {
        let Some(shared) = self.crew.upgrade() else {
            return Say::Stop;
        };
        let (say, news) = shared.purses().ask(self.agent, shared.age());
        Crew(shared).spread(news);
        say
    }

    fn news(&self) -> Vec<Block> {
        let shared = self.crew.upgrade();
        let words = shared.map(|shared| shared.purses().take_words(self.agent));
        words.unwrap_or_default()
    }

    fn expired(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let left = self.crew.upgrade().and_then(|shared| {
                    let at = shared.age();
                    shared.purses().time_left(self.agent, at)
                });
                match left {
                    None => std::future::pending().await,
                    Some(Duration::ZERO) => return,
                    Some(left) => tokio::time::sleep(left).await,
                }
            }
        })
    }
}

impl Shared {
    pub(crate) fn purses(&self) -> MutexGuard<'_, Purses> {
        self.purses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the crew has been there: the time that purses go by.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Charges what an event says was used.
    pub(crate) fn charge(&self, agent: AgentId, kind: &EventKind) -> News {
        let (bill, is_turn) = match kind {
            EventKind::Answered { answer, cost, .. } => ((answer.usage, *cost), true),
            EventKind::Spent { usage, cost, .. } => ((*usage, *cost), false),
            _ => return News::new(),
        };
        self.purses().charge(agent, bill, is_turn, self.age())
    }
}

impl Crew {
    /// What an agent may use of the session's budget and of its task's.
    pub fn allowance(&self, agent: AgentId) -> Arc<dyn Allowance> {
        let crew = Arc::downgrade(&self.0);
        Arc::new(Grant { crew, agent })
    }

    fn spread(&self, news: News) {
        for (owner, news) in news {
            self.emit(owner, EventKind::Budget(Box::new(news)));
        }
    }

    /// What the session's budget came to; none where nothing was limited.
    pub fn budget_sum(&self) -> Option<BudgetSum> {
        self.0.purses().sum(self.0.age())
    }

    /// Says what the budget came to.
    pub fn close_budget(&self) -> Option<BudgetSum> {
        let sum = self.budget_sum()?;
        self.spread(vec![(self.0.parts.main, BudgetNews::Sum(sum))]);
        Some(sum)
    }

    /// What the session's own agent used before this process took the session up, in how many
    /// turns, and how long it worked.
    pub fn remember_spent(&self, (usage, cost): (Usage, Cost), turns: u32, time: Duration) {
        let amount = Amount::of(usage, cost);
        self.0.purses().remember(amount, turns, time);
    }

    /// What the session came to when it last ended; it is called when all else is remembered.
    pub fn remember_sum(&self, sum: &BudgetSum) {
        self.0.purses().remember_sum(sum);
    }

    /// A task of an earlier process goes on the account again.
    pub(crate) fn restore_purse(&self, task: &Task) {
        let spending: &Spending = &task.spending;
        let cost = spending.by_model.values().map(|(_, cost)| *cost).sum();
        let amount = Amount::of(spending.usage(), cost);
        let applicant = Applicant {
            id: task.id,
            name: &task.name,
            kind: &task.kind.name,
            parent: task.parent,
            prompt: "",
            budget: task.terms.budget,
        };
        let before = (amount, spending.time, (task.runs, spending.turns));
        self.0.purses().restore(&applicant, before);
    }

    /// Why a worker may not be started whose model has no price, where money is limited.
    pub(crate) fn unpriced(&self, order: &Order) -> Option<String> {
        let is_limited = {
            let purses = self.0.purses();
            order.terms.budget.usd.is_some() || purses.limits_money(order.parent)
        };
        if !is_limited {
            return None;
        }
        let parts = self.parts();
        let outfit = parts.outfitter.outfit(&order.kind, order.model.as_deref());
        // Whatever else is wrong with it is told by who begins it.
        let name = outfit.ok()?.model.name().to_owned();
        let one = Usage {
            input: 1,
            ..Usage::default()
        };
        match parts.prices.cost(&name, one) {
            Cost::Unknown => Some(format!(
                "money is limited, and the model `{name}` has no price: the user can give one with `prices` in the settings; choose another model, or limit tokens instead"
            )),
            Cost::MicroUsd(_) => None,
        }
    }

    /// Reserves for a worker. The line of advice, if there is one, is to be told with
    /// [`Self::advise_budget`].
    pub(crate) fn admit(&self, applicant: &Applicant<'_>) -> Result<Option<String>, String> {
        let advice = self.0.purses().admit(applicant, self.0.age())?;
        Ok(advice.filter(|_| self.parts().guardrails.budget != Level::Off))
    }

    /// Tells what an order costs beside others.
    pub(crate) fn advise_budget(&self, caller: AgentId, text: &str) {
        let advice = Advice {
            guardrail: "budget",
            rule: "budget".to_owned(),
            excerpt: String::new(),
            text: text.to_owned(),
            score: None,
            is_refusal: false,
        };
        self.emit(caller, EventKind::Advice(Box::new(advice)));
    }

    /// Lets everybody below wrap up, once the session's budget is used up: those that have not
    /// begun end at once. Answers when nobody works any more.
    pub(crate) async fn wind_up(&self, stop: &CancellationToken) {
        let mut ends = self.0.ends.subscribe();
        loop {
            let waiting: Vec<AgentId> = {
                let roster = self.0.roster();
                let idle = |progress| {
                    matches!(
                        progress,
                        Progress::Held | Progress::Barred | Progress::Queued
                    )
                };
                let waiting = roster.live().filter(|(_, live)| idle(live.progress));
                waiting.map(|(task, _)| task.id).collect()
            };
            let stops = waiting.into_iter().map(|id| self.stop(id, End::Budget));
            futures_util::future::join_all(stops).await;
            if self.0.roster().live().next().is_none() {
                return;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                // The sender lives as long as the crew.
                _ = ends.changed() => {}
            }
        }
    }
}
