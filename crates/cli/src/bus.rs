//! The event stream of this process: every event gets its number and time and goes to the view.

use crate::system;
use crate::view::View;
use gaffer_protocol::{AgentId, Clock, Event, EventKind, EventSink};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
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
    sender: Sender<Event>,
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
        let thread = std::thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || show(view, &events))?;
        let state = Some(Mutex::new(State { next: 0, sender }));
        Ok((Self { clock, state }, Shown(Some(thread))))
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
        let Some(state) = &self.state else {
            if let EventKind::Notice(text) = &kind {
                system::say(&format!("gaffer: {text}"));
            }
            return;
        };
        let at = self.clock.now();
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = state.next;
        state.next += 1;
        // A view that has gone needs no events.
        drop(state.sender.send(Event {
            seq,
            at,
            agent,
            kind,
        }));
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
