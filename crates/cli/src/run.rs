//! Wires one session together and runs it: model, tools, transcript, events, signals.

use crate::args::Common;
use crate::bus::Bus;
use crate::exit::Usage;
use crate::gear::Gear;
use crate::limits::Limits;
use crate::main_agent::{self, Seat};
use crate::mode::Mode;
use crate::model::Chosen;
use crate::models::Models;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::system::{self, SystemClock, SystemEntropy};
use crate::view::View;
use crate::workshop::Workshop;
use anyhow::Context as _;
use gaffer_agent::{AgentTypes, Documents, Outcome, Places, inbox};
use gaffer_crew::{Crew, CrewLimits, CrewParts};
use gaffer_protocol::event::{AgentEnded, Denied};
use gaffer_protocol::{AgentId, Block, Clock, End, EventKind, SessionId};
use gaffer_store::{About, Home, SessionError, session::slug};
use gaffer_tools::hook::{Moment, Source};
use gaffer_tools::{Context, Guard};
use gaffer_workspace::scratchpad::{Caps, Place, Scratchpad};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What one run is about.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: String,
    pub(crate) cwd: PathBuf,
    pub(crate) home: Home,
    pub(crate) session: SessionId,
    pub(crate) mode: Mode,
    pub(crate) max_turns: Option<u32>,
    /// What its tools may use.
    pub(crate) limits: Limits,
    /// What its tools are made of.
    pub(crate) gear: Gear,
    pub(crate) chosen: Arc<Chosen>,
    pub(crate) common: Common,
    pub(crate) settings: Settings,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) transcript: PathBuf,
}

/// Runs a session to its end while `view`, if there is one, shows it.
pub(crate) fn run(job: Job, view: Option<Box<dyn View>>) -> anyhow::Result<Done> {
    let clock = Arc::new(SystemClock);
    let chosen = job.chosen.clone();
    let (bus, shown) = Bus::new(clock.clone(), view).context("cannot start the view")?;
    // Agents wait far more than they compute, and what computes or blocks goes to other threads.
    // One thread for all of them spares a turn the waking of others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(session(job, Arc::new(bus), clock));
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

async fn session(job: Job, bus: Arc<Bus>, clock: Arc<SystemClock>) -> anyhow::Result<Done> {
    let began = Instant::now();
    let mut signals = Signals::listen()?;
    let id = AgentId::random(&SystemEntropy);
    let (sender, inbox) = inbox();
    let (prompt, mode, max_turns) = (job.prompt.clone(), job.mode, job.max_turns);
    let limits = crew_limits(&job);
    let prices = job.chosen.prices.clone();
    let workshop = Arc::new(workshop(job, bus.clone(), clock.clone())?);
    let about = About {
        session: workshop.session.clone(),
        main: id,
        mode: mode.as_str().to_owned(),
        cwd: workshop.cwd.display().to_string(),
        created: clock.now(),
        name: None,
        title: About::title_of(&prompt),
        forked_from: None,
    };
    let written = workshop.folder.set_about(&about);
    written.with_context(|| format!("cannot write in {}", workshop.folder.path().display()))?;
    let crew = Crew::new(CrewParts {
        session: workshop.session.clone(),
        folder: workshop.folder.clone(),
        book: workshop.folder.book(),
        mode: mode.as_str().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        main: id,
        main_inbox: sender.clone(),
        outfitter: workshop.clone(),
        events: bus,
        clock: clock.clone(),
        entropy: Arc::new(SystemEntropy),
        prices,
        limits,
    });
    let prices = workshop.models.chosen.prices.clone();
    workshop.gear.meter.connect(crew.events(), id, prices);
    let Seat {
        mut agent,
        transcript,
        context,
    } = main_agent::seat(
        &workshop,
        &crew,
        id,
        mode,
        max_turns,
        (sender.clone(), inbox),
    )?;
    let stop = CancellationToken::new();
    let end = {
        let working = async {
            session_start(&context, &workshop, &sender).await;
            crew.tell_main(prompt);
            crew.run_main(&mut agent, &stop).await
        };
        let mut working = std::pin::pin!(working);
        tokio::select! {
            end = &mut working => end,
            () = signals.arrived() => {
                stop.cancel();
                working.await
            }
        }
    };
    crew.stop_all(&End::Interrupted).await;
    let outcome = agent.close(end);
    session_end(&context, &outcome.end).await;
    if let Err(why) = context.jobs.end_all().await {
        system::say(&format!("gaffer: {why}"));
    }
    let ended = ended(&outcome, began, denials(&context));
    workshop.pad.remove_unused();
    crew.events()
        .emit(id, EventKind::AgentEnded(Box::new(ended)));
    Ok(Done {
        outcome,
        transcript,
    })
}

fn crew_limits(job: &Job) -> CrewLimits {
    let default = CrewLimits::default();
    let set = job.common.max_workers.map(|most| most as usize);
    let price = job.chosen.prices.of(&job.chosen.name);
    let context = price.and_then(|price| price.context);
    CrewLimits {
        workers: set.or(job.settings.max_workers).unwrap_or(default.workers),
        depth: match job.mode {
            Mode::Normal => job.settings.max_depth.unwrap_or(default.depth),
            #[cfg(feature = "coordinator")]
            Mode::Coordinator => 1,
        },
        // A fifth of the context for results. A token is seldom less than three bytes.
        results: context.map_or(default.results, |tokens| {
            usize::try_from(tokens).unwrap_or(usize::MAX) / 5 * 3
        }),
        ..default
    }
}

/// Creates the session on disk, and what its agents are made of.
fn workshop(job: Job, bus: Arc<Bus>, clock: Arc<SystemClock>) -> anyhow::Result<Workshop> {
    let created = job.home.create_session(&job.cwd, &job.session);
    let folder = created.map_err(|error| match error {
        SessionError::Exists(_) => Usage::new(error.to_string()).into(),
        SessionError::Create { .. } => anyhow::Error::new(error),
    })?;
    let pad = Scratchpad::open(
        Place {
            temp: &std::env::temp_dir(),
            uid: rustix::process::getuid().as_raw(),
            folder: &slug(&job.cwd),
            session: job.session.as_str(),
        },
        clock.clone(),
        Caps::default(),
    )
    .map_err(|error| Usage::new(error.to_string()))?;
    let is_bare = job.common.bare || system::variable("GAFFER_SIMPLE").is_some();
    let home = system::variable("HOME").map(PathBuf::from);
    let places = Places::of(&job.cwd, home.as_deref());
    let types = match is_bare {
        true => AgentTypes::built_in(),
        false => AgentTypes::find(&places),
    };
    let policy = job.limits.policy();
    let hides = |path: &std::path::Path| policy.is_some_and(|it| it.hides(path, &job.cwd));
    let documents = match is_bare {
        true => Documents::default(),
        false => Documents::find(&places, &hides),
    };
    for problem in types.problems.iter().chain(&documents.problems) {
        system::say(&format!("gaffer: {problem}"));
    }
    Ok(Workshop {
        session: job.session,
        _owned: folder.own(clock.now())?,
        folder,
        limits: job.limits,
        gear: job.gear,
        models: Models::new(job.chosen, job.common, job.settings),
        pad,
        places,
        types,
        documents,
        is_bare,
        cwd: job.cwd,
        events: bus,
        clock,
        outfits: Mutex::default(),
    })
}

/// What hooks have to say at the start stands before the prompt.
async fn session_start(context: &Context, workshop: &Workshop, inbox: &gaffer_agent::Sender) {
    let Some(hooks) = &context.hooks else {
        return;
    };
    let moment = Moment::SessionStart {
        source: Source::Startup,
        model: Some(workshop.models.chosen.name.clone()),
        session_title: None,
    };
    let merged = hooks.at(context.cwd.get(), moment).await;
    if let Some(text) = merged.context {
        inbox.send(Block::from(gaffer_protocol::Origin::Hook, text));
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

fn ended(outcome: &Outcome, began: Instant, denials: Vec<Denied>) -> AgentEnded {
    AgentEnded {
        end: outcome.end.clone(),
        result: outcome.result.clone(),
        turns: outcome.turns,
        tool_uses: outcome.tool_uses,
        usage: outcome.usage,
        cost: outcome.cost,
        duration_ms: began.elapsed().as_millis() as u64,
        model_ms: outcome.model_time.as_millis() as u64,
        stop: outcome.stop,
        denials,
    }
}

fn denials(context: &Context) -> Vec<Denied> {
    let denials = context.guard.as_ref().map(Guard::denials);
    let denied = denials.into_iter().flatten().map(|denial| Denied {
        tool_name: denial.tool,
        summary: denial.input,
        reason: denial.reason,
    });
    denied.collect()
}
