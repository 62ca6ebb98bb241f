//! Progress on a terminal: a line for each thing done, and a block below that moves: the crew.

use super::View;
use super::board::{About, Board, Said};
use super::words::{first_line, fit, width, wrap};
use crate::system::{self, SystemClock};
use gaffer_protocol::{Clock, Event};
use std::io::Write;
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// More often nobody sees, and a large crew has events all the time.
const SHORTEST: Duration = Duration::from_millis(40);

/// Draws on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    board: Board,
    verbose: bool,
    colour: bool,
    /// Whether the terminal can move its cursor.
    moves: bool,
    frame: usize,
    /// Lines that stay and are not on the screen yet.
    pending: String,
    /// How wide the lines of the block on the screen are.
    drawn: Vec<usize>,
    at: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(verbose: bool) -> Self {
        let moves = system::variable("TERM").is_none_or(|term| term != "dumb");
        Self {
            board: Board::default(),
            verbose,
            colour: moves && system::variable("NO_COLOR").is_none(),
            moves,
            frame: 0,
            pending: String::new(),
            drawn: Vec::new(),
            at: None,
        }
    }

    /// One frame in one write, so that nothing flickers: what stays, then the block.
    fn draw(&mut self) {
        let (columns, rows) = system::terminal_size();
        let mut frame = up(&self.drawn, columns);
        // Old text goes line by line as the new is written over it.
        frame.push_str(&std::mem::take(&mut self.pending));
        self.drawn.clear();
        if self.moves {
            // Room at the end of the last line for a `^C`, which the terminal writes there itself.
            let block = self.board.block(SystemClock.now(), columns - 6, rows - 2);
            let (on, off) = paint(self.colour, "2");
            for (n, line) in block.iter().enumerate() {
                let mark = match n {
                    0 => FRAMES[self.frame % FRAMES.len()],
                    _ => " ",
                };
                let end = if n + 1 < block.len() { "\r\n" } else { "" };
                frame.push_str(&format!("{on}{mark} {line}{off}\x1b[K{end}"));
                self.drawn.push(width(line) + 2);
            }
            frame.push_str("\x1b[J");
        }
        put(&frame);
        self.at = Some(Instant::now());
    }

    fn keep(&mut self, said: &Said, columns: usize) {
        if matches!(said.about, About::Reasoning | About::Fine) && !self.verbose {
            return;
        }
        let end = if self.moves { "\x1b[K\r\n" } else { "\n" };
        for line in lines(said, columns, self.colour) {
            self.pending.push_str(&format!("{line}{end}"));
        }
    }
}

impl View for Progress {
    fn event(&mut self, event: &Event) {
        let columns = system::terminal_size().0;
        for said in self.board.take(event) {
            self.keep(&said, columns);
        }
        if self.at.is_none_or(|at| at.elapsed() >= SHORTEST) {
            self.draw();
        }
    }

    fn tick(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }

    fn idle(&mut self) {
        self.frame += 1;
        self.draw();
    }

    fn close(&mut self) {
        let mut last = up(&self.drawn, system::terminal_size().0);
        last.push_str(&std::mem::take(&mut self.pending));
        let clear = if self.moves { "\x1b[J" } else { "" };
        let closing = self.board.closing(SystemClock.now());
        last.push_str(&format!("{clear}● {closing}\n"));
        put(&last);
        self.drawn.clear();
    }
}

fn put(frame: &str) {
    let mut err = std::io::stderr().lock();
    // A terminal that has gone away shows nothing more; the run itself goes on.
    drop(err.write_all(frame.as_bytes()));
    drop(err.flush());
}

fn paint(colour: bool, code: &str) -> (String, &'static str) {
    match colour {
        true => (format!("\x1b[{code}m"), "\x1b[0m"),
        false => (String::new(), ""),
    }
}

/// To where the block on the screen begins. On a terminal that has become narrower its lines take
/// several rows each.
fn up(drawn: &[usize], columns: usize) -> String {
    let rows: usize = drawn.iter().map(|it| it.div_ceil(columns).max(1)).sum();
    match rows {
        0 => String::new(),
        1 => "\r".to_owned(),
        rows => format!("\r\x1b[{}A", rows - 1),
    }
}

/// What stays, as rows. What the session's own agent says is for the user and is shown whole.
fn lines(said: &Said, columns: usize, colour: bool) -> Vec<String> {
    if said.about == About::Words && said.who.is_none() {
        let lines = wrap(&said.text, columns - 3);
        return lines.iter().map(|line| format!("  {line}")).collect();
    }
    vec![line(said, columns, colour)]
}

fn line(said: &Said, columns: usize, colour: bool) -> String {
    let name = said.who.as_ref().map(|who| format!("[{who}] "));
    let name = name.unwrap_or_default();
    let mark = match said.about {
        About::Words => "",
        about => about.mark(),
    };
    // The mark with the space behind it, and the last column.
    let taken = width(&name) + width(mark) + 2;
    let (first, more) = first_line(&said.text);
    let more = if more.is_empty() { &said.more } else { more };
    let text = fit(&format!("{first}{more}"), columns.saturating_sub(taken));
    let (on, off) = match said.about {
        About::Trouble => paint(colour, "31"),
        _ => paint(colour, "36"),
    };
    let before = format!("{name}{mark}");
    format!("{on}{}{off} {text}", before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_names_the_worker() {
        let said = Said {
            who: Some("reader".to_owned()),
            about: About::Call,
            text: "Bash echo one\necho two".to_owned(),
            more: String::new(),
        };
        assert_eq!(line(&said, 80, false), "[reader] → Bash echo one …");
        assert_eq!(line(&said, 20, false), "[reader] → Bash ec…");
        assert!(line(&said, 80, true).starts_with("\x1b[36m[reader] →\x1b[0m "));
    }

    #[test]
    fn the_block_is_found_again_on_a_narrower_terminal() {
        assert_eq!(up(&[], 80), "");
        assert_eq!(up(&[10], 80), "\r");
        assert_eq!(up(&[10, 70, 0], 80), "\r\x1b[2A");
        assert_eq!(up(&[10, 70, 0], 40), "\r\x1b[3A");
    }
}
