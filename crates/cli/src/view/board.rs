//! The crew as a person watches it: a fold over events to lines that stay and a block that changes.

use super::words::{count, describe, first_line, fit, summary, thousands, width};
use crate::system::plain;
use gaffer_protocol::event::{AgentEnded, AgentStarted};
use gaffer_protocol::{
    AgentId, Answer, Block, BudgetNews, CallId, Cost, End, Event, EventKind, Timestamp, Usage,
    Waiting,
};

/// What a line that stays is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Session,
    Words,
    Reasoning,
    Call,
    Fine,
    Trouble,
    Started,
    Ended,
    Retry,
    Question,
    Notice,
}

impl About {
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Session => "●",
            Self::Words => " ",
            Self::Reasoning => "~",
            Self::Call => "→",
            Self::Fine => "✓",
            Self::Trouble => "✗",
            Self::Started => "+",
            Self::Ended => "■",
            Self::Retry => "↻",
            Self::Question => "?",
            Self::Notice => "!",
        }
    }
}

/// A line that stays. The text may have several lines of its own, but no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The worker's name; none for the session's own agent.
    pub(super) who: Option<String>,
    pub(super) about: About,
    pub(super) text: String,
    /// What else there is to say where there is room for it.
    pub(super) more: String,
}

#[derive(Debug)]
struct Seen {
    id: AgentId,
    name: String,
    is_worker: bool,
    has_ended: bool,
    since: Timestamp,
    waiting: Waiting,
    /// Calls that run now.
    calls: Vec<(CallId, String)>,
    turns: u32,
    tokens: u64,
    /// Characters of the answer that streams in now.
    streamed: usize,
    /// Words that are the result if nothing follows them.
    held: Option<String>,
}

/// All agents that were seen.
#[derive(Debug, Default)]
pub(super) struct Board {
    agents: Vec<Seen>,
    began: Option<Timestamp>,
    turns: u32,
    usage: Usage,
    cost: Cost,
}

impl Board {
    /// Takes in an event, and says what is to stay of it.
    pub(super) fn take(&mut self, event: &Event) -> Vec<Said> {
        self.began.get_or_insert(event.at);
        match &event.kind {
            EventKind::AgentStarted(started) => return self.started(event, started),
            EventKind::Spent { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += *cost;
            }
            EventKind::Answered { answer, cost, .. } => {
                self.turns += 1;
                self.usage += answer.usage;
                self.cost += *cost;
            }
            _ => {}
        }
        let Some(agent) = self.agents.iter_mut().find(|it| it.id == event.agent) else {
            return unknown(event).into_iter().collect();
        };
        agent.take(event)
    }

    fn started(&mut self, event: &Event, started: &AgentStarted) -> Vec<Said> {
        let agent = Seen {
            id: event.agent,
            name: plain(started.name.as_str()),
            is_worker: started.parent.is_some(),
            has_ended: false,
            since: event.at,
            waiting: Waiting::Model,
            calls: Vec::new(),
            turns: 0,
            tokens: 0,
            streamed: 0,
            held: None,
        };
        let said = agent.is_worker.then(|| {
            let kind = format!(" ({})", started.agent_type);
            let text = format!("started: {}", started.description);
            agent.say(About::Started, &text, &kind)
        });
        self.agents.push(agent);
        said.into_iter().collect()
    }

    /// The block as it is now: the session's own agent, the workers that have not ended, and the
    /// sums. No line is wider than `columns`, and there are at most `rows`.
    pub(super) fn block(&self, now: Timestamp, columns: usize, rows: usize) -> Vec<String> {
        let Some(main) = self.agents.iter().find(|agent| !agent.is_worker) else {
            return vec![fit("starting", columns)];
        };
        let seconds = seconds(self.began, now);
        let sums = summary(self.turns, self.usage, self.cost, seconds);
        let workers = self.agents.iter().filter(|agent| agent.is_worker);
        let total = workers.clone().count();
        if total == 0 {
            let line = format!("{} · {sums}", main.doing());
            return vec![fit(&line, columns)];
        }
        let live: Vec<&Seen> = workers.filter(|agent| !agent.has_ended).collect();
        // The first line, the sums, and one that says how many more there are.
        let most = rows.saturating_sub(2).max(1);
        let shown = if live.len() <= most {
            live.len()
        } else {
            most - 1
        };
        let longest = live[..shown].iter().map(|agent| width(&agent.name)).max();
        let column = longest.unwrap_or_default().min(24);
        let mut lines = vec![format!("{} · {}", main.name, main.doing())];
        lines.extend(live[..shown].iter().enumerate().map(|(n, agent)| {
            let branch = if n + 1 == live.len() { "└" } else { "├" };
            format!("  {branch} {}", agent.line(now, column))
        }));
        if shown < live.len() {
            lines.push(format!("  └ and {} more", live.len() - shown));
        }
        let waiting = |agent: &&&Seen| matches!(agent.waiting, Waiting::Queue(_));
        let queued = live.iter().filter(waiting).count();
        let queue = match queued {
            0 => String::new(),
            _ => format!(", {queued} in the queue"),
        };
        let (running, ended) = (live.len() - queued, total - live.len());
        lines.push(format!("{running} running{queue}, {ended} ended · {sums}"));
        lines.iter().map(|line| fit(line, columns)).collect()
    }

    /// The last word.
    pub(super) fn closing(&self, now: Timestamp) -> String {
        let seconds = seconds(self.began, now);
        let sums = summary(self.turns, self.usage, self.cost, seconds);
        let workers = self.agents.iter().filter(|agent| agent.is_worker).count();
        match u32::try_from(workers) {
            Ok(0) | Err(_) => sums,
            Ok(workers) => format!("{} · {sums}", count(workers, "worker")),
        }
    }
}

fn seconds(since: Option<Timestamp>, now: Timestamp) -> u64 {
    since.map_or(0, |since| now.0.saturating_sub(since.0) / 1000)
}

/// What can be said of an agent before it was introduced.
fn unknown(event: &Event) -> Option<Said> {
    let (about, text) = match &event.kind {
        EventKind::SessionStarted(session) => (
            About::Session,
            format!(
                "{} in {} (session {})",
                session.model, session.cwd, session.session
            ),
        ),
        EventKind::Notice(text) => (About::Notice, text.clone()),
        EventKind::Budget(news) => match &**news {
            BudgetNews::Near(it) => (About::Notice, format!("budget: {it}")),
            BudgetNews::Reached(it) => (About::Notice, format!("budget used up: {it}")),
            BudgetNews::Sum(_) => return None,
        },
        EventKind::Advice(advice) => (About::Notice, format!("advice: {advice}")),
        EventKind::Integrated(it) => (About::Notice, it.summary.clone()),
        _ => return None,
    };
    Some(Said {
        who: None,
        about,
        text: plain(&text),
        more: String::new(),
    })
}

impl Seen {
    fn say(&self, about: About, text: &str, more: &str) -> Said {
        Said {
            who: self.is_worker.then(|| self.name.clone()),
            about,
            text: plain(text),
            more: plain(more),
        }
    }

    fn take(&mut self, event: &Event) -> Vec<Said> {
        match &event.kind {
            EventKind::Waiting(waiting) => {
                self.streamed = 0;
                if matches!(self.waiting, Waiting::Queue(_)) {
                    self.since = event.at;
                }
                self.waiting = waiting.clone();
                // It goes on, so what it said last was not its result.
                let held = self.held.take_if(|_| *waiting == Waiting::Mail);
                return held
                    .map(|text| self.say(About::Words, &text, ""))
                    .into_iter()
                    .collect();
            }
            EventKind::TextDelta(text) => self.streamed += text.chars().count(),
            EventKind::Answered { answer, .. } => return self.answered(answer),
            EventKind::ToolStarted { tool_use } => {
                let what = describe(tool_use);
                self.calls.push((tool_use.id.clone(), plain(&what)));
                // The worker's own first line says it.
                if tool_use.name == "Agent" {
                    return Vec::new();
                }
                return vec![self.say(About::Call, &what, "")];
            }
            EventKind::ToolFinished {
                tool,
                result,
                duration_ms,
            } => {
                self.calls.retain(|(id, _)| *id != result.call);
                let text = result.text();
                if result.is_error {
                    let last = text.trim_end().lines().last().unwrap_or_default();
                    return vec![self.say(About::Trouble, &format!("{tool}: {last}"), "")];
                }
                let (lines, ms) = (text.lines().count(), duration_ms);
                let fine = format!("{tool}: {lines} lines in {ms} ms");
                return vec![self.say(About::Fine, &fine, "")];
            }
            EventKind::Continued => {
                self.has_ended = false;
                self.since = event.at;
                self.waiting = Waiting::Model;
                return vec![self.say(About::Started, "goes on", "")];
            }
            EventKind::AgentEnded(ended) => {
                self.has_ended = true;
                self.calls.clear();
                return self.ended(ended).into_iter().collect();
            }
            EventKind::Retry {
                attempt,
                delay_ms,
                error,
                ..
            } => {
                let delay = *delay_ms as f64 / 1000.0;
                let text = format!("{error}; attempt {} in {delay:.1} s", attempt + 1);
                return vec![self.say(About::Retry, &text, "")];
            }
            EventKind::Asked(question) => {
                let (tool, reason) = (&question.tool, &question.reason);
                let text = format!("{tool} waits for permission: {reason}");
                return vec![self.say(About::Question, &text, "")];
            }
            EventKind::Notice(text) => return vec![self.say(About::Notice, text, "")],
            EventKind::Compacted {
                tokens_before,
                tokens_after,
                ..
            } => {
                let (before, after) = (thousands(*tokens_before), thousands(*tokens_after));
                let text = format!("compacted: {before} tokens are {after} now");
                return vec![self.say(About::Notice, &text, "")];
            }
            _ => return unknown(event).into_iter().collect(),
        }
        Vec::new()
    }

    fn answered(&mut self, answer: &Answer) -> Vec<Said> {
        self.streamed = 0;
        self.turns += 1;
        self.tokens += answer.usage.total();
        let calls = answer.tool_uses().next().is_some();
        let mut said = Vec::new();
        for block in &answer.blocks {
            match block {
                Block::Text(text) if calls => said.push(self.say(About::Words, &text.text, "")),
                Block::Reasoning(reasoning) if !reasoning.text.is_empty() => {
                    said.push(self.say(About::Reasoning, &reasoning.text, ""));
                }
                _ => {}
            }
        }
        // A worker's last words come with its end, those of the session's own agent as the result.
        let text = answer.text();
        let is_open = !calls && !self.is_worker && !text.trim().is_empty();
        self.held = is_open.then_some(text);
        said
    }

    fn ended(&self, ended: &AgentEnded) -> Option<Said> {
        if !self.is_worker {
            return None;
        }
        let text = match &ended.end {
            End::Done => "completed".to_owned(),
            end => format!("{}: {end}", end.status().as_str()),
        };
        let (first, more) = first_line(&ended.result);
        let more = match first {
            "" => String::new(),
            first => format!(": {first}{more}"),
        };
        let more = if ended.end == End::Done {
            more
        } else {
            String::new()
        };
        let about = match ended.end {
            End::Done | End::StoppedByCoordinator | End::StoppedByUser => About::Ended,
            _ => About::Trouble,
        };
        Some(self.say(about, &text, &more))
    }

    /// What it does, in a few words.
    fn doing(&self) -> String {
        match &self.waiting {
            Waiting::Queue(place) => format!("number {place} in the queue"),
            Waiting::Dependencies(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!("waiting for {}", names.join(", "))
            }
            Waiting::Lease(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!("waiting for files of {}", names.join(", "))
            }
            Waiting::Gate => "waiting for the provider".to_owned(),
            Waiting::Model if self.streamed > 0 => {
                format!("writing ({} characters)", self.streamed)
            }
            Waiting::Model => "thinking".to_owned(),
            Waiting::Tools(_) => match self.calls.as_slice() {
                [] => "running a tool".to_owned(),
                [(_, one)] => first_line(one).0.to_owned(),
                [(_, one), more @ ..] => format!("{} and {} more", first_line(one).0, more.len()),
            },
            Waiting::Mail => "waiting".to_owned(),
            Waiting::User => "waiting for you".to_owned(),
        }
    }

    /// The figures stand before what it does: that may be long, and is cut at its end.
    fn line(&self, now: Timestamp, column: usize) -> String {
        let name = fit(&self.name, column);
        let space = " ".repeat(column.saturating_sub(width(&name)));
        let doing = self.doing();
        if matches!(self.waiting, Waiting::Queue(_)) {
            return format!("{name}{space} · {doing}");
        }
        format!(
            "{name}{space} · {} · {} tokens · {} s · {doing}",
            count(self.turns, "turn"),
            thousands(self.tokens),
            seconds(Some(self.since), now),
        )
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
