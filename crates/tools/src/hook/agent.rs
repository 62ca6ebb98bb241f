//! The hooks of one agent: the session's hooks, with what is true of this agent.

use super::event::{HookEvent, Moment};
use super::kind::EventKind as Kind;
use super::outcome::Merged;
use super::run::{Hooks, Later};
use gaffer_protocol::{AgentId, Block, EventKind, EventSink, Origin};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::task::JoinSet;

/// Where news goes that comes when the agent is elsewhere: its inbox.
pub type News = Box<dyn Fn(Block) -> bool + Send + Sync>;

/// What hooks are told of an agent at every moment, and where their words go.
pub struct Who {
    pub agent: AgentId,
    pub session: String,
    pub transcript: PathBuf,
    pub permission_mode: String,
    /// The type of a worker; none for the session's own agent.
    pub worker: Option<String>,
    pub events: Arc<dyn EventSink>,
    pub news: News,
}

/// Clones are of the same agent.
#[derive(Debug, Clone)]
pub struct AgentHooks {
    hooks: Hooks,
    own: Arc<Own>,
}

#[derive(Debug)]
struct Own {
    who: Who,
    /// Hooks that nobody waits for. They end with the agent.
    running: Mutex<JoinSet<()>>,
}

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Who").field(&self.agent).finish()
    }
}

impl AgentHooks {
    pub fn new(hooks: Hooks, who: Who) -> Self {
        let running = Mutex::default();
        Self {
            hooks,
            own: Arc::new(Own { who, running }),
        }
    }

    pub fn has(&self, kind: Kind) -> bool {
        self.hooks.has(kind)
    }

    /// The type of the worker that these hooks are of.
    pub fn worker(&self) -> Option<&str> {
        self.own.who.worker.as_deref()
    }

    pub fn transcript(&self) -> &Path {
        &self.own.who.transcript
    }

    pub fn agent(&self) -> AgentId {
        self.own.who.agent
    }

    /// Asks the hooks of a moment. What they have to say to the user has been said when this
    /// returns, and those that nobody waits for are on their way.
    pub async fn at(&self, cwd: PathBuf, moment: Moment) -> Merged {
        let who = &self.own.who;
        let worker = who.worker.as_ref();
        let event = HookEvent {
            session_id: who.session.clone(),
            transcript_path: who.transcript.clone(),
            cwd,
            permission_mode: who.permission_mode.clone(),
            agent_id: worker.map(|_| who.agent.to_string()),
            agent_type: worker.cloned(),
            moment,
        };
        let mut merged = self.hooks.run(&event).await;
        self.own.tell(&merged);
        for later in std::mem::take(&mut merged.later) {
            self.start(later);
        }
        merged
    }

    /// Word for the user.
    pub fn notice(&self, text: String) {
        let who = &self.own.who;
        who.events.emit(who.agent, EventKind::Notice(text));
    }

    fn start(&self, later: Later) {
        let own = Arc::downgrade(&self.own);
        let running = &self.own.running;
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(finish(later, own));
    }
}

/// Lets a hook end, and brings the agent what it has to say.
async fn finish(later: Later, own: Weak<Own>) {
    let merged = later.finish().await;
    let Some(own) = own.upgrade() else {
        return;
    };
    own.tell(&merged);
    let words = [merged.blocked().map(str::to_owned), merged.context];
    for text in words.into_iter().flatten() {
        (own.who.news)(Block::from(Origin::Hook, text));
    }
}

impl Own {
    fn tell(&self, merged: &Merged) {
        let reports = merged.reports.iter().map(ToString::to_string);
        for text in reports.chain(merged.messages.iter().cloned()) {
            self.who
                .events
                .emit(self.who.agent, EventKind::Notice(text));
        }
    }
}
