//! What is too long for the context: its beginning and its end stay, the whole goes to a file that
//! the agent can read.

use gaffer_protocol::{AgentId, Block, Message, ResultPart, ToolResult};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shorter than this nothing is cut to.
pub(crate) const LEAST: usize = 400;

/// The files of one agent.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    agent: AgentId,
    last: u32,
    /// What is to be written if the cuts are to count.
    planned: Vec<(PathBuf, String)>,
}

impl Spill {
    pub(crate) fn new(folder: &Path, agent: AgentId) -> Self {
        Self {
            folder: folder.to_owned(),
            agent,
            last: 0,
            planned: Vec::new(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A result that is no longer than this, written at once.
    pub(crate) fn fit(&mut self, result: &Arc<ToolResult>, most: usize) -> Arc<ToolResult> {
        if text_len(result) <= most {
            return result.clone();
        }
        let mut cut = ToolResult::clone(result);
        self.cut_result(&mut cut, most);
        if let Err(why) = self.commit() {
            let note = format!("[The whole could not be kept: {why}]");
            cut.parts.push(ResultPart::Text(note));
        }
        Arc::new(cut)
    }

    /// Cuts all that is longer than this in messages.
    pub(crate) fn cut(&mut self, messages: &mut [Message], most: usize, images: bool) {
        for block in messages.iter_mut().flat_map(|it| it.blocks.iter_mut()) {
            match block {
                Block::Text(text) if text.text.len() > most => {
                    text.text = self.cut_text(&text.text, most);
                }
                Block::ToolResult(result) => {
                    self.cut_result(result, most);
                    if !images {
                        result.parts.iter_mut().for_each(drop_image);
                    }
                }
                Block::Image(_) if !images => *block = Block::text(NO_IMAGE),
                _ => {}
            }
        }
    }

    fn cut_result(&mut self, result: &mut ToolResult, most: usize) {
        if text_len(result) <= most {
            return;
        }
        let text = self.cut_text(&result.text(), most);
        result
            .parts
            .retain(|part| matches!(part, ResultPart::Image(_)));
        result.parts.insert(0, ResultPart::Text(text));
    }

    /// The beginning and the end of a text, with a word on where the whole is.
    pub(crate) fn cut_text(&mut self, text: &str, most: usize) -> String {
        let path = loop {
            self.last += 1;
            let name = format!("{}-long-{}.txt", self.agent, self.last);
            let path = self.folder.join(name);
            // An agent that is continued counts from the beginning.
            if !path.exists() {
                break path;
            }
        };
        let cut = shorten(
            text,
            most,
            &format!("; the whole stands in {}", path.display()),
        );
        self.planned.push((path, text.to_owned()));
        cut
    }

    /// Forgets cuts that do not count.
    pub(crate) fn forget(&mut self) {
        self.last -= u32::try_from(self.planned.len()).unwrap_or(0);
        self.planned.clear();
    }

    /// Writes what was cut.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        for (path, text) in std::mem::take(&mut self.planned) {
            std::fs::write(path, text)?;
        }
        Ok(())
    }
}

const NO_IMAGE: &str = "[an image that was left out]";

fn drop_image(part: &mut ResultPart) {
    if matches!(part, ResultPart::Image(_)) {
        *part = ResultPart::Text(NO_IMAGE.to_owned());
    }
}

fn text_len(result: &ToolResult) -> usize {
    let len = |part: &ResultPart| match part {
        ResultPart::Text(text) => text.len() + 1,
        ResultPart::Image(_) => 0,
    };
    result.parts.iter().map(len).sum()
}

/// The beginning and the end of a text. What is said of the gap comes on top of `most`.
pub(crate) fn shorten(text: &str, most: usize, more: &str) -> String {
    let most = most.max(LEAST);
    if text.len() <= most {
        return text.to_owned();
    }
    let start = text.floor_char_boundary(most / 3 * 2);
    let end = text.ceil_char_boundary(text.len() - most / 3);
    let gone = end - start;
    format!(
        "{}\n[… {gone} bytes are left out here{more} …]\n{}",
        &text[..start],
        &text[end..]
    )
}
