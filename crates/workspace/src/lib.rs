//! Where agents work: the processes that they start. Paths, scratchpads and worktrees come here.

pub mod fence;
pub mod process;
