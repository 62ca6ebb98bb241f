//! Plain `gaffer`: a session at the terminal. The UI shows it on a thread of its own and sends what
//! the user wants done; the desk carries that out.

mod desk;
mod past;
mod session;
mod slash;
#[cfg(test)]
mod tests;
mod ui;

use crate::args::{Args, Common, Format};
use crate::bus::{Bus, Early};
use crate::exit::{Exit, Usage};
use crate::house;
use crate::run::Job;
use crate::setup;
use crate::system::{self, SystemClock, SystemEntropy};
use anyhow::Context as _;
use clap::CommandFactory as _;
use gaffer_protocol::{AgentId, Clock, Command, Event, EventKind, SessionId};
use gaffer_tools::nearest::nearest;
use gaffer_tools::question::Questions;
use gaffer_workspace::handles::Handles;
use session::{Over, play};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use ui::Ui;

/// A session that can begin, and the ways to and from whoever sits there.
pub(crate) struct Ready {
    pub(crate) job: Job,
    pub(crate) bus: Arc<Bus>,
    pub(crate) early: Arc<Early>,
    pub(crate) questions: Questions,
}

/// The way into sessions: the one that was asked for, and others later on.
pub(crate) struct Door {
    common: Common,
    events: Sender<Event>,
}

impl Door {
    /// The session that the command line asks for.
    fn first(&self, prompt: Option<String>) -> anyhow::Result<Ready> {
        self.ready(self.common.clone(), prompt)
    }

    /// Another session, which is on disk.
    pub(crate) fn resume(&self, id: &SessionId) -> anyhow::Result<Ready> {
        let common = Common {
            resume: Some(Some(id.to_string())),
            go_on: false,
            fork_session: false,
            session_id: None,
            name: None,
            ..self.common.clone()
        };
        self.ready(common, None)
    }

    fn ready(&self, common: Common, prompt: Option<String>) -> anyhow::Result<Ready> {
        let bus = Arc::new(Bus::to(Arc::new(SystemClock), self.events.clone()));
        let early = Arc::new(Early::new(bus.clone()));
        let questions = Questions::new(early.clone());
        let job = setup::job(common, None, Some(questions.clone()), |_, _| Ok(prompt))?;
        Ok(Ready {
            job,
            bus,
            early,
            questions,
        })
    }
}

pub(crate) fn live(args: Args) -> anyhow::Result<Exit> {
    let common = check(&args)?;
    let (events_in, events) = channel();
    let hears = hearer(events_in.clone());
    let door = Door {
        common,
        events: events_in,
    };
    // What is wrong with the call is said before the terminal is taken.
    let diverted = system::divert(hears);
    let ready = match door.first(args.prompt) {
        Ok(ready) => ready,
        Err(why) => {
            drop((diverted, door));
            notices(&events);
            return Err(why);
        }
    };
    let (home, rules) = (ready.job.home.clone(), house::rules(&ready.job.settings));
    let (commands, commands_out) = channel();
    let mut commands_out = bridge(commands_out)?;
    let ui = Ui::open(events, commands, ui::options(&ready.job)).context("cannot start the UI")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(Handles::allowed().threads())
        .build()
        .context("cannot start the runtime")?;
    let over = runtime.block_on(sessions(ready, &door, &mut commands_out));
    runtime.shutdown_background();
    // Without anybody who could tell it more, the UI leaves, and then the terminal is free.
    drop((diverted, door));
    let seen = ui.wait();
    let over = over?;
    match (&over.session, over.is_used) {
        (Some(session), true) => system::say(&format!("to go on: gaffer --resume {session}")),
        _ => system::say("nothing was begun"),
    }
    house::after_run(&home, &rules, &over.transcript);
    match over.is_by_signal {
        true => Ok(Exit::Interrupted),
        false => seen.map(|()| Exit::Done).context("the terminal"),
    }
}

/// One session after another, until the user leaves.
async fn sessions(
    mut ready: Ready,
    door: &Door,
    commands: &mut UnboundedReceiver<Command>,
) -> anyhow::Result<Over> {
    loop {
        let mut over = play(ready, door, commands).await?;
        match over.next.take() {
            Some(next) => ready = *next,
            None => return Ok(over),
        }
    }
}

/// Whether there is a terminal, and nothing is asked for that only a run without one has.
fn check(args: &Args) -> Result<Common, Usage> {
    if !system::stdin_is_terminal() || !system::stdout_is_terminal() {
        return Err(Usage::new(
            "standard input and output are no terminal: give a prompt with `gaffer -p \"…\"`, or try `gaffer demo`",
        ));
    }
    if let Some(name) = args.prompt.as_deref().and_then(misspelt) {
        let prompt = args.prompt.as_deref().unwrap_or_default();
        return Err(Usage::new(format!(
            "there is no command `{prompt}`; did you mean `gaffer {name}`? A prompt of one word can be given with -p"
        )));
    }
    let only = match args {
        Args {
            json_schema: Some(_),
            ..
        } => Some("--json-schema"),
        Args {
            output_format: Format::Json | Format::StreamJson,
            ..
        } => Some("--output-format"),
        _ => None,
    };
    match only {
        Some(flag) => Err(Usage::new(format!("{flag} is for runs with -p"))),
        None => Ok(args.common.clone()),
    }
}

/// The command that a prompt of one word was meant to be.
fn misspelt(prompt: &str) -> Option<String> {
    let is_word = prompt.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let commands = Args::command();
    let names = commands.get_subcommands().map(|command| command.get_name());
    let near = nearest(prompt, names).filter(|_| is_word && !prompt.is_empty())?;
    Some(near.to_owned())
}

/// What is said on the way becomes a notice: the terminal is the UI's.
fn hearer(events: Sender<Event>) -> impl Fn(&str) + Send {
    let agent = AgentId::random(&SystemEntropy);
    move |line: &str| {
        let line = line.strip_prefix("gaffer: ").unwrap_or(line);
        // A UI that has gone needs no notices.
        drop(events.send(Event {
            seq: 0,
            at: SystemClock.now(),
            agent,
            kind: EventKind::Notice(line.to_owned()),
        }));
    }
}

/// Says what no UI will show.
fn notices(events: &Receiver<Event>) {
    for event in events.try_iter() {
        if let EventKind::Notice(text) = event.kind {
            system::say(&format!("gaffer: {text}"));
        }
    }
}

/// Hands commands on from the UI's thread to the runtime. It ends with the UI.
fn bridge(commands: Receiver<Command>) -> anyhow::Result<UnboundedReceiver<Command>> {
    let (sender, receiver) = unbounded_channel();
    std::thread::Builder::new()
        .name("commands".to_owned())
        .spawn(move || {
            for command in commands {
                if sender.send(command).is_err() {
                    return;
                }
            }
        })
        .context("cannot start the thread for commands")?;
    Ok(receiver)
}

#[cfg(test)]
mod words {
    use super::misspelt;

    #[test]
    fn a_misspelt_command_is_no_prompt() {
        assert_eq!(misspelt("sesions").as_deref(), Some("sessions"));
        assert_eq!(misspelt("exprot").as_deref(), Some("export"));
        assert_eq!(misspelt("refactor"), None);
        assert_eq!(misspelt("show me the sessions"), None);
    }
}
