//! Wires one session together and runs it: model, tools, transcript, events, signals.

use crate::args::Common;
use crate::budget;
use crate::bus::Bus;
use crate::exit::Usage;
use crate::gear::Gear;
use crate::guardrails;
use crate::limits::Limits;
use crate::main_agent::{self, Seat};
use crate::mode::Mode;
use crate::model::Chosen;
use crate::models::Models;
use crate::opening::{Opened, open, take_up};
use crate::resume::Old;
use crate::settings::{BaseRef, Settings};
use crate::signals::Signals;
use crate::system::{self, SystemClock, SystemEntropy};
use crate::view::View;
use crate::workshop::Workshop;
use crate::yard::Yard;
use anyhow::Context as _;
use gaffer_agent::{Agent, AgentTypes, Documents, Outcome, Places, inbox};
use gaffer_crew::{Crew, CrewLimits, CrewParts};
use gaffer_protocol::event::{AgentEnded, Denied};
use gaffer_protocol::{AgentName, Block, End, EventKind, SessionId};
use gaffer_store::{Home, session::slug};
use gaffer_tools::hook::{Moment, Source};
use gaffer_tools::structured::Form;
use gaffer_tools::{Context, Guard};
use gaffer_workspace::handles::Handles;
use gaffer_workspace::scratchpad::{Caps, Place, Scratchpad};
use gaffer_workspace::worktree::Base;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What one run is about.
#[derive(Debug)]
pub(crate) struct Job {
    /// None for a session that goes on with what it has.
    pub(crate) prompt: Option<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) home: Home,
    pub(crate) session: SessionId,
    /// The session that goes on, where it is not a new one.
    pub(crate) old: Option<Old>,
    pub(crate) mode: Mode,
    pub(crate) max_turns: Option<u32>,
    /// What the answer has to look like.
    pub(crate) form: Option<Form>,
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
    pub(crate) session: SessionId,
    /// The plan that waits for the user's approval.
    pub(crate) plan: Option<String>,
    /// The result in the form that the user asked for.
    pub(crate) formed: Option<String>,
    /// Workers whose changes nobody has verified.
    pub(crate) unchecked: Vec<AgentName>,
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
        .max_blocking_threads(Handles::allowed().threads())
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

async fn session(mut job: Job, bus: Arc<Bus>, clock: Arc<SystemClock>) -> anyhow::Result<Done> {
    let began = Instant::now();
    let mut signals = Signals::listen()?;
    let guardrails = guardrails::load(&job)?;
    // Its drop lets others have the session: not before all is over.
    let (opened, _owned) = open(&mut job, &*clock)?;
    let id = opened.about.main;
    let (sender, inbox) = inbox();
    let (prompt, mode, max_turns) = (job.prompt.take(), job.mode, job.max_turns);
    let form = job.form.take();
    let (limits, prices) = (crew_limits(&job), job.chosen.prices.clone());
    let workshop = Arc::new(workshop(job, &opened, bus.clone(), clock.clone())?);
    let crew = Crew::new(CrewParts {
        session: workshop.session.clone(),
        folder: workshop.folder.clone(),
        book: opened.book.clone(),
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
        floor: workshop.limits.floor().clone(),
        guardrails,
    });
    if let Some(form) = &form {
        crew.demand(form.clone());
    }
    let prices = workshop.models.chosen.prices.clone();
    workshop.gear.meter.connect(crew.events(), id, prices);
    let Seat {
        mut agent,
        transcript,
        context,
        earlier,
    } = main_agent::seat(
        &workshop,
        &crew,
        opened.contents.as_ref(),
        (mode, max_turns, form),
        (sender.clone(), inbox),
    )?;
    let stop = CancellationToken::new();
    let end = {
        let working = async {
            let source = opened.source();
            let is_due = take_up(&crew, opened, earlier).await?;
            session_start(&context, &workshop, &sender, source).await;
            begin(&crew, &mut agent, prompt, is_due, &stop).await?;
            anyhow::Ok(crew.run_main(&mut agent, &stop).await)
        };
        let mut working = std::pin::pin!(working);
        tokio::select! {
            end = &mut working => end,
            () = signals.arrived() => {
                stop.cancel();
                working.await
            }
        }
    }?;
    crew.stop_all(&End::Interrupted).await;
    let outcome = agent.close(end);
    session_end(&context, &outcome.end).await;
    if let Err(why) = context.jobs.end_all().await {
        system::say(&format!("gaffer: {why}"));
    }
    let ended = AgentEnded {
        structured: crew.formed_result(),
        ..ended(&outcome, began, denials(&context))
    };
    workshop.pad.remove_unused();
    budget::close(&crew, &workshop.folder);
    Ok(told(&crew, &workshop, ended, (outcome, transcript)))
}

/// Tells those who watch that all is over, and whoever asked what came of it.
fn told(
    crew: &Crew,
    workshop: &Workshop,
    ended: AgentEnded,
    (outcome, transcript): (Outcome, PathBuf),
) -> Done {
    let parked = workshop.limits.plan().parked();
    let done = Done {
        outcome,
        transcript,
        session: workshop.session.clone(),
        plan: parked.map(|plan| plan.to_string()),
        formed: ended.structured.as_ref().map(ToString::to_string),
        unchecked: crew.unchecked(),
    };
    crew.tell_course();
    let ended = EventKind::AgentEnded(Box::new(ended));
    crew.events().emit(crew.parts().main, ended);
    done
}

/// Gives the session's own agent something to do.
async fn begin(
    crew: &Crew,
    agent: &mut Agent,
    prompt: Option<String>,
    is_due: bool,
    stop: &CancellationToken,
) -> Result<(), Usage> {
    match prompt {
        Some(prompt) => crew.tell_main(prompt),
        None if is_due || agent.has_mail() => {}
        // Somebody works who will wake it.
        None if crew.is_busy() => drop(agent.rest(stop).await),
        None => {
            let why = "nothing is left to do in this session: say what comes next";
            return Err(Usage::new(why));
        }
    }
    Ok(())
}

pub(crate) fn is_bare(job: &Job) -> bool {
    job.common.bare || system::variable("GAFFER_SIMPLE").is_some()
}

/// So many workers, or fewer where the system does not let them have their files open.
fn enough_files(workers: usize) -> usize {
    let handles = Handles::allowed();
    let most = handles.workers();
    if most < workers
        && let Some(files) = handles.count()
    {
        system::say(&format!(
            "gaffer: {most} workers at once instead of {workers}, as the system allows {files} open files (ulimit -Hn)"
        ));
    }
    most.min(workers)
}

fn crew_limits(job: &Job) -> CrewLimits {
    let default = CrewLimits::default();
    let set = job.common.max_workers.map(|most| most as usize);
    let price = job.chosen.prices.of(&job.chosen.name);
    let context = price.and_then(|price| price.context);
    let compaction = job.settings.compaction();
    let context = context.into_iter().chain(compaction.window).min();
    CrewLimits {
        workers: enough_files(set.or(job.settings.max_workers).unwrap_or(default.workers)),
        depth: match job.mode {
            Mode::Normal => job.settings.max_depth.unwrap_or(default.depth),
            #[cfg(feature = "coordinator")]
            Mode::Coordinator => 1,
        },
        // A fifth of the context for results. A token is seldom less than three bytes.
        results: context.map_or(default.results, |tokens| {
            usize::try_from(tokens).unwrap_or(usize::MAX) / 5 * 3
        }),
        compaction,
        budget: budget::choose(&job.common, &job.settings),
        ..default
    }
}

/// What the session's agents are made of.
fn workshop(
    job: Job,
    opened: &Opened,
    bus: Arc<Bus>,
    clock: Arc<SystemClock>,
) -> anyhow::Result<Workshop> {
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
    let is_bare = is_bare(&job);
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
    let base = match job.settings.worktree.base_ref {
        BaseRef::Head => Base::Head,
        BaseRef::Fresh => Base::DefaultBranch,
    };
    Ok(Workshop {
        yard: Yard::new(&job.cwd, base),
        integrate: job.settings.integrate.clone(),
        session: job.session,
        folder: opened.folder.clone(),
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
async fn session_start(
    context: &Context,
    workshop: &Workshop,
    inbox: &gaffer_agent::Sender,
    source: Source,
) {
    let Some(hooks) = &context.hooks else {
        return;
    };
    let moment = Moment::SessionStart {
        source,
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
        phase: None,
        is_unverified: false,
        structured: None,
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
