//! Where agents work: the paths that they may open, the processes that they start,
//! and the scratchpad that they share.

pub mod fence;
pub mod job;
pub mod jobs;
pub mod output;
pub mod process;
pub mod sandbox;
pub mod scratchpad;
pub mod warden;
