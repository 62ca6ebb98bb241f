//! One run of one worker: from a place to an end, whatever happens on the way.

mod prepare;

use self::prepare::prepare;
use crate::crew::Crew;
use crate::outfit::Hand;
use crate::proof::{Proving, Verdict};
use crate::roster::Progress;
use crate::shape::Proofs;
use gaffer_agent::agent_type::AgentType;
use gaffer_agent::{Agent, Inbox, Outcome, Sender};
use gaffer_protocol::event::Denied;
use gaffer_protocol::notification::Worktree;
use gaffer_protocol::{AgentId, AgentName, Block, End, MailId, StopReason, Terms, Waiting};
use gaffer_tools::{Context, Seen};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What an ended worker knows of more files than these is forgotten: it must read them again.
const MOST_SEEN: usize = 100;

/// What a run begins with: messages.
#[derive(Debug)]
pub(crate) enum Run {
    /// A new worker, with its task.
    Begins(Vec<Block>),
    Continues(Vec<Block>),
    /// One that cannot go on, and why.
    Fails(String, Vec<Block>),
}

impl Run {
    fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Begins(blocks) | Self::Continues(blocks) | Self::Fails(_, blocks) => blocks,
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    pub(crate) result: String,
    pub(crate) model_time: Duration,
    pub(crate) stop: Option<StopReason>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) seen: Option<Seen>,
    pub(crate) changed_files: Vec<String>,
    /// Whether any of them is of the project, not of the scratchpad.
    pub(crate) has_changed: bool,
    pub(crate) denials: Vec<Denied>,
    pub(crate) left_running: Vec<String>,
    /// Its worktree, if it had one and that is still there.
    pub(crate) worktree: Option<Worktree>,
    /// What it was sent and has not read.
    pub(crate) unread: Vec<Block>,
    /// The letters that it has read.
    pub(crate) heard: Vec<MailId>,
    /// What must be on the disk before its end is.
    pub(crate) record: Option<File>,
}

impl Ended {
    fn without_a_word(end: End) -> Self {
        Self {
            end,
            result: String::new(),
            model_time: Duration::ZERO,
            stop: None,
            cwd: None,
            seen: None,
            changed_files: Vec::new(),
            has_changed: false,
            denials: Vec::new(),
            left_running: Vec::new(),
            worktree: None,
            unread: Vec::new(),
            heard: Vec::new(),
            record: None,
        }
    }

    /// An end before anything was read.
    fn before_it_began(end: End, run: Run, mut inbox: Inbox) -> Self {
        let mut unread = run.into_blocks();
        unread.extend(inbox.take());
        Self {
            unread,
            ..Self::without_a_word(end)
        }
    }

    /// The worker leaves its worktree, if it had one.
    async fn out_of(mut self, crew: &Crew, id: AgentId, known: &Known) -> Self {
        if known.terms.isolated {
            self.worktree = crew.parts().outfitter.release(id).await;
        }
        self
    }

    pub(crate) fn crashed() -> Self {
        let why = "a bug in gaffer ended this worker; its transcript is whole";
        Self::without_a_word(End::Crashed(why.to_owned()))
    }
}

/// What is known of a worker when its run begins.
struct Known {
    name: AgentName,
    kind: Arc<AgentType>,
    description: String,
    parent: AgentId,
    depth: u32,
    model: Option<String>,
    terms: Arc<Terms>,
    transcript: PathBuf,
    cwd: Option<PathBuf>,
    seen: Option<Seen>,
    inbox: Sender,
    stop: CancellationToken,
}

/// Waits for a place, works, and leaves nothing behind.
pub(crate) async fn attend(
    crew: &Crew,
    id: AgentId,
    run: Run,
    inbox: Inbox,
    place: Option<OwnedSemaphorePermit>,
) -> Ended {
    let Some(known) = known(crew, id) else {
        return Ended::crashed();
    };
    if let Run::Fails(why, _) = &run {
        let end = End::Crashed(why.clone());
        return Ended::before_it_began(end, run, inbox);
    }
    let is_held = |crew: &Crew| {
        let roster = crew.0.roster();
        let live = roster.get(id).and_then(crate::roster::Task::live);
        live.is_some_and(|live| live.progress == Progress::Held)
    };
    if is_held(crew) {
        if !crew.wait_for_others(id, &known.stop).await {
            return Ended::before_it_began(End::Interrupted, run, inbox);
        }
        crew.show_queue();
    }
    let place = match place {
        Some(place) => Some(place),
        None => tokio::select! {
            biased;
            () = known.stop.cancelled() => None,
            place = crew.places().acquire_owned() => place.ok(),
        },
    };
    let Some(place) = place else {
        return Ended::before_it_began(End::Interrupted, run, inbox);
    };
    let taken = match crew.entrant(id) {
        Some(entrant) => {
            let folder =
                (!known.terms.isolated).then(|| crew.parts().outfitter.folder(&hand(id, &known)));
            let taken = crew.take_files(&entrant, folder.as_deref(), place, &known.stop);
            taken.await.map(|(place, tenure)| (place, tenure, entrant))
        }
        None => Err(End::Interrupted),
    };
    // All that it holds is free when this is dropped, however its run ends.
    let (place, tenure, entrant) = match taken {
        Ok(taken) => taken,
        Err(end) => return Ended::before_it_began(end, run, inbox),
    };
    begin(crew, id, place);
    crew.show_queue();
    let made = match prepare(crew, id, &known, &run).await {
        Ok(mut made) => {
            let lease = entrant.lease(&tenure, &made.folder, known.terms.isolated);
            made.context.lease = Some(lease);
            made
        }
        Err(why) => {
            let ended = Ended::before_it_began(End::Crashed(why), run, inbox);
            return ended.out_of(crew, id, &known).await;
        }
    };
    let context = made.context.clone();
    for block in made.opening.iter().cloned().chain(run.into_blocks()) {
        known.inbox.send(block);
    }
    let proving = Proving::of(known.terms.done_when.clone(), made.folder.clone());
    let mut proofs = Proofs::new(made.form.clone(), proving);
    let mut agent = made.agent(crew, id, &known, inbox);
    let end = work(crew, id, &mut agent, (&known, &context, &mut proofs)).await;
    let mut ended = leave(&mut agent, &context, end).await;
    if let Some(result) = proofs.result() {
        ended.result = result.to_string();
    }
    // Nothing of it runs any more that could write there.
    ended.out_of(crew, id, &known).await
}

fn known(crew: &Crew, id: AgentId) -> Option<Known> {
    let roster = crew.0.roster();
    let task = roster.get(id)?;
    let live = task.live()?;
    Some(Known {
        name: task.name.clone(),
        kind: task.kind.clone(),
        description: task.description.clone(),
        parent: task.parent,
        depth: task.depth,
        model: task.model.clone(),
        terms: task.terms.clone(),
        transcript: task.transcript.clone(),
        cwd: task.cwd.clone(),
        seen: task.seen.clone(),
        inbox: live.inbox.clone(),
        stop: live.stop.clone(),
    })
}

fn hand(id: AgentId, known: &Known) -> Hand<'_> {
    Hand {
        id,
        name: &known.name,
        kind: &known.kind,
        description: &known.description,
        isolated: known.terms.isolated,
        transcript: &known.transcript,
        cwd: known.cwd.as_deref(),
        inbox: &known.inbox,
    }
}

/// Its clocks run from now on.
fn begin(crew: &Crew, id: AgentId, place: OwnedSemaphorePermit) {
    crew.0.purses().start_clock(id, crew.0.age());
    let mut roster = crew.0.roster();
    let task = roster.get_mut(id);
    let Some(task) = task else {
        return;
    };
    if let Some(stint) = task.stints.last_mut() {
        stint.began = crew.moment();
    }
    if let Some(live) = task.live_mut() {
        live.progress = Progress::Running;
        live.place = Some(place);
        live.waiting = Waiting::Model;
        live.since = Instant::now();
        live.heard = live.since;
    }
    roster.leave_queue(id);
}

/// Works until nothing is left to do. A message that comes while it ends is not lost: either it
/// is still heard, or the worker is seen as leaving and the message waits for the next run.
async fn work(
    crew: &Crew,
    id: AgentId,
    agent: &mut Agent,
    (known, context, proofs): (&Known, &Context, &mut Proofs),
) -> End {
    loop {
        let turn = crew.begin_turn_of(id, &known.stop);
        let mut end = agent.work(&turn).await;
        if end == End::Interrupted && !known.stop.is_cancelled() {
            // The user wants to say something first. Until then it costs nothing.
            agent.rest(&known.stop).await;
            continue;
        }
        // Mail goes first: there is more to do before anything is proven.
        if end == End::Done && !agent.has_mail() {
            let words = agent.last_words().to_owned();
            let looks = proofs.look(&words, (crew, id, context, &known.stop));
            match looks.await {
                Verdict::Proven => {}
                Verdict::Again(block) => {
                    known.inbox.send(block);
                    continue;
                }
                Verdict::Not(why) => end = why,
            }
        }
        let mut roster = crew.0.roster();
        let task = roster.get_mut(id);
        if end == End::Done && agent.has_mail() {
            continue;
        }
        let Some(live) = task.and_then(crate::roster::Task::live_mut) else {
            return end;
        };
        live.progress = Progress::Leaving;
        // The record is to say who stopped it, not only that it stopped.
        let stopped = live.stopped.clone().filter(|_| end != End::Done);
        return stopped.unwrap_or(end);
    }
}

/// Ends what it started and takes its last words.
async fn leave(agent: &mut Agent, context: &Context, end: End) -> Ended {
    let alive = context.jobs.alive();
    let left_running = alive.iter().map(|entry| entry.label.clone()).collect();
    let ended_jobs = context.jobs.end_all().await;
    let unread = agent.take_unread();
    let heard = agent.take_heard();
    let Outcome {
        end,
        mut result,
        model_time,
        stop,
        ..
    } = agent.close(end);
    if let Err(why) = ended_jobs {
        result.push_str(&format!("\n[{why}]"));
    }
    Ended {
        end,
        result,
        model_time,
        stop,
        cwd: Some(context.cwd.get()),
        seen: Some(context.seen.clone()).filter(|seen| seen.len() <= MOST_SEEN),
        has_changed: has_changed(context),
        changed_files: context.changed.files(),
        denials: denials(context),
        left_running,
        worktree: None,
        unread,
        heard,
        record: agent.transcript().file().ok(),
    }
}

/// What stands in the scratchpad is for the crew: it changes nothing of the project.
fn has_changed(context: &Context) -> bool {
    let pad = context.scratchpad.as_ref().map(|pen| pen.pad().path());
    let is_outside = |file: &String| {
        pad.as_ref()
            .is_none_or(|it| !Path::new(file).starts_with(it))
    };
    context.changed.files().iter().any(is_outside)
}

fn denials(context: &Context) -> Vec<Denied> {
    let denials = context.guard.as_ref().map(gaffer_tools::Guard::denials);
    let denied = denials.into_iter().flatten().map(|denial| Denied {
        tool_name: denial.tool,
        summary: denial.input,
        reason: denial.reason,
    });
    denied.collect()
}
