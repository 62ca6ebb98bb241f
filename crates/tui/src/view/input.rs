//! The line that the user writes, and what it could become.

use super::put;
use crate::app::App;
use crate::keys::editor::Rows;
use crate::text::{cells, fit, pad, width};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// So many choices are seen at once.
const CHOICES: usize = 8;

/// What stands before the text.
fn prompt(app: &App, columns: u16) -> String {
    let text = if app.asking.is_denying {
        "why not? ".to_owned()
    } else if let Some(id) = app.opened {
        format!("to {} › ", app.model.name_of(id))
    } else {
        "› ".to_owned()
    };
    let most = usize::from(columns) / 2;
    if width(&text) <= most {
        text
    } else if most >= 2 {
        "› ".to_owned()
    } else {
        String::new()
    }
}

pub(super) fn rows(app: &App, columns: u16) -> Rows {
    let prompt = width(&prompt(app, columns));
    app.editor.rows(usize::from(columns).saturating_sub(prompt))
}

/// Draws it, and says where the cursor is.
pub(super) fn draw(
    app: &App,
    rule: Option<Rect>,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    if let Some(rule) = rule {
        let line = "─".repeat(usize::from(rule.width));
        put(
            &[Line::from(Span::styled(line, app.look.dim()))],
            rule,
            buffer,
        );
    }
    if area.is_empty() {
        return None;
    }
    let prompt = prompt(app, area.width);
    let Rows { rows, cursor } = rows(app, area.width);
    let height = usize::from(area.height);
    let top = (cursor.0 + 1).saturating_sub(height);
    let margin = " ".repeat(width(&prompt));
    let lines: Vec<Line<'_>> = rows
        .iter()
        .enumerate()
        .skip(top)
        .take(height)
        .map(|(n, row)| {
            let before = if n == 0 {
                prompt.as_str()
            } else {
                margin.as_str()
            };
            Line::from(vec![
                Span::styled(before, app.look.accent()),
                Span::raw(row.as_str()),
            ])
        })
        .collect();
    put(&lines, area, buffer);
    let x = area.x + cells(width(&prompt) + cursor.1).min(area.width - 1);
    let y = area.y + cells(cursor.0 - top).min(area.height - 1);
    Some(Position { x, y })
}

/// The list of what the word before the cursor could become, over the end of what is above it.
pub(super) fn draw_choices(app: &App, above: Rect, buffer: &mut Buffer) {
    let Some(completion) = &app.completion else {
        return;
    };
    let most = CHOICES.min(usize::from(above.height));
    let shown = completion.choices.len().min(most);
    if shown == 0 {
        return;
    }
    let top = (completion.chosen + 1).saturating_sub(shown);
    let columns = usize::from(above.width);
    let lines: Vec<Line<'static>> = completion
        .choices
        .iter()
        .enumerate()
        .skip(top)
        .take(shown)
        .map(|(n, choice)| {
            let name = pad(
                choice.text.trim_end(),
                16.max(width(&choice.text)).min(columns),
            );
            let text = fit(&format!(" {name} {}", choice.what), columns);
            let style = if n == completion.chosen {
                app.look.chosen()
            } else {
                app.look.accent()
            };
            Line::from(Span::styled(pad(&text, columns), style))
        })
        .collect();
    let height = cells(lines.len());
    let area = Rect {
        y: above.bottom() - height,
        height,
        ..above
    };
    put(&lines, area, buffer);
}
