//! The event stream of this process: every event gets its number and time and goes to the view.

use gaffer_protocol::{AgentId, Clock, Event, EventKind, EventSink};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers events and hands them on. The view reads them on a thread of its own, so a slow
/// terminal never holds up an agent.
#[derive(Debug)]
pub(crate) struct Bus {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    sender: Sender<Event>,
}

impl Bus {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> (Self, Receiver<Event>) {
        let (sender, receiver) = channel();
        let state = Mutex::new(State { next: 0, sender });
        (Self { clock, state }, receiver)
    }
}

impl EventSink for Bus {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        let at = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
