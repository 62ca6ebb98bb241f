//! The time of a session as a picture: a lane for each agent, a bar for each run. Bars are placed
//! in percent, so that the picture is as wide as the page and its patterns stay as they are.

use super::cover::{MANY, mark, phase_of};
use super::markup::escape;
use super::scale::Scale;
use super::{Cover, clock, one_line};
use crate::tracks::{Run, Track};
use crate::view::account::{branch, time};
use crate::view::words::count;
use gaffer_protocol::{Phase, Timestamp};
use std::fmt::Write;

/// A bar is at least so wide, and one with a letter on it, of 100.
const NARROWEST: f64 = 0.35;
const LETTER: f64 = 3.0;
/// Ticks are counted in so many steps over the width, and two are at least so many apart.
const STEPS: f64 = 2000.0;
const APART: u32 = 3;

/// How a run ends of which nothing need be said.
const DONE: &str = "✓";

/// What fills the bars: a colour and a pattern for each phase, so that neither is needed alone.
const PATTERNS: &str = "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
<pattern id=\"p-research\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect class=\"research\" width=\"5\" height=\"5\"/><rect class=\"ink\" width=\"1.5\" height=\"5\"/></pattern>\
<pattern id=\"p-synthesis\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\"><rect class=\"synthesis\" width=\"5\" height=\"5\"/></pattern>\
<pattern id=\"p-implementation\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\"><rect class=\"implementation\" width=\"5\" height=\"5\"/><rect class=\"ink\" x=\"1\" y=\"1\" width=\"2\" height=\"2\"/></pattern>\
<pattern id=\"p-verification\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\"><rect class=\"verification\" width=\"5\" height=\"5\"/><rect class=\"ink\" y=\"1\" width=\"5\" height=\"1.5\"/></pattern>\
</defs></svg>";

pub(super) fn timeline(cover: &Cover<'_>) -> String {
    let Some(scale) = scale(&cover.story.tracks) else {
        return String::new();
    };
    let members = &cover.account.members;
    let many = if members.len() > MANY { " many" } else { "" };
    let mut out = format!("<section id=\"timeline\"><h2>Timeline</h2>{PATTERNS}");
    out.push_str(&legend(&cover.story.tracks));
    let _ = write!(out, "<div class=\"chart{many}\">{}", grid(&scale));
    for (n, (member, track)) in members.iter().zip(&cover.story.tracks).enumerate() {
        let (id, name) = (member.id, escape(&one_line(member.name())));
        let branch = branch(members, n);
        let runs = count(u32::try_from(track.runs.len()).unwrap_or(u32::MAX), "run");
        let _ = write!(
            out,
            "<div class=\"lane\"><a href=\"#{id}\"><span class=\"branch\">{branch}</span>{name}</a><svg role=\"img\" aria-label=\"{name}: {runs}\">"
        );
        out.push_str(&queued(track, &scale));
        for (n, run) in track.runs.iter().enumerate() {
            let lane = Lane {
                name: &name,
                phase: phase_of(cover, member, n),
                n,
                all: track.runs.len(),
            };
            let bar = lane.bar(run, &scale);
            let _ = write!(out, "<a href=\"#{id}\">{bar}</a>");
        }
        out.push_str(&ticks(track, &scale));
        out.push_str("</svg></div>\n");
    }
    out.push_str(&axis(&scale));
    out.push_str("</div>");
    let pauses: Vec<String> = scale.pauses().map(|(_, ms)| time(ms)).collect();
    if !pauses.is_empty() {
        let _ = write!(
            out,
            "<p class=\"soft\">Where a line is dashed nobody worked: for {}</p>",
            pauses.join(", ")
        );
    }
    out.push_str("</section>\n");
    out
}

fn scale(tracks: &[Track]) -> Option<Scale> {
    let runs = tracks.iter().flat_map(|track| &track.runs);
    Scale::new(runs.map(|run| (run.from, run.to)).collect())
}

/// One run among others of its agent.
struct Lane<'a> {
    name: &'a str,
    phase: Phase,
    n: usize,
    all: usize,
}

impl Lane<'_> {
    fn bar(&self, run: &Run, scale: &Scale) -> String {
        let (left, right) = (scale.place(run.from), scale.place(run.to));
        let width = (right - left).max(NARROWEST);
        let left = left.min(100.0 - width);
        let phase = self.phase.as_str();
        let mut out = format!(
            "<title>{}</title><rect class=\"run {phase}\" x=\"{left:.2}%\" width=\"{width:.2}%\"/>",
            self.title(run)
        );
        for (from, to) in &run.rests {
            let (from, to) = (scale.place(*from), scale.place(*to));
            if to - from > NARROWEST {
                let _ = write!(
                    out,
                    "<rect class=\"rest\" x=\"{from:.2}%\" width=\"{:.2}%\"/>",
                    to - from
                );
            }
        }
        // What it was and how it ended are said in letters as well.
        if width >= LETTER {
            let letter = phase[..1].to_ascii_uppercase();
            let _ = write!(
                out,
                "<text x=\"{left:.2}%\" dx=\"4\" y=\"50%\">{letter}</text>"
            );
        }
        let sign = mark(run.end.as_ref());
        if sign != DONE {
            let right = left + width;
            let (dx, anchor) = if right < 96.0 {
                (3, "start")
            } else {
                (-3, "end")
            };
            let _ = write!(
                out,
                "<text class=\"sign\" x=\"{right:.2}%\" dx=\"{dx}\" y=\"50%\" text-anchor=\"{anchor}\">{sign}</text>"
            );
        }
        out
    }

    fn title(&self, run: &Run) -> String {
        let Self {
            name,
            phase,
            n,
            all,
        } = self;
        let which = match all {
            1 => String::new(),
            _ => format!(", run {} of {all}", n + 1),
        };
        let took = time(run.to.0.saturating_sub(run.from.0));
        let rested: u64 = run.rests.iter().map(|(from, to)| to.0 - from.0).sum();
        let waited = match rested {
            0 => String::new(),
            ms => format!(", of which it waited {}", time(ms)),
        };
        let end = run.end.as_ref().map(ToString::to_string);
        let end = end.map_or_else(|| "interrupted".to_owned(), |end| one_line(&end));
        let turns = count(u32::try_from(run.turns.len()).unwrap_or(u32::MAX), "turn");
        let calls = count(u32::try_from(run.calls).unwrap_or(u32::MAX), "call");
        format!(
            "{name}{which}: {phase}\n{}–{} UTC, {took}{waited}\n{turns}, {calls}\n{} {}",
            clock(run.from),
            clock(run.to),
            mark(run.end.as_ref()),
            escape(&end)
        )
    }
}

/// The time between its order and its first run.
fn queued(track: &Track, scale: &Scale) -> String {
    let (Some(ordered), Some(run)) = (track.ordered, track.runs.first()) else {
        return String::new();
    };
    let (from, to) = (scale.place(ordered), scale.place(run.from));
    if to - from < NARROWEST {
        return String::new();
    }
    let took = time(run.from.0.saturating_sub(ordered.0));
    format!(
        "<line class=\"queue\" x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"50%\" y2=\"50%\"><title>in the queue for {took}</title></line>"
    )
}

/// A tick for each turn; where there are too many to be told apart, fewer.
fn ticks(track: &Track, scale: &Scale) -> String {
    let mut last: Option<u32> = None;
    let mut path = String::new();
    let turns = track.runs.iter().flat_map(|run| &run.turns);
    for at in turns {
        let at = tick(*at, scale);
        if last.is_none_or(|last| at >= last + APART) {
            let _ = write!(path, "M{at} 0v1");
            last = Some(at);
        }
    }
    if path.is_empty() {
        return path;
    }
    format!(
        "<svg class=\"turns\" y=\"100%\" height=\"4\" viewBox=\"0 0 {STEPS} 1\" preserveAspectRatio=\"none\"><path d=\"{path}\"/></svg>"
    )
}

fn tick(at: Timestamp, scale: &Scale) -> u32 {
    (scale.place(at) / 100.0 * STEPS).round() as u32
}

/// Lines behind all lanes.
fn grid(scale: &Scale) -> String {
    let mut out = "<svg class=\"grid\" aria-hidden=\"true\">".to_owned();
    for (at, _) in scale.named() {
        let _ = write!(
            out,
            "<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"100%\"/>"
        );
    }
    for (at, _) in scale.pauses() {
        let _ = write!(
            out,
            "<line class=\"pause\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"100%\"/>"
        );
    }
    out.push_str("</svg>");
    out
}

fn axis(scale: &Scale) -> String {
    let mut out = "<div class=\"lane axis\"><span>since the start</span><svg>".to_owned();
    for (at, word) in scale.named() {
        let anchor = match at {
            0.0..4.0 => "start",
            4.0..96.0 => "middle",
            _ => "end",
        };
        let _ = write!(
            out,
            "<text x=\"{at:.2}%\" y=\"50%\" text-anchor=\"{anchor}\">{word}</text>"
        );
    }
    out.push_str("</svg></div>");
    out
}

fn legend(tracks: &[Track]) -> String {
    let mut out = "<p class=\"legend\">".to_owned();
    for phase in Phase::ALL {
        let phase = phase.as_str();
        let letter = phase[..1].to_ascii_uppercase();
        let _ = write!(
            out,
            "<span><svg><rect class=\"run {phase}\" width=\"100%\"/><text x=\"0\" dx=\"4\" y=\"50%\">{letter}</text></svg>{phase}</span> "
        );
    }
    out.push_str(
        "<span><svg><rect class=\"run synthesis\" width=\"100%\"/><rect class=\"rest\" width=\"100%\"/></svg>waits</span> \
<span><svg><line class=\"queue\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/></svg>in the queue</span> \
<span><svg class=\"narrow\"><svg class=\"turns\" y=\"40%\" height=\"4\" viewBox=\"0 0 10 1\" preserveAspectRatio=\"none\"><path d=\"M2 0v1M5 0v1M8 0v1\"/></svg></svg>turns</span>",
    );
    let runs = || tracks.iter().flat_map(|track| &track.runs);
    for (sign, word) in [("✗", "failed"), ("■", "stopped"), ("…", "interrupted")] {
        if runs().any(|run| mark(run.end.as_ref()) == sign) {
            let _ = write!(out, " <span>{sign} {word}</span>");
        }
    }
    out.push_str("</p>");
    out
}
