//! The transcript of one agent, live. Only what is seen is drawn, and drawn once for each width.

use super::{below, piece, put};
use crate::app::{App, Scroll};
use crate::look::Look;
use crate::markdown;
use crate::state::agent::Agent;
use crate::text::{fit, flat, wrap_plain};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let mut area = area;
    // Where the crew stands beside it, text does not touch the line between them.
    let is_alone = area.right() == buffer.area.right();
    let width = usize::from(area.width) - usize::from(!is_alone && area.width > 1);
    let look = app.look;
    let opened = app.opened;
    let Some(id) = app.seen() else {
        put(&welcome(app, width), area, buffer);
        return;
    };
    if opened.is_some() && area.height >= 3 {
        put(&[header(app, width)], area, buffer);
        area = below(area, 1);
    }
    let unheard: Vec<String> = app
        .model
        .unheard
        .iter()
        .filter(|(to, _)| *to == opened)
        .map(|(_, text)| text.clone())
        .collect();
    let cleared = if opened.is_none() { app.cleared } else { 0 };
    let mut scroll = app.scrolls.get(&opened).copied().unwrap_or_default();
    let lines = match app.model.agent_mut(id) {
        Some(agent) => {
            let tail = tail(agent, &unheard, width, look);
            let mut reel = Reel {
                agent,
                tail,
                cleared,
                width,
                look,
            };
            reel.visible(&mut scroll, usize::from(area.height))
        }
        None => Vec::new(),
    };
    let lines = match lines.is_empty() && opened.is_none() {
        true => welcome(app, width),
        false => lines,
    };
    let has_more = scroll.anchor.is_some();
    app.scrolls.insert(opened, scroll);
    put(&lines, area, buffer);
    if has_more && area.height >= 2 {
        let text = fit(" ↓ there is more below: Ctrl-End ", width);
        let y = area.bottom() - 1;
        let x = area.right() - crate::text::cells(crate::text::width(&text)).min(area.width);
        buffer.set_line(
            x,
            y,
            &Line::from(Span::styled(text, look.chosen())),
            area.width,
        );
    }
}

fn welcome(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = wrap_plain(
        "gaffer: say what is to be done. ? shows the keys, / the commands.",
        app.look.dim(),
        width,
    );
    if let Some(session) = &app.model.session {
        let text = format!("{} · {} mode", flat(&session.cwd), flat(&session.mode));
        lines.extend(wrap_plain(&text, app.look.dim(), width));
    }
    for (mark, text) in app.model.early() {
        let body = crate::state::transcript::Body::Line(*mark, text.clone());
        lines.extend(piece::lines(&body, width, app.look));
    }
    lines
}

fn header(app: &App, width: usize) -> Line<'static> {
    let Some(agent) = app.seen_agent() else {
        return Line::default();
    };
    let phase = agent
        .phase
        .map(|phase| format!(" · {phase}"))
        .unwrap_or_default();
    let text = format!(
        "{} ({}) · Esc back · Ctrl-G interrupt · Ctrl-X stop{phase} · {}",
        agent.name, agent.agent_type, agent.description
    );
    Line::from(Span::styled(
        crate::text::pad(&text, width),
        app.look.chosen(),
    ))
}

/// What is on its way: streamed words, and messages that were not heard yet.
fn tail(agent: &Agent, unheard: &[String], width: usize, look: Look) -> Vec<Line<'static>> {
    let transcript = &agent.transcript;
    let mut lines = Vec::new();
    if !transcript.thoughts().trim().is_empty() {
        lines.extend(piece::thoughts(transcript.thoughts(), width, look, false));
    }
    if !transcript.words().trim().is_empty() {
        lines.push(Line::default());
        lines.extend(markdown::render(transcript.words(), width, look));
    }
    if agent.is_working() {
        lines.push(Line::from(Span::styled(
            fit(&format!("… {}", agent.doing()), width),
            look.dim(),
        )));
    }
    for text in unheard {
        lines.extend(piece::user(text, look.dim(), width, look));
    }
    lines
}

/// All lines of a transcript, one piece after another, with the tail as the last piece.
struct Reel<'a> {
    agent: &'a mut Agent,
    tail: Vec<Line<'static>>,
    cleared: u64,
    width: usize,
    look: Look,
}

impl Reel<'_> {
    fn first(&self) -> u64 {
        self.agent
            .transcript
            .first()
            .max(self.cleared)
            .min(self.end())
    }

    /// The number of the tail.
    fn end(&self) -> u64 {
        self.agent.transcript.end()
    }

    fn lines(&mut self, number: u64) -> &[Line<'static>] {
        let (width, look) = (self.width, self.look);
        let Some(piece) = self.agent.transcript.piece_mut(number) else {
            return &self.tail;
        };
        if piece
            .drawn
            .as_ref()
            .is_none_or(|(drawn, _)| *drawn != width)
        {
            let mut lines = piece::lines(&piece.body, width, look);
            if piece.is_apart {
                lines.insert(0, Line::default());
            }
            piece.drawn = Some((width, lines));
        }
        piece.drawn.as_ref().map_or(&[], |(_, lines)| lines)
    }

    fn visible(&mut self, scroll: &mut Scroll, height: usize) -> Vec<Line<'static>> {
        let (first, end) = (self.first(), self.end());
        let bottom = (end, self.tail.len());
        let mut at = scroll.anchor.unwrap_or(bottom);
        at.0 = at.0.clamp(first, end);
        at.1 = at.1.min(self.lines(at.0).len());
        let pending = std::mem::take(&mut scroll.pending);
        at = self.moved(at, pending);
        let mut lines = self.upward(at, height);
        // At the very top the rest of the screen is filled from below.
        while lines.len() < height && at != bottom {
            let next = self.moved(at, 1);
            if next == at {
                break;
            }
            at = next;
            lines = self.upward(at, height);
        }
        scroll.anchor = (at != bottom).then_some(at);
        if lines.len() < height && first > 0 && self.cleared < first {
            let text = "… what was before is left out here; the transcript on disk has all";
            let text = fit(text, self.width);
            lines.insert(0, Line::from(Span::styled(text, self.look.dim())));
        }
        lines
    }

    /// Goes so many lines up or down, to the ends at most.
    fn moved(&mut self, from: (u64, usize), by: i32) -> (u64, usize) {
        let (mut number, mut line) = from;
        let mut left = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        if by < 0 {
            while left > line && number > self.first() {
                left -= line;
                number -= 1;
                line = self.lines(number).len();
            }
            return (number, line.saturating_sub(left));
        }
        loop {
            let room = self.lines(number).len().saturating_sub(line);
            if left <= room {
                line += left;
                break;
            }
            left -= room;
            if number >= self.end() {
                line += room;
                break;
            }
            number += 1;
            line = 0;
        }
        // The end of the last piece and the end of an empty tail are the same place.
        if number + 1 == self.end() && self.tail.is_empty() && line == self.lines(number).len() {
            return (self.end(), 0);
        }
        (number, line)
    }

    /// The lines before a place, as many as fit.
    fn upward(&mut self, at: (u64, usize), height: usize) -> Vec<Line<'static>> {
        let (mut number, mut line) = at;
        let mut found: Vec<Line<'static>> = Vec::new();
        let first = self.first();
        loop {
            let missing = height - found.len();
            let lines = self.lines(number);
            let until = line.min(lines.len());
            let part = &lines[until.saturating_sub(missing)..until];
            found.extend(part.iter().rev().cloned());
            if found.len() >= height || number <= first {
                break;
            }
            number -= 1;
            line = usize::MAX;
        }
        found.reverse();
        found
    }
}
