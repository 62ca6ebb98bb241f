//! Hooks: the user's own programs and servers that are asked at set moments of a session.
//!
//! [`HookConfig`] is what settings say, [`HookEvent`] is what a hook is told, [`Verdict`] is what
//! one hook answers, and [`Hooks::run`] asks all hooks of a moment and gives back one [`Merged`].

mod agent;
mod command;
mod config;
mod event;
mod http;
mod kind;
mod matcher;
mod outcome;
mod reading;
mod run;

pub use agent::{AgentHooks, News, Who};
pub use config::{
    Background, CommandHook, Group, Handler, HookConfig, HookSettings, HttpHook, Runner, Shell,
};
pub use event::{HookEvent, Moment, Source};
pub use gaffer_protocol::Trigger;
pub use kind::{EventKind, OnTimeout};
pub use matcher::Matcher;
pub use outcome::{Choice, Decision, Merged, Reply, Report, Text, Verdict};
pub use run::{Conditions, Hooks, Later, Surroundings, Variables};

#[cfg(test)]
mod tests;
