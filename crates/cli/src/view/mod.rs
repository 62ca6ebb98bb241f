//! Views: folds over the event stream that draw it.

pub(crate) mod account;
mod board;
mod crew;
pub(crate) mod export;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod phases;
pub(crate) mod progress;
pub(crate) mod sessions;
mod words;

use gaffer_protocol::Event;
use std::time::Duration;

pub(crate) trait View: Send {
    fn event(&mut self, event: &Event);

    /// How often `idle` wants to be called while nothing happens.
    fn tick(&self) -> Option<Duration> {
        None
    }

    fn idle(&mut self) {}

    /// After the last event.
    fn close(&mut self) {}
}
