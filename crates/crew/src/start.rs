//! How workers begin: a place or the queue, a line in the book, and then the run.

use crate::budget::admit::{Applicant, advice_line};
use crate::crew::Crew;
use crate::depend::Standing;
use crate::mail::listed;
use crate::report::Report;
use crate::roster::{Live, Progress, State, Task};
use crate::worker::{self, Run};
use futures_util::future::FutureExt;
use gaffer_agent::agent_type::AgentType;
use gaffer_agent::{Inbox, Sender, inbox};
use gaffer_protocol::event::AgentStarted;
use gaffer_protocol::{AgentId, AgentName, Block, CallId, EventKind, Origin, Terms, Waiting};
use gaffer_store::book::{self, Change, Letter, Step};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a worker is to do.
#[derive(Debug, Clone)]
pub struct Order {
    pub description: String,
    pub prompt: String,
    pub kind: Arc<AgentType>,
    pub name: Option<AgentName>,
    pub model: Option<String>,
    pub parent: AgentId,
    pub call: Option<CallId>,
    /// Tasks, by their ids or names, that must have completed before it begins.
    pub depends_on: Vec<String>,
    /// Whether it is told their results.
    pub includes_results: bool,
    pub terms: Terms,
    /// How good it is, where somebody judged it.
    pub score: Option<u8>,
    /// What is said about it behind the answer.
    pub advice: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub id: AgentId,
    pub name: AgentName,
    pub transcript: PathBuf,
    /// Its place among those that wait, if it has to.
    pub place: Option<usize>,
    /// Those who must complete first.
    pub waits_for: Vec<AgentName>,
    /// What is to be said about its order; empty, or lines behind a line break.
    pub advice: String,
}

impl Started {
    /// What its starter is told.
    pub fn answer(&self) -> String {
        let place = match (self.waits_for.as_slice(), self.place) {
            ([], None) => String::new(),
            (names @ [_, ..], _) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!("\nIt begins by itself when {} completed.", have(&names))
            }
            ([], Some(place)) => format!(
                "\nAll places are taken: it is number {place} in the queue and begins by itself."
            ),
        };
        format!(
            "task_id: {}\nname: {}\ntranscript: {}{place}{}",
            self.id,
            self.name,
            self.transcript.display(),
            self.advice
        )
    }
}

fn have(names: &[String]) -> String {
    match names {
        [one] => format!("{one} has"),
        more => format!("{} have", more.join(", ")),
    }
}

/// Why no worker was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "the name `{0}` is taken in this session; choose another, or continue that worker with SendMessage"
    )]
    NameTaken(AgentName),
    #[error(
        "workers of workers are limited to a depth of {0}: do it yourself, or report what is needed"
    )]
    TooDeep(u32),
    #[error("it depends on `{0}`, and there is no such task{there}", there = listed(.1))]
    NoSuchTask(String, Vec<String>),
    #[error("the tasks would wait for each other for ever: {0}")]
    Circle(String),
    #[error("the session could not take it down: {0}")]
    NotKept(String),
    #[error("{0}")]
    Budget(String),
}

/// A worker that is in the roster and not yet in the book.
struct Reserved {
    started: Started,
    task: book::Task,
    call: Option<CallId>,
    prompt: Block,
    inbox: Inbox,
    permit: Option<OwnedSemaphorePermit>,
    gone: watch::Sender<bool>,
    is_waited: bool,
    /// What is to be said of what it costs beside others.
    cost_advice: Option<String>,
}

/// One that is about to go on.
struct Woken {
    inbox: Inbox,
    permit: Option<OwnedSemaphorePermit>,
    gone: watch::Sender<bool>,
    unread: Vec<Block>,
}

impl Crew {
    /// Starts a worker, or lets it wait for a place. Its end will come by notification.
    pub async fn start(&self, order: Order) -> Result<Started, Refused> {
        self.begin(order, None).await
    }

    /// The same for somebody who waits for the end: then there is no notification, unless they
    /// stop waiting.
    pub async fn start_waited(
        &self,
        order: Order,
    ) -> Result<(Started, oneshot::Receiver<Report>), Refused> {
        let (sender, receiver) = oneshot::channel();
        let started = self.begin(order, Some(sender)).await?;
        Ok((started, receiver))
    }

    async fn begin(
        &self,
        order: Order,
        waiter: Option<oneshot::Sender<Report>>,
    ) -> Result<Started, Refused> {
        let name = order.name.as_ref();
        let depends_on = self.dependencies(name, &order.depends_on).await?;
        if let Some(why) = self.unpriced(&order) {
            return Err(Refused::Budget(why));
        }
        let parent = order.parent;
        let mut reserved = self.reserve(order, depends_on, waiter)?;
        // Somebody may wait for files of one that waits for this worker from now on.
        self.leases().look_again();
        if let Some(advice) = reserved.cost_advice.take() {
            self.advise_budget(parent, &advice);
        }
        let (answer, answered) = oneshot::channel();
        let crew = self.clone();
        // Whoever asked may stop waiting. What is reserved begins or is given back all the same.
        self.0.tasks.spawn(async move {
            drop(answer.send(crew.carry_out(reserved).await));
        });
        let lost = || Err(Refused::NotKept("the session is over".to_owned()));
        answered.await.unwrap_or_else(|_| lost())
    }

    /// Takes a name, an id and, if there is one, a place.
    fn reserve(
        &self,
        order: Order,
        depends_on: Vec<AgentId>,
        waiter: Option<oneshot::Sender<Report>>,
    ) -> Result<Reserved, Refused> {
        let parts = &self.0.parts;
        let is_waited = waiter.is_some();
        let mut roster = self.0.roster();
        let depth = roster.get(order.parent).map_or(0, |task| task.depth) + 1;
        if depth > parts.limits.depth {
            return Err(Refused::TooDeep(parts.limits.depth));
        }
        let is_apart = roster
            .get(order.parent)
            .is_some_and(|task| task.terms.isolated);
        let name = match order.name {
            Some(name) if roster.has_name(&name) => return Err(Refused::NameTaken(name)),
            Some(name) => name,
            None => roster.next_name(&order.kind.name),
        };
        let mut id = AgentId::random(&*parts.entropy);
        while id == parts.main || roster.has_id(id) {
            id = AgentId::random(&*parts.entropy);
        }
        let admitted = self.admit(&Applicant {
            id,
            name: &name,
            kind: &order.kind.name,
            parent: order.parent,
            prompt: &order.prompt,
            budget: order.terms.budget,
        });
        let cost_advice = admitted.map_err(Refused::Budget)?;
        let (sender, inbox) = inbox();
        let (mut live, gone) = live(sender, waiter);
        live.is_called = order.call.is_some();
        let waits_for = match roster.standing(&depends_on) {
            Standing::Met => Vec::new(),
            Standing::Waits(names) => names,
        };
        let permit = self.find_place(&mut live, &waits_for);
        let place = (live.progress == Progress::Queued).then(|| roster.line_up(id));
        let task = book::Task {
            id,
            name,
            kind: order.kind.name.clone(),
            description: order.description,
            parent: order.parent,
            depth,
            model: order.model,
            depends_on,
            includes_results: order.includes_results,
            terms: Terms {
                max_turns: order.terms.max_turns.or(order.kind.max_turns),
                // Whoever works apart reaches the user's checkout by no worker of its own either.
                isolated: order.terms.isolated || is_apart,
                ..order.terms
            },
        };
        let started = Started {
            id,
            name: task.name.clone(),
            transcript: parts.folder.transcript(id),
            place,
            waits_for,
            advice: order.advice + &advice_line(cost_advice.as_deref()),
        };
        let state = State::Live(Box::new(live));
        let mut entry = Task::new(&task, order.kind, started.transcript.clone(), state);
        entry.add_score(order.score);
        entry.add_stint(self.moment());
        roster.add(entry);
        Ok(Reserved {
            started,
            task,
            call: order.call,
            prompt: Block::from(Origin::Agent, order.prompt),
            inbox,
            permit,
            gone,
            is_waited,
            cost_advice,
        })
    }

    /// Lets a reserved worker begin, once the book has it.
    async fn carry_out(&self, reserved: Reserved) -> Result<Started, Refused> {
        let Reserved { started, task, .. } = reserved;
        let letter = self.0.next_letter();
        let prompt = reserved.prompt.by_mail(letter);
        let mut changes = vec![
            Change::Start(Box::new(task.clone())),
            Change::Send(Letter {
                id: letter,
                to: started.id,
                about: None,
                block: prompt.clone(),
                is_held: false,
            }),
        ];
        // The answer of a call that waits is the worker's end, which is not known yet.
        if let Some(call) = reserved.call.clone().filter(|_| !reserved.is_waited) {
            changes.push(Change::Answered {
                agent: task.parent,
                call,
                answer: started.answer(),
            });
        }
        if let Err(why) = self.0.parts.book.write(Step::written(changes)).await {
            self.0.roster().remove(started.id);
            self.0.purses().remove(started.id, self.0.age());
            return Err(Refused::NotKept(why.to_string()));
        }
        let phase = self.0.roster().get(started.id).map(Task::phase);
        let event = AgentStarted {
            phase,
            name: task.name,
            agent_type: task.kind,
            parent: Some(task.parent),
            description: task.description,
            call: reserved.call,
            depth: task.depth,
        };
        self.emit(started.id, EventKind::AgentStarted(Box::new(event)));
        if let Some(place) = started.place {
            self.emit(started.id, EventKind::Waiting(Waiting::Queue(place)));
        }
        let run = Run::Begins(vec![prompt]);
        self.launch(
            started.id,
            run,
            reserved.inbox,
            (reserved.permit, reserved.gone),
        );
        Ok(started)
    }

    /// Lets a run of a worker take its course, to an end that is told.
    fn launch(
        &self,
        id: AgentId,
        run: Run,
        inbox: Inbox,
        (permit, gone): (Option<OwnedSemaphorePermit>, watch::Sender<bool>),
    ) {
        let crew = self.clone();
        self.0.tasks.spawn(async move {
            let attended = AssertUnwindSafe(worker::attend(&crew, id, run, inbox, permit));
            let ended = attended.catch_unwind().await;
            let ended = ended.unwrap_or_else(|_| worker::Ended::crashed());
            crew.finish(id, ended).await;
            // Nobody may be waiting for it.
            gone.send_replace(true);
        });
    }

    /// Continues a worker that has ended, with these messages.
    pub(crate) async fn go_on(&self, id: AgentId, blocks: Vec<Block>) {
        let Some(woken) = self.wake(id, &blocks, true) else {
            return;
        };
        let blocks = woken.unread.into_iter().chain(blocks).collect();
        let written = Step::written(vec![Change::GoOn(id)]);
        let run = match self.0.parts.book.write(written).await {
            Ok(()) => Run::Continues(blocks),
            Err(why) => Run::Fails(why.to_string(), blocks),
        };
        self.emit(id, EventKind::Continued);
        if woken.permit.is_none() {
            self.show_queue();
        }
        self.launch(id, run, woken.inbox, (woken.permit, woken.gone));
    }

    /// Lets a worker take its place again that waited for it when the session ended. The book
    /// knows it as one that has not ended.
    pub(crate) fn queue_again(&self, id: AgentId, blocks: Vec<Block>) {
        if let Some(woken) = self.wake(id, &blocks, false) {
            if woken.permit.is_none() {
                self.show_queue();
            }
            let run = Run::Continues(blocks);
            self.launch(id, run, woken.inbox, (woken.permit, woken.gone));
        }
    }

    /// A place to run, if one is free and nobody is waited for. Whoever has it has it from here on.
    fn find_place(&self, live: &mut Live, waits_for: &[AgentName]) -> Option<OwnedSemaphorePermit> {
        if !waits_for.is_empty() {
            live.progress = Progress::Held;
            live.waiting = Waiting::Dependencies(waits_for.to_vec());
            return None;
        }
        let permit = self.places().try_acquire_owned().ok()?;
        live.progress = Progress::Running;
        live.waiting = Waiting::Model;
        Some(permit)
    }

    /// Brings a task to life in the roster. None if somebody was faster, who then got the blocks.
    fn wake(&self, id: AgentId, blocks: &[Block], is_new_run: bool) -> Option<Woken> {
        let (sender, inbox) = inbox();
        let (mut live, gone) = live(sender, None);
        let mut roster = self.0.roster();
        let task = roster.get_mut(id)?;
        if let Some(live) = task.live_mut() {
            match live.reads_mail() {
                true => blocks.iter().cloned().for_each(|block| {
                    live.inbox.send(block);
                }),
                false => live.late.extend(blocks.iter().cloned()),
            }
            return None;
        }
        let depends_on = task.depends_on.clone();
        // What it depends on matters before it begins for the first time. Whoever was continued and
        // waited for a place when the session ended had begun.
        let is_first_run = !is_new_run && task.runs <= 1;
        let waits_for = match roster.standing(&depends_on) {
            Standing::Waits(names) if is_first_run => names,
            _ => Vec::new(),
        };
        let permit = self.find_place(&mut live, &waits_for);
        if live.progress == Progress::Queued {
            roster.line_up(id);
        }
        let task = roster.get_mut(id)?;
        task.state = State::Live(Box::new(live));
        if is_new_run {
            task.runs += 1;
            task.add_stint(self.moment());
        }
        let unread = std::mem::take(&mut task.unread);
        self.0.purses().begin_run(id);
        Some(Woken {
            inbox,
            permit,
            gone,
            unread,
        })
    }
}

/// The state of a worker that is about to begin.
fn live(inbox: Sender, waiter: Option<oneshot::Sender<Report>>) -> (Live, watch::Sender<bool>) {
    let (gone, is_gone) = watch::channel(false);
    let now = Instant::now();
    let live = Live {
        inbox,
        stop: CancellationToken::new(),
        turn: CancellationToken::new(),
        stopped: None,
        progress: Progress::Queued,
        place: None,
        waiter,
        is_called: false,
        late: Vec::new(),
        gone: is_gone,
        since: now,
        heard: now,
        waiting: Waiting::Queue(1),
        last_tool: None,
    };
    (live, gone)
}
