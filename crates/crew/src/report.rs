//! What is told of a task's end, and how much of it.

use gaffer_protocol::notification::{Spent, Worktree};
use gaffer_protocol::{AgentId, AgentName, End, MailId, Notification, Status};
use std::path::Path;
use std::time::Duration;

/// The end of one run of a worker.
#[derive(Debug, Clone)]
pub struct Report {
    pub task: AgentId,
    pub name: AgentName,
    /// Whether it can be continued.
    pub is_open: bool,
    pub description: String,
    pub end: End,
    /// Its last words, whole.
    pub result: String,
    /// Of all its runs.
    pub tokens: u64,
    pub tool_uses: u32,
    pub time: Duration,
    pub changed_files: Vec<String>,
    pub denials: Vec<String>,
    /// Commands that still ran at the end, and were ended.
    pub left_running: Vec<String>,
    /// The worktree that its work is in.
    pub worktree: Option<Worktree>,
    /// Messages that it has not read; it will when it is continued.
    pub unread: usize,
    /// Tasks that wait for this one to complete, if it has not.
    pub holds: Vec<String>,
    /// Whether there is nothing but its word for what it reports.
    pub is_unverified: bool,
    /// The letter that tells the same.
    pub letter: Option<MailId>,
    /// What may follow on it.
    pub advice: Option<String>,
}

impl Report {
    /// The notification with at most so many bytes of the result. What was cut stands in `file`.
    pub(crate) fn notification(&self, room: usize, file: &Path) -> Notification {
        let (result, is_cut) = cut(&self.result, room, file);
        let status = self.end.status();
        let is_done = status == Status::Completed;
        let ended = (!self.left_running.is_empty()).then(|| {
            let commands = self.left_running.join("; ");
            format!("Commands that still ran at its end were ended: {commands}")
        });
        let unread = (self.unread > 0 && self.is_open).then(|| {
            let count = self.unread;
            format!("It ended before it read all of its mail; {count} unread, which it reads when SendMessage continues it")
        });
        let holds = (!self.holds.is_empty()).then(|| {
            let (tasks, name) = (self.holds.join(", "), &self.name);
            let how = match self.is_open {
                true => format!("Continue {name}, and they begin when it completes"),
                false => "It cannot be continued".to_owned(),
            };
            format!("These wait for it and have not begun: {tasks}. {how}; or stop them with TaskStop. Otherwise they fail when nobody works any more")
        });
        let follows = self.advice.clone();
        let advice = ended.into_iter().chain(unread).chain(holds).chain(follows);
        let advice: Vec<String> = advice.collect();
        let advice = (!advice.is_empty()).then(|| advice.join(". "));
        Notification {
            task: self.is_open.then_some(self.task),
            status,
            summary: Notification::summary(&self.description, &self.end),
            result: Some(result).filter(|text| !text.is_empty()),
            usage: Some(Spent {
                total_tokens: self.tokens,
                tool_uses: self.tool_uses.into(),
                duration_ms: self.time.as_millis() as u64,
            }),
            reason: (!is_done).then(|| self.end.reason().to_owned()),
            output_file: is_cut.then(|| file.display().to_string()),
            worktree: self.worktree.clone(),
            changed_files: match is_done {
                true => Vec::new(),
                false => self.changed_files.clone(),
            },
            denials: self.denials.clone(),
            is_unverified: self.is_unverified,
            advice,
        }
    }
}

/// The beginning and the end of a text that is too long, with a word on the rest. Reports say
/// first what came of it, so the beginning gets more.
fn cut(text: &str, room: usize, file: &Path) -> (String, bool) {
    if text.len() <= room {
        return (text.to_owned(), false);
    }
    let head = floor(text, room / 4 * 3);
    let tail = floor(text, text.len() - room / 4);
    let left = tail.saturating_sub(head);
    let shown = format!(
        "{}\n[… {left} bytes left out; Scratchpad reads the whole: {}]\n{}",
        &text[..head],
        file.display(),
        &text[tail..],
    );
    match room {
        // Not even a useful part fits.
        0..1024 => (String::new(), true),
        _ => (shown, true),
    }
}

/// The nearest place at or before this one where a character begins.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
