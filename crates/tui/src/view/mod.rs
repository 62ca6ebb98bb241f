//! The picture: where each part stands, and what it looks like.

mod crew;
mod input;
mod layout;
mod page;
pub(crate) mod piece;
mod question;
mod status;
mod talk;
#[cfg(test)]
pub(crate) mod tests;
mod timeline;

use crate::app::{App, Focus, Page};
use crate::text::cells;
use layout::Areas;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Draws all of it.
pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>) {
    let whole = frame.area();
    if whole.is_empty() {
        return;
    }
    let areas = Areas::new(app, whole);
    let buffer = frame.buffer_mut();
    app.page_height = usize::from(areas.talk.height);
    match app.page {
        Page::Talk => {
            if app.focus == Focus::Crew && areas.crew.is_none() {
                crew::draw(app, areas.main, buffer);
            } else {
                talk::draw(app, areas.talk, buffer);
                if let Some(area) = areas.crew {
                    crew::draw(app, area, buffer);
                }
            }
        }
        Page::Timeline => timeline::draw(app, areas.main, buffer),
        Page::Cost => page::draw_cost(app, areas.main, buffer),
        Page::Help => page::draw_help(app, areas.main, buffer),
    }
    if let Some(area) = areas.question {
        question::draw(app, area, buffer);
    }
    input::draw_choices(app, areas.main, buffer);
    let cursor = input::draw(app, areas.rule, areas.input, buffer);
    if let Some(area) = areas.status {
        status::draw(app, area, buffer);
    }
    if app.focus == Focus::Input
        && let Some(cursor) = cursor
    {
        frame.set_cursor_position(cursor);
    }
}

/// Puts lines into an area, from its top.
fn put(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Puts the part of a long page that is looked at, and keeps `down` within it.
fn put_scrolled(lines: &[Line<'_>], down: &mut usize, area: Rect, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    *down = (*down).min(lines.len().saturating_sub(height));
    put(&lines[*down..], area, buffer);
}

/// The area without its first rows.
fn below(area: Rect, rows: usize) -> Rect {
    let rows = cells(rows).min(area.height);
    Rect {
        y: area.y + rows,
        height: area.height - rows,
        ..area
    }
}
