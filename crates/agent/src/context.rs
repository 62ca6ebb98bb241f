//! What an agent is told about where it is. It differs from run to run, so it stands behind the
//! prefix that all agents of a type share.

use gaffer_protocol::{Block, Origin, Text, Timestamp};
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub cwd: &'a Path,
    pub is_git: bool,
    pub now: Timestamp,
}

impl Surroundings<'_> {
    pub fn block(&self) -> Block {
        let git = if self.is_git { "yes" } else { "no" };
        let text = format!(
            "<context>\nworking folder: {}\ngit repository: {git}\nsystem: {} {}\ndate: {}\n</context>",
            self.cwd.display(),
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.now.day(),
        );
        Block::Text(Text {
            text,
            origin: Some(Origin::Context),
        })
    }
}
