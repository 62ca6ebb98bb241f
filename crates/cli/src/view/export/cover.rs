//! What stands at the beginning of the page: the task, how it ended, what it took, and the crew.

use super::inline::inline;
use super::markup::escape;
use super::{Cover, facts, one_line, rendered, standing, title, verbatim};
use crate::show::Member;
use crate::view::account::time;
use crate::view::words::{fit, thousands};
use gaffer_protocol::{Cap, Course, End, Phase, Status};
use std::fmt::Write;

/// So many workers of one phase are named.
const MOST_NAMED: usize = 6;
/// With more agents than this they stand closer to each other.
pub(super) const MANY: usize = 30;
/// So much of what an agent was to do stands in the tree.
const LONGEST_ORDER: usize = 140;

pub(super) fn head(cover: &Cover<'_>) -> String {
    let name = title(cover);
    let mut out = format!(
        "<header class=\"top\"><p class=\"kicker\">gaffer · a session of {}</p><h1>{}</h1>",
        members(cover),
        inline(&name)
    );
    if let Some(main) = cover.account.members.first() {
        let (word, class) = standing(main);
        let sign = mark(main.end.as_ref());
        let word = escape(&fit(&word, 200));
        let _ = write!(out, "<p class=\"state {class}\">{sign} {word}</p>");
    }
    out.push_str("</header>\n");
    out.push_str(&tiles(cover));
    // A short task is the title already.
    let task = cover.story.task.as_deref();
    if let Some(task) = task.filter(|task| one_line(task).trim() != name.trim()) {
        let _ = writeln!(
            out,
            "<section id=\"task\"><h2>The task</h2><div class=\"user\">{}</div></section>",
            verbatim(task)
        );
    }
    if let Some(result) = &cover.story.result {
        let _ = writeln!(
            out,
            "<section id=\"result\"><h2>What came of it</h2><div class=\"prose\">{}</div></section>",
            rendered(result)
        );
    }
    out
}

fn members(cover: &Cover<'_>) -> String {
    let all = &cover.account.members;
    let workers = all.iter().filter(|it| it.parent().is_some()).count();
    match (all.len(), workers) {
        (_, 0) => "one agent".to_owned(),
        (_, 1) => "a coordinator and 1 worker".to_owned(),
        _ => format!("a coordinator and {workers} workers"),
    }
}

/// The figures that matter, each with a word below it.
fn tiles(cover: &Cover<'_>) -> String {
    let account = cover.account;
    let totals = account.totals();
    let mut all: Vec<(&str, String, String)> = Vec::new();
    let cost = totals.cost.usd();
    all.push((
        "Cost",
        cost.map_or_else(|| "unknown".to_owned(), |usd| Cap::Usd.amount(usd)),
        match cost {
            None => "a model has no price".to_owned(),
            Some(_) => String::new(),
        },
    ));
    let tokens = totals.tokens;
    let cached = match tokens.all_input() {
        0 => String::new(),
        input => format!(
            "{:.0} % of the input from the cache",
            tokens.cache_read as f64 / input as f64 * 100.0
        ),
    };
    all.push(("Tokens", thousands(tokens.total()), cached));
    if let Some((first, last)) = account.span() {
        let wall = time(last.0.saturating_sub(first.0));
        let worked = format!("{} of all agents", time(totals.time_ms));
        all.push(("Time", wall, worked));
    }
    let work = format!("{} calls", totals.tool_uses);
    all.push(("Turns", totals.turns.to_string(), work));
    if let Some(sum) = account.budget {
        for cap in Cap::ALL {
            let used = match cap {
                Cap::Usd => sum.spent.usd,
                Cap::Tokens => sum.spent.tokens as f64,
                Cap::Seconds => sum.spent.seconds,
                Cap::Workers => f64::from(sum.spent.workers),
            };
            if let Some(most) = sum.caps.most(cap) {
                let percent = format!("{:.0} %", used / most * 100.0);
                let ended = sum.ended_by == Some(cap);
                let of = format!("of {}", cap.amount(most));
                let of = if ended {
                    format!("{of}: it ended the session")
                } else {
                    of
                };
                all.push(("Budget", percent, of));
            }
        }
    }
    let mut out = "<dl class=\"tiles\">".to_owned();
    for (what, figure, more) in all {
        let (figure, more) = (escape(&figure), escape(&more));
        let _ = write!(
            out,
            "<div><dt>{what}</dt><dd>{figure}</dd><dd class=\"soft\">{more}</dd></div>"
        );
    }
    out.push_str("</dl>\n<dl class=\"facts\">");
    for (what, text) in facts(cover) {
        let _ = write!(out, "<dt>{what}</dt><dd>{}</dd>", escape(&text));
    }
    out.push_str("</dl>\n");
    out
}

/// The agents below those that started them.
pub(super) fn tree(cover: &Cover<'_>) -> String {
    let members = &cover.account.members;
    let mut out = "<section id=\"crew\"><h2>Crew</h2>\n".to_owned();
    if let Some(course) = cover.account.course() {
        out.push_str(&self::course(&course));
    }
    let mut open = 0;
    for member in members {
        // A level opens one list and one item; what is as deep ends the item before it.
        let depth = member.depth + 1;
        while open > depth {
            out.push_str("</li></ul>");
            open -= 1;
        }
        if open == depth {
            out.push_str("</li>");
        } else {
            let class = match (open, members.len()) {
                (0, 0..=MANY) => " class=\"tree\"",
                (0, _) => " class=\"tree many\"",
                _ => "",
            };
            let _ = write!(out, "<ul{class}>");
            open += 1;
        }
        out.push_str("<li>");
        out.push_str(&leaf(cover, member));
        out.push('\n');
    }
    out.push_str(&"</li></ul>".repeat(open));
    out.push_str("</section>\n");
    out
}

fn leaf(cover: &Cover<'_>, member: &Member) -> String {
    let (id, name) = (member.id, escape(&one_line(member.name())));
    let kind = escape(&one_line(member.agent_type()));
    let start = member.start.as_ref();
    let order = start.map_or("", |start| start.description.as_str());
    let order = escape(&fit(&one_line(order), LONGEST_ORDER));
    let (word, class) = standing(member);
    let (word, sign) = (escape(&fit(&word, 60)), mark(member.end.as_ref()));
    let runs = match member.runs {
        0 | 1 => String::new(),
        runs => format!(" · {runs} runs"),
    };
    let took = time(member.figures.time_ms);
    let mut out = format!(
        "<div class=\"leaf\"><span class=\"{class}\" title=\"{word}\">{sign}</span> <a href=\"#{id}\">{name}</a> "
    );
    if member.parent().is_some() {
        let phase = phase_of(cover, member, usize::MAX);
        let _ = write!(out, "<span class=\"tag {phase}\">{phase}</span> ");
    }
    let _ = write!(out, "<span class=\"order\"><i>{kind}</i> {order}</span>");
    let ended = match member.end {
        Some(End::Done) => String::new(),
        _ => format!("<span class=\"{class}\">{word}</span> · "),
    };
    let _ = write!(out, "<span class=\"took\">{ended}{took}{runs}</span></div>");
    out
}

/// The phases in their order, and what is missing.
fn course(course: &Course) -> String {
    let named = |names: &[gaffer_protocol::AgentName]| {
        let first = names.iter().take(MOST_NAMED).map(|name| name.as_str());
        let mut text = first.collect::<Vec<_>>().join(", ");
        if names.len() > MOST_NAMED {
            let _ = write!(text, " and {} more", names.len() - MOST_NAMED);
        }
        escape(&one_line(&text))
    };
    let mut out = "<ol class=\"course\">".to_owned();
    for stretch in &course.stretches {
        let (phase, names) = (stretch.phase, named(&stretch.workers));
        let _ = write!(
            out,
            "<li><span class=\"tag {phase}\">{phase}</span> <small>{names}</small></li>"
        );
    }
    out.push_str("</ol>");
    let mut remark = |text: String| {
        let _ = write!(out, "<p class=\"remark\">⚠ {text}</p>");
    };
    if !course.left_out.is_empty() {
        let all: Vec<&str> = course.left_out.iter().map(|it| it.as_str()).collect();
        remark(format!("Left out: {}", all.join(", ")));
    }
    if !course.unchecked.is_empty() {
        let names = named(&course.unchecked);
        remark(format!("Changed, and not verified since: {names}"));
    }
    if !course.unverified.is_empty() {
        let names = named(&course.unverified);
        remark(format!("Unverified, by their word alone: {names}"));
    }
    out.push('\n');
    out
}

/// What one run of an agent was for, counted from 0.
pub(super) fn phase_of(cover: &Cover<'_>, member: &Member, run: usize) -> Phase {
    let kept = cover.account.kept.get(member.id);
    match (kept, member.parent()) {
        (Some(kept), _) => kept.phase_of_run(run),
        (None, None) if cover.account.members.len() > 1 => Phase::Synthesis,
        (None, _) => Phase::Implementation,
    }
}

/// How it ended, in a sign: never by its colour alone.
pub(super) fn mark(end: Option<&End>) -> &'static str {
    match end.map(End::status) {
        Some(Status::Completed) => "✓",
        Some(Status::Killed) => "■",
        Some(Status::Failed) => "✗",
        None => "…",
    }
}
