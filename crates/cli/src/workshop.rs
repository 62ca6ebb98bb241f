//! Equips workers: their tools, their model, their surroundings, what they are told first.

use crate::gear::Gear;
use crate::integrate;
use crate::limits::{Limits, Occupant};
use crate::models::Models;
use crate::settings::IntegrateSettings;
use crate::yard::{self, Yard};
use futures_util::future::BoxFuture;
use gaffer_agent::agent_type::{AgentType, AgentTypes};
use gaffer_agent::{Documents, Memory, Places, Surroundings};
use gaffer_crew::{Crew, Hand, Integration, Outfit, Outfitter};
use gaffer_protocol::event::Integrated;
use gaffer_protocol::{AgentId, Block, Clock, EventSink, Origin, SessionId, notification};
use gaffer_store::SessionFolder;
use gaffer_tools::hook::{self, AgentHooks, Moment};
use gaffer_tools::permission::Role;
use gaffer_tools::{Context, ToolSet};
use gaffer_workspace::scratchpad::Scratchpad;
use gaffer_workspace::worktree::{New, Worktree};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a worker has in restricted places.
const BARE: [&str; 3] = ["Bash", "Edit", "Read"];

#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) session: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) folder: SessionFolder,
    pub(crate) limits: Limits,
    pub(crate) gear: Gear,
    pub(crate) models: Models,
    pub(crate) pad: Scratchpad,
    pub(crate) places: Places,
    pub(crate) types: AgentTypes,
    pub(crate) documents: Documents,
    pub(crate) is_bare: bool,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) clock: Arc<dyn Clock>,
    /// By type and model: the same bytes for all workers of a type.
    pub(crate) outfits: Mutex<HashMap<(String, Option<String>), Outfit>>,
    pub(crate) yard: Yard,
    pub(crate) integrate: IntegrateSettings,
}

impl Workshop {
    /// The tools that workers of a type have.
    pub(crate) fn tools(&self, kind: &AgentType) -> ToolSet {
        let all = self.gear.tools(self.session.as_str(), self.limits.policy());
        let is_bare = |name: &str| !self.is_bare || BARE.contains(&name);
        all.keep(|name| kind.keeps(name) && is_bare(name))
    }

    fn make(&self, kind: &AgentType, model: Option<&str>) -> Result<Outfit, String> {
        Ok(Outfit::new(
            self.models.of(kind, model)?,
            self.tools(kind),
            kind.system(&self.documents),
            self.models.chosen.kind.as_str().to_owned(),
            kind.hash(),
        ))
    }

    /// The worktree of a worker that works apart.
    fn worktree(&self, hand: &Hand<'_>) -> Option<Worktree> {
        let find = || Worktree::find(&self.folder.worktrees(), &hand.id.to_string());
        hand.isolated.then(find).flatten()
    }

    fn memory(&self, kind: &AgentType) -> Option<Memory> {
        match self.is_bare {
            true => None,
            false => Memory::of(kind, &self.places).ok().flatten(),
        }
    }

    /// The hooks for what becomes of a worker when it has ended.
    pub(crate) fn hooks_of(&self, id: AgentId) -> Option<AgentHooks> {
        let hooks = self.gear.hooks.clone().filter(|_| !self.is_bare)?;
        let who = hook::Who {
            agent: id,
            session: self.session.as_str().to_owned(),
            transcript: self.folder.transcript(id),
            permission_mode: self.limits.permission_mode().to_owned(),
            worker: None,
            events: self.events.clone(),
            news: Box::new(|_| false),
        };
        Some(AgentHooks::new(hooks, who))
    }

    fn hooks(&self, hand: &Hand<'_>, mode: &str) -> Option<AgentHooks> {
        let hooks = self.gear.hooks.clone().filter(|_| !self.is_bare)?;
        let news = hand.inbox.clone();
        let who = hook::Who {
            agent: hand.id,
            session: self.session.as_str().to_owned(),
            transcript: hand.transcript.to_owned(),
            permission_mode: mode.to_owned(),
            worker: Some(hand.kind.name.clone()),
            events: self.events.clone(),
            news: Box::new(move |block| news.send(block)),
        };
        Some(AgentHooks::new(hooks, who))
    }
}

impl Outfitter for Workshop {
    fn types(&self) -> &AgentTypes {
        &self.types
    }

    fn outfit(&self, kind: &AgentType, model: Option<&str>) -> Result<Outfit, String> {
        let key = (kind.name.clone(), model.map(str::to_owned));
        let mut outfits = self.outfits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outfit) = outfits.get(&key) {
            return Ok(outfit.clone());
        }
        let outfit = self.make(kind, model)?;
        outfits.insert(key, outfit.clone());
        Ok(outfit)
    }

    fn place(&self, hand: &Hand<'_>) -> Result<Context, String> {
        let memory = self.memory(hand.kind);
        let own = memory.as_ref().map(Memory::prepare).transpose();
        let own = own.map_err(|error| error.to_string())?;
        let role = Role {
            mode: hand.kind.permission_mode,
            allow: memory.as_ref().and_then(Memory::rule).into_iter().collect(),
            ..Role::default()
        };
        let worktree = self.worktree(hand);
        if hand.isolated && worktree.is_none() {
            return Err("its worktree is gone".to_owned());
        }
        let folder = worktree.as_ref().map(Worktree::folder);
        let mut context = self
            .limits
            .workplace(&Occupant {
                id: hand.id,
                name: hand.name,
                cwd: folder.as_deref().unwrap_or(&self.cwd),
                worktree: worktree.as_ref(),
                readable: self.gear.readable().collect(),
                writable: own.iter().map(PathBuf::as_path).collect(),
                folder: &self.folder,
                pad: &self.pad,
                role: Some(role),
            })
            .map_err(|error| format!("{error:#}"))?;
        context.pool = self.gear.pool.view();
        let mode = context.guard.as_ref().map(|guard| guard.policy());
        let mode = mode.map_or("bypassPermissions", |policy| {
            policy.effective_mode().as_str()
        });
        context.hooks = self.hooks(hand, mode);
        // In a copy of a session it gets another worktree than the one that it was in.
        let is_in = |cwd: &Path| worktree.as_ref().is_none_or(|it| cwd.starts_with(&it.path));
        if let Some(cwd) = hand.cwd.filter(|cwd| cwd.is_dir() && is_in(cwd)) {
            context.cwd.set(cwd.to_owned());
        }
        Ok(context)
    }

    fn folder(&self, hand: &Hand<'_>) -> PathBuf {
        let worktree = self.worktree(hand);
        worktree.map_or_else(|| self.cwd.clone(), |it| it.folder())
    }

    fn opening(&self, hand: &Hand<'_>) -> Vec<Block> {
        let kind = hand.kind;
        let pad = self.pad.path().display().to_string();
        let worktree = self.worktree(hand);
        let folder = worktree.as_ref().map(Worktree::folder);
        let cwd = folder.as_deref().unwrap_or(&self.cwd);
        let mut blocks = vec![
            surroundings(cwd, &*self.clock)
                .block_with(&[("scratchpad, shared with the crew", &pad)]),
        ];
        blocks.extend(worktree.as_ref().map(yard::told));
        if let Some(memory) = self.memory(kind) {
            match memory.block() {
                Ok(block) => blocks.push(block),
                Err(why) => blocks.push(Block::from(
                    Origin::Context,
                    format!("Your memory cannot be read: {why}."),
                )),
            }
        }
        for skill in kind.skills.iter().filter(|_| !self.is_bare) {
            blocks.extend(self.gear.skill(skill, self.session.as_str()));
        }
        blocks
    }

    fn has_worktrees(&self) -> bool {
        self.yard.is_there()
    }

    fn isolate<'a>(&'a self, hand: &'a Hand<'_>) -> BoxFuture<'a, Result<(), String>> {
        let place = self.folder.worktrees();
        let session = self.session.as_str();
        Box::pin(async move {
            let name = hand.id.to_string();
            let new = New {
                place: &place,
                session,
                name: &name,
                task: hand.description,
                now: self.clock.now(),
            };
            if let Some(made) = self.yard.enter(&new).await?
                && let Some(hooks) = self.hooks(hand, self.limits.permission_mode())
            {
                hooks.at(made.path, Moment::WorktreeCreate { name }).await;
            }
            Ok(())
        })
    }

    fn integrate<'a>(
        &'a self,
        crew: &'a Crew,
        order: &'a Integration,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<(String, Integrated), String>> {
        Box::pin(integrate::for_crew(self, crew, order, context))
    }

    fn release(&self, id: AgentId) -> BoxFuture<'_, Option<notification::Worktree>> {
        let tree = Worktree::find(&self.folder.worktrees(), &id.to_string());
        Box::pin(async move {
            let tree = tree?;
            if self.yard.is_untouched(&tree).await
                && let Some(hooks) = self.hooks_of(id)
            {
                let worktree_path = tree.path.clone();
                let moment = Moment::WorktreeRemove { worktree_path };
                hooks.at(self.cwd.clone(), moment).await;
            }
            self.yard.leave(&tree).await
        })
    }
}

/// Where an agent is.
pub(crate) fn surroundings<'a>(cwd: &'a Path, clock: &dyn Clock) -> Surroundings<'a> {
    Surroundings {
        cwd,
        is_git: cwd.ancestors().any(|folder| folder.join(".git").exists()),
        now: clock.now(),
    }
}
