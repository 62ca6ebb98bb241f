//! Worktrees of real repositories.

mod create;
mod end;
mod fuzz;
mod integrate;
mod merge;
mod world;
