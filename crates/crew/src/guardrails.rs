//! What stands between an order and its start: its quality, and whether somebody else should have
//! got it. The answer is advice, or a refusal where the user wants one.

use crate::crew::Crew;
use crate::fit::{self, Instead, Standing};
use crate::history::Named;
use crate::orders::{Level, OrderKind, OrderText, Rules};
use crate::plan::PlanFirst;
use crate::roster::{State, Task};
use crate::start::Order;
use gaffer_agent::AgentType;
use gaffer_protocol::event::Advice;
use gaffer_protocol::{AgentId, End, EventKind, Status};
use gaffer_tools::lease::LeaseLimits;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// So many pieces of advice stand in one answer.
const MOST_ADVICE: usize = 2;
/// So many scores of one task are kept.
const MOST_SCORES: usize = 100;

/// How orders are looked at before they are carried out.
#[derive(Debug, Clone, Default)]
pub struct Guardrails {
    /// The quality of orders.
    pub orders: Level,
    /// Whether a worker is continued or a fresh one started.
    pub continues: Level,
    /// Who may write which file.
    pub leases: LeaseLimits,
    /// What orders of one message cost together.
    pub budget: Level,
    /// Whether orders come in their turn.
    pub phases: Level,
    /// Whether the user approves the plan before anything is changed.
    pub plan: PlanFirst,
    /// Where the work is done; none where nobody need look.
    pub project: Option<PathBuf>,
    /// Made when the first order comes: they take longer to load than a short run takes to start.
    rules: Arc<OnceLock<Option<Rules>>>,
}

impl Guardrails {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules: Arc::new(OnceLock::from(Some(rules))),
            ..Self::default()
        }
    }

    /// None if the built-in ones do not load, which a test rules out.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        let load = || Rules::built_in().ok();
        self.rules.get_or_init(load).as_ref()
    }
}

/// An order that may be carried out, and what is to be said about it.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// None where nobody looked.
    pub(crate) score: Option<u8>,
    advice: Vec<String>,
}

impl Passed {
    /// What stands behind the answer of a tool: lines of their own, or nothing.
    pub(crate) fn text(&self) -> String {
        let lines = self.advice.iter().take(MOST_ADVICE);
        lines.map(|line| format!("\nAdvice: {line}")).collect()
    }
}

/// What was found, before it is told.
#[derive(Default)]
struct Found {
    advice: Vec<Advice>,
    score: Option<u8>,
}

impl Crew {
    /// Looks at an order for a fresh worker. An error says why it is not carried out.
    pub(crate) fn judge_order(&self, order: &Order) -> Result<Passed, String> {
        let text = OrderText {
            kind: kind_of(&order.kind),
            ..OrderText::fresh(&order.prompt)
        };
        let mut found = self.quality(&text);
        let guardrails = &self.parts().guardrails;
        if guardrails.continues != Level::Off
            && let Some(rules) = guardrails.rules()
        {
            let tone = rules.tone(&text);
            let named = Named::of(&order.prompt, rules.files());
            let instead = {
                let roster = self.0.roster();
                let is_candidate = |task: &&Task| task.parent == order.parent && may_go_on(task);
                let all: Vec<Standing<'_>> =
                    roster.all().filter(is_candidate).map(standing).collect();
                fit::for_fresh(tone, &named, &all)
            };
            found.advice.extend(instead.map(|it| self.told(&it)));
        }
        found.advice.extend(self.phase_advice(order));
        self.decide(order.parent, found)
    }

    /// Looks at a message to a worker. One to nobody, or to all, is left to who delivers it.
    pub(crate) fn judge_message(
        &self,
        caller: AgentId,
        to: &str,
        text: &str,
    ) -> Result<Passed, String> {
        let order = OrderText::continuation(text);
        if self.0.roster().find(to).is_none() {
            return Ok(Passed::default());
        }
        let mut found = self.quality(&order);
        let guardrails = &self.parts().guardrails;
        if guardrails.continues != Level::Off
            && let Some(rules) = guardrails.rules()
        {
            let tone = rules.tone(&order);
            let named = Named::of(text, rules.files());
            let instead = {
                let roster = self.0.roster();
                let task = roster.find(to).map(standing);
                task.and_then(|worker| fit::for_continued(tone, &named, worker))
            };
            found.advice.extend(instead.map(|it| self.told(&it)));
        }
        let kind = guardrails.rules().and_then(|rules| rules.tone(&order).kind);
        if let Some(why) = self.held_by_plan(caller, kind) {
            return Err(why);
        }
        let own = self.own_verification(caller, to, kind);
        // The same is not said twice, unless only the second is a refusal.
        let is_said = |own: &Advice| {
            let mut said = found.advice.iter();
            said.any(|it| it.rule == "fresh-verifies" && it.is_refusal >= own.is_refusal)
        };
        let own = own.filter(|own| !is_said(own));
        found.advice.extend(own);
        self.decide(caller, found)
    }

    /// What may follow on a worker's end, for its notification.
    pub(crate) fn advice_at_end(&self, task: &Task, end: &End) -> Option<String> {
        if self.parts().guardrails.continues == Level::Off || task.kind.is_one_shot {
            return None;
        }
        let worker = Standing {
            has_failed: end.status() != Status::Completed,
            ..standing(task)
        };
        fit::at_end(worker).map(|instead| self.told(&instead).text)
    }

    /// Keeps the score of a message that was sent.
    pub(crate) fn keep_score(&self, id: AgentId, score: Option<u8>) {
        if let Some(task) = self.0.roster().get_mut(id) {
            task.add_score(score);
        }
    }

    fn quality(&self, order: &OrderText<'_>) -> Found {
        let guardrails = &self.parts().guardrails;
        let orders = &guardrails.orders;
        let rules = guardrails.rules().filter(|_| *orders != Level::Off);
        let Some(rules) = rules else {
            return Found::default();
        };
        let judged = rules.check(order, orders);
        let advice = judged.findings.into_iter().map(|finding| Advice {
            guardrail: "orders",
            is_refusal: *orders == Level::Enforce && finding.refuses,
            rule: finding.rule,
            excerpt: finding.excerpt,
            text: finding.advice,
            score: Some(judged.score),
        });
        Found {
            advice: advice.collect(),
            score: Some(judged.score),
        }
    }

    fn told(&self, instead: &Instead) -> Advice {
        let guardrails = &self.parts().guardrails;
        let continues = &guardrails.continues;
        let text = guardrails
            .rules()
            .map_or("", |rules| rules.text(instead.rule))
            .replace("{worker}", &instead.worker);
        Advice {
            guardrail: "continue",
            is_refusal: *continues == Level::Enforce,
            rule: instead.rule.to_owned(),
            excerpt: String::new(),
            text: text.replace("{files}", &instead.files),
            score: None,
        }
    }

    /// Tells what was found, and whether the order goes out all the same.
    fn decide(&self, caller: AgentId, mut found: Found) -> Result<Passed, String> {
        // What stands against the order is said first.
        found.advice.sort_by_key(|it| !it.is_refusal);
        let refusals = found.advice.iter().filter(|it| it.is_refusal);
        let why: Vec<String> = refusals.map(ToString::to_string).collect();
        let advice = found.advice.iter().map(ToString::to_string).collect();
        for advice in found.advice {
            self.emit(caller, EventKind::Advice(Box::new(advice)));
        }
        match why.is_empty() {
            true => Ok(Passed {
                score: found.score,
                advice,
            }),
            false => Err(why.join(" ").trim_end_matches('.').to_owned()),
        }
    }
}

impl Task {
    pub(crate) fn add_score(&mut self, score: Option<u8>) {
        if self.scores.len() < MOST_SCORES {
            self.scores.extend(score);
        }
    }
}

/// What a type of worker is for, where that is certain.
fn kind_of(kind: &AgentType) -> Option<OrderKind> {
    let writes = kind.keeps("Edit") || kind.keeps("Write");
    match kind.name.as_str() {
        "verifier" => Some(OrderKind::Verification),
        _ if !writes => Some(OrderKind::Research),
        _ => None,
    }
}

/// Whether SendMessage of another agent would continue it.
fn may_go_on(task: &Task) -> bool {
    !task.kind.is_one_shot && !task.state.is_stopped_by_user()
}

fn standing(task: &Task) -> Standing<'_> {
    let end = match &task.state {
        State::Live(_) => None,
        State::Ended(end) => Some(end),
    };
    Standing {
        name: &task.name,
        history: &task.history,
        has_ended: end.is_some(),
        has_failed: end.is_some_and(|end| end.status() != Status::Completed),
        cwd: task.cwd.as_deref(),
    }
}
