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
        let what = match is_plan(&parked.question) {
            true => "has a plan".to_owned(),
            false => format!("wants {}", flat(&parked.question.tool)),
        };
        let text = format!("? {waiting}: {name} {what} · Ctrl-O");
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

/// Orders that wait together, with what was said to them.
fn is_plan(question: &Question) -> bool {
    question.input.get("orders").is_some_and(Value::is_array)
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
        &["text", "orders", "state"]
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

/// A plan, and who is to do what: the whole orders, since they are what is approved.
fn plan(input: &Value, columns: usize, app: &App) -> Vec<Line<'static>> {
    let look = app.look;
    let mut lines = Vec::new();
    if let Some(text) = input.get("text").and_then(Value::as_str) {
        lines.extend(markdown::render(text.trim(), columns, look));
    }
    let orders = input.get("orders").and_then(Value::as_array);
    for planned in orders.into_iter().flatten() {
        let order = planned.get("order").unwrap_or(&Value::Null);
        let text = |key: &str| order.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = match (text("name"), text("subagent_type")) {
            ("", "") => "worker",
            ("", kind) => kind,
            (name, _) => name,
        };
        let phase = planned.get("phase").and_then(Value::as_str);
        let about = [phase.unwrap_or_default(), text("description")];
        let about: Vec<&str> = about.into_iter().filter(|part| !part.is_empty()).collect();
        lines.push(Line::default());
        let first = Span::styled(
            format!("{} ", flat(name)),
            look.accent().patch(look.strong()),
        );
        let margin = Span::raw("  ");
        let about = Span::raw(flat(&about.join(" · ")));
        lines.extend(wrap(&[about], columns, &first, &margin));
        let terms = terms(order);
        if !terms.is_empty() {
            let terms = Span::styled(terms, look.dim());
            lines.extend(wrap(&[terms], columns, &margin, &margin));
        }
        for line in clean(text("prompt").trim()).split('\n') {
            lines.extend(wrap(&[Span::raw(line)], columns, &margin, &margin));
        }
    }
    lines
}

/// What else an order says, on one line.
fn terms(order: &Value) -> String {
    const APART: [&str; 4] = ["name", "description", "prompt", "phase"];
    let members = order.as_object().into_iter().flatten();
    let members = members.filter(|(key, _)| !APART.contains(&key.as_str()));
    let terms = members.map(|(key, value)| {
        let listed = value.as_array().and_then(|all| {
            let texts: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
            Some(texts?.join(", "))
        });
        let text = value.as_str().map(str::to_owned).or(listed);
        format!("{key}: {}", text.unwrap_or_else(|| value.to_string()))
    });
    flat(&terms.collect::<Vec<_>>().join(" · "))
}
