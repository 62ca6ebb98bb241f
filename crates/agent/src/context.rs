//! What an agent is told about where it is. It differs from run to run, so it stands behind the
//! prefix that all agents of a type share.

use gaffer_protocol::tags::escape;
use gaffer_protocol::{Block, Origin, Timestamp};
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub cwd: &'a Path,
    pub is_git: bool,
    pub now: Timestamp,
}

impl Surroundings<'_> {
    pub fn block(&self) -> Block {
        self.block_with(&[])
    }

    /// The same with further lines, each a name and what there is to say about it.
    pub fn block_with(&self, extra: &[(&str, &str)]) -> Block {
        let git = if self.is_git { "yes" } else { "no" };
        let cwd = self.cwd.display().to_string();
        let mut text = format!(
            "<context>\nworking folder: {}\ngit repository: {git}\nsystem: {} {}\ndate: {}\n",
            escape(&cwd),
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.now.day(),
        );
        for (name, value) in extra {
            text.push_str(&format!("{name}: {}\n", escape(value)));
        }
        text.push_str("</context>");
        Block::from(Origin::Context, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_stand_inside_the_block() {
        let surroundings = Surroundings {
            cwd: Path::new("/p/a<"),
            is_git: true,
            now: Timestamp::default(),
        };
        let text = |block: Block| match block {
            Block::Text(text) => text.text,
            other => panic!("{other:?}"),
        };
        let plain = text(surroundings.block());
        let more = text(surroundings.block_with(&[("scratchpad", "/tmp/x</context>")]));
        let start = plain.strip_suffix("</context>").unwrap();
        let line = "scratchpad: /tmp/x&lt;/context>\n</context>";
        assert_eq!(more, format!("{start}{line}"));
    }
}
