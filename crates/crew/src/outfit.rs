//! What workers are made of. The binary knows where it comes from; the crew only puts it together.

use crate::crew::Crew;
use crate::integrate::Integration;
use futures_util::future::BoxFuture;
use gaffer_agent::agent_type::{AgentType, AgentTypes};
use gaffer_model::{Conversation, Model, Prefix, Who};
use gaffer_protocol::event::Integrated;
use gaffer_protocol::notification::Worktree;
use gaffer_protocol::{AgentId, AgentName, Block};
use gaffer_tools::{Context, Tool, ToolSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Equips workers.
pub trait Outfitter: Send + Sync + fmt::Debug {
    fn types(&self) -> &AgentTypes;

    /// What all workers of a type share. `model` is what the order asks for.
    fn outfit(&self, kind: &AgentType, model: Option<&str>) -> Result<Outfit, String>;

    /// The surroundings of one worker, new or continued in the folder where it was.
    fn place(&self, hand: &Hand<'_>) -> Result<Context, String>;

    /// The folder that a worker works in, wherever it has gone since.
    fn folder(&self, hand: &Hand<'_>) -> PathBuf;

    /// What a new worker is told before its task: where it is, what it remembers.
    fn opening(&self, hand: &Hand<'_>) -> Vec<Block>;

    /// Whether workers can have worktrees of their own here.
    fn has_worktrees(&self) -> bool {
        false
    }

    /// Makes the worktree of a worker that is to have one, or finds it again. Its place is there.
    fn isolate<'a>(&'a self, _: &'a Hand<'_>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err("there are no worktrees here".to_owned()) })
    }

    /// Merges the branches of ended workers. The report, and what came of it for who watches; an
    /// error where nothing was tried.
    fn integrate<'a>(
        &'a self,
        _: &'a Crew,
        _: &'a Integration,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<(String, Integrated), String>> {
        Box::pin(async { Err("there are no worktrees here".to_owned()) })
    }

    /// The end of a worker's time in its worktree. It is named if it is still there.
    fn release(&self, _: AgentId) -> BoxFuture<'_, Option<Worktree>> {
        Box::pin(async { None })
    }
}

/// A worker that is to get its place.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    pub id: AgentId,
    pub name: &'a AgentName,
    pub kind: &'a AgentType,
    /// What its task is, in a few words.
    pub description: &'a str,
    /// It works in a worktree of its own.
    pub isolated: bool,
    pub transcript: &'a Path,
    pub cwd: Option<&'a Path>,
    /// The way into its inbox, for what comes from its surroundings.
    pub inbox: &'a gaffer_agent::Sender,
}

/// What all workers of a type share: byte for byte the same prefix.
#[derive(Debug, Clone)]
pub struct Outfit {
    pub model: Arc<dyn Model>,
    pub tools: Arc<ToolSet>,
    prefix: Arc<Prefix>,
    /// A conversation without a word, made when the first worker needs one: all others share its
    /// bytes.
    blank: Arc<OnceLock<Conversation>>,
    /// For the record.
    pub provider: String,
    pub prefix_hash: String,
    pub prompt_hash: String,
}

impl Outfit {
    pub fn new(
        model: Arc<dyn Model>,
        tools: ToolSet,
        system: String,
        provider: String,
        prompt_hash: String,
    ) -> Self {
        let prefix = Prefix {
            system,
            tools: tools.specs(),
        };
        Self {
            model,
            tools: Arc::new(tools),
            prefix_hash: prefix.hash(),
            prefix: Arc::new(prefix),
            blank: Arc::default(),
            provider,
            prompt_hash,
        }
    }

    /// The same with further tools, which are of one worker alone.
    pub(crate) fn with(&self, more: Vec<Arc<dyn Tool>>) -> Self {
        Self::new(
            self.model.clone(),
            ToolSet::clone(&self.tools).and(more),
            self.prefix.system.clone(),
            self.provider.clone(),
            self.prompt_hash.clone(),
        )
    }

    pub(crate) fn open(&self, id: AgentId, name: &AgentName, kind: &AgentType) -> Conversation {
        let who = Who {
            id,
            name: name.clone(),
            agent_type: kind.name.clone(),
        };
        let make = || self.model.open(&self.prefix, who.clone());
        self.blank.get_or_init(make).for_agent(who)
    }
}
