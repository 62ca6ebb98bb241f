//! Progress on a terminal: a line for each thing done, and one below that moves while it waits.

use super::View;
use crate::system::{self, plain};
use gaffer_protocol::{Block, Cost, Event, EventKind, ToolResult, ToolUse, Usage, Waiting};
use std::io::Write;
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Draws on standard error.
pub(crate) struct Progress {
    began: Instant,
    verbose: bool,
    colour: bool,
    frame: usize,
    turns: u32,
    usage: Usage,
    cost: Cost,
    doing: String,
    /// Characters of the answer that streams in now.
    streamed: usize,
    is_drawn: bool,
}

impl Progress {
    pub(crate) fn new(verbose: bool) -> Self {
        Self {
            began: Instant::now(),
            verbose,
            colour: system::variable("NO_COLOR").is_none(),
            frame: 0,
            turns: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            doing: "starting".to_owned(),
            streamed: 0,
            is_drawn: false,
        }
    }

    /// A line that stays.
    fn line(&mut self, mark: &str, text: &str) {
        self.erase();
        let text = plain(text);
        let mut lines = text.lines();
        let first = fit(lines.next().unwrap_or_default(), system::columns() - 3);
        let more = if lines.next().is_some() { " …" } else { "" };
        drop(writeln!(std::io::stderr(), "{mark} {first}{more}"));
        self.draw();
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            drop(write!(std::io::stderr(), "\r\x1b[2K"));
        }
    }

    fn draw(&mut self) {
        let mut status = format!("{} {}", FRAMES[self.frame % FRAMES.len()], self.doing);
        if self.streamed > 0 {
            status.push_str(&format!(" ({} characters)", self.streamed));
        }
        status.push_str(&format!(
            " · {}",
            summary(self.turns, self.usage, self.cost, self.began.elapsed())
        ));
        let status = fit(&status, system::columns() - 1);
        let (on, off) = if self.colour {
            ("\x1b[2m", "\x1b[0m")
        } else {
            ("", "")
        };
        let mut err = std::io::stderr();
        drop(write!(err, "\r\x1b[2K{on}{status}{off}"));
        drop(err.flush());
        self.is_drawn = true;
    }
}

impl View for Progress {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::SessionStarted(session) => {
                self.line(
                    "●",
                    &format!(
                        "{} in {} (session {})",
                        session.model, session.cwd, session.session
                    ),
                );
            }
            EventKind::Waiting(waiting) => {
                self.streamed = 0;
                self.doing = match waiting {
                    Waiting::Queue(place) => format!("number {place} in the queue"),
                    Waiting::Gate => "waiting for the provider".to_owned(),
                    Waiting::Model => "thinking".to_owned(),
                    Waiting::Tools(calls) if calls.len() == 1 => "running a tool".to_owned(),
                    Waiting::Tools(calls) => format!("running {} tools", calls.len()),
                    Waiting::Mail => "waiting".to_owned(),
                    Waiting::User => "waiting for you".to_owned(),
                };
            }
            EventKind::TextDelta(text) => self.streamed += text.chars().count(),
            EventKind::ReasoningDelta(_) | EventKind::CallDelta { .. } | EventKind::Input(_) => {}
            EventKind::Retry {
                attempt,
                delay_ms,
                error,
                ..
            } => {
                let seconds = *delay_ms as f64 / 1000.0;
                self.line(
                    "↻",
                    &format!("{error}; attempt {} in {seconds:.1} s", attempt + 1),
                );
            }
            EventKind::Answered { turn, answer, cost } => {
                self.streamed = 0;
                self.turns = *turn;
                self.usage += answer.usage;
                self.cost += *cost;
                let calls = answer.tool_uses().next().is_some();
                for block in &answer.blocks {
                    match block {
                        // The last answer is the result and is printed whole.
                        Block::Text(text) if calls => self.line(" ", &text.text),
                        Block::Reasoning(reasoning)
                            if self.verbose && !reasoning.text.is_empty() =>
                        {
                            self.line("~", &reasoning.text);
                        }
                        _ => {}
                    }
                }
            }
            EventKind::Spent { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += *cost;
            }
            EventKind::ToolStarted { tool_use } => self.line("→", &describe(tool_use)),
            EventKind::ToolFinished {
                tool,
                result,
                duration_ms,
            } => self.finished(tool, result, *duration_ms),
            EventKind::Asked(question) => {
                let text = format!(
                    "{} waits for permission: {}",
                    question.tool, question.reason
                );
                self.line("?", &text);
            }
            EventKind::Notice(text) => self.line("!", text),
            EventKind::AgentStarted(_)
            | EventKind::Continued
            | EventKind::Notified(_)
            | EventKind::AgentEnded(_)
            | EventKind::Settled(_) => {}
        }
    }

    fn tick(&self) -> Option<Duration> {
        Some(Duration::from_millis(120))
    }

    fn idle(&mut self) {
        self.frame += 1;
        self.draw();
    }

    fn close(&mut self) {
        self.erase();
        let summary = summary(self.turns, self.usage, self.cost, self.began.elapsed());
        drop(writeln!(std::io::stderr(), "● {summary}"));
    }
}

impl Progress {
    fn finished(&mut self, tool: &str, result: &ToolResult, duration_ms: u64) {
        let text = result.text();
        if result.is_error {
            let last = text
                .trim_end()
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned();
            self.line("✗", &format!("{tool}: {last}"));
        } else if self.verbose {
            let lines = text.lines().count();
            self.line("✓", &format!("{tool}: {lines} lines in {duration_ms} ms"));
        }
    }
}

/// A call as a person reads it: the tool and the argument that matters.
pub(crate) fn describe(call: &ToolUse) -> String {
    let input: serde_json::Value = serde_json::from_str(call.input.as_text()).unwrap_or_default();
    let keys = [
        "command",
        "file_path",
        "pattern",
        "url",
        "query",
        "description",
        "prompt",
    ];
    let what = keys.iter().find_map(|key| input.get(key)?.as_str());
    match what {
        Some(what) => format!("{} {what}", call.name),
        None => call.name.clone(),
    }
}

fn summary(turns: u32, usage: Usage, cost: Cost, took: Duration) -> String {
    let turns = if turns == 1 {
        "1 turn".to_owned()
    } else {
        format!("{turns} turns")
    };
    format!(
        "{turns} · {} tokens · {cost} · {} s",
        thousands(usage.total()),
        took.as_secs()
    )
}

fn thousands(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// As much as fits on the line.
fn fit(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.replace('\t', " ");
    }
    let cut: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", cut.replace('\t', " "))
}
