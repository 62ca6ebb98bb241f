//! What survives a compaction by construction: the user's words, the task, what had ended, what
//! runs, which files were seen. None of it comes from a model.

use super::spill::{LEAST, Spill, shorten};
use crate::prompt;
use gaffer_protocol::tags::{escape, unescape};
use gaffer_protocol::{Block, Message, Notification, Origin, Role, Text};
use gaffer_store::Notes;
use std::collections::BTreeSet;
use std::path::Path;

/// What is kept of a conversation.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// What is replaced.
    pub(crate) body: &'a [Message],
    /// Of the compaction before.
    pub(crate) notes: &'a Notes,
    pub(crate) read: Vec<String>,
    pub(crate) changed: Vec<String>,
    pub(crate) open_tasks: Option<String>,
    /// What hooks say at the start of a conversation that was compacted.
    pub(crate) greeting: Option<String>,
}

/// So many bytes each part may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// What an agent was told about where it is.
    opening: usize,
    /// The first and the last text of the user's, and of whoever gave the task, each.
    word: usize,
    /// All others together.
    words: usize,
    tasks: usize,
    open_tasks: usize,
    files: usize,
    pub(crate) summary: usize,
    /// Whole exchanges that are kept where there is no summary.
    pub(crate) recent: usize,
    /// One text or result of what was not answered yet.
    pub(crate) pending: usize,
}

impl Budget {
    /// Shares of the room that a window leaves beside the prefix. Each step gives half of the one
    /// before.
    pub(crate) fn of(room: usize, step: u32) -> Self {
        let share = |part: usize| (room / part) >> step;
        Self {
            opening: share(10),
            word: share(8),
            words: share(12),
            tasks: share(8),
            open_tasks: share(10),
            files: share(20),
            summary: share(6),
            recent: share(5),
            pending: share(5),
        }
    }
}

const SUMMARY: &str = "compacted-summary";

impl Facts<'_> {
    /// The message that replaces the body, and what is to be noted for the next time.
    pub(crate) fn message(
        &self,
        summary: Option<&str>,
        budget: &Budget,
        spill: &mut Spill,
    ) -> (Message, Notes) {
        let notes = self.next_notes();
        let mut blocks = self.opening(budget, spill);
        blocks.push(written(prompt::COMPACTED.text.trim_end()));
        blocks.extend(self.words(budget, spill));
        if !notes.told.is_empty() {
            let mut lines = told(&notes, spill.folder());
            if lines.len() > budget.tasks {
                lines = spill.cut_text(&lines, budget.tasks);
            }
            blocks.push(section("compacted-tasks", &lines));
        }
        if let Some(open) = &self.open_tasks {
            blocks.push(written(&shorten(open, budget.open_tasks, "")));
        }
        let files = files(&notes, budget.files);
        if !files.is_empty() {
            blocks.push(section("compacted-files", &files));
        }
        if let Some(summary) = summary {
            let summary = shorten(summary.trim(), budget.summary, "");
            blocks.push(section(SUMMARY, &escape(&summary)));
        }
        (Message::user(blocks), notes)
    }

    /// The summary that stands in the body from an earlier compaction.
    pub(crate) fn earlier_summary(&self) -> Option<String> {
        let first = self.body.first()?;
        first.blocks.iter().find_map(|block| match block {
            Block::Text(text) if text.origin == Some(Origin::Compacted) => {
                let rest = text.text.strip_prefix(&format!("<{SUMMARY}>\n"))?;
                let inner = rest.strip_suffix(&format!("\n</{SUMMARY}>"))?;
                Some(unescape(inner))
            }
            _ => None,
        })
    }

    /// What the agent was told at its start about where it is, and what hooks had to say then.
    fn opening(&self, budget: &Budget, spill: &mut Spill) -> Vec<Block> {
        let blocks = self.body.first().map_or(&[][..], |first| &first.blocks);
        let is_opening = |text: &&Text| matches!(text.origin, Some(Origin::Context | Origin::Hook));
        let texts = blocks.iter().filter_map(as_text).filter(is_opening);
        let mut left = budget.opening;
        let mut kept = Vec::new();
        for text in texts {
            let mut text = text.clone();
            if text.text.len() > left {
                text.text = spill.cut_text(&text.text, left);
            }
            left = left.saturating_sub(text.text.len());
            kept.push(Block::Text(text));
        }
        let greeting = self.greeting.as_ref().map(|text| {
            let text = shorten(text, budget.opening, "");
            Block::from(Origin::Hook, text)
        });
        // It says the same every time, as a rule.
        kept.extend(greeting.filter(|it| !kept.contains(it)));
        kept
    }

    /// What was written to the agent, oldest first: the first and the last of each origin whole,
    /// the newest of the rest as far as there is room.
    fn words(&self, budget: &Budget, spill: &mut Spill) -> Vec<Block> {
        let texts = self.body.iter().filter(|it| it.role == Role::User);
        let texts = texts.flat_map(|it| it.blocks.iter()).filter_map(as_text);
        let of_interest = |text: &&Text| matches!(text.origin, Some(Origin::Human | Origin::Agent));
        let texts: Vec<&Text> = texts.filter(of_interest).collect();
        if texts.is_empty() {
            return Vec::new();
        }
        let is_end = |n: usize| {
            let same = |other: &&Text| other.origin == texts[n].origin;
            !texts[..n].iter().any(same) || !texts[n + 1..].iter().any(same)
        };
        let mut left = budget.words;
        let mut kept = Vec::new();
        let mut gone = 0;
        for n in (0..texts.len()).rev() {
            let mut text = texts[n].clone();
            let len = text.text.len();
            if is_end(n) {
                if len > budget.word {
                    text.text = spill.cut_text(&text.text, budget.word);
                }
            } else if len <= left {
                left -= len;
            } else if left >= LEAST {
                text.text = shorten(&text.text, left, "");
                left = 0;
            } else {
                gone += 1;
                continue;
            }
            kept.push(Block::Text(text));
        }
        let gone = match gone {
            0 => String::new(),
            n => format!("\n[{n} older texts are left out here]"),
        };
        kept.push(written(&format!("<compacted-words>{gone}")));
        kept.reverse();
        kept.push(written("</compacted-words>"));
        kept
    }

    fn next_notes(&self) -> Notes {
        let news = self.body.iter().flat_map(|it| it.blocks.iter());
        let news = news.filter_map(as_text);
        let news = news.filter(|text| text.origin == Some(Origin::TaskNotification));
        let lines = news.filter_map(|text| Notification::parse(&text.text));
        let mut told = self.notes.told.clone();
        told.extend(lines.map(|it| line(&it)));
        let join = |old: &[String], new: &[String]| -> Vec<String> {
            let all: BTreeSet<&String> = old.iter().chain(new).collect();
            all.into_iter().cloned().collect()
        };
        Notes {
            told,
            read: join(&self.notes.read, &self.read),
            changed: join(&self.notes.changed, &self.changed),
        }
    }
}

fn as_text(block: &Block) -> Option<&Text> {
    match block {
        Block::Text(text) => Some(text),
        _ => None,
    }
}

fn written(text: &str) -> Block {
    Block::from(Origin::Compacted, text)
}

fn section(name: &str, text: &str) -> Block {
    written(&format!("<{name}>\n{text}\n</{name}>"))
}

/// The end of a task on one line.
fn line(told: &Notification) -> String {
    let task = told.task.map(|id| format!("{id} ")).unwrap_or_default();
    let (status, summary) = (told.status.as_str(), told.summary.replace('\n', " "));
    let mut line = format!("{task}{status}: {}", escape(&summary));
    if let Some(file) = &told.output_file {
        line.push_str(&format!(" (its whole result: {})", escape(file)));
    }
    if let Some(worktree) = &told.worktree {
        let (path, branch) = (escape(&worktree.path), escape(&worktree.branch));
        line.push_str(&format!(" (worktree {path}, branch {branch})"));
    }
    line
}

/// The ends of tasks. Their files are in one folder, which is named once.
fn told(notes: &Notes, folder: &Path) -> String {
    let lines = notes.told.join("\n");
    let folder = folder.display().to_string();
    let short = lines.replace(&format!("{folder}/"), "");
    match short.len() < lines.len() {
        true => format!("[Files without a folder are in {folder}]\n{short}"),
        false => lines,
    }
}

fn files(notes: &Notes, most: usize) -> String {
    let only_read = notes.read.iter().filter(|it| !notes.changed.contains(it));
    let parts = [
        ("changed", notes.changed.iter().collect::<Vec<_>>()),
        ("read", only_read.collect()),
    ];
    let mut out = String::new();
    for (what, names) in parts {
        for (n, name) in names.iter().enumerate() {
            if out.len() + name.len() > most {
                out.push_str(&format!("and {} more {what}\n", names.len() - n));
                break;
            }
            out.push_str(&format!("{what}: {}\n", escape(name)));
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Where what was not answered yet begins: the last messages of the user's side, and the answer
/// before them if they hold its results.
pub(crate) fn pending_from(messages: &[Message]) -> usize {
    let answered = messages.iter().rposition(|it| it.role == Role::Assistant);
    let start = answered.map_or(0, |at| at + 1);
    let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
    let has_results = messages[start..]
        .iter()
        .any(|it| it.blocks.iter().any(is_result));
    match has_results {
        true => start.saturating_sub(1),
        false => start,
    }
}

/// Where the newest whole exchanges begin that have no more bytes than this: at an answer, or at
/// the end.
pub(crate) fn recent_from(body: &[Message], most: usize) -> usize {
    let mut start = body.len();
    let mut taken = 0;
    for (n, message) in body.iter().enumerate().skip(1).rev() {
        taken += message.blocks.iter().map(weight).sum::<usize>();
        if taken > most {
            break;
        }
        if message.role == Role::Assistant {
            start = n;
        }
    }
    start
}

fn weight(block: &Block) -> usize {
    use gaffer_protocol::ResultPart;
    match block {
        Block::Text(text) => text.text.len(),
        Block::Reasoning(it) => {
            it.text.len() + it.raw.as_ref().map_or(0, |raw| raw.json.as_str().len())
        }
        Block::ToolUse(call) => call.input.as_text().len() + call.name.len(),
        Block::ToolResult(result) => {
            let len = |part: &ResultPart| match part {
                ResultPart::Text(text) => text.len(),
                ResultPart::Image(_) => 5_000,
            };
            result.parts.iter().map(len).sum()
        }
        Block::Image(_) => 5_000,
    }
}
