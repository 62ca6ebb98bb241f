//! The loop: events and keys come in, pictures and commands go out. Nothing wakes it at rest.

use crate::app::App;
use crate::options::{Left, Options};
use crate::terminal::Screen;
use crossterm::event::Event as Input;
use gaffer_protocol::{Command, Event, Timestamp};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Twenty pictures a second look like motion, and leave the machine to those who work.
const FRAME: Duration = Duration::from_millis(50);
/// How often clocks on the screen move while somebody works.
const TICK: Duration = Duration::from_secs(1);
/// How long the thread that reads keys outlives the UI at most.
const KEYS: Duration = Duration::from_secs(5);

enum In {
    Input(Input),
    Events(Vec<Event>),
    /// The session has ended.
    Closed,
    /// The terminal has gone.
    Gone(io::Error),
}

/// Shows a session until the user leaves or `events` closes. See the crate's page for the rest.
///
/// # Errors
/// Where the terminal cannot be taken, read or written.
pub fn run(
    events: Receiver<Event>,
    commands: &Sender<Command>,
    mut options: Options,
) -> io::Result<Left> {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    options.is_colorless |= no_color;
    let mut app = App::new(options);
    app.tick(now());
    let mut screen = Screen::take()?;
    let (sender, inputs) = channel();
    let _keys = Keys::read(sender.clone())?;
    thread::Builder::new()
        .name("tui-events".to_owned())
        .spawn(move || pump(&events, &sender))?;
    serve(&mut app, &mut screen, &inputs, commands)?;
    Ok(app.left())
}

fn serve(
    app: &mut App,
    screen: &mut Screen,
    inputs: &Receiver<In>,
    commands: &Sender<Command>,
) -> io::Result<()> {
    let mut drawn: Option<Instant> = None;
    let (mut is_dirty, mut is_urgent) = (true, true);
    loop {
        let since = drawn.map_or(FRAME, |drawn| drawn.elapsed());
        if is_dirty && (is_urgent || since >= FRAME) {
            is_dirty = !screen.draw(app)?;
            is_urgent = false;
            drawn = Some(Instant::now());
        }
        let since = drawn.map_or(FRAME, |drawn| drawn.elapsed());
        let wait = if is_dirty {
            Some(FRAME.saturating_sub(since))
        } else {
            app.model.is_anybody_working().then_some(TICK)
        };
        let got = match wait {
            Some(wait) => inputs.recv_timeout(wait),
            None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        is_dirty = true;
        app.tick(now());
        let mut next = match got {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => {
                app.idle();
                None
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        while let Some(input) = next {
            match input {
                In::Events(events) => events.iter().for_each(|event| app.event(event)),
                In::Closed => return Ok(()),
                In::Gone(error) => return Err(error),
                In::Input(input) => {
                    is_urgent = true;
                    if !handle(app, &input, commands) {
                        return Ok(());
                    }
                }
            }
            next = inputs.try_recv().ok();
        }
        if std::mem::take(&mut app.wants_suspend)
            && let Some(suspend) = &app.options.suspend
        {
            screen.pause(suspend)?;
        }
    }
}

/// False if that was the end.
fn handle(app: &mut App, input: &Input, commands: &Sender<Command>) -> bool {
    let out = match input {
        Input::Key(key) => app.key(*key, now()),
        Input::Paste(text) => {
            app.paste(text);
            Vec::new()
        }
        _ => Vec::new(),
    };
    for command in out {
        // Nobody is there to carry it out: there is nothing left to show either.
        if commands.send(command).is_err() {
            return false;
        }
    }
    !app.has_quit
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.unwrap_or_default().as_millis();
    Timestamp(u64::try_from(ms).unwrap_or(u64::MAX))
}

/// Hands events on in batches: at most one for each picture, so that a storm of events wakes
/// nobody more often than that. It ends with the session, or with the next event after the UI.
fn pump(events: &Receiver<Event>, out: &Sender<In>) {
    while let Ok(first) = events.recv() {
        let mut batch = vec![first];
        batch.extend(events.try_iter());
        if out.send(In::Events(batch)).is_err() {
            return;
        }
        thread::sleep(FRAME);
    }
    // The UI may have left already.
    drop(out.send(In::Closed));
}

/// The thread that reads keys; it ends soon after this is dropped.
struct Keys(Arc<AtomicBool>);

impl Keys {
    fn read(out: Sender<In>) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        thread::Builder::new()
            .name("tui-keys".to_owned())
            .spawn(move || {
                while !flag.load(Ordering::Relaxed) {
                    let input = match crossterm::event::poll(KEYS) {
                        Ok(false) => continue,
                        Ok(true) => crossterm::event::read(),
                        Err(error) => Err(error),
                    };
                    let is_gone = input.is_err();
                    let input = input.map_or_else(In::Gone, In::Input);
                    if out.send(input).is_err() || is_gone {
                        return;
                    }
                }
            })?;
        Ok(Self(is_over))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
