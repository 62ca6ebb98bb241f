//! The phases of a session: a state machine over what its workers were started for and what came
//! of it. It knows nothing of how they run; it says what happened, and which order is out of turn.

#[cfg(test)]
mod tests;

use crate::roster::Spending;
use gaffer_protocol::course::{Share, Stretch};
use gaffer_protocol::{AgentName, Course, Phase};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};

/// One run of a worker, as the course of the session sees it. The moments count up within a
/// session; 0 is one that has not come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stint {
    /// What it is thought to be for, and when it has ended what it was.
    pub(crate) phase: Phase,
    pub(crate) ordered: u64,
    #[serde(default)]
    pub(crate) began: u64,
    #[serde(default)]
    pub(crate) ended: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_completed: bool,
    /// Something that the order named has shown it to be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_proven: bool,
    #[serde(default)]
    pub(crate) spending: Spending,
}

impl Stint {
    pub(crate) fn new(phase: Phase, ordered: u64) -> Self {
        Self {
            phase,
            ordered,
            began: 0,
            ended: 0,
            is_completed: false,
            is_proven: false,
            spending: Spending::default(),
        }
    }

    /// Whether there is nothing but the worker's word for what it reports. A verification is the
    /// proof of something else.
    pub(crate) fn is_unverified(&self) -> bool {
        self.is_completed && !self.is_proven && self.phase != Phase::Verification
    }
}

/// A stint with who had it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) name: &'a AgentName,
    pub(crate) stint: &'a Stint,
}

/// What a run was: facts go before what an order says of itself.
pub(crate) fn settled(planned: Phase, is_inferred: bool, has_changed: bool) -> Phase {
    match planned {
        Phase::Implementation if is_inferred && !has_changed => Phase::Research,
        Phase::Research | Phase::Synthesis if has_changed => Phase::Implementation,
        Phase::Synthesis => Phase::Research,
        other => other,
    }
}

/// Where a session stands.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    stretches: Vec<Stretch>,
    /// Research came back and nothing was made of it yet.
    has_news: bool,
    has_researched: bool,
    has_implemented: bool,
    /// Researchers that have not come back.
    looking: Vec<AgentName>,
    /// Who changed something since the last verification that began after it.
    unchecked: Vec<(AgentName, u64)>,
    /// Whose word is all there is, with the moment of it.
    unverified: Vec<(AgentName, u64)>,
}

/// What is out of turn about an order. The names are those of texts in the rules' data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutOfTurn {
    pub(crate) rule: &'static str,
    pub(crate) workers: Vec<AgentName>,
}

enum Moment {
    Ordered,
    Ended,
}

impl Phases {
    /// Goes through all that happened, in the order in which it did.
    pub(crate) fn of<'a>(all: impl Iterator<Item = Work<'a>>) -> Self {
        let mut moments: Vec<(u64, Moment, Work<'a>)> = Vec::new();
        for work in all {
            moments.push((work.stint.ordered, Moment::Ordered, work));
            if work.stint.ended > 0 {
                moments.push((work.stint.ended, Moment::Ended, work));
            }
        }
        moments.sort_by_key(|(at, ..)| *at);
        let mut phases = Self::default();
        for (_, moment, work) in moments {
            match moment {
                Moment::Ordered => phases.ordered(work),
                Moment::Ended => phases.ended(work),
            }
        }
        phases
    }

    fn ordered(&mut self, work: Work<'_>) {
        self.synthesis();
        let phase = work.stint.phase;
        match phase {
            Phase::Research => self.looking.push(work.name.clone()),
            Phase::Implementation => self.has_implemented = true,
            Phase::Synthesis | Phase::Verification => {}
        }
        match self.stretches.last_mut() {
            Some(last) if last.phase == phase => {
                if !last.workers.contains(work.name) {
                    last.workers.push(work.name.clone());
                }
            }
            _ => self.stretches.push(Stretch {
                phase,
                workers: vec![work.name.clone()],
            }),
        }
    }

    /// The one above made something of what it was told.
    fn synthesis(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.stretches.push(Stretch {
                phase: Phase::Synthesis,
                workers: Vec::new(),
            });
        }
    }

    fn ended(&mut self, work: Work<'_>) {
        let Stint {
            phase,
            began,
            ended,
            is_completed,
            ..
        } = work.stint;
        if *phase == Phase::Research {
            // One of a worker's stints, should it have had several.
            if let Some(at) = self.looking.iter().position(|name| name == work.name) {
                self.looking.remove(at);
            }
        }
        if !is_completed {
            return;
        }
        match phase {
            Phase::Research => {
                self.has_researched = true;
                self.has_news = true;
            }
            Phase::Implementation => self.unchecked.push((work.name.clone(), *ended)),
            Phase::Verification => {
                // What was still being written when it began it cannot have seen whole, and
                // nobody checks what they wrote themselves.
                let is_left = |(name, at): &(AgentName, u64)| *at > *began || name == work.name;
                self.unchecked.retain(is_left);
                self.unverified.retain(is_left);
            }
            Phase::Synthesis => {}
        }
        if work.stint.is_unverified() {
            self.unverified.push((work.name.clone(), *ended));
        }
    }

    /// What is out of turn about an order to implement, which names files or does not, and waits
    /// for these or for nobody.
    pub(crate) fn before_implementing(
        &self,
        names_files: bool,
        waits_for: &[AgentName],
    ) -> Option<OutOfTurn> {
        let unheard: Vec<AgentName> = self
            .looking
            .iter()
            .filter(|name| !waits_for.contains(name))
            .cloned()
            .collect();
        if !unheard.is_empty() {
            return Some(OutOfTurn {
                rule: "research-running",
                workers: unheard,
            });
        }
        let is_first = !self.has_implemented && !self.has_researched;
        (is_first && !names_files && waits_for.is_empty()).then_some(OutOfTurn {
            rule: "unresearched",
            workers: Vec::new(),
        })
    }

    /// What is out of turn about an end of the whole.
    pub(crate) fn before_the_end(&self) -> Option<OutOfTurn> {
        let workers = distinct(&self.unchecked);
        (!workers.is_empty()).then_some(OutOfTurn {
            rule: "unchecked-work",
            workers,
        })
    }

    /// What there is to say when all is over.
    pub(crate) fn course(mut self, shares: Vec<Share>) -> Course {
        self.synthesis();
        let seen: BTreeSet<Phase> = self.stretches.iter().map(|it| it.phase).collect();
        let left_out = Phase::ALL.into_iter().filter(|it| !seen.contains(it));
        Course {
            left_out: match self.stretches.is_empty() {
                true => Vec::new(),
                false => left_out.collect(),
            },
            unchecked: distinct(&self.unchecked),
            unverified: distinct(&self.unverified),
            stretches: self.stretches,
            shares,
        }
    }
}

/// Each name once, in the order in which they came.
fn distinct(all: &[(AgentName, u64)]) -> Vec<AgentName> {
    let mut names: Vec<AgentName> = Vec::new();
    for (name, _) in all {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// What each phase took, by its stints. `main` is what the session's own agent used up.
pub(crate) fn shares<'a>(all: impl Iterator<Item = Work<'a>>, main: &Spending) -> Vec<Share> {
    let mut shares = Phase::ALL.map(Share::of);
    let mut names: [HashSet<&AgentName>; 4] = Default::default();
    for work in all {
        let spent = &work.stint.spending;
        for (share, names) in shares.iter_mut().zip(&mut names) {
            if share.phase == work.stint.phase {
                add(share, spent);
                names.insert(work.name);
            }
        }
    }
    for (share, names) in shares.iter_mut().zip(&names) {
        share.agents = u32::try_from(names.len()).unwrap_or(u32::MAX);
        if share.phase == Phase::Synthesis {
            add(share, main);
            share.agents += 1;
        }
    }
    shares.into_iter().filter(|it| it.agents > 0).collect()
}

fn add(share: &mut Share, spent: &Spending) {
    share.turns += spent.turns;
    share.tool_uses += spent.tool_uses;
    share.usage += spent.usage();
    share.cost += spent.by_model.values().map(|(_, cost)| *cost).sum();
    share.time += spent.time;
}
