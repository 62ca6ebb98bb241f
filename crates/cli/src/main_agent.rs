//! The agent that talks with the user: what it is told, and which tools it has, by mode.

use crate::limits::Occupant;
use crate::mode::Mode;
use crate::workshop::{Workshop, surroundings};
use anyhow::Context as _;
use gaffer_agent::{Agent, Inbox, Parts, Sender, prompt};
use gaffer_crew::Crew;
use gaffer_crew::tools::{Manner, tools};
use gaffer_model::{Prefix, Prices, Who};
use gaffer_protocol::event::{AgentStarted, SessionStarted};
use gaffer_protocol::{AgentId, AgentName, Block, Cost, EventKind, MailId, Origin, Role, Usage};
use gaffer_store::book::Contents;
use gaffer_store::{Entry, Fold, Record, Start, Transcript};
use gaffer_tools::hook::{self, AgentHooks};
use gaffer_tools::structured::Form;
use gaffer_tools::{Context, ToolSet};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An agent that is ready to run, and what its surroundings still need of it.
pub(crate) struct Seat {
    pub(crate) agent: Agent,
    pub(crate) badge: Badge,
    pub(crate) transcript: PathBuf,
    pub(crate) context: Context,
    /// What it did before, if it goes on.
    pub(crate) earlier: Option<Earlier>,
}

/// What an agent is to whichever model speaks for it.
#[derive(Debug, Clone)]
pub(crate) struct Badge {
    pub(crate) prefix: Prefix,
    pub(crate) who: Who,
    /// As it stands in its record.
    pub(crate) start: Start,
    pub(crate) mode: Mode,
    pub(crate) tools: Vec<String>,
}

/// What an agent brings with it from another process.
#[derive(Debug)]
pub(crate) struct Earlier {
    /// Letters that its transcript has.
    pub(crate) heard: HashSet<MailId>,
    /// How many bytes of its conversation are notifications.
    pub(crate) told: usize,
    /// Whether somebody said something last that it has not answered.
    pub(crate) is_due: bool,
    /// What it has used, and how long it worked.
    pub(crate) spent: (Usage, Cost, Duration),
    pub(crate) turns: u32,
    /// What is wrong with its transcript.
    pub(crate) damage: Option<String>,
}

/// What the agent is by its mode.
struct Part {
    agent_type: &'static str,
    prompt: &'static prompt::Prompt,
    system: String,
    tools: ToolSet,
    context: Context,
    /// What it is told beside where it is.
    facts: Vec<(&'static str, String)>,
}

/// Makes the session's own agent, with its first record on disk.
pub(crate) fn seat(
    workshop: &Workshop,
    crew: &Crew,
    old: Option<&Contents>,
    (mode, max_turns, form): (Mode, Option<u32>, Option<Form>),
    (sender, inbox): (Sender, Inbox),
) -> anyhow::Result<Seat> {
    let id = crew.parts().main;
    let mut part = part(workshop, crew, id, mode)?;
    if let Some(form) = &form {
        part.tools = part.tools.and([form.tool()]);
    }
    let chosen = workshop.models.chosen.clone();
    let path = workshop.folder.transcript(id);
    let prefix = Prefix {
        system: part.system,
        tools: part.tools.specs(),
    };
    let clock = workshop.clock.clone();
    let start = Start {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: workshop.session.clone(),
        agent: id,
        name: AgentName::main(),
        agent_type: part.agent_type.to_owned(),
        mode: mode.as_str().to_owned(),
        provider: chosen.kind.as_str().to_owned(),
        model: chosen.name.clone(),
        cwd: workshop.cwd.display().to_string(),
        prefix_hash: prefix.hash(),
        prompt_hash: part.prompt.hash(),
        parent: None,
        description: String::new(),
    };
    let record = Record {
        at: clock.now(),
        entry: Entry::Start(Box::new(start.clone())),
    };
    let (transcript, before) = open_record(&path, &record, id, old)
        .with_context(|| format!("cannot write {}", path.display()))?;
    part.context.pool = workshop.gear.pool.view();
    part.context.lease = Some(crew.main_lease());
    part.context.hooks = hooks(workshop, id, &path, &sender);
    open_with(workshop, &part.facts, before.as_ref(), &sender);
    if let Some(form) = &form {
        sender.send(gaffer_crew::form_block(form.schema()));
    }
    let who = Who {
        id,
        name: AgentName::main(),
        agent_type: part.agent_type.to_owned(),
    };
    let badge = Badge {
        prefix,
        who: who.clone(),
        start,
        mode,
        tools: part.tools.names(),
    };
    announce(workshop, crew, &badge, &chosen.name);
    appear(crew, id, part.agent_type);
    let mut conversation = chosen.model.open(&badge.prefix, who);
    for message in before.iter().flat_map(|fold| &fold.messages) {
        conversation.push(message);
    }
    let agent = Agent::new(Parts {
        id,
        model: chosen.model.clone(),
        conversation,
        tools: Arc::new(part.tools),
        context: part.context.clone(),
        transcript,
        inbox,
        events: crew.events(),
        prices: chosen.prices.clone(),
        clock,
        max_turns,
        compaction: crew.compaction(id),
        allowance: crew.allowance(id),
    });
    Ok(Seat {
        agent,
        badge,
        transcript: path.clone(),
        context: part.context,
        earlier: before.map(|fold| Earlier::of(fold, &path, &chosen.prices)),
    })
}

/// Tells the agent where it is, unless it has heard the same before.
fn open_with(
    workshop: &Workshop,
    facts: &[(&'static str, String)],
    before: Option<&Fold>,
    sender: &Sender,
) {
    let facts = facts.iter().map(|(name, value)| (*name, value.as_str()));
    let facts: Vec<(&str, &str)> = facts.collect();
    let where_it_is = surroundings(&workshop.cwd, &*workshop.clock).block_with(&facts);
    if !before.is_some_and(|fold| has_heard(fold, &where_it_is)) {
        sender.send(where_it_is);
    }
}

impl Earlier {
    fn of(fold: Fold, path: &Path, prices: &Prices) -> Self {
        let asked = fold.start.as_ref().map_or("", |start| start.model.as_str());
        let cost = fold.turns.iter().map(|turn| {
            let known = prices.of(&turn.model).map(|_| &*turn.model);
            prices.cost(known.unwrap_or(asked), turn.usage)
        });
        let time = Duration::from_millis(fold.worked_ms);
        let spent = (fold.usage, cost.sum(), time);
        let damage = (!fold.damaged.is_empty()).then(|| {
            let path = path.display();
            format!("{path} was damaged: {}", fold.damaged)
        });
        let blocks = fold.messages.iter().flat_map(|message| &message.blocks);
        let told = blocks.map(|block| match block {
            Block::Text(text) if text.origin == Some(Origin::TaskNotification) => text.text.len(),
            _ => 0,
        });
        let last = fold.messages.last();
        Self {
            told: told.sum(),
            spent,
            turns: u32::try_from(fold.turns.len()).unwrap_or(u32::MAX),
            is_due: last.is_some_and(|message| message.role == Role::User),
            heard: fold.heard,
            damage,
        }
    }
}

/// Begins the agent's record, or goes on with it.
fn open_record(
    path: &Path,
    record: &Record,
    id: AgentId,
    old: Option<&Contents>,
) -> std::io::Result<(Transcript, Option<Fold>)> {
    let (mut transcript, before) = match old {
        None => (Transcript::create(path.to_owned())?, None),
        Some(contents) => {
            let own = contents.answers.iter().filter(|(agent, ..)| *agent == id);
            let known = own.map(|(_, call, answer)| (call.clone(), answer.clone()));
            let known: HashMap<String, String> = known.collect();
            let (transcript, fold) = Transcript::resume_knowing(path.to_owned(), &known)?;
            (transcript, Some(fold))
        }
    };
    transcript.append(record)?;
    Ok((transcript, before))
}

/// Whether an agent was told this before, word for word.
fn has_heard(fold: &Fold, block: &Block) -> bool {
    let blocks = fold.messages.iter().flat_map(|message| &message.blocks);
    blocks.into_iter().any(|other| other == block)
}

fn part(workshop: &Workshop, crew: &Crew, id: AgentId, mode: Mode) -> anyhow::Result<Part> {
    let name = AgentName::main();
    let occupant = Occupant {
        id,
        name: &name,
        cwd: &workshop.cwd,
        readable: workshop.gear.readable().collect(),
        writable: Vec::new(),
        folder: &workshop.folder,
        pad: &workshop.pad,
        role: None,
        worktree: None,
    };
    let pad = (
        "scratchpad, shared with the crew",
        workshop.pad.path().display().to_string(),
    );
    match mode {
        #[cfg(feature = "coordinator")]
        Mode::Coordinator => {
            let mut all = tools(crew, id, Manner::Coordinator);
            all.push(gaffer_tools::erase(gaffer_tools::scratchpad::Scratchpad));
            let worker = workshop
                .types
                .choose("worker")
                .map_err(anyhow::Error::msg)?;
            Ok(Part {
                agent_type: "coordinator",
                prompt: &prompt::COORDINATOR,
                system: prompt::COORDINATOR.text.to_owned(),
                tools: ToolSet::new(all),
                context: workshop.limits.office(&occupant)?,
                facts: vec![
                    (
                        "tools of workers",
                        workshop.tools(worker).names().join(", "),
                    ),
                    ("MCP servers of workers", "none".to_owned()),
                    (
                        "types of workers",
                        format!("\n{}", workshop.types.describe()),
                    ),
                    pad,
                ],
            })
        }
        Mode::Normal => {
            let policy = workshop.limits.policy();
            let own = workshop.gear.tools(workshop.session.as_str(), policy);
            let own = match workshop.is_bare {
                true => own.keep(|name| ["Bash", "Edit", "Read"].contains(&name)),
                false => own.and(tools(crew, id, Manner::Normal)),
            };
            let own = own.keep(|name| policy.is_none_or(|it| it.removes(name).is_none()));
            let documents = workshop.documents.text();
            let parts = [prompt::AGENT.text.trim_end(), documents.trim_end()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            Ok(Part {
                agent_type: "general-purpose",
                prompt: &prompt::AGENT,
                system: parts.join("\n\n") + "\n",
                tools: own,
                context: workshop.limits.workplace(&occupant)?,
                facts: vec![pad],
            })
        }
    }
}

fn hooks(
    workshop: &Workshop,
    id: AgentId,
    transcript: &std::path::Path,
    sender: &Sender,
) -> Option<AgentHooks> {
    let hooks = workshop.gear.hooks.clone().filter(|_| !workshop.is_bare)?;
    let news = sender.clone();
    let who = hook::Who {
        agent: id,
        session: workshop.session.as_str().to_owned(),
        transcript: transcript.to_owned(),
        permission_mode: workshop.limits.permission_mode().to_owned(),
        worker: None,
        events: workshop.events.clone(),
        news: Box::new(move |block| news.send(block)),
    };
    Some(AgentHooks::new(hooks, who))
}

/// Tells those who watch what the session is.
pub(crate) fn announce(workshop: &Workshop, crew: &Crew, badge: &Badge, model: &str) {
    let chosen = &workshop.models.chosen;
    let started = SessionStarted {
        session: workshop.session.clone(),
        cwd: workshop.cwd.display().to_string(),
        mode: badge.mode.as_str().to_owned(),
        provider: chosen.kind.as_str().to_owned(),
        model: model.to_owned(),
        tools: badge.tools.clone(),
        agents: workshop.types.iter().map(|it| it.name.clone()).collect(),
        permission_mode: workshop.limits.permission_mode().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        key_source: chosen.key_source.clone(),
    };
    let started = EventKind::SessionStarted(Box::new(started));
    crew.events().emit(crew.parts().main, started);
}

fn appear(crew: &Crew, id: AgentId, agent_type: &str) {
    let started = AgentStarted {
        name: AgentName::main(),
        agent_type: agent_type.to_owned(),
        parent: None,
        description: String::new(),
        call: None,
        depth: 0,
        phase: None,
    };
    let started = EventKind::AgentStarted(Box::new(started));
    crew.events().emit(id, started);
}
