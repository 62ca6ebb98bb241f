//! Where each part of the screen stands. Every column belongs to somebody.

use super::{crew, input, question, status};
use crate::app::{App, Focus, Page};
use crate::text::cells;
use ratatui::layout::Rect;

/// From this width on the crew stands beside the conversation.
const WIDE: u16 = 120;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Areas {
    /// All above the input: the conversation and the crew, or a page.
    pub(super) main: Rect,
    pub(super) talk: Rect,
    pub(super) crew: Option<Rect>,
    pub(super) question: Option<Rect>,
    pub(super) rule: Option<Rect>,
    pub(super) input: Rect,
    pub(super) status: Option<Rect>,
}

impl Areas {
    pub(super) fn new(app: &App, whole: Rect) -> Self {
        let mut rest = whole;
        let status =
            (whole.height >= 2).then(|| take_bottom(&mut rest, status::height(app, whole)));
        let rows = input::rows(app, whole.width).rows.len();
        let most = (whole.height / 3).clamp(1, 10);
        let input = take_bottom(&mut rest, cells(rows).min(most));
        let rule = (whole.height >= 8).then(|| take_bottom(&mut rest, 1));
        let question = question::height(app, rest).map(|height| take_bottom(&mut rest, height));
        let main = rest;
        let mut talk = main;
        let has_crew = app.page == Page::Talk && app.model.workers().next().is_some();
        let crew = if !has_crew {
            None
        } else if whole.width >= WIDE {
            let width = (whole.width / 3).clamp(44, 72);
            talk.width -= width;
            Some(Rect {
                x: talk.right(),
                width,
                ..main
            })
        } else {
            // Somebody who chooses from the crew sees more of it.
            let share = if app.focus == Focus::Crew { 2 } else { 3 };
            let most = main.height / share;
            let wanted = cells(crew::height(app)).saturating_add(1);
            (main.height >= 9).then(|| take_bottom(&mut talk, wanted.min(most)))
        };
        Self {
            main,
            talk,
            crew,
            question,
            rule,
            input,
            status,
        }
    }
}

fn take_bottom(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    rest.height -= height;
    Rect {
        y: rest.bottom(),
        height,
        ..*rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::busy;

    #[test]
    fn every_cell_belongs_to_exactly_one_part() {
        for (width, height) in [(1, 1), (5, 3), (40, 10), (80, 24), (119, 9), (250, 80)] {
            let app = busy();
            let areas = Areas::new(&app, Rect::new(0, 0, width, height));
            let parts = [Some(areas.talk), areas.crew, areas.question, areas.rule]
                .into_iter()
                .chain([Some(areas.input), areas.status]);
            let sum: u32 = parts.flatten().map(|area| area.area()).sum();
            assert_eq!(
                sum,
                u32::from(width) * u32::from(height),
                "{width}x{height}"
            );
        }
    }
}
