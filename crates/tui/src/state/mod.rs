//! The session as it is seen: a fold of the event stream. Every event costs the same, however many
//! came before it, and what is kept has a limit.

pub(crate) mod agent;
pub(crate) mod stretch;
#[cfg(test)]
mod tests;
pub(crate) mod transcript;

use crate::text::flat;
use crate::words::{describe, ended, first_line, thousands};
use agent::Agent;
use gaffer_protocol::event::{AgentEnded, AgentStarted, SessionStarted};
use gaffer_protocol::{
    AgentId, Block, Budget, CallId, Cost, End, Event, EventKind, Origin, Phase, Question, Status,
    Timestamp, ToolResult, ToolUse, Usage, Waiting,
};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use transcript::{Body, CallState, Mark};

/// So many workers that have ended keep their transcripts here; those on disk are whole.
const MOST_ENDED: usize = 200;
/// Starts that were called for and have not happened.
const MOST_PLANNED: usize = 1000;

/// A question that waits, and whose it is.
#[derive(Debug, Clone)]
pub(crate) struct Parked {
    pub(crate) agent: AgentId,
    pub(crate) question: Arc<Question>,
}

/// What a call that starts a worker says about it.
#[derive(Debug, Clone, Copy, Default)]
struct Planned {
    phase: Option<Phase>,
    budget: Budget,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) session: Option<Box<SessionStarted>>,
    agents: Vec<Agent>,
    index: HashMap<AgentId, usize>,
    /// The agent that talks with the user.
    main: Option<AgentId>,
    pub(crate) questions: Vec<Parked>,
    /// What was said before any agent was there.
    early: Vec<(Mark, String)>,
    planned: HashMap<CallId, Planned>,
    ended: VecDeque<AgentId>,
    pub(crate) began: Option<Timestamp>,
    pub(crate) latest: Timestamp,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
    pub(crate) turns: u32,
    /// Messages of the user's that no agent has heard yet.
    pub(crate) unheard: Vec<(Option<AgentId>, String)>,
}

impl Model {
    pub(crate) fn main(&self) -> Option<&Agent> {
        self.agent(self.main?)
    }

    pub(crate) fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(*self.index.get(&id)?)
    }

    pub(crate) fn agent_mut(&mut self, id: AgentId) -> Option<&mut Agent> {
        self.agents.get_mut(*self.index.get(&id)?)
    }

    pub(crate) fn main_id(&self) -> Option<AgentId> {
        self.main
    }

    pub(crate) fn agents(&self) -> &[Agent] {
        &self.agents
    }

    pub(crate) fn workers(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().filter(|agent| agent.parent.is_some())
    }

    /// Whether anybody works, so that clocks on the screen move.
    pub(crate) fn is_anybody_working(&self) -> bool {
        self.agents.iter().any(Agent::is_working)
    }

    pub(crate) fn name_of(&self, id: AgentId) -> String {
        self.agent(id)
            .map_or_else(|| id.to_string(), |agent| agent.name.clone())
    }

    /// Takes in one event.
    pub(crate) fn take(&mut self, event: &Event) {
        self.began.get_or_insert(event.at);
        self.latest = self.latest.max(event.at);
        match &event.kind {
            EventKind::SessionStarted(session) => self.session = Some(session.clone()),
            EventKind::AgentStarted(started) => self.started(event, started),
            EventKind::Spent { usage, cost, .. } => {
                self.spent(event.agent, *usage, *cost);
            }
            EventKind::Asked(question) => self.asked(event.agent, question),
            EventKind::Settled(number) => {
                self.questions.retain(|it| it.question.number != *number);
            }
            EventKind::AgentEnded(ended) => self.agent_ended(event, ended),
            EventKind::Notice(text) => {
                // Word about a message that could not be delivered has it in it.
                self.unheard.retain(|(_, said)| !text.ends_with(said));
                self.say(event.agent, Mark::Notice, text);
            }
            EventKind::Advice(advice) => {
                let word = if advice.is_refusal {
                    "refused"
                } else {
                    "advice"
                };
                self.say(event.agent, Mark::Notice, &format!("{word}: {advice}"));
            }
            // The end itself was shown already.
            EventKind::Notified(_) => {}
            _ => self.of_agent(event),
        }
    }

    fn of_agent(&mut self, event: &Event) {
        if let EventKind::Answered { answer, cost, .. } = &event.kind {
            self.turns = self.turns.saturating_add(1);
            self.spent(event.agent, answer.usage, *cost);
        }
        if let EventKind::ToolStarted { tool_use } = &event.kind {
            self.plan(tool_use);
        }
        if let EventKind::Input(message) = &event.kind {
            self.heard(event.agent, &message.blocks);
        }
        if matches!(event.kind, EventKind::Waiting(Waiting::Mail)) {
            // Whoever rests has heard all there is; what a hook refused will not be heard.
            let to = (Some(event.agent) != self.main).then_some(event.agent);
            self.unheard.retain(|(reader, _)| *reader != to);
        }
        let Some(agent) = self.agent_mut(event.agent) else {
            return;
        };
        match &event.kind {
            EventKind::Continued => agent.continued(event.at),
            EventKind::Input(message) => input(agent, &message.blocks),
            EventKind::Waiting(waiting) => agent.waits(waiting, event.at),
            EventKind::TextDelta(text) => agent.transcript.stream(text),
            EventKind::ReasoningDelta(text) => agent.transcript.think(text),
            EventKind::CallDelta { tool } => agent.transcript.writes_call(tool),
            EventKind::Retry {
                attempt,
                delay_ms,
                error,
                ..
            } => {
                agent.transcript.void();
                let delay = *delay_ms as f64 / 1000.0;
                let attempt = attempt.saturating_add(1);
                let text = format!("{error}; attempt {attempt} in {delay:.1} s");
                agent.transcript.push(Body::Line(Mark::Retry, text));
            }
            EventKind::Answered { answer, .. } => {
                agent.turns = agent.turns.saturating_add(1);
                agent.transcript.answered(answer);
            }
            EventKind::ToolStarted { tool_use } => tool_started(agent, tool_use),
            EventKind::ToolFinished {
                result,
                duration_ms,
                ..
            } => tool_finished(agent, result, *duration_ms),
            EventKind::Compacted {
                tokens_before,
                tokens_after,
                ..
            } => {
                let (before, after) = (thousands(*tokens_before), thousands(*tokens_after));
                let text = format!("compacted: {before} tokens are {after} now");
                agent.transcript.push(Body::Line(Mark::Notice, text));
            }
            _ => {}
        }
    }

    fn started(&mut self, event: &Event, started: &AgentStarted) {
        let planned = started
            .call
            .as_ref()
            .and_then(|call| self.planned.remove(call));
        let planned = planned.unwrap_or_default();
        let mut agent = Agent::new(event.agent, started, event.at);
        agent.phase = planned.phase.or(agent.phase);
        agent.budget = planned.budget;
        match started.parent {
            None => {
                for (mark, text) in std::mem::take(&mut self.early) {
                    agent.transcript.push(Body::Line(mark, text));
                }
                self.main.get_or_insert(event.agent);
            }
            Some(parent) => {
                let kind = flat(&started.agent_type);
                let what = flat(&started.description);
                let text = format!("{} ({kind}) started: {what}", agent.name);
                self.say(parent, Mark::Started, &text);
            }
        }
        if let Some(at) = self.index.get(&event.agent) {
            // Somebody who was known begins anew: after a session was taken up, for one.
            self.agents[*at] = agent;
        } else {
            self.index.insert(event.agent, self.agents.len());
            self.agents.push(agent);
        }
    }

    fn agent_ended(&mut self, event: &Event, how: &AgentEnded) {
        self.questions.retain(|parked| parked.agent != event.agent);
        let Some(agent) = self.agent_mut(event.agent) else {
            return;
        };
        agent.ends(how, event.at);
        let (name, parent) = (agent.name.clone(), agent.parent);
        let Some(parent) = parent else {
            if how.end != End::Done {
                let text = ended(&how.end);
                self.say(event.agent, Mark::Trouble, &text);
            }
            return;
        };
        let word = ended(&how.end);
        let text = match (&how.end, first_line(&how.result)) {
            (End::Done, first) if !first.is_empty() => format!("{name} {word}: {first}"),
            _ => format!("{name} {word}"),
        };
        let mark = match how.end.status() {
            Status::Failed => Mark::Trouble,
            _ => Mark::Ended,
        };
        self.say(parent, mark, &text);
        self.ended.push_back(event.agent);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
            && let Some(agent) = self.agent_mut(oldest)
            && agent.end.is_some()
        {
            agent.transcript.forget();
        }
    }

    fn asked(&mut self, agent: AgentId, question: &Arc<Question>) {
        let what = match question.input.get("orders") {
            Some(_) => "the plan".to_owned(),
            None => describe(&question.tool, &question.input),
        };
        let text = format!("{what} waits for your word: {}", question.reason);
        self.say(agent, Mark::Question, &text);
        self.questions.push(Parked {
            agent,
            question: Arc::clone(question),
        });
    }

    /// Remembers what a call says about the worker that it starts: the worker's own first event
    /// does not have it.
    fn plan(&mut self, call: &ToolUse) {
        if call.name != "Agent" {
            return;
        }
        // So many that never became workers: those before them will not either.
        if self.planned.len() >= MOST_PLANNED {
            self.planned.clear();
        }
        let input: Value = serde_json::from_str(call.input.as_text()).unwrap_or_default();
        let read = |key: &str| input.get(key).cloned().unwrap_or_default();
        let planned = Planned {
            phase: serde_json::from_value(read("phase")).ok(),
            budget: serde_json::from_value(read("budget")).unwrap_or_default(),
        };
        self.planned.insert(call.id.clone(), planned);
    }

    fn spent(&mut self, agent: AgentId, usage: Usage, cost: Cost) {
        self.usage += usage;
        self.cost += cost;
        if let Some(agent) = self.agent_mut(agent) {
            agent.usage += usage;
            agent.cost += cost;
        }
    }

    /// A line for the user in an agent's transcript; in that of the session's own if it has none.
    pub(crate) fn say(&mut self, agent: AgentId, mark: Mark, text: &str) {
        let id = if self.index.contains_key(&agent) {
            Some(agent)
        } else {
            self.main
        };
        if let Some(agent) = id.and_then(|id| self.agent_mut(id)) {
            agent.transcript.push(Body::Line(mark, text.to_owned()));
        } else if self.early.len() < MOST_ENDED {
            self.early.push((mark, text.to_owned()));
        }
    }

    pub(crate) fn early(&self) -> &[(Mark, String)] {
        &self.early
    }

    fn heard(&mut self, agent: AgentId, blocks: &[Block]) {
        let to = (Some(agent) != self.main).then_some(agent);
        for block in blocks {
            if let Block::Text(text) = block
                && let Some(at) = self
                    .unheard
                    .iter()
                    .position(|(reader, said)| *reader == to && text.text.contains(said.as_str()))
            {
                self.unheard.remove(at);
            }
        }
    }
}

fn input(agent: &mut Agent, blocks: &[Block]) {
    agent.transcript.settle();
    for block in blocks {
        let body = match block {
            Block::Text(text) => match text.origin {
                Some(Origin::Human) => Body::User(text.text.clone()),
                Some(Origin::Agent) => Body::Line(Mark::Mail, text.text.clone()),
                Some(Origin::Hook) => Body::Line(Mark::Notice, text.text.clone()),
                // The first message of a worker is its order.
                None if agent.parent.is_some() && agent.turns == 0 => Body::User(text.text.clone()),
                _ => continue,
            },
            Block::Image(image) => Body::User(format!("[{}]", image.media_type)),
            _ => continue,
        };
        agent.transcript.push(body);
    }
}

fn tool_started(agent: &mut Agent, call: &ToolUse) {
    agent.tool_uses = agent.tool_uses.saturating_add(1);
    let input: Value = serde_json::from_str(call.input.as_text()).unwrap_or_default();
    let what = flat(&describe(&call.name, &input));
    // The worker's own first line says it.
    let piece =
        (call.name != "Agent").then(|| agent.transcript.push_call(&call.name, &what, &input));
    agent.call_started(call.id.clone(), what, piece);
}

fn tool_finished(agent: &mut Agent, result: &ToolResult, ms: u64) {
    let Some(piece) = agent.call_ended(&result.call) else {
        return;
    };
    let state = if result.is_error {
        CallState::Failed(ms)
    } else {
        CallState::Done(ms)
    };
    if let Some(piece) = piece {
        agent.transcript.end_call(piece, state, &result.parts);
    } else if result.is_error {
        let text = first_line(&result.text());
        agent.transcript.push(Body::Line(Mark::Trouble, text));
    }
}

/// Whether somebody who waits so is at work, or would be if there were a place.
pub(crate) fn is_queued(waiting: &Waiting) -> bool {
    matches!(waiting, Waiting::Queue(_) | Waiting::Dependencies(_))
}
