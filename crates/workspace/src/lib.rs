//! Where agents work: the paths that they may open and the processes that they start.

pub mod fence;
pub mod job;
pub mod jobs;
pub mod output;
pub mod process;
pub mod sandbox;
pub mod warden;
