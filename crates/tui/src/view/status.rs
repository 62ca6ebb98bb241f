//! The last line: where we are, what is used, and a word about the last key.

use super::put;
use crate::app::App;
use crate::text::{cells, fit, flat, width, wrap_plain};
use crate::words::{count, money, thousands, time};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A word to the user takes the lines that it needs.
pub(super) fn height(app: &App, whole: Rect) -> u16 {
    if app.hint.is_none() && !app.is_leaving {
        return 1;
    }
    let (text, style) = left(app);
    let lines = wrap_plain(&text, style, usize::from(whole.width)).len();
    cells(lines).clamp(1, (whole.height / 4).max(1))
}

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let (left, style) = left(app);
    if app.hint.is_some() || app.is_leaving {
        put(&wrap_plain(&left, style, columns), area, buffer);
        return;
    }
    let right = figures(app);
    // Figures give way where there is no room for both.
    let has_room = width(&left).min(columns / 2) + width(&right) + 2 <= columns;
    let room = if has_room {
        columns - width(&right) - 1
    } else {
        columns
    };
    let text = fit(&left, room);
    put(&[Line::from(Span::styled(text, style))], area, buffer);
    if has_room {
        let x = area.right() - cells(width(&right));
        let line = Line::from(Span::styled(right, app.look.dim()));
        buffer.set_line(x, area.y, &line, area.width);
    }
}

fn left(app: &App) -> (String, Style) {
    let look = app.look;
    if let Some(hint) = &app.hint {
        return (hint.clone(), look.warning());
    }
    if app.is_leaving {
        return (leaving(app), look.warning());
    }
    let mut parts = Vec::new();
    if let Some(session) = &app.model.session {
        parts.push(flat(&session.model));
        parts.push(flat(&session.permission_mode));
    }
    let (asks, works, queued, ended) = app.counts();
    for (n, what) in [
        (asks, "asking"),
        (works, "running"),
        (queued, "queued"),
        (ended, "ended"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    parts.push("? help".to_owned());
    (parts.join(" · "), look.dim())
}

fn leaving(app: &App) -> String {
    let running = app.running().len();
    let back = match &app.model.session {
        Some(session) => format!("; come back: gaffer --resume {}", session.session),
        None => String::new(),
    };
    match running {
        0 => format!("Ctrl-C again leaves{back}"),
        n => format!(
            "{} not ended; Ctrl-C again stops and leaves{back}",
            count(n, "worker")
        ),
    }
}

fn figures(app: &App) -> String {
    let model = &app.model;
    let Some(began) = model.began else {
        return String::new();
    };
    let total = thousands(model.usage.total());
    let all = time(app.now.0.saturating_sub(began.0));
    let budget = match app.options.budget.usd {
        Some(usd) => format!(" of ${usd:.2}"),
        None => String::new(),
    };
    format!("{total} tokens · {}{budget} · {all}", money(model.cost))
}
