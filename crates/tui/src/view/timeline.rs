//! Who worked when, as bars.

use super::{below, put, put_scrolled};
use crate::app::App;
use crate::look::Look;
use crate::state::agent::Agent;
use crate::state::stretch::Kind;
use crate::text::{fit, pad, width};
use crate::words::time;
use gaffer_protocol::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const NAME: usize = 18;

/// The stretch of time that the bars stand for.
#[derive(Clone, Copy)]
struct Scale {
    from: Timestamp,
    /// At least one.
    ms: u64,
    columns: usize,
}

impl Scale {
    fn column(self, at: Timestamp) -> usize {
        let columns = u64::try_from(self.columns).unwrap_or(u64::MAX);
        let at = at.0.saturating_sub(self.from.0).min(self.ms);
        let column = u128::from(at) * u128::from(columns) / u128::from(self.ms);
        usize::try_from(column).unwrap_or(self.columns)
    }
}

pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let name = NAME.min(columns / 3);
    let from = app.model.began.unwrap_or_default();
    let ms = app.now.0.saturating_sub(from.0).max(1);
    let scale = Scale {
        from,
        ms,
        columns: columns.saturating_sub(name + 1),
    };
    let title = "timeline · █ works  ░ queued  ▒ waits for you · Esc back";
    let title = Line::from(Span::styled(fit(title, columns), app.look.strong()));
    put(&[title, axis(scale, name, app.look)], area, buffer);
    let lines: Vec<Line<'static>> = app
        .model
        .agents()
        .iter()
        .map(|agent| bar(agent, scale, name, app))
        .collect();
    put_scrolled(&lines, &mut app.down, below(area, 2), buffer);
}

fn axis(scale: Scale, name: usize, look: Look) -> Line<'static> {
    let (begin, middle, end) = (time(0), time(scale.ms / 2), time(scale.ms));
    let mut text = " ".repeat(name + 1);
    text.push_str(&begin);
    let room = scale.columns.saturating_sub(width(&begin) + width(&end));
    if room > width(&middle) + 4 {
        let left = (scale.columns / 2).saturating_sub(width(&begin) + width(&middle) / 2);
        text.push_str(&" ".repeat(left));
        text.push_str(&middle);
        text.push_str(&" ".repeat(room.saturating_sub(left + width(&middle))));
    } else {
        text.push_str(&" ".repeat(room));
    }
    text.push_str(&end);
    Line::from(Span::styled(
        fit(&text, name + 1 + scale.columns),
        look.dim(),
    ))
}

fn bar(agent: &Agent, scale: Scale, name: usize, app: &App) -> Line<'static> {
    let look = app.look;
    let mut cells: Vec<Option<Kind>> = vec![None; scale.columns];
    for stretch in agent.stretches.all() {
        let from = scale
            .column(stretch.from)
            .min(scale.columns.saturating_sub(1));
        let to = scale.column(stretch.to.unwrap_or(app.now));
        // What is too short for a column is seen all the same.
        for cell in cells.iter_mut().take(to.max(from + 1)).skip(from) {
            *cell = Some(stretch.kind);
        }
    }
    let draw = |kind: Option<Kind>| -> (char, Style) {
        match kind {
            None => (' ', look.plain()),
            Some(Kind::Work) => ('█', look.accent()),
            Some(Kind::Queue) => ('░', look.dim()),
            Some(Kind::User) => ('▒', look.warning()),
        }
    };
    let mut spans = vec![Span::styled(
        format!("{} ", pad(&agent.name, name)),
        look.strong(),
    )];
    for run in cells.chunk_by(|a, b| a == b) {
        let (letter, style) = draw(run.first().copied().flatten());
        let text: String = std::iter::repeat_n(letter, run.len()).collect();
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}
