//! Where agents work: the paths that they may open, the processes that they start,
//! the scratchpad that they share, worktrees of their own, and the space that is left free.

pub mod fence;
pub mod floor;
pub mod handles;
pub mod job;
pub mod jobs;
pub mod output;
pub mod process;
pub mod sandbox;
pub mod scratchpad;
pub mod warden;
pub mod worktree;
