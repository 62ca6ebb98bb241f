//! The terminal UI: a fold of the event stream, and keys that become commands.
//!
//! It knows `gaffer_protocol` and nothing below it: it never talks to an agent, a model or a disk.
//! [`run`] takes the terminal, shows what [`Event`]s say, and sends a [`Command`] for everything
//! that the user wants done. What came of a command is seen when further events say so.
//!
//! # How to put it into a program
//!
//! ```no_run
//! use gaffer_tui::{Options, run};
//! use std::sync::mpsc::channel;
//!
//! let (events_in, events) = channel();
//! let (commands, commands_out) = channel();
//! // The engine has `events_in` and `commands_out` on its own thread.
//! # drop((events_in, commands_out));
//! let left = run(events, &commands, Options::default())?;
//! // The terminal is given back: now there is room for a last word.
//! eprintln!("{left}");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! - `run` blocks: give it a thread of its own, or the main thread, with the runtime elsewhere. It
//!   takes the events themselves and not a fold, so it is called with the receiver that a bus would
//!   read a view's events from.
//! - Events come in the order of their numbers. A late joiner gets all of a session's events first:
//!   the fold is the same.
//! - When the sender of events is dropped the UI leaves, and `Left::is_by_user` is false. So a
//!   handler of SIGTERM ends the session as it would without a UI, and the terminal is given back.
//! - On [`Command::Quit`] the UI has left already: stop the session, then wait for its end.
//!
//! # What each command asks for
//!
//! | command | what to do |
//! |---|---|
//! | `Say { to: None }` | a message of the user's to the session's own agent; the UI shows it as not yet heard until an `Input` event of that agent has its text |
//! | `Say { to }` | the same to a worker; one that has ended goes on |
//! | `Interrupt { agent: None }` | break off the turn of the session's own agent; workers go on |
//! | `Interrupt { agent }` | the same for a worker |
//! | `Stop { agent }` | end a worker now |
//! | `Answer` | settle the question with this number; a `Settled` event must follow |
//! | `SetModel`, `SetMode` | change it for the session, and say so with a `Notice` |
//! | `Compact` | compact that agent's conversation; `Compacted` follows |
//! | `Slash` | a command that the UI does not answer by itself: `/permissions`, `/resume`, `/worktrees`, `/model` and `/mode` without a name, and all of `Options::commands`. Answer with a `Notice` |
//! | `Quit` | the user has left |
//!
//! [`Event`]: gaffer_protocol::Event
//! [`Command`]: gaffer_protocol::Command
//! [`Command::Quit`]: gaffer_protocol::Command::Quit

mod app;
mod keys;
mod look;
mod markdown;
mod options;
mod run;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod view;
mod words;

pub use keys::slash::{SlashCommand, commands};
pub use options::{Left, Options};
pub use run::run;
