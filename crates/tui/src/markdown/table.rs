//! Tables, as wide as they need and no wider than there is room.

use crate::look::Look;
use crate::text::{width, wrap};
use ratatui::text::{Line, Span};

type Cell = Vec<Span<'static>>;

#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

const BETWEEN: &str = " │ ";
/// A column that is narrower cannot be read.
const NARROWEST: usize = 4;

impl Table {
    pub(super) fn cell(&mut self, spans: Cell) {
        self.row.push(spans);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn render(self, room: usize, look: Look) -> Vec<Line<'static>> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        if columns == 0 {
            return Vec::new();
        }
        let between = width(BETWEEN) * (columns - 1);
        if columns * NARROWEST + between > room {
            return self.into_list(room, look);
        }
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (cell, widest) in row.iter().zip(&mut widths) {
                *widest = (*widest).max(size(cell));
            }
        }
        shrink(&mut widths, room - between);
        let mut lines = Vec::new();
        for (n, row) in self.rows.iter().enumerate() {
            lines.extend(row_lines(row, &widths, n == 0, look));
            if n == 0 {
                let rules: Vec<String> = widths.iter().map(|n| "─".repeat(*n)).collect();
                let rule = rules.join("─┼─");
                lines.push(Line::from(Span::styled(rule, look.dim())));
            }
        }
        lines
    }

    /// Each cell on a line of its own, behind its column's name.
    fn into_list(self, room: usize, look: Look) -> Vec<Line<'static>> {
        let mut rows = self.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        let none = Span::raw("");
        let mut lines = Vec::new();
        for row in rows {
            for (n, cell) in row.into_iter().enumerate() {
                let mut spans: Cell = Vec::new();
                if let Some(name) = head.get(n) {
                    spans.extend(
                        name.iter()
                            .cloned()
                            .map(|span| span.patch_style(look.dim())),
                    );
                    spans.push(Span::styled(": ", look.dim()));
                }
                spans.extend(cell);
                lines.extend(wrap(&spans, room, &none, &none));
            }
            lines.push(Line::default());
        }
        lines.pop();
        lines
    }
}

fn size(cell: &Cell) -> usize {
    cell.iter().map(|span| width(&span.content)).sum()
}

/// Takes from the widest until all fit.
fn shrink(widths: &mut [usize], room: usize) {
    for width in widths.iter_mut() {
        *width = (*width).min(room);
    }
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max() else {
            return;
        };
        *widest -= 1;
    }
}

fn row_lines(row: &[Cell], widths: &[usize], is_head: bool, look: Look) -> Vec<Line<'static>> {
    let none = Span::raw("");
    let empty = Cell::new();
    let cells: Vec<Vec<Line<'static>>> = widths
        .iter()
        .enumerate()
        .map(|(n, width)| wrap(row.get(n).unwrap_or(&empty), *width, &none, &none))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let mut lines = Vec::new();
    for at in 0..height {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (n, cell) in cells.iter().enumerate() {
            if n > 0 {
                spans.push(Span::styled(BETWEEN, look.dim()));
            }
            let mut taken = 0;
            for span in cell.get(at).into_iter().flat_map(|line| line.iter()) {
                taken += width(&span.content);
                let span = span.clone();
                spans.push(if is_head {
                    span.patch_style(look.strong())
                } else {
                    span
                });
            }
            // Nothing is aligned by the spaces behind the last one.
            if n + 1 < cells.len() {
                let missing = widths.get(n).copied().unwrap_or_default();
                spans.push(Span::raw(" ".repeat(missing.saturating_sub(taken))));
            }
        }
        lines.push(Line::from(spans));
    }
    lines
}
