//! JSON for programs: every event as a line, or the result alone. The shapes are those that
//! programs driving coding agents already read.

use super::View;
use super::crew::{self, Crew};
use crate::system;
use gaffer_protocol::event::{Advice, AgentEnded, Integrated, SessionStarted};
use gaffer_protocol::ids::uuid_v4;
use gaffer_protocol::plan::{Plan, PlanState};
use gaffer_protocol::{
    AgentId, Answer, Block, BudgetNews, BudgetSum, CapUse, Cost, Event, EventKind, Message, Origin,
    ResultPart, SessionId, StopReason, ToolResult, Trigger, Usage,
};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Every event, `system/init` first and `result` last.
    Stream,
    ResultOnly,
}

/// Writes to standard output.
pub(crate) struct Json {
    style: Style,
    session: Option<SessionId>,
    model: String,
    /// By the model that answered.
    by_model: Map<String, Value>,
    figures: Vec<(String, Usage, Cost)>,
    crew: Crew,
    budget: Option<BudgetSum>,
    /// The plan that waits for somebody's word.
    plan: Option<Arc<Plan>>,
    /// Whose event is being written.
    agent: Option<AgentId>,
}

impl Json {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            session: None,
            model: String::new(),
            by_model: Map::new(),
            figures: Vec::new(),
            crew: Crew::default(),
            budget: None,
            plan: None,
            agent: None,
        }
    }

    fn write(&self, mut value: Value) {
        if let Some(members) = value.as_object_mut() {
            let session = self.session.as_ref().map(SessionId::as_str);
            members.insert("session_id".to_owned(), json!(session));
            // Whose event it is, so that the tree can be rebuilt from the stream alone.
            let call = self.agent.and_then(|agent| self.crew.call(agent));
            members.insert("agent_id".to_owned(), json!(self.agent));
            members.insert("parent_tool_use_id".to_owned(), json!(call));
            members.insert(
                "uuid".to_owned(),
                json!(uuid_v4(&crate::system::SystemEntropy)),
            );
        }
        let mut out = std::io::stdout().lock();
        // A reader that has gone away hears nothing more; the run itself goes on to its end.
        drop(writeln!(out, "{value}"));
        drop(out.flush());
    }

    fn stream(&self, value: Value) {
        if self.style == Style::Stream {
            self.write(value);
        }
    }

    fn init(&mut self, started: &SessionStarted) {
        self.session = Some(started.session.clone());
        self.model.clone_from(&started.model);
        self.stream(json!({
            "type": "system",
            "subtype": "init",
            "cwd": started.cwd,
            "tools": started.tools,
            "mcp_servers": [],
            "model": started.model,
            "permissionMode": started.permission_mode,
            "apiKeySource": started.key_source,
            "slash_commands": [],
            "output_style": "default",
            "agents": started.agents,
            "skills": [],
            "plugins": [],
            "mode": started.mode,
            "provider": started.provider,
            "gaffer_version": started.version,
        }));
    }

    fn count(&mut self, name: String, spent: Usage, cost: Cost) {
        match self.figures.iter_mut().find(|(model, ..)| *model == name) {
            Some((_, usage, total)) => {
                *usage += spent;
                *total += cost;
            }
            None => self.figures.push((name, spent, cost)),
        }
    }

    fn answered(&mut self, event: &Event, answer: &Answer, cost: Cost) {
        let name = if answer.model.is_empty() {
            &self.model
        } else {
            &answer.model
        };
        self.count(name.clone(), answer.usage, cost);
        self.stream(json!({
            "type": "assistant",
            "message": {
                "id": format!("msg_{}", event.seq),
                "type": "message",
                "role": "assistant",
                "model": answer.model,
                "content": answer.blocks.iter().filter_map(block).collect::<Vec<_>>(),
                "stop_reason": answer.stop.as_str(),
                "stop_sequence": null,
                "usage": usage(answer.usage),
            },
            "timestamp": event.at,
        }));
    }

    fn input(&self, event: &Event, message: &Message) {
        let origins = message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => text.origin,
            _ => None,
        });
        // What stands around the user's own words does not change whose they are.
        let origins: Vec<Origin> = origins.collect();
        let human = origins.iter().find(|origin| **origin == Origin::Human);
        let origin = human.or(origins.last());
        self.stream(json!({
            "type": "user",
            "message": {
                "role": "user",
                "content": message.blocks.iter().filter_map(block).collect::<Vec<_>>(),
            },
            "origin": {"kind": origin},
            "timestamp": event.at,
        }));
    }

    fn advised(&mut self, advice: &Advice) {
        self.crew.advised(advice);
        self.stream(crew::advice(advice));
    }

    fn integrated(&mut self, integrated: &Integrated) {
        self.crew.integrated(integrated);
        self.stream(crew::integrated(integrated));
    }

    fn budget_news(&mut self, news: &BudgetNews) {
        match news {
            BudgetNews::Sum(sum) => self.budget = Some(*sum),
            BudgetNews::Near(it) => self.stream(budget("near", it)),
            BudgetNews::Reached(it) => self.stream(budget("reached", it)),
        }
    }

    /// What is not in the stream is said beside it.
    fn notice(&self, text: &str) {
        if self.style == Style::ResultOnly {
            return system::say(&format!("gaffer: {text}"));
        }
        self.stream(json!({
            "type": "system",
            "subtype": "notice",
            "text": text,
        }));
    }

    fn planned(&mut self, plan: &Arc<Plan>) {
        self.plan = Some(plan.clone()).filter(|it| it.state == PlanState::Waiting);
        self.stream(json!({
            "type": "system",
            "subtype": "plan",
            "state": plan.state,
            "text": plan.text,
            "orders": plan.orders,
        }));
    }

    /// A worker's step, for those who watch the tree.
    fn task(&self, subtype: &str, agent: AgentId, more: Value) {
        if !self.crew.is_worker(agent) {
            return;
        }
        let mut line = json!({
            "type": "system",
            "subtype": subtype,
            "task_id": agent,
            "tool_use_id": self.crew.call(agent),
        });
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        self.stream(line);
    }

    fn result(&mut self, ended: &AgentEnded) {
        let total: Cost = self.figures.iter().map(|(_, _, cost)| *cost).sum();
        for (model, tokens, cost) in std::mem::take(&mut self.figures) {
            let figures = json!({
                "inputTokens": tokens.input,
                "outputTokens": tokens.output,
                "cacheReadInputTokens": tokens.cache_read,
                "cacheCreationInputTokens": tokens.cache_write,
                "costUSD": cost.usd(),
            });
            self.by_model.insert(model, figures);
        }
        let is_error = ended.end != gaffer_protocol::End::Done;
        let errors = if is_error {
            vec![ended.end.to_string()]
        } else {
            Vec::new()
        };
        self.write(json!({
            "type": "result",
            "subtype": subtype(&ended.end),
            "is_error": is_error,
            "duration_ms": ended.duration_ms,
            "duration_api_ms": ended.model_ms,
            "num_turns": ended.turns,
            "result": ended.result,
            "structured_output": ended.structured,
            "stop_reason": ended.stop.map(StopReason::as_str),
            "terminal_reason": ended.end.reason(),
            "errors": errors,
            "total_cost_usd": total.usd(),
            "usage": usage(ended.usage),
            "modelUsage": self.by_model,
            "permission_denials": self.crew.denials(&ended.denials),
            "tool_uses": ended.tool_uses,
            "crew": self.crew.statistics(),
            "budget": self.budget,
            "plan": self.plan,
        }));
    }
}

impl View for Json {
    fn event(&mut self, event: &Event) {
        self.agent = Some(event.agent);
        match &event.kind {
            EventKind::SessionStarted(started) => self.init(started),
            EventKind::AgentStarted(started) => {
                self.crew.started(event.agent, started);
                self.task("task_started", event.agent, crew::started(started));
            }
            EventKind::Continued => {
                self.crew.continued(event.agent);
                self.task(
                    "task_updated",
                    event.agent,
                    json!({"patch": {"status": "running"}}),
                );
            }
            EventKind::Waiting(waiting) => {
                if let Some(status) = self.crew.status(event.agent, waiting) {
                    let patch = json!({"patch": {"status": status, "waiting_for": waiting}});
                    self.task("task_updated", event.agent, patch);
                }
            }
            EventKind::ToolStarted { tool_use } => {
                let progress = self.crew.tool(event, &tool_use.name);
                self.task("task_progress", event.agent, progress);
            }
            EventKind::Notified(notification) => {
                let told = crew::notified(notification);
                self.task("task_notification", event.agent, told);
            }
            EventKind::Answered { answer, cost, .. } => {
                self.crew.answered(event.agent, answer.usage);
                self.answered(event, answer, *cost);
            }
            EventKind::Spent { model, usage, cost } => self.count(model.clone(), *usage, *cost),
            EventKind::Input(message) => self.input(event, message),
            EventKind::ToolFinished { result, .. } => self.stream(json!({
                "type": "user",
                "message": {"role": "user", "content": [tool_result(result)]},
                "timestamp": event.at,
            })),
            EventKind::Retry {
                attempt,
                delay_ms,
                status,
                error,
            } => self.stream(json!({
                "type": "system",
                "subtype": "api_retry",
                "attempt": attempt,
                "retry_delay_ms": delay_ms,
                "error_status": status,
                "error": error,
            })),
            EventKind::Compacted {
                trigger,
                tokens_before,
                tokens_after,
            } => self.stream(boundary(*trigger, *tokens_before, *tokens_after)),
            EventKind::Asked(question) => self.stream(json!({
                "type": "system",
                "subtype": "permission_request",
                "request": question,
            })),
            EventKind::Plan(plan) => self.planned(plan),
            EventKind::Settled(number) => self.stream(settled(*number)),
            EventKind::Advice(advice) => self.advised(advice),
            EventKind::Integrated(integrated) => self.integrated(integrated),
            EventKind::Budget(news) => self.budget_news(news),
            EventKind::Notice(text) => self.notice(text),
            EventKind::Course(course) => self.crew.went(course),
            EventKind::AgentEnded(ended) if self.crew.is_worker(event.agent) => {
                self.crew.ended(event.agent, ended);
                let patch = json!({"patch": {"status": ended.end.status().as_str(), "reason": ended.end.reason(), "phase": ended.phase, "unverified": ended.is_unverified}});
                self.task("task_updated", event.agent, patch);
            }
            EventKind::AgentEnded(ended) => self.result(ended),
            EventKind::TextDelta(_)
            | EventKind::ReasoningDelta(_)
            | EventKind::CallDelta { .. } => {}
        }
    }
}

fn budget(stage: &str, it: &CapUse) -> Value {
    json!({
        "type": "system",
        "subtype": "budget",
        "stage": stage,
        "cap": it.cap,
        "used": it.used,
        "most": it.most,
    })
}

fn boundary(trigger: Trigger, before: u64, after: u64) -> Value {
    json!({
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {
            "trigger": trigger.as_str(),
            "pre_tokens": before,
            "post_tokens": after,
        },
    })
}

fn settled(number: u64) -> Value {
    json!({
        "type": "system",
        "subtype": "permission_settled",
        "number": number,
    })
}

fn subtype(end: &gaffer_protocol::End) -> &'static str {
    match end {
        gaffer_protocol::End::Done => "success",
        gaffer_protocol::End::MaxTurns => "error_max_turns",
        gaffer_protocol::End::Budget => "error_max_budget_usd",
        gaffer_protocol::End::SchemaNotMet(_) => "error_max_structured_output_retries",
        _ => "error_during_execution",
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

/// A block in the form of Anthropic Messages, which is what readers of this stream know.
fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text(text) => json!({"type": "text", "text": text.text}),
        Block::Reasoning(reasoning) if reasoning.text.is_empty() => return None,
        Block::Reasoning(reasoning) => json!({"type": "thinking", "thinking": reasoning.text}),
        Block::ToolUse(call) => json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": call.input.to_object(),
        }),
        Block::ToolResult(result) => tool_result(result),
        Block::Image(image) => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
        }),
    })
}

fn tool_result(result: &ToolResult) -> Value {
    let parts: Vec<Value> = result
        .parts
        .iter()
        .map(|part| match part {
            ResultPart::Text(text) => json!({"type": "text", "text": text}),
            ResultPart::Image(image) => json!({
                "type": "image",
                "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
            }),
        })
        .collect();
    json!({
        "type": "tool_result",
        "tool_use_id": result.call,
        "content": parts,
        "is_error": result.is_error,
    })
}
