//! Looks for words in what a session's agents said and heard, transcript by transcript, line by
//! line.

use crate::records::Line;
use crate::session::SessionFolder;
use crate::transcript::{Entry, Record};
use gaffer_protocol::{AgentId, Block, Origin, Timestamp, ToolResult};
use std::io;
use std::ops::ControlFlow;

/// So much of a line is shown around what was found.
const AROUND: usize = 60;

/// Words to look for, in capitals or small letters.
#[derive(Debug, Clone)]
pub struct Needle {
    lower: String,
    /// Whether calls and results of tools are looked through too.
    pub in_tools: bool,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Somebody who talks to the agent; none where it is not known.
    Input(Option<Origin>),
    Answer,
    Call,
    Result,
}

/// Where the words were found.
#[derive(Debug, Clone)]
pub struct Hit {
    pub agent: AgentId,
    /// Empty where the beginning of its transcript is lost.
    pub name: String,
    pub at: Timestamp,
    pub speaker: Speaker,
    /// The line with the words, cut on both sides if it is long.
    pub line: String,
}

impl Needle {
    /// Nothing for a text without words.
    pub fn new(text: &str) -> Option<Self> {
        let lower = text.trim().to_lowercase();
        (!lower.is_empty()).then_some(Self {
            lower,
            in_tools: false,
        })
    }

    /// The first line of a text with the words.
    pub fn find(&self, text: &str) -> Option<String> {
        text.lines().find_map(|line| {
            let lower = line.to_lowercase();
            let at = lower.find(&self.lower)?;
            // By characters: the small letters of a text may be longer than the text.
            let before = lower[..at].chars().count();
            let length = self.lower.chars().count();
            let from = before.saturating_sub(AROUND);
            let part: String = line.chars().skip(from).take(length + 2 * AROUND).collect();
            let is_cut = line.chars().nth(from + length + 2 * AROUND).is_some();
            let (left, right) = (
                if from > 0 { "…" } else { "" },
                if is_cut { "…" } else { "" },
            );
            Some(format!("{left}{}{right}", part.trim()))
        })
    }
}

impl SessionFolder {
    /// Hands out what is found as it is found, until `hit` has enough. A transcript that cannot be
    /// read is passed over.
    pub fn search(
        &self,
        needle: &Needle,
        hit: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        for (agent, _) in self.agents()? {
            let Ok(records) = self.records(agent) else {
                continue;
            };
            let mut name = String::new();
            for line in records {
                let record = match line {
                    Ok(Line::Record(record)) => *record,
                    Ok(Line::Damaged) => continue,
                    Err(_) => break,
                };
                if let Entry::Start(start) = &record.entry {
                    name = start.name.to_string();
                }
                let Some((speaker, line)) = look(&record, needle) else {
                    continue;
                };
                let found = Hit {
                    agent,
                    name: name.clone(),
                    at: record.at,
                    speaker,
                    line,
                };
                if hit(found).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The first place of a record that has the words.
fn look(record: &Record, needle: &Needle) -> Option<(Speaker, String)> {
    match &record.entry {
        Entry::Input(message) => message
            .blocks
            .iter()
            .find_map(|block| in_input(block, needle)),
        Entry::Answer(answer) => answer
            .blocks
            .iter()
            .find_map(|block| in_answer(block, needle)),
        Entry::Result(result) => in_result(result, needle),
        // What a compaction keeps was said above.
        Entry::Start(_) | Entry::Compacted(_) | Entry::End(_) => None,
    }
}

fn in_input(block: &Block, needle: &Needle) -> Option<(Speaker, String)> {
    match block {
        // What gaffer says to every agent is nothing that anybody said.
        Block::Text(text) if text.origin != Some(Origin::Context) => {
            let line = needle.find(&text.text)?;
            Some((Speaker::Input(text.origin), line))
        }
        Block::ToolResult(result) => in_result(result, needle),
        _ => None,
    }
}

fn in_answer(block: &Block, needle: &Needle) -> Option<(Speaker, String)> {
    match block {
        Block::Text(text) => Some((Speaker::Answer, needle.find(&text.text)?)),
        Block::Reasoning(thought) => Some((Speaker::Answer, needle.find(&thought.text)?)),
        Block::ToolUse(call) if needle.in_tools => {
            let line = needle.find(call.input.as_text())?;
            Some((Speaker::Call, format!("{} {line}", call.name)))
        }
        _ => None,
    }
}

fn in_result(result: &ToolResult, needle: &Needle) -> Option<(Speaker, String)> {
    match needle.in_tools {
        true => Some((Speaker::Result, needle.find(&result.text())?)),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case_with_a_bounded_piece_of_their_line() {
        let find = |needle: &str, text: &str| Needle::new(needle).unwrap().find(text);
        assert_eq!(
            find(" CHECK ", "first\n  the Check fails \n"),
            Some("the Check fails".into())
        );
        assert_eq!(
            find("größe", "die GRÖSSE, die GRÖßE"),
            Some("die GRÖSSE, die GRÖßE".into())
        );
        assert_eq!(find("x", "abc"), None);
        let long = format!("{}needle{}", "é".repeat(1000), "ü".repeat(1000));
        let shown = find("NEEDLE", &long).unwrap();
        assert_eq!(shown.chars().count(), 6 + 2 * AROUND + 2);
        assert!(shown.starts_with("…é") && shown.ends_with("ü…"));
        // A capital that becomes longer as a small letter.
        assert!(find("needle", &format!("{}needle", "İ".repeat(300))).is_some());
        assert!(Needle::new(" \n").is_none());
    }
}
