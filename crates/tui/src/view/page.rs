//! Pages that fill the screen: what the session has used, and the keys.

use super::{below, crew, put, put_scrolled};
use crate::app::App;
use crate::keys::slash::COMMANDS;
use crate::look::Look;
use crate::state::agent::Agent;
use crate::text::{fit, pad, wrap_plain};
use crate::words::{money, thousands, time};
use gaffer_protocol::{Budget, Cost, Usage};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const NAME: usize = 20;
const BAR: usize = 20;

const KEYS: &[(&str, &str)] = &[
    (
        "Enter",
        "send; while an agent works it hears it at its next step",
    ),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    (
        "Esc",
        "close what is open; else interrupt the coordinator alone",
    ),
    (
        "Ctrl-G",
        "interrupt the agent that is looked at, and nobody else",
    ),
    ("Ctrl-C", "clear the line; twice: leave"),
    ("Tab", "the crew; behind / or @: complete"),
    (
        "Enter, i, x, f in the crew",
        "open, interrupt, stop, show the ended",
    ),
    ("Ctrl-X in a worker", "stop it"),
    ("Ctrl-O", "questions that wait"),
    (
        "y, a, n, d in a question",
        "once, always, no, no with words",
    ),
    ("Ctrl-T, F2, F1 or ?", "timeline, cost, this page"),
    (
        "PgUp, PgDn, Shift-Up, -Down",
        "scroll; Ctrl-End goes to what is new",
    ),
    ("Up, Down, Ctrl-P, Ctrl-N", "what was written before"),
    (
        "Alt-B, Alt-F, Ctrl-A, Ctrl-E",
        "by words, to the ends of the line",
    ),
    (
        "Ctrl-W, Ctrl-U, Ctrl-K, Ctrl-Y",
        "delete a word, the line; put back",
    ),
    ("Ctrl-L, Ctrl-Z", "draw anew, suspend"),
];

pub(super) fn draw_help(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let look = app.look;
    let mut lines = vec![heading("keys · Esc back", columns, look)];
    lines.extend(
        KEYS.iter()
            .flat_map(|(key, what)| entry(key, what, columns, look)),
    );
    lines.push(Line::default());
    lines.push(heading("commands", columns, look));
    let own = COMMANDS.iter().map(|(name, what)| (*name, *what));
    let further = app.options.commands.iter();
    let further = further.map(|it| (it.name.as_str(), it.what.as_str()));
    for (name, what) in own.chain(further) {
        lines.extend(entry(&format!("/{name}"), what, columns, look));
    }
    put_scrolled(&lines, &mut app.down, area, buffer);
}

fn heading(text: &str, columns: usize, look: Look) -> Line<'static> {
    Line::from(Span::styled(fit(text, columns), look.strong()))
}

fn entry(key: &str, what: &str, columns: usize, look: Look) -> Vec<Line<'static>> {
    let room = 33.min(columns / 2);
    let key = format!(" {} ", pad(key, room.saturating_sub(2)));
    let margin = Span::raw(" ".repeat(room));
    let what = Span::raw(crate::text::flat(what));
    crate::text::wrap(&[what], columns, &Span::styled(key, look.accent()), &margin)
}

pub(super) fn draw_cost(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let look = app.look;
    let mut lines = vec![heading("cost · Esc back", columns, look)];
    lines.extend(budget(app, columns));
    lines.push(Line::default());
    let names = [
        "turns", "input", "cached", "output", "budget", "cost", "time",
    ];
    let names = row("agent", names, columns.saturating_sub(2));
    lines.push(Line::from(Span::styled(
        format!("  {names}"),
        look.strong(),
    )));
    let fixed = lines.len();
    put(&lines, area, buffer);
    let mut agents: Vec<&Agent> = app.model.agents().iter().collect();
    agents.sort_by_key(|agent| std::cmp::Reverse(spent(agent.cost)));
    let mut rows: Vec<Line<'static>> = agents
        .into_iter()
        .map(|agent| {
            let figures = figures(
                agent.turns,
                agent.usage,
                agent.budget,
                agent.cost,
                agent.time(app.now),
            );
            let figures = figures.each_ref().map(String::as_str);
            let (mark, style) = crew::mark(agent.standing(), look);
            Line::from(vec![
                Span::styled(format!("{mark} "), style),
                Span::raw(row(&agent.name, figures, columns.saturating_sub(2))),
            ])
        })
        .collect();
    let all = app
        .now
        .0
        .saturating_sub(app.model.began.unwrap_or(app.now).0);
    let model = &app.model;
    let sums = figures(
        model.turns,
        model.usage,
        app.options.budget,
        model.cost,
        all,
    );
    let sums = sums.each_ref().map(String::as_str);
    rows.push(Line::from(Span::styled(
        format!("  {}", row("all", sums, columns.saturating_sub(2))),
        look.strong(),
    )));
    if app.model.cost == Cost::Unknown {
        let text = "The price of a model is not known: prices can be given in the settings.";
        rows.extend(wrap_plain(text, look.dim(), columns));
    }
    put_scrolled(&rows, &mut app.down, below(area, fixed), buffer);
}

fn spent(cost: Cost) -> u64 {
    match cost {
        Cost::MicroUsd(micro) => micro,
        Cost::Unknown => u64::MAX,
    }
}

fn figures(turns: u32, usage: Usage, budget: Budget, cost: Cost, ms: u64) -> [String; 7] {
    let input = usage.all_input();
    let cached = usage
        .cache_read
        .saturating_mul(100)
        .checked_div(input)
        .unwrap_or(0);
    [
        turns.to_string(),
        thousands(input),
        format!("{cached}%"),
        thousands(usage.output),
        budget
            .usd
            .map_or_else(String::new, |usd| format!("${usd:.2}")),
        money(cost),
        time(ms),
    ]
}

/// As many figures as there is room for, the last ones first: cost and time matter most.
fn row(name: &str, figures: [&str; 7], columns: usize) -> String {
    let name_room = NAME.min(columns / 2);
    let fitting = columns.saturating_sub(name_room) / 9;
    let mut text = pad(name, name_room);
    for figure in figures.iter().skip(7usize.saturating_sub(fitting)) {
        text.push_str(&format!(" {figure:>8}"));
    }
    text
}

/// How much of the budget is used.
fn budget(app: &App, columns: usize) -> Vec<Line<'static>> {
    let budget = app.options.budget;
    let model = &app.model;
    let used = app.now.0.saturating_sub(model.began.unwrap_or(app.now).0) / 1000;
    let usd = model.cost.usd().unwrap_or_default();
    let workers = model.workers().count();
    let mut lines = Vec::new();
    if let Some(most) = budget.usd {
        let text = format!("{} of ${most:.2}", money(model.cost));
        lines.push(share("money", usd / most, &text, columns, app.look));
    }
    if let Some(most) = budget.tokens {
        let total = model.usage.total();
        let text = format!("{} of {}", thousands(total), thousands(most));
        lines.push(share(
            "tokens",
            total as f64 / most as f64,
            &text,
            columns,
            app.look,
        ));
    }
    if let Some(most) = budget.seconds {
        let text = format!(
            "{} of {}",
            time(used * 1000),
            time(most.saturating_mul(1000))
        );
        lines.push(share(
            "time",
            used as f64 / most as f64,
            &text,
            columns,
            app.look,
        ));
    }
    if let Some(most) = budget.workers {
        let text = format!("{workers} of {most}");
        lines.push(share(
            "workers",
            workers as f64 / f64::from(most),
            &text,
            columns,
            app.look,
        ));
    }
    if lines.is_empty() {
        lines.push(Line::from(Span::styled(
            fit("no budget is set", columns),
            app.look.dim(),
        )));
    }
    lines
}

fn share(what: &str, part: f64, text: &str, columns: usize, look: Look) -> Line<'static> {
    let bar = BAR.min(columns.saturating_sub(30));
    let part = if part.is_finite() {
        part.clamp(0.0, 1.0)
    } else {
        1.0
    };
    let full = (0..bar)
        .take_while(|n| (*n as f64 + 0.5) / bar as f64 <= part)
        .count();
    let style: Style = match part {
        part if part >= 0.9 => look.bad(),
        part if part >= 0.7 => look.warning(),
        _ => look.good(),
    };
    Line::from(vec![
        Span::raw(pad(what, 9.min(columns))),
        Span::styled("█".repeat(full), style),
        Span::styled("░".repeat(bar - full), look.dim()),
        Span::raw(format!(" {text}")),
    ])
}
