//! Whether a budget covers a worker before it begins, and how its account is opened and closed.

use super::purse::{Amount, Purse};
use super::{Member, Purses};
use gaffer_protocol::{AgentId, AgentName, Budget, Cap};
use std::time::Duration;

/// So many of those for whom something is reserved are named.
const MOST_NAMED: usize = 4;

/// A worker that is to begin.
#[derive(Debug)]
pub(crate) struct Applicant<'a> {
    pub(crate) id: AgentId,
    pub(crate) name: &'a AgentName,
    pub(crate) kind: &'a str,
    pub(crate) parent: AgentId,
    pub(crate) prompt: &'a str,
    pub(crate) budget: Budget,
}

/// What is said behind the answer of the tool; empty, or a line behind a line break.
pub(crate) fn advice_line(advice: Option<&str>) -> String {
    advice.map_or_else(String::new, |text| format!("\nAdvice: budget: {text}"))
}

impl Purses {
    /// What is reserved in a purse for those that run and wait, and for the last turn of its owner.
    fn reserved(&self, owner: AgentId) -> Amount {
        let own = self.members.get(&owner);
        let own = own.filter(|member| member.turns > 0 && !member.has_wrapped_up);
        let last = own.map(|member| self.request(member)).unwrap_or_default();
        let below = self.users(owner).filter(|(id, _)| *id != owner);
        below.fold(last, |sum, (_, member)| sum.plus(member.reserved()))
    }

    /// Reserves for a worker what it is expected to use. An error says what is missing, and what
    /// to do.
    pub(crate) fn admit(
        &mut self,
        applicant: &Applicant<'_>,
        at: Duration,
    ) -> Result<Option<String>, String> {
        let own = Purse::new(applicant.budget).most();
        let mut expected = Amount::MOST;
        for owner in self.owners(applicant.parent) {
            let Some(purse) = self.purse(owner) else {
                continue;
            };
            let wanted = self
                .forecast
                .of(applicant.kind, purse.most())
                .amount
                .min(own);
            if let Err(why) = self.covers(owner, applicant.kind, wanted, at) {
                self.refused += 1;
                return Err(why);
            }
            expected = expected.min(wanted);
        }
        for owner in self.owners(applicant.parent) {
            if let Some(purse) = self.purse_mut(owner) {
                purse.workers = purse.workers.saturating_add(1);
            }
        }
        let advice = self.weigh(applicant, expected);
        let mut member = Member::new(
            applicant.name.clone(),
            applicant.kind.to_owned(),
            Some(applicant.parent),
            applicant.budget,
        );
        member.expected = expected;
        self.has_caps |= member.purse.is_some();
        self.members.insert(applicant.id, member);
        self.live.insert(applicant.id);
        self.note_peak();
        Ok(advice)
    }

    fn covers(
        &self,
        owner: AgentId,
        kind: &str,
        wanted: Amount,
        at: Duration,
    ) -> Result<(), String> {
        let Some(purse) = self.purse(owner) else {
            return Ok(());
        };
        let whose = if owner == self.main {
            "the session's"
        } else {
            "your"
        };
        if let Some(most) = purse.caps.workers.filter(|most| purse.workers >= *most) {
            return Err(format!(
                "{whose} budget is {most} workers in all, and {} were started: continue one that ended with SendMessage, or finish with what there is",
                purse.workers
            ));
        }
        self.is_open(owner, at)?;
        let (left, reserved) = (purse.left(), self.reserved(owner));
        let free = left.minus(reserved);
        let short = match () {
            () if purse.caps.usd.is_some() && free.micro < wanted.micro => Cap::Usd,
            () if purse.caps.tokens.is_some() && free.tokens < wanted.tokens => Cap::Tokens,
            () => return Ok(()),
        };
        let most = short.amount(purse.most().figure(short));
        let basis = self.forecast.of(kind, purse.most()).basis;
        Err(format!(
            "{whose} budget does not cover it: {} of {most} is left, {} of it is reserved{}, and this worker is forecast to use {} ({basis}). Wait for those that run, continue one that ended with a small order, or finish with what there is",
            short.amount(left.figure(short)),
            short.amount(reserved.figure(short)),
            self.for_whom(owner, short),
            short.amount(wanted.figure(short)),
        ))
    }

    fn is_open(&self, owner: AgentId, at: Duration) -> Result<(), String> {
        let Some(purse) = self.purse(owner) else {
            return Ok(());
        };
        match purse.closed.or_else(|| purse.is_empty(at)) {
            None => Ok(()),
            Some(cap) => {
                let used = purse.how_much(cap, at);
                Err(format!(
                    "the budget is used up: {used}. Finish with what there is; the user can go on with a higher one"
                ))
            }
        }
    }

    fn for_whom(&self, owner: AgentId, cap: Cap) -> String {
        let all = self.users(owner).filter(|(id, _)| *id != owner);
        let all = all.map(|(_, member)| (&member.name, member.reserved().figure(cap)));
        let mut all: Vec<_> = all.filter(|(_, figure)| *figure > 0.0).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let more = all.len().saturating_sub(MOST_NAMED);
        let names = all.iter().take(MOST_NAMED);
        let mut names: Vec<String> = names
            .map(|(name, figure)| format!("{name} {}", cap.amount(*figure)))
            .collect();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        match names.is_empty() {
            true => " for your own last turn".to_owned(),
            false => format!(" for those that run and wait ({})", names.join(", ")),
        }
    }

    /// Whether a worker that has ended may be continued.
    pub(crate) fn may_continue(&self, id: AgentId, at: Duration) -> Result<(), String> {
        if !self.has_caps {
            return Ok(());
        }
        for owner in self.owners(id) {
            self.is_open(owner, at)?;
            let Some(purse) = self.purse(owner) else {
                continue;
            };
            let free = purse.left().minus(self.reserved(owner));
            let short = match () {
                () if free.micro == 0 => Cap::Usd,
                () if free.tokens == 0 => Cap::Tokens,
                () => continue,
            };
            return Err(format!(
                "the budget does not cover it: {} is left, and all of it is reserved{}. Wait for them",
                short.amount(purse.left().figure(short)),
                self.for_whom(owner, short),
            ));
        }
        Ok(())
    }

    /// A task runs again, or waits for its place again.
    pub(crate) fn begin_run(&mut self, id: AgentId) {
        let mut expected = Amount::MOST;
        for owner in self.owners(id) {
            let (Some(purse), Some(member)) = (self.purse(owner), self.members.get(&id)) else {
                continue;
            };
            let wanted = self.forecast.of(&member.kind, purse.most()).amount;
            let free = purse.left().minus(self.reserved(owner));
            expected = expected.min(wanted).min(free);
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.expected = expected;
            member.spent = Amount::default();
            member.turns = 0;
            member.is_asking = false;
            member.has_wrapped_up = false;
            self.live.insert(id);
        }
        self.note_peak();
    }

    /// It has its place: its clock runs.
    pub(crate) fn start_clock(&mut self, id: AgentId, at: Duration) {
        match self.members.get_mut(&id) {
            Some(member) if !member.is_clocked => member.is_clocked = true,
            _ => return,
        }
        for owner in self.owners(id) {
            if let Some(purse) = self.purse_mut(owner) {
                purse.join(at);
            }
        }
    }

    /// A run has ended: nothing is reserved for it any more, and the forecast knows more.
    pub(crate) fn end_run(&mut self, id: AgentId, at: Duration) {
        if !self.live.remove(&id) {
            return;
        }
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        member.is_asking = false;
        let was_clocked = std::mem::take(&mut member.is_clocked);
        let (kind, spent, turns) = (member.kind.clone(), member.spent, member.turns);
        if turns > 0 {
            self.forecast.learn(&kind, spent);
        }
        for owner in self.owners(id).into_iter().filter(|_| was_clocked) {
            if let Some(purse) = self.purse_mut(owner) {
                purse.leave(at);
            }
        }
    }

    /// Takes back one that never began.
    pub(crate) fn remove(&mut self, id: AgentId, at: Duration) {
        for owner in self.owners(id) {
            if let Some(purse) = self.purse_mut(owner).filter(|_| owner != id) {
                purse.workers = purse.workers.saturating_sub(1);
            }
        }
        self.end_run(id, at);
        self.members.remove(&id);
    }

    /// A task of an earlier process, with what it had used in so many runs and turns.
    pub(crate) fn restore(
        &mut self,
        applicant: &Applicant<'_>,
        (amount, time, (runs, turns)): (Amount, Duration, (u32, u32)),
    ) {
        let Applicant { id, name, kind, .. } = *applicant;
        let above = Some(applicant.parent);
        let member = Member::new(name.clone(), kind.to_owned(), above, applicant.budget);
        self.has_caps |= member.purse.is_some();
        self.members.insert(id, member);
        self.expect_more(id, amount, turns);
        for owner in self.owners(id) {
            let main = self.main;
            let Some(purse) = self.purse_mut(owner) else {
                continue;
            };
            purse.spent = purse.spent.plus(amount);
            // The session's own agent was there all the time.
            if owner != main {
                purse.ran = purse.ran.saturating_add(time);
            }
            if owner != id {
                purse.workers = purse.workers.saturating_add(1);
            }
        }
        if amount != Amount::default() {
            self.forecast.learn(kind, amount.part(runs.into()));
        }
    }

    fn note_peak(&mut self) {
        if self.has_caps {
            let below = self.users(self.main).filter(|(id, _)| *id != self.main);
            let sum = below.fold(Amount::default(), |sum, (_, member)| {
                sum.plus(member.reserved())
            });
            self.reserved_peak = self.reserved_peak.max(sum);
        }
    }
}
