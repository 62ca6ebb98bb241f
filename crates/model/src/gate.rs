//! The gate: how many requests may be under way with one provider and key.
//!
//! It starts open to its limit. When the provider says that it is too much (429, 529) the width
//! is halved, once for all requests that were under way together, and grows back with success.
//! A wait that the provider asks for stops everybody. Who came first goes first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// So many widths' worth of successes take the gate from closed to fully open again.
const STEPS_TO_FULL: u32 = 16;

#[derive(Debug, Clone)]
pub struct Gate {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    limit: u32,
    width: u32,
    under_way: u32,
    /// Successes since the width last changed.
    successes: u32,
    /// Counts the halvings: a request that began before the last one does not halve again.
    epoch: u64,
    closed_until: Option<Instant>,
    /// Places handed out to a waiter count as under way at once, so nobody can slip in between.
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// What the gate looks like now, for showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateView {
    pub limit: u32,
    pub width: u32,
    pub under_way: u32,
    pub waiting: usize,
}

impl Gate {
    pub fn new(limit: u32) -> Self {
        let limit = limit.max(1);
        Self {
            state: Arc::new(Mutex::new(State {
                limit,
                width: limit,
                under_way: 0,
                successes: 0,
                epoch: 0,
                closed_until: None,
                waiting: VecDeque::new(),
            })),
        }
    }

    /// Waits for a place, in order of arrival, and then for the end of a pause: whoever has a
    /// place keeps it meanwhile, so a pause changes nothing in the order. `on_wait` is called once
    /// if there is anything to wait for.
    pub async fn enter(&self, mut on_wait: impl FnMut()) -> Place {
        let mut told = false;
        let mut tell = || {
            if !std::mem::replace(&mut told, true) {
                on_wait();
            }
        };
        let place = loop {
            match self.take_or_queue() {
                Ok(place) => break place,
                Err(receiver) => {
                    tell();
                    // The sender lives in the gate that we hold; were it gone, we ask again.
                    if let Ok(place) = receiver.await {
                        break place;
                    }
                }
            }
        };
        while let Some(until) = self.closed_until() {
            tell();
            tokio::time::sleep_until(until).await;
        }
        place
    }

    fn closed_until(&self) -> Option<Instant> {
        let until = self.lock().closed_until;
        until.filter(|until| *until > Instant::now())
    }

    fn take_or_queue(&self) -> Result<Place, oneshot::Receiver<Place>> {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.under_way < state.width {
            state.under_way += 1;
            return Ok(self.place(state.epoch));
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back(sender);
        Err(receiver)
    }

    fn place(&self, epoch: u64) -> Place {
        Place {
            gate: self.clone(),
            epoch,
        }
    }

    pub fn view(&self) -> GateView {
        let state = self.lock();
        GateView {
            limit: state.limit,
            width: state.width,
            under_way: state.under_way,
            waiting: state.waiting.len(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands free places to those who wait. The places are sent outside the lock: one whose
    /// receiver has gone comes back by its drop, which needs the lock itself.
    fn admit(&self) {
        loop {
            let (sender, place) = {
                let mut state = self.lock();
                if state.under_way >= state.width {
                    return;
                }
                let Some(sender) = state.waiting.pop_front() else {
                    return;
                };
                state.under_way += 1;
                (sender, self.place(state.epoch))
            };
            drop(sender.send(place));
        }
    }
}

/// A place in the gate. Giving it up, however that happens, lets the next one in.
#[derive(Debug)]
pub struct Place {
    gate: Gate,
    epoch: u64,
}

impl Place {
    /// The request went well: the gate widens a little.
    pub fn succeeded(self) {
        let mut state = self.gate.lock();
        if state.width < state.limit {
            state.successes += 1;
            if state.successes >= state.width {
                state.successes = 0;
                let step = state.limit.div_ceil(STEPS_TO_FULL);
                state.width = state.limit.min(state.width + step);
            }
        }
    }

    /// The provider said that it is too much, and maybe for how long.
    pub fn pressed(self, retry_after: Option<Duration>) {
        let mut state = self.gate.lock();
        if self.epoch == state.epoch {
            state.epoch += 1;
            state.successes = 0;
            state.width = (state.width / 2).max(1);
        }
        if let Some(wait) = retry_after {
            let until = Instant::now() + wait;
            state.closed_until = Some(state.closed_until.map_or(until, |now| now.max(until)));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.lock().under_way -= 1;
        self.gate.admit();
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own tasks need no supervisor"
)]
mod tests {
    use super::*;

    fn silent() {}

    #[tokio::test(start_paused = true)]
    async fn pressure_halves_once_for_requests_that_ran_together() {
        let gate = Gate::new(16);
        let mut places = Vec::new();
        for _ in 0..16 {
            places.push(gate.enter(silent).await);
        }
        for place in places {
            place.pressed(None);
        }
        assert_eq!(gate.view().width, 8);
        gate.enter(silent).await.pressed(None);
        assert_eq!(gate.view().width, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn it_never_closes_for_good_and_grows_back_to_its_limit() {
        let gate = Gate::new(8);
        for _ in 0..10 {
            gate.enter(silent).await.pressed(None);
        }
        assert_eq!(gate.view().width, 1);
        for _ in 0..200 {
            gate.enter(silent).await.succeeded();
        }
        assert_eq!(gate.view().width, 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_stops_everybody() {
        let gate = Gate::new(4);
        let start = Instant::now();
        gate.enter(silent)
            .await
            .pressed(Some(Duration::from_secs(7)));
        let mut waited = false;
        let place = gate.enter(|| waited = true).await;
        assert!(start.elapsed() >= Duration::from_secs(7));
        drop(place);
        assert!(waited);
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_first_goes_first_and_who_left_is_passed_over() {
        let gate = Gate::new(1);
        let first = gate.enter(silent).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for n in 0..5 {
            let (gate, order) = (gate.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let place = gate.enter(silent).await;
                order.lock().unwrap().push(n);
                drop(place);
            }));
            tokio::task::yield_now().await;
        }
        tasks[2].abort();
        tokio::task::yield_now().await;
        drop(first);
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.is_ok(), n != 2);
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 3, 4]);
        assert_eq!(gate.view().under_way, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_comings_and_goings_leak_no_place() {
        let gate = Gate::new(3);
        let tasks: Vec<_> = (0..1000)
            .map(|n: u64| {
                let gate = gate.clone();
                tokio::spawn(async move {
                    let place = gate.enter(silent).await;
                    tokio::time::sleep(Duration::from_millis(n % 7)).await;
                    match n % 3 {
                        0 => place.succeeded(),
                        1 => place.pressed((n % 50 == 1).then_some(Duration::from_millis(20))),
                        _ => drop(place),
                    }
                })
            })
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            if n % 11 == 5 {
                task.abort();
            }
            drop(task.await);
        }
        let view = gate.view();
        assert_eq!((view.under_way, view.waiting), (0, 0));
    }
}
