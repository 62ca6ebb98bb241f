//! One session that somebody sits at: its own agent works when there is something to answer and
//! rests until the next word, and the desk carries out what is wanted meanwhile.

use super::desk::{Desk, Next};
use super::past;
use super::{Door, Ready};
use crate::run::Done;
use crate::signals::Signals;
use crate::stage::Stage;
use crate::system::SystemClock;
use gaffer_agent::Agent;
use gaffer_protocol::{Command, End, SessionId};
use gaffer_store::delete::remove_all;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

/// What is left of a session when it is over.
pub(super) struct Over {
    pub(super) session: Option<SessionId>,
    pub(super) transcript: PathBuf,
    /// Whether anything was said in it.
    pub(super) is_used: bool,
    pub(super) is_by_signal: bool,
    /// The session that goes on instead.
    pub(super) next: Option<Box<Ready>>,
}

/// Goes through a session until the user leaves it.
pub(super) async fn play(
    ready: Ready,
    door: &Door,
    commands: &mut UnboundedReceiver<Command>,
) -> anyhow::Result<Over> {
    let Ready {
        job,
        bus,
        early,
        questions,
    } = ready;
    let mut signals = Signals::at_terminal()?;
    let prompt = job.prompt.clone();
    let (is_old, home) = (job.old.is_some(), job.home.clone());
    let mut stage = Stage::set(job, bus.clone(), Arc::new(SystemClock))?;
    early.connect(stage.crew.events());
    if is_old {
        past::tell(&stage, &bus);
    }
    let is_due = stage.take_up().await?;
    stage.greet().await;
    // Nothing is answered before the user has said something, or something happens.
    stage.agent.hold();
    let desk = Desk::new(&stage, (questions, home), is_old);
    match prompt {
        Some(prompt) => desk.say(&prompt),
        None if is_due => desk.notice("the last message was not answered: say how to go on"),
        None => {}
    }
    let stop = CancellationToken::new();
    let serving = async {
        let over = tokio::select! {
            next = desk.serve(commands, door) => (next, false),
            () = signals.arrived() => (Next::Leave, true),
        };
        stop.cancel();
        over
    };
    let (end, (next, is_by_signal)) = tokio::join!(work(&mut stage.agent, &desk, &stop), serving);
    let (is_used, folder) = (desk.is_used(), stage.workshop.folder.clone());
    drop(desk);
    let id = stage.workshop.session.clone();
    let done = tokio::select! {
        done = stage.close(end) => done,
        // Whoever asks again does not want to wait; what is left is ended by its wardens.
        () = signals.arrived() => anyhow::bail!(
            "left before everybody had ended; gaffer --resume {id} goes on"
        ),
    };
    let Done {
        session,
        transcript,
        ..
    } = done;
    bus.close();
    if !is_used {
        // An empty session would stand in every list.
        drop(remove_all(folder.path()));
    }
    Ok(Over {
        session: Some(session),
        transcript,
        is_used,
        is_by_signal,
        next: match next {
            Next::Leave => None,
            Next::Resume(ready) => Some(ready),
        },
    })
}

/// Lets the session's own agent work whenever there is something to answer, until the stop.
async fn work(agent: &mut Agent, desk: &Desk, stop: &CancellationToken) -> End {
    loop {
        if !agent.rest(stop).await {
            return match desk.crew().is_busy() {
                true => End::Interrupted,
                false => End::Done,
            };
        }
        desk.change_model(agent).await;
        let end = desk.crew().work_main(agent, stop).await;
        if stop.is_cancelled() {
            return End::Interrupted;
        }
        desk.look_at_mode();
        if let Some(end) = end {
            desk.turn_ended(&end);
        }
    }
}
