//! Where the phases meet the crew: what a task is for, which order is out of turn, what is said
//! before the whole ends, and the course of the session afterwards.

use crate::crew::Crew;
use crate::history::Named;
use crate::notes::Notes;
use crate::orders::{Level, OrderKind, OrderText};
use crate::phases::{OutOfTurn, Phases, Stint, Work, settled, shares};
use crate::proof::Verdict;
use crate::roster::{Spending, State, Task};
use crate::shape::Shaping;
use crate::start::Order;
use gaffer_agent::AgentType;
use gaffer_protocol::event::Advice;
use gaffer_protocol::{AgentId, AgentName, Block, Course, End, EventKind, Origin, Phase, Status};
use gaffer_store::book::{self, Contents};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const UNCHECKED: &str = include_str!("../../../prompts/unchecked.md");
/// So many runs of one worker are told apart; the rest count for the last.
const MOST_STINTS: usize = 100;
/// So many workers are named in advice.
const MOST_NAMED: usize = 5;
/// The mode in which the agent above can only manage, and so has no research of its own.
const COORDINATOR: &str = "coordinator";

/// What the crew keeps for its course.
#[derive(Debug, Default)]
pub(crate) struct Clockwork {
    moment: AtomicU64,
    /// The user's last prompt has been answered for once already.
    has_reminded: AtomicBool,
    /// What the result of the session's own agent has to look like.
    pub(crate) shaping: Mutex<Option<Shaping>>,
}

impl Clockwork {
    fn next(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A new prompt: a new answer, and a new reason to look at it.
    pub(crate) fn prompted(&self) {
        self.has_reminded.store(false, Ordering::Relaxed);
    }
}

impl Crew {
    /// Says what an order is for that does not say it itself: the worker's type where that is
    /// certain, else the order's words, else whatever the worker can do.
    pub(crate) fn infer_phase(&self, order: &mut Order) {
        if order.terms.phase.is_some() {
            return;
        }
        order.terms.phase = Some(self.inferred(&order.kind, &order.prompt));
        order.terms.is_inferred = true;
    }

    fn inferred(&self, kind: &AgentType, prompt: &str) -> Phase {
        let by_words = || {
            let rules = self.parts().guardrails.rules()?;
            let kind = rules.tone(&OrderText::fresh(prompt)).kind?;
            Some(match kind {
                OrderKind::Research => Phase::Research,
                OrderKind::Implementation => Phase::Implementation,
                OrderKind::Verification => Phase::Verification,
            })
        };
        let phase = of_type(kind).or_else(by_words);
        phase.unwrap_or(Phase::Implementation)
    }

    /// What a call of Agent is for, as it was made.
    pub(crate) fn phase_of_input(&self, input: &Value) -> Phase {
        if let Ok(phase) = Phase::deserialize(&input["phase"]) {
            return phase;
        }
        let kind = input["subagent_type"].as_str().unwrap_or("worker");
        let prompt = input["prompt"].as_str().unwrap_or_default();
        let types = self.parts().outfitter.types();
        types
            .choose(kind)
            .map_or(Phase::Implementation, |kind| self.inferred(kind, prompt))
    }

    /// What is out of turn about an order for a fresh worker.
    pub(crate) fn phase_advice(&self, order: &Order) -> Option<Advice> {
        let is_work = order.terms.phase == Some(Phase::Implementation);
        if !is_work || !self.has_phases(order.parent) {
            return None;
        }
        let guardrails = &self.parts().guardrails;
        let rules = guardrails.rules();
        let named = rules.map(|rules| Named::of(&order.prompt, rules.files()));
        let names_files =
            !order.terms.files.is_empty() || named.is_none_or(|it| !it.files.is_empty());
        let found = {
            let roster = self.0.roster();
            let found = |text: &String| match roster.find(text) {
                Some(task) => Some(task.name.clone()),
                None => AgentName::parse(text.trim()).ok(),
            };
            let waits_for: Vec<AgentName> = order.depends_on.iter().filter_map(found).collect();
            let phases = Phases::of(roster.all().flat_map(works));
            phases.before_implementing(names_files, &waits_for)
        }?;
        let is_begin = found.rule == "unresearched";
        let project = guardrails.project.as_deref();
        if is_begin && project.is_some_and(is_blank) {
            return None;
        }
        Some(self.out_of_turn(&found))
    }

    /// What is out of turn about a message that asks a worker to verify: it may have written that
    /// itself.
    pub(crate) fn own_verification(
        &self,
        caller: AgentId,
        to: &str,
        kind: Option<OrderKind>,
    ) -> Option<Advice> {
        if kind != Some(OrderKind::Verification) || !self.has_phases(caller) {
            return None;
        }
        let name = {
            let roster = self.0.roster();
            let task = roster.find(to)?;
            let is_work = |stint: &Stint| stint.phase == Phase::Implementation;
            let has_ended = |stint: &&Stint| stint.ended > 0;
            let has_worked = task.stints.iter().filter(has_ended).any(is_work);
            has_worked.then(|| task.name.clone())
        }?;
        Some(self.out_of_turn(&OutOfTurn {
            rule: "own-verification",
            workers: vec![name],
        }))
    }

    /// Looks at the whole when the session's own agent is about to end: the end that it comes to,
    /// or none if the agent has been told something and goes on.
    pub(crate) fn close_main(&self, end: End, last_words: &str) -> Option<End> {
        if self.remind(&end) {
            return None;
        }
        match self.look_at_form(&end, last_words) {
            Verdict::Proven => Some(self.end_with_plan(end)),
            Verdict::Not(end) => Some(end),
            Verdict::Again(block) => {
                self.parts().main_inbox.send(block);
                None
            }
        }
    }

    /// Says what no fresh worker has verified, once for each prompt of the user's. True if the
    /// session's own agent is to go on for it.
    fn remind(&self, end: &End) -> bool {
        let main = self.parts().main;
        if *end != End::Done || !self.has_phases(main) {
            return false;
        }
        let found = {
            let roster = self.0.roster();
            Phases::of(roster.all().flat_map(works)).before_the_end()
        };
        let clockwork = &self.0.clockwork;
        let Some(found) = found else {
            return false;
        };
        if clockwork.has_reminded.swap(true, Ordering::Relaxed) {
            return false;
        }
        let advice = self.out_of_turn(&found);
        let is_refusal = advice.is_refusal;
        self.emit(main, EventKind::Advice(Box::new(advice)));
        if is_refusal {
            let text = UNCHECKED.replace("{workers}", &listed(&found.workers));
            let block = Block::from(Origin::Context, text.trim_end());
            self.parts().main_inbox.send(block);
        }
        is_refusal
    }

    /// Whether anybody looks at the phases of what this agent orders.
    fn has_phases(&self, caller: AgentId) -> bool {
        let parts = self.parts();
        let is_on = parts.guardrails.phases != Level::Off;
        is_on && parts.mode == COORDINATOR && caller == parts.main
    }

    fn out_of_turn(&self, found: &OutOfTurn) -> Advice {
        let guardrails = &self.parts().guardrails;
        let text = guardrails.rules().map_or("", |it| it.text(found.rule));
        Advice {
            guardrail: "phases",
            rule: found.rule.to_owned(),
            excerpt: String::new(),
            text: text.replace("{workers}", &listed(&found.workers)),
            score: None,
            is_refusal: guardrails.phases == Level::Enforce,
        }
    }

    /// The next moment of the session.
    pub(crate) fn moment(&self) -> u64 {
        self.0.clockwork.next()
    }

    /// These moments have been.
    pub(crate) fn count_moments_from(&self, last: u64) {
        let moment = &self.0.clockwork.moment;
        moment.fetch_max(last, Ordering::Relaxed);
    }

    /// Workers that changed something which nobody has verified since, where anybody looks at it.
    pub fn unchecked(&self) -> Vec<AgentName> {
        if !self.has_phases(self.parts().main) {
            return Vec::new();
        }
        let roster = self.0.roster();
        let found = Phases::of(roster.all().flat_map(works)).before_the_end();
        found.map(|it| it.workers).unwrap_or_default()
    }

    /// The phases of the session so far. None where it had no workers.
    pub fn course(&self) -> Option<Course> {
        let roster = self.0.roster();
        let mut all = roster.all().flat_map(works).peekable();
        all.peek()?;
        let shares = shares(roster.all().flat_map(works), &roster.main);
        Some(Phases::of(all).course(shares))
    }

    /// Tells whoever watches how the session went.
    pub fn tell_course(&self) {
        if let Some(course) = self.course() {
            let event = EventKind::Course(Arc::new(course));
            self.emit(self.parts().main, event);
        }
    }
}

impl Task {
    /// A run begins to count, at this moment.
    pub(crate) fn add_stint(&mut self, moment: u64) {
        let phase = self.terms.phase.or_else(|| of_type(&self.kind));
        let stint = Stint::new(phase.unwrap_or(Phase::Implementation), moment);
        if self.stints.len() < MOST_STINTS {
            self.stints.push(stint);
        } else if let Some(last) = self.stints.last_mut() {
            let spending = std::mem::take(&mut last.spending);
            *last = Stint { spending, ..stint };
        }
    }

    /// A run is over: what it was is known now.
    pub(crate) fn close_stint(&mut self, moment: u64, end: &End, has_changed: bool) {
        let terms = self.terms.clone();
        let is_inferred = terms.phase.is_none() || terms.is_inferred || self.stints.len() > 1;
        let Some(stint) = self.stints.last_mut() else {
            return;
        };
        stint.ended = moment;
        stint.is_completed = end.status() == Status::Completed;
        stint.is_proven = stint.is_completed && terms.has_proof();
        // One that failed half-way may have had its work before it.
        if stint.is_completed || has_changed {
            stint.phase = settled(stint.phase, is_inferred, has_changed);
        }
    }

    /// What it is for, or what it last was.
    pub(crate) fn phase(&self) -> Phase {
        let last = self.stints.last().map(|stint| stint.phase);
        last.or(self.terms.phase).unwrap_or(Phase::Implementation)
    }

    pub(crate) fn is_unverified(&self) -> bool {
        self.stints.last().is_some_and(Stint::is_unverified)
    }

    /// Brings what was kept of its runs up to how many there were.
    pub(crate) fn take_up_stints(&mut self, mut moment: impl FnMut() -> u64) {
        let runs = usize::try_from(self.runs).unwrap_or(usize::MAX);
        let has_all = self.stints.len() >= runs.min(MOST_STINTS);
        if !has_all {
            let known: u32 = self.stints.iter().map(|it| it.spending.turns).sum();
            self.add_stint(moment());
            let spending = self.spending.clone();
            if let Some(last) = self.stints.last_mut().filter(|_| known == 0) {
                last.spending = spending;
            }
        }
        let is_open = self.stints.last().is_some_and(|it| it.ended == 0);
        if let (true, State::Ended(end)) = (is_open, &self.state) {
            let (end, has_changed) = (end.clone(), self.history.has_written());
            self.close_stint(moment(), &end, has_changed);
        }
    }
}

/// What a type of worker is for, where that is certain.
fn of_type(kind: &AgentType) -> Option<Phase> {
    let can_write = kind.keeps("Edit") || kind.keeps("Write");
    match kind.name.as_str() {
        "verifier" => Some(Phase::Verification),
        _ if !can_write => Some(Phase::Research),
        _ => None,
    }
}

fn works(task: &Task) -> impl Iterator<Item = Work<'_>> {
    let name = &task.name;
    task.stints.iter().map(move |stint| Work { name, stint })
}

fn listed(workers: &[AgentName]) -> String {
    let names = workers.iter().take(MOST_NAMED).map(AgentName::as_str);
    let mut text = names.collect::<Vec<_>>().join(", ");
    if workers.len() > MOST_NAMED {
        text.push_str(&format!(" and {} more", workers.len() - MOST_NAMED));
    }
    text
}

/// Whether there is nothing in a folder that could be looked into.
fn is_blank(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    entries.flatten().all(|entry| is_hidden(&entry.file_name()))
}

/// What a book keeps of a session's course, for those who look at it later.
#[derive(Debug, Default)]
pub struct Kept {
    /// In the order of their starts.
    tasks: Vec<KeptTask>,
}

#[derive(Debug)]
pub struct KeptTask {
    pub id: AgentId,
    name: AgentName,
    planned: Phase,
    /// How good its orders were, the one it was started with first.
    pub scores: Vec<u8>,
    stints: Vec<Stint>,
}

impl KeptTask {
    /// What it was for, or what it last was.
    pub fn phase(&self) -> Phase {
        self.stints.last().map_or(self.planned, |stint| stint.phase)
    }

    /// What one of its runs was for, counted from 0.
    pub fn phase_of_run(&self, n: usize) -> Phase {
        let stint = self.stints.get(n).or(self.stints.last());
        stint.map_or(self.planned, |stint| stint.phase)
    }

    /// Whether it was reported done without a proof.
    pub fn is_unverified(&self) -> bool {
        self.stints.last().is_some_and(Stint::is_unverified)
    }
}

impl Kept {
    pub fn read(contents: &Contents) -> Self {
        let kept = |entered: &book::Entered| {
            let notes = entered.notes.as_deref().map(Notes::parse);
            let Notes { stints, scores, .. } = notes.unwrap_or_default();
            let task = &entered.task;
            KeptTask {
                id: task.id,
                name: task.name.clone(),
                planned: task.terms.phase.unwrap_or(Phase::Implementation),
                scores,
                stints,
            }
        };
        Self {
            tasks: contents.tasks.iter().map(kept).collect(),
        }
    }

    pub fn get(&self, id: AgentId) -> Option<&KeptTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// What the record of a worker says, where the book has nothing of its runs: it still runs,
    /// or its process died.
    pub fn add_missing(&mut self, id: AgentId, spending: Spending) {
        let mut tasks = self.tasks.iter_mut();
        let task = tasks.find(|task| task.id == id && task.stints.is_empty());
        if let Some(task) = task {
            task.stints.push(Stint {
                spending,
                ..Stint::new(task.planned, u64::MAX)
            });
        }
    }

    /// The course of the session. `main` is what its own agent used up. None where it had no
    /// workers.
    pub fn course(&self, main: &Spending) -> Option<Course> {
        let works = |task: &'_ KeptTask| -> Vec<(AgentName, Stint)> {
            let stints = task.stints.iter();
            stints.map(|it| (task.name.clone(), it.clone())).collect()
        };
        let all: Vec<(AgentName, Stint)> = self.tasks.iter().flat_map(works).collect();
        let all = || all.iter().map(|(name, stint)| Work { name, stint });
        all().next()?;
        Some(Phases::of(all()).course(shares(all(), main)))
    }
}
