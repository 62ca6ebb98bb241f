//! A recording as a picture that moves: frames beside each other, behind a window through which
//! one is seen at a time. It needs no script, so that it plays wherever pictures are shown.

use crate::cast::Cast;
use crate::screen::{Look, Row, Screen};
use std::collections::HashMap;
use std::fmt::Write;

/// What happens within this time is one frame.
const SHORTEST: u64 = 120;
/// How long the last frame stays before it begins again.
const LAST: u64 = 6000;
/// Sizes of a character and of what is around them, in pixels.
const WIDE: f64 = 8.43;
const HIGH: usize = 19;
const AROUND: usize = 16;
const BAR: usize = 30;
/// Between frames: some fonts are wider than others.
const GAP: usize = 60;

/// The terminal's own colours, on a background that stands out from light pages and dark ones.
const STYLE: &str = "\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d9dce1;white-space:pre}\
.b{font-weight:700}.d{fill:#8d949e}\
.c1{fill:#6b7280}.c2{fill:#f28b82}.c3{fill:#8fd19e}.c4{fill:#e6c875}.c5{fill:#8ab4f8}.c6{fill:#d7a6e8}.c7{fill:#7fd1d9}.c8{fill:#f1f3f5}";

pub(crate) fn svg(cast: &Cast) -> String {
    let frames = frames(cast);
    let mut rows = Rows::default();
    let mut film = String::new();
    let width = (cast.columns as f64 * WIDE).ceil() as usize;
    let (mut screens, mut total) = (Vec::new(), 0);
    for (n, (ms, screen)) in frames.iter().enumerate() {
        let mut frame = String::new();
        for (line, row) in screen.iter().enumerate() {
            if let Some(id) = rows.id(row) {
                let y = line * HIGH;
                let _ = write!(frame, "<use href=\"#{id}\" y=\"{y}\"/>");
            }
        }
        let _ = writeln!(
            film,
            "<g transform=\"translate({} 0)\">{frame}</g>",
            n * (width + GAP)
        );
        screens.push(total);
        total += ms;
    }
    let (keys, last) = keys(&screens, total, width + GAP);
    let (all_wide, all_high) = (width + 2 * AROUND, cast.rows * HIGH + BAR + AROUND);
    let title = escape(&cast.title);
    let seconds = total as f64 / 1000.0;
    let dots: String = (0..3)
        .map(|n| {
            format!(
                "<circle cx=\"{}\" cy=\"15\" r=\"5\" fill=\"#3a3f47\"/>",
                20 + n * 18
            )
        })
        .collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all_wide} {all_high}\" width=\"{all_wide}\" height=\"{all_high}\" role=\"img\" aria-label=\"{title}\" xml:space=\"preserve\">\n\
<title>{title}</title>\n\
<style>{STYLE}@keyframes film{{{keys}}}#film{{animation:film {seconds}s steps(1,end) infinite}}@media (prefers-reduced-motion:reduce){{#film{{animation:none;transform:translateX({last}px)}}}}</style>\n\
<defs>\n{}</defs>\n\
<rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"9\" fill=\"#17191d\" stroke=\"#4a4f57\"/>{dots}<text x=\"50%\" y=\"20\" text-anchor=\"middle\" class=\"d\">{title}</text>\n\
<svg x=\"{AROUND}\" y=\"{BAR}\" width=\"{}\" height=\"{}\"><g id=\"film\">\n{film}</g></svg>\n</svg>\n",
        rows.defs,
        all_wide - 1,
        all_high - 1,
        width + AROUND,
        cast.rows * HIGH,
    )
}

/// What is on the screen, and for how many milliseconds.
fn frames(cast: &Cast) -> Vec<(u64, Vec<Row>)> {
    let mut screen = Screen::new(cast.columns, cast.rows);
    let mut frames: Vec<(u64, Vec<Row>)> = Vec::new();
    let mut began = 0;
    let mut events = cast.events.iter().peekable();
    while let Some((at, data)) = events.next() {
        screen.print(data);
        let next = events.peek().map(|(next, _)| *next);
        if next.is_some_and(|next| next < began + SHORTEST && *at < began + SHORTEST) {
            continue;
        }
        let until = next.unwrap_or(at + LAST);
        let stays = until.saturating_sub(began);
        match frames.last_mut() {
            Some((ms, rows)) if *rows == screen.rows => *ms += stays,
            _ => frames.push((stays, screen.rows.clone())),
        }
        began = until;
    }
    frames
}

/// Which frame is seen from when on, and where the last one is.
fn keys(begins: &[u64], total: u64, width: usize) -> (String, String) {
    let mut keys = String::new();
    let place = |n: usize| match n {
        0 => "0".to_owned(),
        n => format!("-{}", n * width),
    };
    for (n, at) in begins.iter().enumerate() {
        let percent = *at as f64 / total.max(1) as f64 * 100.0;
        let _ = write!(
            keys,
            "{percent:.3}%{{transform:translateX({}px)}}",
            place(n)
        );
    }
    let last = place(begins.len().saturating_sub(1));
    let _ = write!(keys, "to{{transform:translateX({last}px)}}");
    (keys, last)
}

/// Rows that were drawn: one that is seen in many frames, or in many places, is there once.
#[derive(Default)]
struct Rows {
    ids: HashMap<Row, String>,
    defs: String,
}

impl Rows {
    /// None for a row with nothing on it.
    fn id(&mut self, row: &Row) -> Option<String> {
        if row.iter().all(|cell| cell.text.trim().is_empty()) {
            return None;
        }
        if let Some(id) = self.ids.get(row) {
            return Some(id.clone());
        }
        let id = format!("r{}", self.ids.len());
        let _ = write!(self.defs, "<text id=\"{id}\" y=\"14\">");
        for (column, look, text) in runs(row) {
            let (x, class) = (column as f64 * WIDE, class(look));
            let text = escape(&text);
            let _ = write!(self.defs, "<tspan x=\"{x:.1}\"{class}>{text}</tspan>");
        }
        self.defs.push_str("</text>\n");
        self.ids.insert(row.clone(), id.clone());
        Some(id)
    }
}

/// Neighbours that look the same, without the room around them.
fn runs(row: &Row) -> Vec<(usize, Look, String)> {
    let mut runs: Vec<(usize, Look, String)> = Vec::new();
    for (column, cell) in row.iter().enumerate() {
        let text = if cell.text.is_empty() {
            " "
        } else {
            &cell.text
        };
        match runs.last_mut() {
            // Room has no colour of its own.
            Some((_, look, run)) if *look == cell.look || text == " " => run.push_str(text),
            _ if text == " " => {}
            _ => runs.push((column, cell.look, text.to_owned())),
        }
    }
    for (_, _, text) in &mut runs {
        text.truncate(text.trim_end().len());
    }
    runs
}

fn class(look: Look) -> String {
    let mut names = Vec::new();
    if look.is_bold {
        names.push("b".to_owned());
    }
    if look.is_dim {
        names.push("d".to_owned());
    }
    if look.colour > 0 {
        names.push(format!("c{}", look.colour));
    }
    match names.is_empty() {
        true => String::new(),
        false => format!(" class=\"{}\"", names.join(" ")),
    }
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(events: &[(u64, &str)]) -> Cast {
        let events = events.iter().map(|(at, data)| (*at, (*data).to_owned()));
        Cast {
            columns: 20,
            rows: 3,
            title: "a <title>".to_owned(),
            events: events.collect(),
        }
    }

    #[test]
    fn each_row_is_drawn_once_and_each_picture_is_a_frame() {
        let cast = cast(&[
            (0, "$ go\r\n"),
            (500, "one <&>\r\n"),
            (510, "\u{1b}[31mred\u{1b}[0m"),
            (2000, "\r\u{1b}[K"),
            (2500, "\r\u{1b}[K"),
        ]);
        let svg = svg(&cast);
        assert_eq!(svg.matches("<g transform").count(), 3, "{svg}");
        assert_eq!(svg.matches("$ go").count(), 1);
        assert!(svg.contains("one &lt;&amp;&gt;</tspan>"));
        assert!(svg.contains("class=\"c2\">red</tspan>"));
        assert!(svg.contains("<title>a &lt;title&gt;</title>"));
        // Half a second, a second and a half, and what is left until it begins anew.
        assert!(svg.contains("animation:film 8.5s"), "{svg}");
        assert!(
            svg.contains("0.000%{transform:translateX(0px)}5.882%{transform:translateX(-229px)}")
        );
    }
}
