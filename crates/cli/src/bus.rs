//! The event stream of this process: every event gets its number and time and goes to the view.

use crate::system;
use crate::view::View;
use gaffer_protocol::{AgentId, Clock, Event, EventKind, EventSink, Timestamp};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Numbers events and hands them on. The view reads them on a thread of its own, so a slow
/// terminal never holds up an agent. Where nothing is shown there is no thread to be woken.
#[derive(Debug)]
pub(crate) struct Bus {
    clock: Arc<dyn Clock>,
    state: Option<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    next: u64,
    /// None when all is over.
    sender: Option<Sender<Event>>,
}

/// The view's thread.
#[derive(Debug)]
pub(crate) struct Shown(Option<JoinHandle<()>>);

impl Bus {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        view: Option<Box<dyn View>>,
    ) -> std::io::Result<(Self, Shown)> {
        let Some(view) = view else {
            return Ok((Self { clock, state: None }, Shown(None)));
        };
        let (sender, events) = channel();
        let bus = Self::to(clock, sender);
        let thread = std::thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || show(view, &events))?;
        Ok((bus, Shown(Some(thread))))
    }

    /// For whoever reads the other end, as slowly as they like.
    pub(crate) fn to(clock: Arc<dyn Clock>, sender: Sender<Event>) -> Self {
        let sender = Some(sender);
        let state = Some(Mutex::new(State { next: 0, sender }));
        Self { clock, state }
    }

    /// Tells what was before: it has a time of its own.
    pub(crate) fn emit_at(&self, at: Timestamp, agent: AgentId, kind: EventKind) {
        let Some(state) = &self.state else {
            return;
        };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = state.next;
        state.next += 1;
        if let Some(sender) = &state.sender {
            // A view that has gone needs no events.
            drop(sender.send(Event {
                seq,
                at,
                agent,
                kind,
            }));
        }
    }

    /// Nothing is told from now on, whoever may still hold this.
    pub(crate) fn close(&self) {
        if let Some(state) = &self.state {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.sender = None;
        }
    }
}

impl Shown {
    /// Waits until the view has drawn its last event, once the bus is gone.
    pub(crate) fn wait(self) {
        if let Some(thread) = self.0 {
            drop(thread.join());
        }
    }
}

impl EventSink for Bus {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        if let (None, EventKind::Notice(text)) = (&self.state, &kind) {
            system::say(&format!("gaffer: {text}"));
        }
        self.emit_at(self.clock.now(), agent, kind);
    }
}

/// Where events go of those who are there before the crew is: the crew keeps account by them.
#[derive(Debug)]
pub(crate) struct Early {
    bus: Arc<Bus>,
    crew: OnceLock<Arc<dyn EventSink>>,
}

impl Early {
    pub(crate) fn new(bus: Arc<Bus>) -> Self {
        let crew = OnceLock::new();
        Self { bus, crew }
    }

    pub(crate) fn connect(&self, crew: Arc<dyn EventSink>) {
        // A session has one crew.
        drop(self.crew.set(crew));
    }
}

impl EventSink for Early {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        match self.crew.get() {
            Some(crew) => crew.emit(agent, kind),
            None => self.bus.emit(agent, kind),
        }
    }
}

fn show(mut view: Box<dyn View>, events: &Receiver<Event>) {
    loop {
        let event = match view.tick() {
            None => events.recv().ok(),
            Some(tick) => match events.recv_timeout(tick) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => {
                    view.idle();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => None,
            },
        };
        match event {
            Some(event) => view.event(&event),
            None => break,
        }
    }
    view.close();
}
