//! One piece of a transcript as lines.

use crate::look::Look;
use crate::markdown::{self, code::diff_line};
use crate::state::transcript::{Body, CallState, Mark};
use crate::text::{clean, flat, wrap};
use crate::words::time;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// So many lines of what a model thought are shown.
const THOUGHT_LINES: usize = 4;
/// So many lines of a result that is no failure.
const RESULT_LINES: usize = 3;

pub(crate) fn lines(body: &Body, width: usize, look: Look) -> Vec<Line<'static>> {
    match body {
        Body::User(text) => user(text, look.strong(), width, look),
        Body::Words(text) => markdown::render(text.trim(), width, look),
        Body::Reasoning(text) => thoughts(text, width, look, true),
        Body::Call {
            what,
            change,
            state,
            result,
            more,
        } => {
            let mut lines = call(what, *state, width, look);
            lines.extend(change.iter().flat_map(|line| {
                let line = flat(line);
                indented(&diff_line(&line, look), width)
            }));
            lines.extend(outcome(*state, result, *more, width, look));
            lines
        }
        Body::Line(mark, text) => marked(*mark, text, width, look),
        Body::More(mark, count, text) => {
            let text = format!("{count} more, the last: {text}");
            marked(*mark, &text, width, look)
        }
    }
}

/// What the user said.
pub(super) fn user(text: &str, style: Style, width: usize, look: Look) -> Vec<Line<'static>> {
    let text = clean(text);
    let mut first = Span::styled("› ", look.accent());
    let next = Span::raw("  ");
    let mut lines = Vec::new();
    for line in text.trim().split('\n') {
        lines.extend(wrap(&[Span::styled(line, style)], width, &first, &next));
        first = next.clone();
    }
    lines
}

/// What the model thought: its beginning, or its end while it streams in.
pub(super) fn thoughts(text: &str, width: usize, look: Look, is_whole: bool) -> Vec<Line<'static>> {
    let style = look.dim().patch(look.leaning());
    let (first, next) = (Span::styled("~ ", look.dim()), Span::raw("  "));
    let text = flat(text.trim());
    let mut lines = wrap(&[Span::styled(&*text, style)], width, &first, &next);
    if lines.len() > THOUGHT_LINES {
        if is_whole {
            lines.truncate(THOUGHT_LINES);
            lines.push(Line::from(Span::styled("  …", style)));
        } else {
            lines.drain(..lines.len() - THOUGHT_LINES);
        }
    }
    lines
}

fn call(what: &str, state: CallState, width: usize, look: Look) -> Vec<Line<'static>> {
    let (mark, style) = match state {
        CallState::Runs => ("→ ", look.accent()),
        CallState::Done(_) => ("✓ ", look.good()),
        CallState::Failed(_) => ("✗ ", look.bad()),
    };
    let mut spans = vec![Span::raw(flat(what))];
    if let CallState::Done(ms) | CallState::Failed(ms) = state
        && ms >= 1000
    {
        spans.push(Span::styled(format!("  {}", time(ms)), look.dim()));
    }
    wrap(&spans, width, &Span::styled(mark, style), &Span::raw("  "))
}

fn outcome(
    state: CallState,
    result: &str,
    more: usize,
    width: usize,
    look: Look,
) -> Vec<Line<'static>> {
    let most = match state {
        CallState::Failed(_) => usize::MAX,
        _ => RESULT_LINES,
    };
    let all = result.lines().count();
    let mut lines = Vec::new();
    for line in result.lines().take(most) {
        let line = flat(line);
        lines.extend(indented(&Span::styled(line, look.dim()), width));
    }
    let more = more + all.saturating_sub(most);
    if more > 0 {
        let text = format!("… {more} more lines");
        lines.extend(indented(&Span::styled(text, look.dim()), width));
    }
    lines
}

fn indented(span: &Span<'_>, width: usize) -> Vec<Line<'static>> {
    let margin = Span::raw("    ");
    wrap(std::slice::from_ref(span), width, &margin, &margin)
}

fn marked(mark: Mark, text: &str, width: usize, look: Look) -> Vec<Line<'static>> {
    let (sign, style) = match mark {
        Mark::Notice => ("! ", look.dim()),
        Mark::Started => ("+ ", look.accent()),
        Mark::Ended => ("■ ", look.good()),
        Mark::Trouble => ("✗ ", look.bad()),
        Mark::Retry => ("↻ ", look.warning()),
        Mark::Question => ("? ", look.warning()),
        Mark::Mail => ("✉ ", look.accent()),
    };
    let text = clean(text);
    let mut first = Span::styled(sign, style);
    let next = Span::raw("  ");
    let words = match mark {
        Mark::Notice => look.dim(),
        Mark::Trouble => look.bad(),
        _ => look.plain(),
    };
    let mut lines = Vec::new();
    for line in text.trim().split('\n') {
        lines.extend(wrap(&[Span::styled(line, words)], width, &first, &next));
        first = next.clone();
    }
    lines
}
