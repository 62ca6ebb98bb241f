//! `gaffer show`: what a session's agents did and what they cost, read from their transcripts.

use crate::args::{Common, ShowArgs};
use crate::exit::{Exit, Usage};
use crate::settings::Settings;
use crate::setup::{places, working_folder};
use crate::system;
use crate::view::account;
use anyhow::Context;
use gaffer_crew::{Kept, Spending};
use gaffer_model::Prices;
use gaffer_protocol::course::Share;
use gaffer_protocol::{AgentId, BudgetSum, Cost, Course, End, Timestamp, Usage as Tokens, Used};
use gaffer_store::{About, Fold, Found, Home, NotFound, Start};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::ops::AddAssign;

/// What was used up: by an agent, a type, a model or all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) turns: u32,
    pub(crate) tool_uses: u32,
    pub(crate) tokens: Tokens,
    pub(crate) cost: Cost,
    /// Of agents, which work side by side; a model has none of its own.
    pub(crate) time_ms: u64,
}

impl Figures {
    pub(crate) fn of(share: &Share) -> Self {
        Self {
            turns: share.turns,
            tool_uses: share.tool_uses,
            tokens: share.usage,
            cost: share.cost,
            time_ms: share.time.as_millis() as u64,
        }
    }
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.tool_uses += other.tool_uses;
        self.tokens += other.tokens;
        self.cost += other.cost;
        self.time_ms += other.time_ms;
    }
}

/// One agent of the session.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: AgentId,
    /// None where the first line of its transcript is lost.
    pub(crate) start: Option<Start>,
    pub(crate) end: Option<End>,
    /// How often it was started or continued.
    pub(crate) runs: u32,
    pub(crate) depth: usize,
    pub(crate) figures: Figures,
    pub(crate) by_model: BTreeMap<String, Figures>,
    pub(crate) span: Option<(Timestamp, Timestamp)>,
    /// How many of its lines could not be read.
    pub(crate) damaged: usize,
}

/// A session: its agents as a tree, each before those that it started.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) session: String,
    pub(crate) members: Vec<Member>,
    /// What it might use, and what became of that; none where nothing was limited.
    pub(crate) budget: Option<BudgetSum>,
    /// What its book says of its workers.
    pub(crate) kept: Kept,
}

pub(crate) fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let home =
        system::home().ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"))?;
    let common = Common {
        cwd: args.cwd.clone(),
        ..Common::default()
    };
    let cwd = working_folder(&common)?;
    let (settings, _) = Settings::load(&places(&home, &cwd, args.settings.clone()))?;
    let prices = Prices::new(&settings.prices);
    let home = Home::new(home);
    let found = match &args.session {
        Some(id) => home.find_session(&cwd, id),
        None => home.newest_session(&cwd),
    };
    let found = found.map_err(|why| not_found(args.session.as_deref(), &why))?;
    let account = Account::read(&found, &prices)?;
    let text = match args.json {
        true => format!("{:#}\n", account::json(&account)),
        false => account::text(&account),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).context("cannot print")?;
    Ok(Exit::Done)
}

pub(crate) fn not_found(wanted: Option<&str>, why: &NotFound) -> Usage {
    let list = |all: &[Found]| {
        let ids: Vec<&str> = all.iter().map(|found| found.id.as_str()).collect();
        ids.join(", ")
    };
    let wanted = wanted.map(system::plain);
    Usage::new(match (wanted, why) {
        (_, NotFound::Unknown(near)) if near.is_empty() => {
            "there is no session yet: `gaffer -p \"…\"` or `gaffer demo` makes one".to_owned()
        }
        (None, NotFound::Unknown(near) | NotFound::Several(near)) => format!(
            "there is no session of this folder; the newest of others: {}",
            list(near)
        ),
        (Some(id), NotFound::Unknown(near)) => {
            format!("there is no session `{id}`; the newest: {}", list(near))
        }
        (Some(id), NotFound::Several(all)) => {
            let ids: HashSet<&str> = all.iter().map(|found| found.id.as_str()).collect();
            match ids.len() {
                1 => format!("several folders have a session `{id}`: name one with --cwd FOLDER"),
                _ => format!("several sessions begin with `{id}`: {}", list(all)),
            }
        }
    })
}

impl Account {
    pub(crate) fn read(found: &Found, prices: &Prices) -> anyhow::Result<Self> {
        let path = found.folder.path();
        let cannot = || format!("cannot read {}", path.display());
        let mut members = Vec::new();
        for (id, path) in found.folder.agents().with_context(cannot)? {
            let fold = Fold::read(&path);
            let fold = fold.with_context(|| format!("cannot read {}", path.display()))?;
            members.push(Member::new(id, fold, prices));
        }
        // A book that cannot be read says nothing; the transcripts have the figures.
        let contents = found.folder.book().read().unwrap_or_default();
        let mut kept = Kept::read(&contents);
        for member in &members {
            kept.add_missing(member.id, member.spending());
        }
        let mut account = Self {
            session: found.id.to_string(),
            members: tree(members),
            budget: None,
            kept,
        };
        let about = found.folder.about();
        let about = about.filter(|it| !it.budget.is_empty() || it.account.is_some());
        account.budget = about.map(|about| account.budget_of(&about));
        Ok(account)
    }

    /// The figures are those of the transcripts, so that they are right after a crash too, with
    /// what the last end said of things that no transcript has.
    fn budget_of(&self, about: &About) -> BudgetSum {
        let kept = about.account.unwrap_or_default();
        let totals = self.totals();
        let is_own = |member: &&Member| member.parent().is_none();
        let own = self.members.iter().filter(is_own);
        let time: u64 = own.map(|member| member.figures.time_ms).sum();
        let workers = self.members.iter().filter(|member| !is_own(member)).count();
        BudgetSum {
            caps: about.budget,
            spent: Used {
                usd: totals.cost.usd().unwrap_or_default().max(kept.spent.usd),
                tokens: totals.tokens.total().max(kept.spent.tokens),
                seconds: time as f64 / 1000.0,
                workers: u32::try_from(workers).unwrap_or(u32::MAX),
            },
            ..kept
        }
    }

    /// Which phases the work went through. None where there were no workers.
    pub(crate) fn course(&self) -> Option<Course> {
        let is_main = |member: &&Member| member.start.is_some() && member.parent().is_none();
        let main = self.members.iter().find(is_main);
        self.kept.course(&main.map(Member::spending)?)
    }

    pub(crate) fn totals(&self) -> Figures {
        let mut all = Figures::default();
        for member in &self.members {
            all += member.figures;
        }
        all
    }

    /// With the number of agents.
    pub(crate) fn by_type(&self) -> BTreeMap<&str, (u32, Figures)> {
        let mut all: BTreeMap<&str, (u32, Figures)> = BTreeMap::new();
        for member in &self.members {
            let row = all.entry(member.agent_type()).or_default();
            row.0 += 1;
            row.1 += member.figures;
        }
        all
    }

    /// With the number of agents, of which each may have had several models.
    pub(crate) fn by_model(&self) -> BTreeMap<&str, (u32, Figures)> {
        let mut all: BTreeMap<&str, (u32, Figures)> = BTreeMap::new();
        for (model, figures) in self.members.iter().flat_map(|member| &member.by_model) {
            let row = all.entry(model).or_default();
            row.0 += 1;
            row.1 += *figures;
        }
        all
    }

    /// The session's own agent, by which the session is known.
    pub(crate) fn main(&self) -> Option<&Start> {
        let starts = self
            .members
            .iter()
            .filter_map(|member| member.start.as_ref());
        let mut own = starts.filter(|start| start.parent.is_none());
        own.next()
    }

    pub(crate) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let spans = self.members.iter().filter_map(|member| member.span);
        spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

impl Member {
    fn new(id: AgentId, fold: Fold, prices: &Prices) -> Self {
        let asked = fold.start.as_ref().map_or("", |start| start.model.as_str());
        let mut figures = Figures::default();
        let mut by_model: BTreeMap<String, Figures> = BTreeMap::new();
        for turn in &fold.turns {
            // The same rules as while it ran, so that the sums are the same.
            let paid = match prices.of(&turn.model) {
                Some(_) => &turn.model,
                None => asked,
            };
            let one = Figures {
                turns: u32::from(!turn.is_summary),
                tool_uses: turn.calls,
                tokens: turn.usage,
                cost: prices.cost(paid, turn.usage),
                time_ms: 0,
            };
            figures += one;
            let name = if turn.model.is_empty() {
                asked
            } else {
                &turn.model
            };
            *by_model.entry(name.to_owned()).or_default() += one;
        }
        figures.time_ms = fold.worked_ms;
        Self {
            id,
            runs: fold.ends + u32::from(fold.end.is_none()),
            end: fold.end,
            start: fold.start,
            depth: 0,
            figures,
            by_model,
            span: fold.span,
            damaged: fold.damaged.len(),
        }
    }

    fn spending(&self) -> Spending {
        let models = self.by_model.iter();
        let models = models.map(|(name, it)| (name.clone(), (it.tokens, it.cost)));
        Spending {
            by_model: models.collect(),
            turns: self.figures.turns,
            tool_uses: self.figures.tool_uses,
            time: std::time::Duration::from_millis(self.figures.time_ms),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.start.as_ref().map_or("?", |start| start.name.as_str())
    }

    pub(crate) fn agent_type(&self) -> &str {
        self.start
            .as_ref()
            .map_or("?", |start| start.agent_type.as_str())
    }

    pub(crate) fn parent(&self) -> Option<AgentId> {
        self.start.as_ref()?.parent
    }

    /// Without an end the process went away under it, or it still runs.
    pub(crate) fn end(&self) -> &End {
        self.end.as_ref().unwrap_or(&End::Interrupted)
    }
}

/// Puts each agent behind the one that started it. Whose parent is not there stands at the top.
fn tree(mut members: Vec<Member>) -> Vec<Member> {
    members.sort_by_key(|member| (member.parent().is_some(), member.span, member.id));
    let known: HashSet<AgentId> = members.iter().map(|member| member.id).collect();
    let mut sorted = Vec::with_capacity(members.len());
    let mut above: Vec<AgentId> = Vec::new();
    while !members.is_empty() {
        let parent = above.last().copied();
        let next = members.iter().position(|member| match parent {
            Some(parent) => member.parent() == Some(parent),
            None => member.parent().is_none_or(|id| !known.contains(&id)),
        });
        // Agents that name each other as parents come from no run of ours; they are shown too.
        let next = match (next, parent) {
            (Some(next), _) => next,
            (None, Some(_)) => {
                above.pop();
                continue;
            }
            (None, None) => 0,
        };
        let mut member = members.remove(next);
        member.depth = above.len();
        above.push(member.id);
        sorted.push(member);
    }
    sorted
}
