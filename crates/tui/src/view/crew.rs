//! The crew as a tree: who works first, those that have ended as a count where room is short.

use super::{below, put};
use crate::app::{App, Focus};
use crate::look::Look;
use crate::state::Model;
use crate::state::agent::{Agent, Standing};
use crate::text::{fit, pad, width};
use crate::words::{money, thousands, time};
use gaffer_protocol::{AgentId, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::collections::{HashMap, HashSet};

const NAME: usize = 20;
/// From this width on a row has all figures.
const WIDE: usize = 70;

enum Row {
    Agent { id: AgentId, branch: String },
    Folded(usize),
}

/// Rows that the whole crew would take.
pub(super) fn height(app: &App) -> usize {
    let live = app.model.workers().filter(|worker| !worker.has_ended());
    let ended = app.model.workers().filter(|worker| worker.has_ended());
    live.count() + ended.count().min(4) + 1
}

pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let is_beside = area.x > 0;
    let area = if is_beside {
        for y in area.top()..area.bottom() {
            buffer.set_line(area.x, y, &Line::from(Span::styled("│", app.look.dim())), 1);
        }
        Rect {
            x: area.x + 1,
            width: area.width - 1,
            ..area
        }
    } else {
        area
    };
    let columns = usize::from(area.width);
    put(&[title(app, columns, is_beside)], area, buffer);
    let area = below(area, 1);
    let room = usize::from(area.height);
    let mut rows = rows(&app.model, usize::MAX);
    if rows.len() > room && !app.crew.shows_ended {
        let ended = app.model.workers().filter(|worker| worker.has_ended());
        let live = rows.len().saturating_sub(ended.count());
        // One row says how many more there are.
        rows = self::rows(&app.model, room.saturating_sub(live + 1));
    }
    if rows.len() > room && app.focus != Focus::Crew {
        // What the coordinator does is seen in the conversation.
        rows.retain(
            |row| !matches!(row, Row::Agent { id, .. } if Some(*id) == app.model.main_id()),
        );
    }
    app.crew.order = rows
        .iter()
        .filter_map(|row| match row {
            Row::Agent { id, .. } => Some(*id),
            Row::Folded(_) => None,
        })
        .collect();
    let top = top(app, &rows, room);
    app.crew.top = top;
    let name_room = name_room(app, &rows, columns);
    let mut lines: Vec<Line<'static>> = rows
        .iter()
        .skip(top)
        .take(room)
        .map(|row| draw_row(app, row, columns, name_room))
        .collect();
    let hidden = rows.len().saturating_sub(top + room);
    if hidden > 0
        && let Some(last) = lines.last_mut()
    {
        let text = fit(&format!("  … {} more", hidden + 1), columns);
        *last = Line::from(Span::styled(text, app.look.dim()));
    }
    put(&lines, area, buffer);
}

/// The first row that is seen, so that the chosen one is.
fn top(app: &App, rows: &[Row], room: usize) -> usize {
    if app.focus != Focus::Crew {
        return 0;
    }
    let is_chosen =
        |row: &Row| matches!(row, Row::Agent { id, .. } if Some(*id) == app.crew.chosen);
    let at = rows.iter().position(is_chosen).unwrap_or(0);
    // The last row may say how many more there are.
    let seen = room.saturating_sub(2);
    let top = app.crew.top.clamp(at.saturating_sub(seen), at);
    top.min(rows.len().saturating_sub(room))
}

fn title(app: &App, columns: usize, is_beside: bool) -> Line<'static> {
    let (asks, works, queued, ended) = app.counts();
    let mut text = "crew".to_owned();
    for (n, what) in [
        (works, "running"),
        (asks, "asking"),
        (queued, "queued"),
        (ended, "ended"),
    ] {
        if n > 0 {
            text.push_str(&format!(" · {n} {what}"));
        }
    }
    let keys = match app.focus {
        Focus::Crew => " · Enter open · i interrupt · x stop · f ended",
        _ => " · Tab",
    };
    let text = fit(&format!("{text}{keys}"), columns.saturating_sub(4));
    if is_beside {
        return Line::from(Span::styled(format!(" {text}"), app.look.strong()));
    }
    let rest = columns.saturating_sub(width(&text) + 4);
    Line::from(vec![
        Span::styled("── ", app.look.dim()),
        Span::styled(text, app.look.strong()),
        Span::styled(format!(" {}", "─".repeat(rest)), app.look.dim()),
    ])
}

/// The tree, row by row, with so many of those that have ended.
fn rows(model: &Model, most_ended: usize) -> Vec<Row> {
    let mut below: HashMap<Option<AgentId>, Vec<&Agent>> = HashMap::new();
    let mut live: HashSet<AgentId> = HashSet::new();
    for agent in model.agents() {
        let parent = agent.parent.filter(|parent| model.agent(*parent).is_some());
        below.entry(parent).or_default().push(agent);
        let mut at = (!agent.has_ended()).then_some(agent);
        // Whoever has a live worker below stays in the tree.
        while let Some(agent) = at {
            if !live.insert(agent.id) {
                break;
            }
            at = agent.parent.and_then(|parent| model.agent(parent));
        }
    }
    for agents in below.values_mut() {
        agents.sort_by_key(|agent| agent.standing());
    }
    let mut tree = Tree {
        below,
        live,
        ended: most_ended,
        rows: Vec::new(),
        folded: 0,
        seen: HashSet::new(),
    };
    tree.walk(None, "", true);
    let Tree {
        mut rows, folded, ..
    } = tree;
    if folded > 0 {
        rows.push(Row::Folded(folded));
    }
    rows
}

struct Tree<'a> {
    below: HashMap<Option<AgentId>, Vec<&'a Agent>>,
    live: HashSet<AgentId>,
    /// So many more that have ended are shown.
    ended: usize,
    rows: Vec<Row>,
    folded: usize,
    /// Events could claim a circle.
    seen: HashSet<AgentId>,
}

impl Tree<'_> {
    fn walk(&mut self, parent: Option<AgentId>, margin: &str, is_root: bool) {
        // Deeper than this there is no room to show it.
        if margin.len() > 60 {
            return;
        }
        let agents = self.below.remove(&parent).unwrap_or_default();
        let shown: Vec<&Agent> = agents
            .into_iter()
            .filter(|agent| {
                if agent.parent.is_none() || self.live.contains(&agent.id) {
                    return true;
                }
                let is_shown = self.ended > 0;
                self.ended = self.ended.saturating_sub(1);
                self.folded += usize::from(!is_shown);
                is_shown
            })
            .collect();
        let last = shown.len().saturating_sub(1);
        for (n, agent) in shown.into_iter().enumerate() {
            if !self.seen.insert(agent.id) {
                continue;
            }
            let (branch, further) = match (is_root, n == last) {
                (true, _) => ("", ""),
                (false, true) => ("└ ", "  "),
                (false, false) => ("├ ", "│ "),
            };
            self.rows.push(Row::Agent {
                id: agent.id,
                branch: format!("{margin}{branch}"),
            });
            self.walk(Some(agent.id), &format!("{margin}{further}"), false);
        }
    }
}

pub(super) fn mark(standing: Standing, look: Look) -> (&'static str, Style) {
    match standing {
        Standing::Asks => ("?", look.warning()),
        Standing::Works => ("●", look.good()),
        Standing::Rests => ("◦", look.plain()),
        Standing::Queued => ("○", look.dim()),
        Standing::Failed => ("✗", look.bad()),
        Standing::Stopped => ("■", look.dim()),
        Standing::Done => ("✓", look.good()),
    }
}

/// Columns for branches and names: as many as the longest needs, within limits.
fn name_room(app: &App, rows: &[Row], columns: usize) -> usize {
    let wide = |row: &Row| match row {
        Row::Agent { id, branch } => {
            width(branch) + app.model.agent(*id).map_or(0, |agent| width(&agent.name))
        }
        Row::Folded(_) => 0,
    };
    let longest = rows.iter().map(wide).max().unwrap_or_default();
    longest.min(NAME).min(columns / 3)
}

fn draw_row(app: &App, row: &Row, columns: usize, name_room: usize) -> Line<'static> {
    let look = app.look;
    let (id, branch) = match row {
        Row::Folded(ended) => {
            let text = format!("   {ended} more ended (f shows them)");
            return Line::from(Span::styled(fit(&text, columns), look.dim()));
        }
        Row::Agent { id, branch } => (*id, branch),
    };
    let Some(agent) = app.model.agent(id) else {
        return Line::default();
    };
    let (mark, style) = mark(agent.standing(), look);
    let figures = figures(agent, app.now, columns);
    let name = pad(&agent.name, name_room.saturating_sub(width(branch)).max(4));
    let phase = match agent.phase {
        Some(phase) if columns >= WIDE => {
            let short: String = phase.as_str().chars().take(4).collect();
            format!("{short} ")
        }
        _ => String::new(),
    };
    let taken = 1 + width(branch) + 2 + width(&name) + 1 + width(&phase) + 1 + width(&figures);
    let doing = pad(&agent.doing(), columns.saturating_sub(taken));
    let name_style = if Some(id) == app.opened {
        look.strong().patch(look.accent())
    } else {
        look.strong()
    };
    let doing_style = if agent.has_ended() {
        look.dim()
    } else {
        look.plain()
    };
    let mut line = Line::from(vec![
        Span::styled(format!(" {branch}"), look.dim()),
        Span::styled(format!("{mark} "), style),
        Span::styled(format!("{name} "), name_style),
        Span::styled(phase, look.dim()),
        Span::styled(format!("{doing} "), doing_style),
        Span::styled(figures, look.dim()),
    ]);
    if app.focus == Focus::Crew && app.crew.chosen == Some(id) {
        line = line.style(look.chosen());
    }
    line
}

fn figures(agent: &Agent, now: Timestamp, columns: usize) -> String {
    if agent.standing() == Standing::Queued || columns < 24 {
        return String::new();
    }
    let time = time(agent.time(now));
    let tokens = thousands(agent.usage.total());
    if columns >= WIDE {
        let turns = format!("{}t", agent.turns);
        format!("{turns:>4} {tokens:>7} {:>7} {time:>6}", money(agent.cost))
    } else if columns >= 44 {
        format!("{tokens:>6} {time:>6}")
    } else {
        format!("{time:>6}")
    }
}
