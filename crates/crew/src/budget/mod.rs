//! The budgets of a session and of its tasks: a tree of purses. What an agent uses goes on its own
//! purse, if it has one, and on all above it. Plain state: whoever changes it says what time it is.

pub(crate) mod admit;
mod advice;
mod forecast;
mod grant;
mod purse;
#[cfg(test)]
mod tests;

use forecast::Forecast;
use gaffer_agent::Say;
use gaffer_protocol::{
    AgentId, AgentName, Block, Budget, BudgetNews, BudgetSum, Cap, Cost, Origin, Usage,
};
use purse::{Amount, Purse};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const WRAP_UP: &str = include_str!("../../../../prompts/budget-wrap-up.md");

/// News, and whose budget they are about.
pub(crate) type News = Vec<(AgentId, BudgetNews)>;

/// All that is known of the money of a session.
#[derive(Debug)]
pub(crate) struct Purses {
    main: AgentId,
    members: BTreeMap<AgentId, Member>,
    live: BTreeSet<AgentId>,
    forecast: Forecast,
    /// Whether anything is limited at all.
    has_caps: bool,
    refused: u32,
    reserved_peak: Amount,
    fan_out: advice::FanOut,
}

#[derive(Debug)]
struct Member {
    name: AgentName,
    kind: String,
    /// None for the session's own agent.
    above: Option<AgentId>,
    purse: Option<Purse>,
    /// What it has used itself, since its run began.
    spent: Amount,
    /// What this run is expected to come to.
    expected: Amount,
    /// What its last request came to: its next one, and its last turn, will be like it.
    last: Option<Amount>,
    turns: u32,
    is_asking: bool,
    is_clocked: bool,
    has_wrapped_up: bool,
    /// What it is to be told with its next request.
    words: Vec<String>,
}

impl Member {
    fn new(name: AgentName, kind: String, above: Option<AgentId>, budget: Budget) -> Self {
        Self {
            name,
            kind,
            above,
            purse: (!budget.is_empty()).then(|| Purse::new(budget)),
            spent: Amount::default(),
            expected: Amount::default(),
            last: None,
            turns: 0,
            is_asking: false,
            is_clocked: false,
            has_wrapped_up: false,
            words: Vec::new(),
        }
    }

    /// What its next request will come to. One that has been there before has with its first
    /// request a last turn before it, for which nothing was held back yet.
    fn next(&self) -> Amount {
        let one = self.last.unwrap_or_default();
        match self.turns {
            0 => one.plus(one),
            _ => one,
        }
    }

    fn reserved(&self) -> Amount {
        let own = self.purse.as_ref().map_or(Amount::MOST, Purse::left);
        self.expected.minus(self.spent).min(own)
    }
}

impl Purses {
    /// The session's own agent works from now on.
    pub(crate) fn new(main: AgentId, caps: Budget) -> Self {
        let mut own = Member::new(AgentName::main(), String::new(), None, caps);
        let mut purse = Purse::new(caps);
        purse.join(Duration::ZERO);
        own.purse = Some(purse);
        own.is_clocked = true;
        Self {
            main,
            members: BTreeMap::from([(main, own)]),
            live: BTreeSet::from([main]),
            forecast: Forecast::default(),
            has_caps: !caps.is_empty(),
            refused: 0,
            reserved_peak: Amount::default(),
            fan_out: advice::FanOut::default(),
        }
    }

    /// An agent and all above it.
    fn path(&self, id: AgentId) -> Vec<AgentId> {
        let known = if self.members.contains_key(&id) {
            id
        } else {
            self.main
        };
        let mut path = vec![known];
        let mut at = known;
        while let Some(above) = self.members.get(&at).and_then(|member| member.above) {
            // One that is not known, or a circle on a damaged disk, is the session's.
            let next = match self.members.contains_key(&above) && !path.contains(&above) {
                true => above,
                false => self.main,
            };
            if path.contains(&next) {
                break;
            }
            path.push(next);
            at = next;
        }
        path
    }

    /// Those on the path that have a purse.
    fn owners(&self, id: AgentId) -> Vec<AgentId> {
        let mut path = self.path(id);
        path.retain(|id| self.purse(*id).is_some());
        path
    }

    fn purse(&self, id: AgentId) -> Option<&Purse> {
        self.members.get(&id)?.purse.as_ref()
    }

    fn purse_mut(&mut self, id: AgentId) -> Option<&mut Purse> {
        self.members.get_mut(&id)?.purse.as_mut()
    }

    /// Those that have not ended and use a purse.
    fn users(&self, owner: AgentId) -> impl Iterator<Item = (AgentId, &Member)> {
        let all = self.live.iter().copied();
        let all = all.filter(move |id| owner == self.main || self.path(*id).contains(&owner));
        all.filter_map(|id| Some((id, self.members.get(&id)?)))
    }

    fn request(&self, member: &Member) -> Amount {
        member.last.unwrap_or_else(|| self.forecast.request())
    }

    /// What must stay in a purse: requests under way, and a last turn for each.
    fn held_back(&self, owner: AgentId, but: AgentId) -> Amount {
        let mut sum = Amount::default();
        for (id, member) in self.users(owner) {
            let one = self.request(member);
            let is_asking = member.is_asking && id != but;
            if is_asking {
                sum = sum.plus(one);
            }
            let has_turn = member.turns > 0 || is_asking;
            if has_turn && !member.has_wrapped_up {
                sum = sum.plus(one);
            }
        }
        sum
    }

    /// Whether an agent may ask its model now.
    pub(crate) fn ask(&mut self, id: AgentId, at: Duration) -> (Say, News) {
        if !self.has_caps || !self.members.contains_key(&id) {
            return (Say::Go, News::new());
        }
        let mut news = News::new();
        let mut closed = None;
        for owner in self.owners(id) {
            let next = self.members.get(&id).map(Member::next).unwrap_or_default();
            let more = self.held_back(owner, id).plus(next);
            let Some(purse) = self.purse_mut(owner) else {
                continue;
            };
            let reached = purse.is_empty(at).or_else(|| purse.breaks(more));
            if purse.closed.is_none()
                && let Some(cap) = reached
            {
                purse.closed = Some(cap);
                news.push((owner, BudgetNews::Reached(purse.how_much(cap, at))));
            }
            if closed.is_none() {
                closed = purse.closed.map(|cap| purse.how_much(cap, at));
            }
            let near = purse.newly_near(at).into_iter();
            news.extend(near.map(|it| (owner, BudgetNews::Near(it))));
        }
        self.keep_words(&news);
        let has_others = self.live.len() > 1;
        let is_main = id == self.main;
        let Some(member) = self.members.get_mut(&id) else {
            return (Say::Stop, news);
        };
        let Some(closed) = closed else {
            member.is_asking = true;
            return (Say::Go, news);
        };
        member.is_asking = false;
        // One that has done nothing has nothing to tell. Who leads hears the others out first.
        if member.has_wrapped_up || member.turns == 0 || (is_main && has_others) {
            return (Say::Stop, news);
        }
        member.has_wrapped_up = true;
        member.is_asking = true;
        let text = WRAP_UP.replace("{cap}", &closed.to_string());
        let block = Block::from(Origin::Context, text.trim_end());
        (Say::WrapUp(block), news)
    }

    /// Whether the session's own agent still has its last turn before it.
    pub(crate) fn waits_to_wrap_up(&self) -> bool {
        let main = self.members.get(&self.main);
        main.is_some_and(|member| !member.has_wrapped_up)
    }

    /// Puts an answer on the account of an agent and all above it.
    pub(crate) fn charge(
        &mut self,
        id: AgentId,
        (usage, cost): (Usage, Cost),
        is_turn: bool,
        at: Duration,
    ) -> News {
        let amount = Amount::of(usage, cost);
        let path = self.path(id);
        if is_turn {
            self.forecast.learn_request(amount);
            self.fan_out.answered(id);
        }
        if let Some(member) = path.first().and_then(|id| self.members.get_mut(id)) {
            member.spent = member.spent.plus(amount);
            if is_turn {
                member.last = Some(amount);
                member.turns += 1;
                member.is_asking = false;
            }
        }
        let mut news = News::new();
        for owner in path {
            let Some(purse) = self.purse_mut(owner) else {
                continue;
            };
            purse.spent = purse.spent.plus(amount);
            let is_unpriced = cost == Cost::Unknown && purse.caps.usd.is_some();
            if is_unpriced && purse.closed.is_none() {
                // What has no price cannot be held under a price.
                purse.closed = Some(Cap::Usd);
                news.push((owner, BudgetNews::Reached(purse.how_much(Cap::Usd, at))));
            }
            let near = purse.newly_near(at).into_iter();
            news.extend(near.map(|it| (owner, BudgetNews::Near(it))));
        }
        self.keep_words(&news);
        news
    }

    /// Whose budget comes near its end is told so, when it is next asked something.
    fn keep_words(&mut self, news: &News) {
        for (owner, it) in news {
            let BudgetNews::Near(used) = it else { continue };
            let whose = if *owner == self.main {
                "the session's"
            } else {
                "your"
            };
            if let Some(member) = self.members.get_mut(owner) {
                let text = format!(
                    "<budget>Of {whose} budget {used}. Finish what matters most; begin nothing that does not fit.</budget>"
                );
                member.words.push(text);
            }
        }
    }

    pub(crate) fn take_words(&mut self, id: AgentId) -> Vec<Block> {
        let member = self.members.get_mut(&id);
        let words = member.map(|member| std::mem::take(&mut member.words));
        let words = words.unwrap_or_default().into_iter();
        words
            .map(|text| Block::from(Origin::Context, text))
            .collect()
    }

    /// How long an agent may still work; none without such a limit.
    pub(crate) fn time_left(&self, id: AgentId, at: Duration) -> Option<Duration> {
        let owners = self.owners(id).into_iter();
        let left = owners.filter_map(|owner| self.purse(owner)?.time_left(at));
        left.min()
    }

    /// What the session came to. None where nothing was limited.
    pub(crate) fn sum(&self, at: Duration) -> Option<BudgetSum> {
        let purse = self.purse(self.main).filter(|_| self.has_caps)?;
        Some(BudgetSum {
            caps: purse.caps,
            spent: purse.used(at),
            reserved_peak: self.reserved_peak.used(),
            refused: self.refused,
            ended_by: purse.closed,
        })
    }

    /// Whether money is limited for an agent.
    pub(crate) fn limits_money(&self, id: AgentId) -> bool {
        let mut owners = self.owners(id).into_iter();
        owners.any(|owner| {
            self.purse(owner)
                .is_some_and(|purse| purse.caps.usd.is_some())
        })
    }

    /// What the session came to before, with what no transcript has: tools that asked a model.
    pub(crate) fn remember_sum(&mut self, sum: &BudgetSum) {
        let amount = Amount {
            micro: (sum.spent.usd * 1e6).round() as u64,
            tokens: sum.spent.tokens,
        };
        self.refused += sum.refused;
        let main = self.main;
        if let Some(purse) = self.purse_mut(main) {
            purse.spent = purse.spent.max(amount);
        }
    }

    /// An agent of an earlier process asks again for what it asked for before.
    fn expect_more(&mut self, id: AgentId, amount: Amount, turns: u32) {
        if turns == 0 {
            return;
        }
        let mean = amount.part(turns.into());
        self.forecast.learn_request(mean);
        if let Some(member) = self.members.get_mut(&id) {
            member.last = Some(mean);
        }
    }

    /// So much was used in so many turns before this process took the session up.
    pub(crate) fn remember(&mut self, amount: Amount, turns: u32, time: Duration) {
        let main = self.main;
        self.expect_more(main, amount, turns);
        if let Some(purse) = self.purse_mut(main) {
            purse.spent = purse.spent.plus(amount);
            purse.ran = purse.ran.saturating_add(time);
        }
    }
}
