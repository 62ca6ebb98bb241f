//! What an agent does, a line each, where there is no terminal to draw on.

use super::View;
use super::progress::describe;
use gaffer_protocol::{Block, Event, EventKind};
use std::io::Write;

#[derive(Debug)]
pub(crate) struct Lines;

impl View for Lines {
    fn event(&mut self, event: &Event) {
        let mut out = std::io::stdout().lock();
        match &event.kind {
            EventKind::Answered { answer, .. } if answer.tool_uses().next().is_some() => {
                for block in &answer.blocks {
                    if let Block::Text(text) = block {
                        drop(writeln!(out, "  {}", text.text));
                    }
                }
            }
            EventKind::ToolStarted { tool_use } => {
                let what = describe(tool_use);
                let mut lines = what.lines();
                let first = lines.next().unwrap_or_default();
                let more = if lines.next().is_some() { " …" } else { "" };
                drop(writeln!(out, "→ {first}{more}"));
            }
            EventKind::Notice(text) => drop(writeln!(out, "! {text}")),
            EventKind::Retry { error, .. } => drop(writeln!(out, "↻ {error}")),
            _ => {}
        }
    }
}
