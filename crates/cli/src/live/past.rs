//! What was before, told to the UI of a session that goes on: the records of all its agents as the
//! events that they once were. The crew hears nothing of it: it has its own account.

use crate::bus::Bus;
use crate::stage::Stage;
use gaffer_crew::Kept;
use gaffer_model::Prices;
use gaffer_protocol::event::{AgentEnded, AgentStarted};
use gaffer_protocol::{
    AgentId, Answer, Cost, End, EventKind, Phase, ResultPart, Timestamp, ToolResult, ToolUse,
    Usage, Waiting,
};
use gaffer_store::records::Line;
use gaffer_store::{Entry, Record, SessionFolder, Start};
use std::collections::HashMap;
use std::sync::Arc;

/// So many workers have their words told; of those before them it is told that they were there.
const MOST_TOLD: usize = 50;

type Told = (Timestamp, AgentId, EventKind);

/// Tells all of it in the order in which it happened.
pub(super) fn tell(stage: &Stage, bus: &Bus) {
    let (folder, main) = (&stage.workshop.folder, stage.crew.parts().main);
    let prices = &stage.workshop.models.chosen.prices;
    // What cannot be read is not told; whoever takes the session up says what is damaged.
    let contents = folder.book().read().unwrap_or_default();
    let kept = Kept::read(&contents);
    let mut agents = folder.agents().unwrap_or_default();
    agents.retain(|(id, _)| *id != main);
    let written = |path: &std::path::Path| path.metadata().and_then(|it| it.modified()).ok();
    agents.sort_by_key(|(_, path)| std::cmp::Reverse(written(path)));
    let mut all = Teller::main(main, prices).read(folder);
    for (n, (id, _)) in agents.into_iter().enumerate() {
        let phase = kept.get(id).map(|task| task.phase());
        all.extend(Teller::worker(id, prices, phase, n < MOST_TOLD).read(folder));
    }
    all.sort_by_key(|(at, ..)| *at);
    for (at, agent, kind) in all {
        bus.emit_at(at, agent, kind);
    }
}

/// Makes events of one agent's records.
struct Teller<'a> {
    id: AgentId,
    is_main: bool,
    prices: &'a Prices,
    phase: Option<Phase>,
    /// Whether its words are told.
    is_whole: bool,
    out: Vec<Told>,
    start: Option<Box<Start>>,
    runs: u32,
    turns: u32,
    tool_uses: u32,
    usage: Usage,
    cost: Cost,
    last_words: String,
    began: Timestamp,
    at: Timestamp,
    has_ended: bool,
    /// Calls without a result, by their ids.
    open: HashMap<String, String>,
}

impl<'a> Teller<'a> {
    fn main(id: AgentId, prices: &'a Prices) -> Self {
        Self {
            is_main: true,
            ..Self::worker(id, prices, None, true)
        }
    }

    fn worker(id: AgentId, prices: &'a Prices, phase: Option<Phase>, is_whole: bool) -> Self {
        Self {
            id,
            is_main: false,
            prices,
            phase,
            is_whole,
            out: Vec::new(),
            start: None,
            runs: 0,
            turns: 0,
            tool_uses: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            last_words: String::new(),
            began: Timestamp::default(),
            at: Timestamp::default(),
            has_ended: true,
            open: HashMap::new(),
        }
    }

    fn read(mut self, folder: &SessionFolder) -> Vec<Told> {
        let Ok(records) = folder.records(self.id) else {
            return Vec::new();
        };
        for line in records.map_while(Result::ok) {
            if let Line::Record(record) = line {
                self.record(*record);
            }
        }
        self.settle();
        if !self.has_ended {
            // Its process ended first.
            self.ended(End::Interrupted);
        }
        self.out
    }

    fn record(&mut self, record: Record) {
        self.at = record.at;
        match record.entry {
            Entry::Start(start) => self.started(start),
            Entry::Input(message) if self.is_whole => {
                self.settle();
                self.tell(EventKind::Input(message));
            }
            Entry::Input(_) => {}
            Entry::Answer(answer) => self.answered(&answer),
            Entry::Result(result) => {
                let tool = self.open.remove(&result.call);
                if self.is_whole
                    && let Some(tool) = tool
                {
                    self.tell(EventKind::ToolFinished {
                        tool,
                        result,
                        duration_ms: 0,
                    });
                }
            }
            Entry::Compacted(compacted) => {
                let cost = self.price(&compacted.model, compacted.usage);
                self.tell(EventKind::Spent {
                    model: compacted.model.clone(),
                    usage: compacted.usage,
                    cost,
                });
                self.tell(EventKind::Compacted {
                    trigger: compacted.trigger,
                    tokens_before: compacted.tokens_before,
                    tokens_after: compacted.tokens_after,
                });
            }
            Entry::End(end) => {
                self.settle();
                self.ended(end);
            }
        }
    }

    fn started(&mut self, start: Box<Start>) {
        self.runs += 1;
        self.began = self.at;
        self.has_ended = self.is_main;
        let before = self.start.replace(start);
        // The session's own agent is there already.
        let Some(start) = self.start.as_ref().filter(|_| !self.is_main) else {
            return;
        };
        let kind = match before {
            Some(_) => EventKind::Continued,
            None => EventKind::AgentStarted(Box::new(AgentStarted {
                name: start.name.clone(),
                agent_type: start.agent_type.clone(),
                parent: start.parent,
                description: start.description.clone(),
                call: None,
                depth: 1,
                phase: self.phase,
            })),
        };
        self.tell(kind);
    }

    fn answered(&mut self, answer: &Arc<Answer>) {
        self.settle();
        self.turns += 1;
        let cost = self.price(&answer.model, answer.usage);
        self.usage += answer.usage;
        self.cost += cost;
        let text = answer.text();
        if !text.trim().is_empty() {
            self.last_words = text;
        }
        let calls: Vec<ToolUse> = answer.tool_uses().cloned().collect();
        self.tool_uses += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        if !self.is_whole {
            self.tell(EventKind::Spent {
                model: answer.model.clone(),
                usage: answer.usage,
                cost,
            });
            return;
        }
        self.tell(EventKind::Answered {
            turn: self.turns,
            answer: answer.clone(),
            cost,
        });
        for call in calls {
            self.open.insert(call.id.clone(), call.name.clone());
            let tool_use = Arc::new(call);
            self.tell(EventKind::ToolStarted { tool_use });
        }
    }

    /// Calls that never had a result do not run any more.
    fn settle(&mut self) {
        for (call, tool) in std::mem::take(&mut self.open) {
            let result = Arc::new(ToolResult {
                call,
                parts: vec![ResultPart::Text("it was cut off".to_owned())],
                is_error: true,
                mail: None,
            });
            self.tell(EventKind::ToolFinished {
                tool,
                result,
                duration_ms: 0,
            });
        }
    }

    fn ended(&mut self, end: End) {
        if self.is_main {
            return self.tell(EventKind::Waiting(Waiting::Mail));
        }
        self.has_ended = true;
        let ended = AgentEnded {
            end,
            result: self.last_words.clone(),
            turns: self.turns,
            tool_uses: self.tool_uses,
            usage: self.usage,
            cost: self.cost,
            duration_ms: self.at.0.saturating_sub(self.began.0),
            model_ms: 0,
            stop: None,
            denials: Vec::new(),
            phase: self.phase,
            is_unverified: false,
            structured: None,
        };
        self.tell(EventKind::AgentEnded(Box::new(ended)));
    }

    fn price(&self, model: &str, usage: Usage) -> Cost {
        let asked = self.start.as_ref().map(|start| start.model.as_str());
        let known = self.prices.of(model).map(|_| model);
        self.prices.cost(known.or(asked).unwrap_or(model), usage)
    }

    fn tell(&mut self, kind: EventKind) {
        self.out.push((self.at, self.id, kind));
    }
}
