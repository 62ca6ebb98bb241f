//! Runs one session to its end: events, signals, what came of it.

use crate::args::Common;
use crate::bus::Bus;
use crate::exit::Usage;
use crate::gear::Gear;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::model::Chosen;
use crate::resume::Old;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::stage::Stage;
use crate::system::{self, SystemClock};
use crate::view::View;
use anyhow::Context as _;
use gaffer_agent::{Agent, Outcome};
use gaffer_crew::Crew;
use gaffer_protocol::{AgentName, SessionId};
use gaffer_store::Home;
use gaffer_tools::structured::Form;
use gaffer_workspace::handles::Handles;
use std::path::PathBuf;
use std::sync::Arc;
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

async fn session(job: Job, bus: Arc<Bus>, clock: Arc<SystemClock>) -> anyhow::Result<Done> {
    let mut signals = Signals::listen()?;
    let prompt = job.prompt.clone();
    let mut stage = Stage::set(job, bus, clock)?;
    let stop = CancellationToken::new();
    let end = {
        let working = async {
            let is_due = stage.take_up().await?;
            stage.greet().await;
            begin(&stage.crew, &mut stage.agent, prompt, is_due, &stop).await?;
            anyhow::Ok(stage.crew.run_main(&mut stage.agent, &stop).await)
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
    Ok(stage.close(end).await)
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
