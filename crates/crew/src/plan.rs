//! Plan first: the first orders that change something wait until the user has seen the whole
//! allocation of work and said yes. Looking and verifying go on meanwhile.

use crate::crew::Crew;
use crate::orders::OrderKind;
use crate::start::Order;
use gaffer_protocol::plan::{Plan, PlanState, Planned};
use gaffer_protocol::{AgentId, Answer, CallId, End, EventKind, Permission, Phase, ToolUse};
use gaffer_tools::question::{Draft, Questions};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

const REASON: &str = "The plan is to be approved before anything is changed.";
const AGENT: &str = "Agent";

/// Whether a plan has to be approved, and by whom. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct PlanFirst(Option<Arc<Desk>>);

/// Who approves plans.
#[derive(Debug)]
pub enum Approver {
    /// Whoever answers questions.
    Asks(Questions),
    /// The user has said yes beforehand.
    Approves,
    /// Nobody can be asked: the plan is what comes of the run.
    Nobody,
}

#[derive(Debug)]
struct Desk {
    approver: Approver,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_approved: bool,
    /// The last message of the session's own agent.
    answer: Option<Arc<Answer>>,
    asked: Option<Asked>,
    /// The plan that nobody could be asked about.
    parked: Option<Arc<Plan>>,
}

/// One question for all orders of one message.
#[derive(Debug, Clone)]
struct Asked {
    calls: Vec<CallId>,
    outcome: watch::Receiver<Option<Permission>>,
}

/// What an order has to do at the desk.
enum Turn {
    Passes,
    /// Another order of the same message asks for it as well.
    Waits(watch::Receiver<Option<Permission>>),
    Asks(watch::Sender<Option<Permission>>, Option<Arc<Answer>>),
}

impl PlanFirst {
    pub fn new(approver: Approver) -> Self {
        let state = Mutex::default();
        Self(Some(Arc::new(Desk { approver, state })))
    }

    /// Whether nothing may be changed yet.
    pub fn is_pending(&self) -> bool {
        self.desk().is_some_and(|(_, state)| !state.is_approved)
    }

    /// Whether the next plan has to be approved. False if nobody could approve one here.
    pub fn set_pending(&self, is_pending: bool) -> bool {
        let desk = self.desk();
        if let Some((_, mut state)) = desk {
            state.is_approved = !is_pending;
            return true;
        }
        false
    }

    /// The plan that waits for somebody who can be asked.
    pub fn parked(&self) -> Option<Arc<Plan>> {
        self.desk()?.1.parked.clone()
    }

    /// Takes note of a message of the session's own agent.
    pub(crate) fn see(&self, answer: &Arc<Answer>) {
        if let Some((_, mut state)) = self.desk() {
            state.answer = Some(answer.clone());
        }
    }

    fn desk(&self) -> Option<(&Desk, MutexGuard<'_, State>)> {
        let desk = self.0.as_deref()?;
        let state = desk.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some((desk, state))
    }

    fn turn(&self, call: &CallId) -> Turn {
        let Some((_, mut state)) = self.desk() else {
            return Turn::Passes;
        };
        if state.is_approved {
            return Turn::Passes;
        }
        if let Some(asked) = state.asked.as_ref().filter(|it| it.calls.contains(call)) {
            return Turn::Waits(asked.outcome.clone());
        }
        let is_own = |answer: &Arc<Answer>| answer.tool_uses().any(|it| it.id == *call);
        let answer = state.answer.clone().filter(is_own);
        let calls = answer.iter().flat_map(|it| it.tool_uses());
        let mut calls: Vec<CallId> = calls.map(|it| it.id.clone()).collect();
        calls.push(call.clone());
        let (sender, outcome) = watch::channel(None);
        state.asked = Some(Asked { calls, outcome });
        Turn::Asks(sender, answer)
    }
}

impl Crew {
    /// Lets an order pass, or says why it does not. It may wait for the user as long as that takes.
    pub(crate) async fn pass_plan(&self, order: &Order) -> Result<(), String> {
        let plan = &self.parts().guardrails.plan;
        let is_work = order.terms.phase == Some(Phase::Implementation);
        if !is_work || order.parent != self.parts().main {
            return Ok(());
        }
        let call = order.call.clone().unwrap_or_default();
        let permission = match plan.turn(&call) {
            Turn::Passes => return Ok(()),
            Turn::Waits(mut outcome) => {
                let known = outcome.wait_for(Option::is_some).await;
                known.ok().and_then(|it| it.clone())
            }
            Turn::Asks(sender, answer) => {
                let permission = self.ask_plan(order, answer.as_deref()).await;
                sender.send_replace(Some(permission.clone()));
                Some(permission)
            }
        };
        match permission {
            Some(Permission::Allow { .. }) => Ok(()),
            Some(Permission::Deny { message }) => Err(message),
            None => Err("the question about the plan was taken back".to_owned()),
        }
    }

    async fn ask_plan(&self, order: &Order, answer: Option<&Answer>) -> Permission {
        let parts = self.parts();
        let Some(desk) = parts.guardrails.plan.0.as_deref() else {
            return Permission::Allow { rules: Vec::new() };
        };
        let mut plan = self.plan_of(order, answer);
        let permission = match &desk.approver {
            Approver::Approves => Permission::Allow { rules: Vec::new() },
            Approver::Asks(questions) => {
                self.emit(parts.main, EventKind::Plan(Arc::new(plan.clone())));
                let draft = Draft {
                    tool: AGENT.to_owned(),
                    input: json!(plan),
                    reason: REASON.to_owned(),
                    suggestions: Vec::new(),
                };
                told(questions.ask(parts.main, draft).await)
            }
            Approver::Nobody => {
                let message = "the user has to approve the plan first, and nobody can be asked here. Say in your answer what you plan, and end your turn: the session goes on when they have approved".to_owned();
                Permission::Deny { message }
            }
        };
        let is_parked = matches!(desk.approver, Approver::Nobody);
        plan.state = match &permission {
            Permission::Allow { .. } => PlanState::Approved,
            Permission::Deny { .. } if is_parked => PlanState::Waiting,
            Permission::Deny { .. } => PlanState::Refused,
        };
        let plan = Arc::new(plan);
        if let Some((_, mut state)) = parts.guardrails.plan.desk() {
            state.is_approved = plan.state == PlanState::Approved;
            state.parked = is_parked.then(|| plan.clone());
        }
        self.emit(parts.main, EventKind::Plan(plan));
        permission
    }

    /// All orders of a message, with what was said to them.
    fn plan_of(&self, order: &Order, answer: Option<&Answer>) -> Plan {
        let Some(answer) = answer else {
            let order = json!({"description": order.description, "prompt": order.prompt});
            let phase = Phase::Implementation;
            return Plan {
                text: String::new(),
                orders: vec![Planned { phase, order }],
                state: PlanState::Waiting,
            };
        };
        let planned = |call: &ToolUse| {
            let order: Value = call.input.to_object().read().unwrap_or_default();
            let phase = self.phase_of_input(&order);
            Planned { phase, order }
        };
        let calls = answer.tool_uses().filter(|call| call.name == AGENT);
        Plan {
            text: answer.text(),
            orders: calls.map(planned).collect(),
            state: PlanState::Waiting,
        }
    }

    /// Why a message does not go out: it would let a worker begin to change things without a word
    /// of the user's.
    pub(crate) fn held_by_plan(&self, caller: AgentId, kind: Option<OrderKind>) -> Option<String> {
        let parts = self.parts();
        let is_work = kind == Some(OrderKind::Implementation);
        let is_held = is_work && caller == parts.main && parts.guardrails.plan.is_pending();
        is_held.then(|| "the user has approved no plan yet, so nobody may change anything: give the first such order with Agent, and the user is asked about it".to_owned())
    }

    /// How the whole ends: a plan that waits is no success.
    pub(crate) fn end_with_plan(&self, end: End) -> End {
        let parked = self.parts().guardrails.plan.parked();
        match end {
            End::Done if parked.is_some() => {
                End::Denied("the plan waits for your approval; --approve-plan gives it".to_owned())
            }
            end => end,
        }
    }
}

/// An answer in words for the one that asked.
fn told(permission: Permission) -> Permission {
    match permission {
        Permission::Deny { message } => {
            let words = match message.trim() {
                "" => String::new(),
                words => format!(": {words}"),
            };
            let message = format!(
                "the user did not approve the plan{words}\nHeed that, plan anew and send the orders again; the user is asked again"
            );
            Permission::Deny { message }
        }
        allowed => allowed,
    }
}
