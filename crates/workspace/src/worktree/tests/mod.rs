//! Worktrees of real repositories.

mod create;
mod end;
mod fuzz;
mod merge;
mod world;
