//! Wires one session together: what is on disk, the crew, its own agent; and ends it in good order.

use crate::budget;
use crate::exit::Usage;
use crate::guardrails;
use crate::main_agent::{self, Badge, Earlier, Seat};
use crate::mode::Mode;
use crate::models::Models;
use crate::opening::{Opened, open, take_up};
use crate::run::{Done, Job};
use crate::settings::BaseRef;
use crate::system::{self, SystemClock, SystemEntropy};
use crate::workshop::Workshop;
use crate::yard::Yard;
use gaffer_agent::{Agent, AgentTypes, Documents, Outcome, Places, Sender, inbox};
use gaffer_crew::{Crew, CrewLimits, CrewParts};
use gaffer_protocol::event::{AgentEnded, Denied};
use gaffer_protocol::{Block, End, EventKind, EventSink};
use gaffer_store::{Ownership, session::slug};
use gaffer_tools::hook::{Moment, Source};
use gaffer_tools::{Context, Guard};
use gaffer_workspace::handles::Handles;
use gaffer_workspace::scratchpad::{Caps, Place, Scratchpad};
use gaffer_workspace::worktree::Base;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A session that is ready to go on.
pub(crate) struct Stage {
    pub(crate) crew: Crew,
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) agent: Agent,
    /// What the agent is, for who lets it go on with another model.
    pub(crate) badge: Badge,
    pub(crate) context: Context,
    transcript: PathBuf,
    inbox: Sender,
    opened: Option<Opened>,
    earlier: Option<Earlier>,
    source: Source,
    began: Instant,
    /// Its drop lets others have the session: not before all is over.
    _owned: Ownership,
}

impl Stage {
    pub(crate) fn set(
        mut job: Job,
        events: Arc<dyn EventSink>,
        clock: Arc<SystemClock>,
    ) -> anyhow::Result<Self> {
        let began = Instant::now();
        let guardrails = guardrails::load(&job)?;
        let (opened, owned) = open(&mut job, &*clock)?;
        let id = opened.about.main;
        let (sender, inbox) = inbox();
        let (mode, max_turns) = (job.mode, job.max_turns);
        let form = job.form.take();
        let (limits, prices) = (crew_limits(&job), job.chosen.prices.clone());
        let workshop = Arc::new(workshop(job, &opened, events.clone(), clock.clone())?);
        let crew = Crew::new(CrewParts {
            session: workshop.session.clone(),
            folder: workshop.folder.clone(),
            book: opened.book.clone(),
            mode: mode.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            main: id,
            main_inbox: sender.clone(),
            outfitter: workshop.clone(),
            events,
            clock,
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
            agent,
            badge,
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
        Ok(Self {
            crew,
            workshop,
            agent,
            badge,
            context,
            transcript,
            inbox: sender,
            source: opened.source(),
            opened: Some(opened),
            earlier,
            began,
            _owned: owned,
        })
    }

    /// Brings the crew of a session that goes on back to where it was. Answers whether its own
    /// agent has something to answer.
    pub(crate) async fn take_up(&mut self) -> anyhow::Result<bool> {
        match self.opened.take() {
            Some(opened) => take_up(&self.crew, opened, self.earlier.take()).await,
            None => Ok(false),
        }
    }

    /// The agent hears what hooks have to say at the start.
    pub(crate) async fn greet(&self) {
        session_start(&self.context, &self.workshop, &self.inbox, self.source).await;
    }

    /// Ends everybody and everything, and says what came of it.
    pub(crate) async fn close(mut self, end: End) -> Done {
        let (crew, workshop) = (&self.crew, &self.workshop);
        crew.stop_all(&End::Interrupted).await;
        let outcome = self.agent.close(end);
        session_end(&self.context, &outcome.end).await;
        if let Err(why) = self.context.jobs.end_all().await {
            system::say(&format!("gaffer: {why}"));
        }
        let ended = AgentEnded {
            structured: crew.formed_result(),
            ..ended(&outcome, self.began, denials(&self.context))
        };
        workshop.pad.remove_unused();
        budget::close(crew, &workshop.folder);
        told(crew, workshop, ended, (outcome, self.transcript))
    }
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
    events: Arc<dyn EventSink>,
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
        events,
        clock,
        outfits: Mutex::default(),
    })
}

/// What hooks have to say at the start stands before the prompt.
async fn session_start(context: &Context, workshop: &Workshop, inbox: &Sender, source: Source) {
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
