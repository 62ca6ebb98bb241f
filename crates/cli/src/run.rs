//! Wires one session together and runs it: model, tools, transcript, events, signals.

use crate::bus::Bus;
use crate::exit::Usage;
use crate::gear::Gear;
use crate::limits::Limits;
use crate::model::Chosen;
use crate::system::{self, SystemClock, SystemEntropy};
use crate::view::View;
use anyhow::Context as _;
use gaffer_agent::{Agent, Outcome, Parts, Sender, Surroundings, inbox, prompt};
use gaffer_model::{Prefix, Who};
use gaffer_protocol::event::{AgentEnded, Denied, SessionStarted};
use gaffer_protocol::{
    AgentId, AgentName, Block, Clock, End, EventKind, EventSink, Origin, SessionId,
};
use gaffer_store::{Entry, Home, Record, SessionError, Start, Transcript};
use gaffer_tools::hook::{self, AgentHooks, Moment, Source};
use gaffer_tools::permission::Denial;
use gaffer_tools::{Context, Guard, ToolSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What one run is about.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: String,
    pub(crate) cwd: PathBuf,
    pub(crate) home: Home,
    pub(crate) session: SessionId,
    pub(crate) max_turns: Option<u32>,
    /// What its tools may use.
    pub(crate) limits: Limits,
    /// What its tools are made of.
    pub(crate) gear: Gear,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) transcript: PathBuf,
}

const MODE: &str = "normal";
const AGENT_TYPE: &str = "general-purpose";

/// Runs a session to its end while `view`, if there is one, shows it.
pub(crate) fn run(job: Job, chosen: &Chosen, view: Option<Box<dyn View>>) -> anyhow::Result<Done> {
    let clock = Arc::new(SystemClock);
    let (bus, shown) = Bus::new(clock.clone(), view).context("cannot start the view")?;
    // Agents wait far more than they compute, and what computes or blocks goes to other threads.
    // One thread for all of them spares a turn the waking of others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(session(job, chosen, Arc::new(bus), clock));
    // Whatever still runs has nobody to report to.
    runtime.shutdown_background();
    // The bus went with the session, so the view has seen its last event.
    shown.wait();
    if let Some(Err(error)) = chosen.recorder.as_ref().map(|recorder| recorder.save()) {
        // The work is done and its answer is not lost for this.
        system::say(&format!(
            "gaffer: the recording could not be written: {error}"
        ));
    }
    done
}

async fn session(
    job: Job,
    chosen: &Chosen,
    bus: Arc<Bus>,
    clock: Arc<SystemClock>,
) -> anyhow::Result<Done> {
    let began = Instant::now();
    let mut signals = Signals::listen()?;
    let id = AgentId::random(&SystemEntropy);
    let Crewed {
        mut agent,
        transcript,
        context,
        inbox,
        prompt,
    } = agent(job, chosen, id, bus.clone(), clock)?;
    let stop = CancellationToken::new();
    let outcome = {
        let working = async {
            session_start(&context, chosen, &inbox).await;
            inbox.send(Block::from_human(prompt));
            agent.run(&stop).await
        };
        let mut working = std::pin::pin!(working);
        tokio::select! {
            outcome = &mut working => outcome,
            () = signals.arrived() => {
                stop.cancel();
                working.await
            }
        }
    };
    session_end(&context, &outcome.end).await;
    if let Err(why) = context.jobs.end_all().await {
        system::say(&format!("gaffer: {why}"));
    }
    let ended = AgentEnded {
        end: outcome.end.clone(),
        result: outcome.result.clone(),
        turns: outcome.turns,
        tool_uses: outcome.tool_uses,
        usage: outcome.usage,
        cost: outcome.cost,
        duration_ms: began.elapsed().as_millis() as u64,
        model_ms: outcome.model_time.as_millis() as u64,
        stop: outcome.stop,
        denials: denials(&context),
    };
    bus.emit(id, EventKind::AgentEnded(Box::new(ended)));
    Ok(Done {
        outcome,
        transcript,
    })
}

/// What hooks have to say at the start stands before the prompt.
async fn session_start(context: &Context, chosen: &Chosen, inbox: &Sender) {
    let Some(hooks) = &context.hooks else {
        return;
    };
    let moment = Moment::SessionStart {
        source: Source::Startup,
        model: Some(chosen.name.clone()),
        session_title: None,
    };
    let merged = hooks.at(context.cwd.get(), moment).await;
    if let Some(text) = merged.context {
        inbox.send(Block::from(Origin::Hook, text));
    }
}

async fn session_end(context: &Context, end: &End) {
    if let Some(hooks) = &context.hooks {
        let reason = match end {
            End::Interrupted => "prompt_input_exit",
            _ => "other",
        };
        let reason = reason.to_owned();
        hooks
            .at(context.cwd.get(), Moment::SessionEnd { reason })
            .await;
    }
}

fn denials(context: &Context) -> Vec<Denied> {
    let denials = context.guard.as_ref().map(Guard::denials);
    let denied = |denial: Denial| Denied {
        tool_name: denial.tool,
        summary: denial.input,
        reason: denial.reason,
    };
    denials.into_iter().flatten().map(denied).collect()
}

/// An agent that is ready to run, and what its surroundings still need of it.
struct Crewed {
    agent: Agent,
    transcript: PathBuf,
    context: Context,
    inbox: Sender,
    prompt: String,
}

/// Creates the session on disk and its agent, with the task in the inbox.
fn agent(
    job: Job,
    chosen: &Chosen,
    id: AgentId,
    bus: Arc<Bus>,
    clock: Arc<SystemClock>,
) -> anyhow::Result<Crewed> {
    let tools = job.gear.tools(job.session.as_str(), job.limits.policy());
    let tools = Arc::new(tools);
    let created = job.home.create_session(&job.cwd, &job.session);
    let folder = created.map_err(|error| match error {
        SessionError::Exists(_) => Usage::new(error.to_string()).into(),
        SessionError::Create { .. } => anyhow::Error::new(error),
    })?;
    let path = folder.transcript(id);
    let prefix = Prefix {
        system: prompt::AGENT.text.to_owned(),
        tools: tools.specs(),
    };
    let entry = Entry::Start(Box::new(start(&job, chosen, id, &prefix)));
    let record = Record {
        at: clock.now(),
        entry,
    };
    let transcript = Transcript::create(path.clone()).and_then(|mut transcript| {
        transcript.append(&record)?;
        Ok(transcript)
    });
    let transcript = transcript.with_context(|| format!("cannot write {}", path.display()))?;
    announce(&job, chosen, id, &tools, &bus);

    let who = Who {
        id,
        name: AgentName::main(),
        agent_type: AGENT_TYPE.to_owned(),
    };
    let mut context = job
        .limits
        .context(&job.cwd, job.gear.readable(), &folder, id)?;
    context.pool = job.gear.pool.view();
    let (sender, inbox) = inbox();
    let news = sender.clone();
    context.hooks = job.gear.hooks.clone().map(|hooks| {
        let who = hook::Who {
            agent: id,
            session: job.session.as_str().to_owned(),
            transcript: path.clone(),
            permission_mode: job.limits.permission_mode().to_owned(),
            worker: None,
            events: bus.clone(),
            news: Box::new(move |block| news.send(block)),
        };
        AgentHooks::new(hooks, who)
    });
    let shared = context.clone();
    let surroundings = Surroundings {
        cwd: &job.cwd,
        is_git: job
            .cwd
            .ancestors()
            .any(|folder| folder.join(".git").exists()),
        now: clock.now(),
    };
    sender.send(surroundings.block());
    let agent = Agent::new(Parts {
        id,
        model: chosen.model.clone(),
        conversation: chosen.model.open(&prefix, who),
        tools,
        context,
        transcript,
        inbox,
        events: bus,
        prices: chosen.prices.clone(),
        clock,
        max_turns: job.max_turns,
    });
    Ok(Crewed {
        agent,
        transcript: path,
        context: shared,
        inbox: sender,
        prompt: job.prompt,
    })
}

/// The signals by which the user or the system asks for an end. From when this exists on they no
/// longer end the process by themselves.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn arrived(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn start(job: &Job, chosen: &Chosen, id: AgentId, prefix: &Prefix) -> Start {
    Start {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: job.session.clone(),
        agent: id,
        name: AgentName::main(),
        agent_type: AGENT_TYPE.to_owned(),
        mode: MODE.to_owned(),
        provider: chosen.kind.as_str().to_owned(),
        model: chosen.name.clone(),
        cwd: job.cwd.display().to_string(),
        prefix_hash: prefix.hash(),
        prompt_hash: prompt::AGENT.hash(),
    }
}

fn announce(job: &Job, chosen: &Chosen, id: AgentId, tools: &ToolSet, bus: &Bus) {
    bus.emit(
        id,
        EventKind::SessionStarted(Box::new(SessionStarted {
            session: job.session.clone(),
            cwd: job.cwd.display().to_string(),
            mode: MODE.to_owned(),
            provider: chosen.kind.as_str().to_owned(),
            model: chosen.name.clone(),
            tools: tools.names(),
            permission_mode: job.limits.permission_mode().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            key_source: chosen.key_source.clone(),
        })),
    );
    bus.emit(
        id,
        EventKind::AgentStarted {
            name: AgentName::main(),
            agent_type: AGENT_TYPE.to_owned(),
            parent: None,
        },
    );
}
