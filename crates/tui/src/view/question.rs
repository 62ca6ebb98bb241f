//! A question that waits: who asks, what it is about, and the answers.

use super::{below, put, put_scrolled};
use crate::app::{App, Focus};
use crate::keys::lists::Reply;
use crate::markdown;
use crate::markdown::code::{Painter, diff_line};
use crate::state::Parked;
use crate::state::transcript::change;
use crate::text::{cells, clean, fit, flat, pad, wrap, wrap_plain};
use crate::words::count;
use gaffer_protocol::Question;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use serde_json::Value;

/// How many rows the question takes of what is left; none where nobody asks.
pub(super) fn height(app: &App, rest: Rect) -> Option<u16> {
    let parked = app.question()?;
    if app.focus != Focus::Question && !app.asking.is_denying {
        return (rest.height >= 2).then_some(1);
    }
    let body = body(app, parked, usize::from(rest.width)).len();
    let wanted = cells(body + 2 + app.replies().len());
    // Something of the conversation is seen above it where there is room.
    let most = rest.height.saturating_sub(rest.height / 5);
    Some(wanted.min(most.max(1)))
}

pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let look = app.look;
    let Some(parked) = app.question() else {
        return;
    };
    let name = app.model.name_of(parked.agent);
    if app.focus != Focus::Question && !app.asking.is_denying {
        let waiting = count(app.model.questions.len(), "question");
        let text = format!(
            "? {waiting}: {name} wants {} · Ctrl-O",
            parked.question.tool
        );
        put(
            &[Line::from(Span::styled(
                pad(&text, columns),
                look.warning(),
            ))],
            area,
            buffer,
        );
        return;
    }
    let at = app
        .model
        .questions
        .iter()
        .position(|it| it.question.number == parked.question.number);
    let of = match app.model.questions.len() {
        0 | 1 => String::new(),
        all => format!(" · {} of {all}, Tab for the next", at.unwrap_or(0) + 1),
    };
    let asks = if is_plan(&parked.question) {
        "has a plan".to_owned()
    } else {
        format!("asks for {}", flat(&parked.question.tool))
    };
    let body = body(app, parked, columns);
    let replies = app.replies();
    let inner = below(area, 1);
    // The answers are never what is left out.
    let kept = cells(replies.len()).min(inner.height);
    let text = Rect {
        height: inner.height - kept,
        ..inner
    };
    let more = match body.len() > usize::from(text.height) {
        true => " · PgDn: more",
        false => "",
    };
    let title = format!("? {name} {asks}{more}{of} · Esc later");
    let title = Line::from(Span::styled(
        pad(&title, columns),
        look.warning().patch(look.chosen()),
    ));
    put(&[title], area, buffer);
    put_scrolled(&body, &mut app.down, text, buffer);
    let lines = reply_lines(app, &replies, columns);
    put(&lines, below(inner, usize::from(text.height)), buffer);
}

fn reply_lines(app: &App, replies: &[(char, Reply)], columns: usize) -> Vec<Line<'static>> {
    let look = app.look;
    replies
        .iter()
        .enumerate()
        .map(|(n, (key, reply))| {
            let words = match reply {
                Reply::Once if is_plan_shown(app) => "yes, go on with it".to_owned(),
                Reply::Once => "allow once".to_owned(),
                Reply::Always(rule) => format!("allow always: {rule}"),
                Reply::Deny => "deny".to_owned(),
                Reply::DenyWithWords if app.asking.is_denying => {
                    "deny: write why, Enter sends, Esc back".to_owned()
                }
                Reply::DenyWithWords => "deny, with words".to_owned(),
            };
            let line = Line::from(vec![
                Span::styled(format!(" {key} "), look.accent().patch(look.strong())),
                Span::raw(fit(&words, columns.saturating_sub(3))),
            ]);
            let is_chosen = if app.asking.is_denying {
                *reply == Reply::DenyWithWords
            } else {
                n == app.asking.chosen
            };
            if is_chosen {
                line.style(look.chosen())
            } else {
                line
            }
        })
        .collect()
}

fn is_plan(question: &Question) -> bool {
    question.tool == "ExitPlanMode"
}

fn is_plan_shown(app: &App) -> bool {
    app.question()
        .is_some_and(|parked| is_plan(&parked.question))
}

/// What it is about: a plan, a command, a change, or the arguments as they are.
fn body(app: &App, parked: &Parked, columns: usize) -> Vec<Line<'static>> {
    let look = app.look;
    let question = &parked.question;
    let input = &question.input;
    let mut lines = Vec::new();
    if !question.reason.is_empty() {
        lines.extend(wrap_plain(&question.reason, look.dim(), columns));
    }
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let margin = Span::raw("  ");
    let changed = change(&question.tool, input, 500);
    let shown: &[&str] = if is_plan(question) {
        lines.extend(plan(input, columns, app));
        &["plan", "allocation", "workers", "tasks"]
    } else if let Some(command) = text("command") {
        let mut painter = Painter::new("sh", look);
        for line in clean(command).split('\n') {
            lines.extend(wrap(&painter.line(line), columns, &margin, &margin));
        }
        &["command"]
    } else if !changed.is_empty() {
        let path = flat(text("file_path").unwrap_or_default());
        let path = Span::styled(path, look.strong());
        lines.extend(wrap(&[path], columns, &margin, &margin));
        for line in &changed {
            let line = flat(line);
            lines.extend(wrap(&[diff_line(&line, look)], columns, &margin, &margin));
        }
        &["file_path", "old_string", "new_string", "content", "edits"]
    } else {
        &[]
    };
    // Whatever else the call says is shown as well: nobody allows what he cannot see.
    for (key, value) in input.as_object().into_iter().flatten() {
        if !shown.contains(&key.as_str()) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let key = Span::styled(format!("{}: ", flat(key)), look.dim());
            let value = clean(&value);
            let mut first = vec![key];
            for line in value.split('\n') {
                first.push(Span::raw(line));
                lines.extend(wrap(&first, columns, &margin, &margin));
                first.clear();
            }
        }
    }
    lines
}

/// A plan, and who is to do what.
fn plan(input: &Value, columns: usize, app: &App) -> Vec<Line<'static>> {
    let look = app.look;
    let mut lines = Vec::new();
    if let Some(plan) = input.get("plan").and_then(Value::as_str) {
        lines.extend(markdown::render(plan, columns, look));
    }
    let keys = ["allocation", "workers", "tasks"];
    let tasks = keys.iter().find_map(|key| input.get(key)?.as_array());
    let Some(tasks) = tasks else {
        return lines;
    };
    lines.push(Line::default());
    let title = count(tasks.len(), "worker");
    lines.push(Line::from(Span::styled(
        fit(&title, columns),
        look.strong(),
    )));
    for task in tasks {
        let text = |key: &str| task.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = match (text("name"), text("subagent_type")) {
            ("", kind) => kind,
            (name, _) => name,
        };
        let mut about = vec![text("phase").to_owned(), text("description").to_owned()];
        let files = task.get("files").and_then(Value::as_array);
        let files: Vec<&str> = files
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        about.push(files.join(" "));
        about.retain(|part| !part.is_empty());
        let about = match task.as_str() {
            Some(text) => text.to_owned(),
            None => about.join(" · "),
        };
        let first = Span::styled(format!("  {} ", pad(name, 14)), look.accent());
        let next = Span::raw(" ".repeat(17));
        lines.extend(wrap(&[Span::raw(flat(&about))], columns, &first, &next));
    }
    lines
}
