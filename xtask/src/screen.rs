//! A terminal's screen, as far as gaffer's own output needs one: text, colours, moving up, clearing.

use unicode_width::UnicodeWidthChar;

/// How a character looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Look {
    /// One of the eight colours, from 1 on; 0 is the terminal's own.
    pub(crate) colour: u8,
    pub(crate) is_bold: bool,
    pub(crate) is_dim: bool,
}

/// A character in its column. What follows a wide one is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) look: Look,
}

pub(crate) type Row = Vec<Cell>;

#[derive(Debug)]
pub(crate) struct Screen {
    columns: usize,
    pub(crate) rows: Vec<Row>,
    /// Where the next character goes. The column may be one past the last: it wraps then.
    at: (usize, usize),
    look: Look,
    /// A sequence that is not over: printed things are cut anywhere.
    sequence: String,
}

impl Screen {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns,
            rows: vec![vec![Cell::default(); columns]; rows],
            at: (0, 0),
            look: Look::default(),
            sequence: String::new(),
        }
    }

    pub(crate) fn print(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\u{1b}' || !self.sequence.is_empty() {
                self.sequence.push(c);
                self.try_sequence();
            } else {
                self.take(c);
            }
        }
    }

    fn take(&mut self, c: char) {
        match c {
            '\r' => self.at.1 = 0,
            '\n' => self.line_down(),
            '\u{8}' => self.at.1 = self.at.1.saturating_sub(1),
            '\t' => self.at.1 = ((self.at.1 / 8 + 1) * 8).min(self.columns - 1),
            c => self.put(c),
        }
    }

    fn put(&mut self, c: char) {
        let width = match c.width() {
            None => return,
            Some(0) => {
                let (row, column) = self.at;
                if let Some(cell) = column.checked_sub(1).map(|it| &mut self.rows[row][it]) {
                    cell.text.push(c);
                }
                return;
            }
            Some(width) => width.min(self.columns),
        };
        if self.at.1 + width > self.columns {
            self.at.1 = 0;
            self.line_down();
        }
        let (row, column) = self.at;
        for (n, cell) in self.rows[row][column..column + width]
            .iter_mut()
            .enumerate()
        {
            let text = if n == 0 { c.to_string() } else { String::new() };
            *cell = Cell {
                text,
                look: self.look,
            };
        }
        self.at.1 += width;
    }

    fn line_down(&mut self) {
        if self.at.0 + 1 < self.rows.len() {
            self.at.0 += 1;
            return;
        }
        self.rows.remove(0);
        self.rows.push(vec![Cell::default(); self.columns]);
    }

    /// Carries a sequence out once it is whole.
    fn try_sequence(&mut self) {
        let is_control = self.sequence.starts_with("\u{1b}[");
        let last = self.sequence.chars().next_back().unwrap_or_default();
        let is_whole = match is_control {
            true => self.sequence.len() > 2 && ('@'..='~').contains(&last),
            // Others have one letter; none of ours has more.
            false => self.sequence.chars().count() > 1 && last != '[',
        };
        if !is_whole {
            return;
        }
        let sequence = std::mem::take(&mut self.sequence);
        if is_control {
            let figures = &sequence[2..sequence.len() - last.len_utf8()];
            let figures = figures.split(';').map(|it| it.parse().unwrap_or(0));
            self.control(last, &figures.collect::<Vec<u16>>());
        }
    }

    fn control(&mut self, letter: char, figures: &[u16]) {
        let first = figures.first().copied().unwrap_or_default();
        let steps = usize::from(first.max(1));
        let (row, column) = self.at;
        match letter {
            'A' => self.at.0 = row.saturating_sub(steps),
            'B' => self.at.0 = (row + steps).min(self.rows.len() - 1),
            'C' => self.at.1 = (column + steps).min(self.columns - 1),
            'D' => self.at.1 = column.min(self.columns - 1).saturating_sub(steps),
            'K' => match first {
                0 => self.clear(row, column),
                _ => self.clear(row, 0),
            },
            'J' => {
                let whole = if first == 0 { row + 1 } else { 0 };
                self.clear(row, if first == 0 { column } else { 0 });
                for row in whole..self.rows.len() {
                    self.clear(row, 0);
                }
            }
            'm' => figures.iter().for_each(|figure| self.paint(*figure)),
            _ => {}
        }
    }

    fn clear(&mut self, row: usize, from: usize) {
        let from = from.min(self.columns);
        self.rows[row][from..].fill(Cell::default());
    }

    fn paint(&mut self, figure: u16) {
        match figure {
            0 => self.look = Look::default(),
            1 => self.look.is_bold = true,
            2 => self.look.is_dim = true,
            22 => (self.look.is_bold, self.look.is_dim) = (false, false),
            30..=37 => self.look.colour = (figure - 29) as u8,
            90..=97 => self.look.colour = (figure - 89) as u8,
            39 => self.look.colour = 0,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(screen: &Screen) -> Vec<String> {
        let row = |row: &Row| {
            let text = row.iter().map(|cell| match cell.text.as_str() {
                "" => " ",
                text => text,
            });
            text.collect::<String>().trim_end().to_owned()
        };
        screen.rows.iter().map(row).collect()
    }

    #[test]
    fn a_block_is_drawn_over_itself_and_lines_above_it_stay() {
        let mut screen = Screen::new(10, 4);
        screen.print("one\r\n\u{1b}[2m⠋ a\u{1b}[0m\u{1b}[K\r\n  long\u{1b}[K\u{1b}[J");
        assert_eq!(shown(&screen), ["one", "⠋ a", "  long", ""]);
        assert!(screen.rows[1][0].look.is_dim);
        screen.print("\r\u{1b}[1A\u{1b}[36mtwo\u{1b}[0m\u{1b}[K\r\n⠙ b\u{1b}[K\u{1b}[");
        screen.print("J");
        assert_eq!(shown(&screen), ["one", "two", "⠙ b", ""]);
        assert_eq!(screen.rows[1][0].look.colour, 7);
    }

    #[test]
    fn what_is_too_long_wraps_and_what_is_too_much_scrolls() {
        let mut screen = Screen::new(4, 2);
        screen.print("abcdef");
        assert_eq!(shown(&screen), ["abcd", "ef"]);
        screen.print("\r\nx日");
        assert_eq!(shown(&screen), ["ef", "x日"]);
        // A row that is full wraps only when something follows.
        let mut screen = Screen::new(4, 2);
        screen.print("abcd\r\ne");
        assert_eq!(shown(&screen), ["abcd", "e"]);
    }
}
