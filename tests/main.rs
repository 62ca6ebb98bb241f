//! Whole-system tests, one binary: the real program against real servers on loopback, and the
//! parts of the engine that only show together.
#![expect(
    clippy::unwrap_used,
    reason = "in tests a broken assumption must stop the test"
)]

mod agent;
mod allowed;
mod bad_input;
mod bash;
mod budget;
#[cfg(feature = "coordinator")]
mod budget_crew;
#[cfg(feature = "coordinator")]
mod budget_tasks;
mod cache;
mod compact;
#[cfg(feature = "coordinator")]
mod compact_crew;
mod compact_ways;
#[cfg(feature = "coordinator")]
mod crash;
#[cfg(feature = "coordinator")]
mod crew;
#[cfg(feature = "coordinator")]
mod crew_depend;
#[cfg(feature = "coordinator")]
mod crew_files;
#[cfg(feature = "coordinator")]
mod crew_mail;
#[cfg(feature = "coordinator")]
mod crew_normal;
#[cfg(feature = "coordinator")]
mod crew_orders;
#[cfg(feature = "coordinator")]
mod crew_pains;
#[cfg(feature = "coordinator")]
mod crew_places;
#[cfg(feature = "coordinator")]
mod crew_program;
#[cfg(feature = "coordinator")]
mod crew_verbs;
#[cfg(feature = "coordinator")]
mod crew_wall;
#[cfg(feature = "coordinator")]
mod crew_whim;
#[cfg(feature = "coordinator")]
mod crew_world;
mod damaged;
mod demo;
#[cfg(feature = "coordinator")]
mod export;
mod faults;
#[cfg(feature = "coordinator")]
mod gate;
mod gear;
#[cfg(feature = "coordinator")]
mod handles;
mod harness;
mod headless;
mod hooks;
#[cfg(feature = "coordinator")]
mod http2;
#[cfg(feature = "coordinator")]
mod integrate;
mod jobs;
#[cfg(feature = "coordinator")]
mod leases;
mod mode;
mod pdf;
#[cfg(feature = "coordinator")]
mod phases;
#[cfg(feature = "coordinator")]
mod plan_first;
#[cfg(feature = "coordinator")]
mod proof;
mod questions;
mod record;
#[cfg(feature = "coordinator")]
mod resume;
mod retry;
mod sandbox;
mod sandbox_calls;
mod sandbox_kept;
mod scenarios;
mod scratchpad;
mod script;
mod sessions;
#[cfg(feature = "coordinator")]
mod shape;
#[cfg(feature = "coordinator")]
mod show;
#[cfg(feature = "coordinator")]
mod sim;
#[cfg(feature = "coordinator")]
mod soak;
#[cfg(feature = "coordinator")]
mod terminal;
mod wires;
mod worktree_kept;
#[cfg(feature = "coordinator")]
mod worktree_tools;
#[cfg(feature = "coordinator")]
mod worktrees;
