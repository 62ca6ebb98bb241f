//! One agent as it is seen: what it does, what it has used, when it worked.

use super::is_queued;
use super::stretch::{Kind, Stretches};
use super::transcript::Transcript;
use crate::text::flat;
use crate::words::{ended, first_line, thousands};
use gaffer_protocol::event::{AgentEnded, AgentStarted};
use gaffer_protocol::{
    AgentId, Budget, CallId, Cost, End, Phase, Status, Timestamp, Usage, Waiting,
};

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) name: String,
    pub(crate) agent_type: String,
    pub(crate) description: String,
    pub(crate) parent: Option<AgentId>,
    pub(crate) phase: Option<Phase>,
    pub(crate) budget: Budget,
    pub(crate) waiting: Waiting,
    calls: Vec<Call>,
    pub(crate) last_tool: String,
    pub(crate) turns: u32,
    pub(crate) tool_uses: u32,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
    /// When its present run began.
    since: Timestamp,
    /// When it came to rest.
    rested: Option<Timestamp>,
    pub(crate) end: Option<(End, Timestamp)>,
    pub(crate) result: String,
    pub(crate) stretches: Stretches,
    pub(crate) transcript: Transcript,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    what: String,
    /// Its place in the transcript, if it has one.
    piece: Option<u64>,
}

/// What matters about an agent in a list, in the order in which it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It waits for the user.
    Asks,
    Works,
    Rests,
    Queued,
    Failed,
    Stopped,
    Done,
}

impl Agent {
    pub(crate) fn new(id: AgentId, started: &AgentStarted, at: Timestamp) -> Self {
        let mut stretches = Stretches::default();
        if started.parent.is_some() {
            stretches.turn(Some(Kind::Work), at);
        }
        Self {
            id,
            name: flat(started.name.as_str()),
            agent_type: flat(&started.agent_type),
            description: flat(&started.description),
            parent: started.parent,
            phase: started.phase,
            budget: Budget::default(),
            waiting: match started.parent {
                Some(_) => Waiting::Model,
                None => Waiting::Mail,
            },
            calls: Vec::new(),
            last_tool: String::new(),
            turns: 0,
            tool_uses: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            since: at,
            rested: None,
            end: None,
            result: String::new(),
            stretches,
            transcript: Transcript::default(),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match (&self.end, &self.waiting) {
            (Some((end, _)), _) => match end.status() {
                Status::Completed => Standing::Done,
                Status::Failed => Standing::Failed,
                Status::Killed => Standing::Stopped,
            },
            (None, Waiting::User) => Standing::Asks,
            (None, Waiting::Mail) => Standing::Rests,
            (None, waiting) if is_queued(waiting) => Standing::Queued,
            _ => Standing::Works,
        }
    }

    pub(crate) fn is_working(&self) -> bool {
        self.standing() <= Standing::Works
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(crate) fn continued(&mut self, at: Timestamp) {
        self.end = None;
        self.since = at;
        self.rested = None;
        self.waiting = Waiting::Model;
        self.stretches.turn(Some(Kind::Work), at);
    }

    pub(crate) fn waits(&mut self, waiting: &Waiting, at: Timestamp) {
        let (was, now) = (is_queued(&self.waiting), is_queued(waiting));
        if (was && !now) || self.waiting == Waiting::Mail {
            self.since = at;
        }
        let kind = match waiting {
            Waiting::Mail => None,
            Waiting::User => Some(Kind::User),
            waiting if is_queued(waiting) => Some(Kind::Queue),
            _ => Some(Kind::Work),
        };
        if *waiting == Waiting::Mail {
            self.transcript.settle();
        }
        self.rested = kind.is_none().then_some(at);
        self.stretches.turn(kind, at);
        self.waiting = waiting.clone();
    }

    pub(crate) fn ends(&mut self, how: &AgentEnded, at: Timestamp) {
        self.end = Some((how.end.clone(), at));
        self.result = first_line(&how.result);
        self.calls.clear();
        self.transcript.settle();
        self.stretches.turn(None, at);
    }

    pub(crate) fn call_started(&mut self, id: CallId, what: String, piece: Option<u64>) {
        self.last_tool.clone_from(&what);
        self.calls.push(Call { id, what, piece });
    }

    /// Where the call stands in the transcript; none at the outside if it is not known.
    pub(crate) fn call_ended(&mut self, id: &CallId) -> Option<Option<u64>> {
        let at = self.calls.iter().position(|call| call.id == *id)?;
        Some(self.calls.remove(at).piece)
    }

    /// How long its present run has lasted, or the last one did.
    pub(crate) fn time(&self, now: Timestamp) -> u64 {
        let ended = self.end.as_ref().map(|(_, at)| *at);
        let until = ended.or(self.rested).unwrap_or(now);
        until.0.saturating_sub(self.since.0)
    }

    /// What it does, in a few words.
    pub(crate) fn doing(&self) -> String {
        if let Some((end, _)) = &self.end {
            return match (end, self.result.as_str()) {
                (End::Done, "") => "done".to_owned(),
                (End::Done, result) => result.to_owned(),
                (end, _) => ended(end),
            };
        }
        match &self.waiting {
            Waiting::Queue(place) => format!("number {place} in the queue"),
            Waiting::Dependencies(names) => {
                let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                format!("waits for {}", names.join(", "))
            }
            Waiting::Lease(names) => {
                let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                format!("waits for a file of {}", names.join(", "))
            }
            Waiting::Gate => "waits for the provider".to_owned(),
            Waiting::Model => self.writing(),
            Waiting::Tools(_) => match self.calls.as_slice() {
                [] => "runs a tool".to_owned(),
                [one] => one.what.clone(),
                [one, more @ ..] => format!("{} and {} more", one.what, more.len()),
            },
            Waiting::Mail => "rests".to_owned(),
            Waiting::User => "waits for you".to_owned(),
        }
    }

    fn writing(&self) -> String {
        let transcript = &self.transcript;
        if let Some(tool) = transcript.next_call() {
            return format!("writes a call of {}", flat(tool));
        }
        match transcript.streamed() {
            0 if self.last_tool.is_empty() => "thinks".to_owned(),
            0 => format!("thinks · {}", self.last_tool),
            size => format!("writes ({})", thousands(u64::try_from(size).unwrap_or(0))),
        }
    }
}
