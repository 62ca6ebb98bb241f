//! A session's account on paper: the tree with its figures, sums by type and by model, or JSON.

use super::json::usage;
use super::phases;
use super::words::fit;
use crate::show::{Account, Figures, Member};
use crate::system::plain;
use gaffer_crew::KeptTask;
use gaffer_protocol::{BudgetSum, Cap, Cost, Status, Timestamp};
use serde_json::{Map, Value, json};

/// What stands above the figures.
pub(super) const HEADS: [&str; 8] = [
    "turns",
    "tools",
    "input",
    "cache read",
    "cache write",
    "output",
    "time",
    "cost",
];

/// A line of a table: what it is about, its figures, and what follows them.
struct Row {
    left: Vec<String>,
    figures: Vec<String>,
    right: String,
}

pub(crate) fn text(account: &Account) -> String {
    let mut out = title(account);
    let mut rows = vec![head(&["agent", "type"], "")];
    for (n, member) in account.members.iter().enumerate() {
        let name = format!("{}{}", branch(&account.members, n), member.name());
        rows.push(Row {
            left: vec![name, plain(member.agent_type())],
            figures: figures(&member.figures, true),
            right: told(member),
        });
    }
    rows.push(Row {
        left: vec!["all".to_owned(), String::new()],
        figures: figures(&account.totals(), true),
        right: String::new(),
    });
    out.push_str(&table(&rows));
    let sums = [
        ("type", account.by_type(), true),
        ("model", account.by_model(), false),
    ];
    for (what, sums, has_time) in sums {
        let mut rows = vec![head(&[what, "agents"], "")];
        rows.extend(sums.into_iter().map(|(name, (count, sum))| Row {
            left: vec![plain(name), count.to_string()],
            figures: figures(&sum, has_time),
            right: String::new(),
        }));
        out.push('\n');
        out.push_str(&table(&rows));
    }
    if let Some(course) = account.course() {
        let mut rows = vec![head(&["phase", "agents"], "")];
        rows.extend(course.shares.iter().map(|share| Row {
            left: vec![share.phase.to_string(), share.agents.to_string()],
            figures: figures(&Figures::of(share), true),
            right: String::new(),
        }));
        out.push('\n');
        out.push_str(&table(&rows));
        out.push('\n');
        out.push_str(&phases::text(&course));
    }
    out.push_str(&account.budget.map(|sum| budget(&sum)).unwrap_or_default());
    out.push_str(&remarks(account));
    out
}

fn title(account: &Account) -> String {
    let mut out = format!("Session {}", account.session);
    if let Some(start) = account.main() {
        let (mode, model) = (plain(&start.mode), plain(&start.model));
        out.push_str(&format!(" · {mode} · {model} · {}", plain(&start.cwd)));
    }
    if let Some((first, last)) = account.span() {
        let took = time(last.0.saturating_sub(first.0));
        out.push_str(&format!("\n{} · {took}", minute(first)));
    }
    out.push_str("\n\n");
    out
}

pub(super) fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} {} UTC", &text[..10], &text[11..16])
}

/// The lines that join an agent to the one above it.
pub(super) fn branch(members: &[Member], n: usize) -> String {
    let depth = members[n].depth;
    let goes_on = |level: usize| {
        let mut below = members[n + 1..].iter();
        let next = below.find(|member| member.depth <= level);
        next.is_some_and(|member| member.depth == level)
    };
    let mut out = String::new();
    for level in 1..=depth {
        out.push_str(match (level == depth, goes_on(level)) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        });
    }
    out
}

/// So much of why an agent ended is shown in the tree.
const LONGEST_END: usize = 100;

/// How an agent ended, its id, and what it was to do.
fn told(member: &Member) -> String {
    let end = member.end();
    let mut out = match end.status() {
        Status::Completed => end.to_string(),
        // The whole is in `--json`; a provider's words can be long.
        status => format!(
            "{} ({})",
            status.as_str(),
            fit(&end.to_string(), LONGEST_END)
        ),
    };
    if member.end.is_none() {
        out = "interrupted".to_owned();
    }
    if member.runs > 1 {
        out.push_str(&format!(", {} runs", member.runs));
    }
    out.push_str(&format!(" · {}", member.id));
    let start = member.start.as_ref();
    if let Some(start) = start.filter(|start| !start.description.is_empty()) {
        out.push_str(&format!(" · {}", start.description));
    }
    plain(&out).replace(['\n', '\t'], " ")
}

fn head(left: &[&str], right: &str) -> Row {
    Row {
        left: left.iter().map(|it| (*it).to_owned()).collect(),
        figures: HEADS.map(str::to_owned).to_vec(),
        right: right.to_owned(),
    }
}

pub(super) fn figures(it: &Figures, has_time: bool) -> Vec<String> {
    let cost = match it.cost.usd() {
        Some(usd) => format!("${usd:.4}"),
        None => "unknown".to_owned(),
    };
    let time = if has_time {
        time(it.time_ms)
    } else {
        "–".to_owned()
    };
    let counts = [
        u64::from(it.turns),
        u64::from(it.tool_uses),
        it.tokens.input,
        it.tokens.cache_read,
        it.tokens.cache_write,
        it.tokens.output,
    ];
    let counts = counts.into_iter().map(|count| count.to_string());
    counts.chain([time, cost]).collect()
}

pub(super) fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{:.1} s", ms as f64 / 1000.0),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Words to the left, figures to the right of their columns.
fn table(rows: &[Row]) -> String {
    let width = |cells: &dyn Fn(&Row) -> &Vec<String>, n: usize| {
        let widths = rows.iter().filter_map(|row| cells(row).get(n));
        widths
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (n, cell) in row.left.iter().enumerate() {
            line.push_str(&format!("{cell:<w$}  ", w = width(&|row| &row.left, n)));
        }
        for (n, cell) in row.figures.iter().enumerate() {
            line.push_str(&format!("{cell:>w$}  ", w = width(&|row| &row.figures, n)));
        }
        line.push_str(&row.right);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The caps, what was used of each, and what became of orders.
fn budget(sum: &BudgetSum) -> String {
    let mut out = "\nbudget".to_owned();
    for cap in Cap::ALL {
        let used = match cap {
            Cap::Usd => sum.spent.usd,
            Cap::Tokens => sum.spent.tokens as f64,
            Cap::Seconds => sum.spent.seconds,
            Cap::Workers => f64::from(sum.spent.workers),
        };
        if let Some(most) = sum.caps.most(cap) {
            let (used, most) = (cap.amount(used), cap.amount(most));
            out.push_str(&format!(" · {used} of {most}"));
        }
    }
    let peak = sum.reserved_peak;
    let (usd, tokens) = (Cap::Usd.amount(peak.usd), peak.tokens);
    out.push_str(&format!(" · reserved at most {usd} and {tokens} tokens"));
    out.push_str(&format!(" · {} orders refused", sum.refused));
    if let Some(cap) = sum.ended_by {
        out.push_str(&format!(" · ended by: {}", cap.as_str()));
    }
    out.push('\n');
    out
}

/// What must be known to read the figures.
fn remarks(account: &Account) -> String {
    let mut out = String::new();
    if account.members.iter().any(|member| member.end.is_none()) {
        out.push_str(
            "\nInterrupted: the record has no end. An agent that still runs looks the same.\n",
        );
    }
    if account.totals().cost == Cost::Unknown {
        out.push_str(
            "\nThe cost is unknown where a model has no price: see `prices` in docs/settings.md.\n",
        );
    }
    let damaged: usize = account.members.iter().map(|member| member.damaged).sum();
    if damaged > 0 {
        let lines = if damaged == 1 { "line" } else { "lines" };
        out.push_str(&format!(
            "\n{damaged} {lines} of the transcripts could not be read; what they held is not counted.\n"
        ));
    }
    out
}

pub(crate) fn json(account: &Account) -> Value {
    let sums = |all: std::collections::BTreeMap<&str, (u32, Figures)>, has_time| {
        let row = |(name, (count, sum)): (&str, (u32, Figures))| {
            let mut value = sum_json(&sum, has_time);
            value.insert("agents".to_owned(), json!(count));
            (name.to_owned(), Value::Object(value))
        };
        all.into_iter().map(row).collect::<Map<String, Value>>()
    };
    let main = account.main();
    json!({
        "session_id": account.session,
        "mode": main.map(|start| &start.mode),
        "provider": main.map(|start| &start.provider),
        "model": main.map(|start| &start.model),
        "cwd": main.map(|start| &start.cwd),
        "began": account.span().map(|(first, _)| first),
        "last": account.span().map(|(_, last)| last),
        "agents": account.members.iter().map(|it| member_json(it, account)).collect::<Vec<_>>(),
        "types": sums(account.by_type(), true),
        "models": sums(account.by_model(), false),
        "totals": sum_json(&account.totals(), true),
        "budget": account.budget,
        "phases": account.course().as_ref().map(phases::json),
    })
}

fn member_json(member: &Member, account: &Account) -> Value {
    let kept = account.kept.get(member.id);
    let start = member.start.as_ref();
    let models = member.by_model.iter();
    let models = models.map(|(name, sum)| (name.clone(), Value::Object(sum_json(sum, false))));
    let mut value = sum_json(&member.figures, true);
    let more = json!({
        "agent_id": member.id,
        "parent_agent_id": member.parent(),
        "depth": member.depth,
        "name": start.map(|start| &start.name),
        "type": start.map(|start| &start.agent_type),
        "description": start.map(|start| &start.description),
        "provider": start.map(|start| &start.provider),
        "model": start.map(|start| &start.model),
        "status": member.end().status().as_str(),
        "reason": member.end().reason(),
        "message": member.end().to_string(),
        "has_end": member.end.is_some(),
        "runs": member.runs,
        "began": member.span.map(|(first, _)| first),
        "last": member.span.map(|(_, last)| last),
        "models": models.collect::<Map<String, Value>>(),
        "damaged_lines": member.damaged,
        "phase": kept.map(KeptTask::phase),
        "unverified": kept.is_some_and(KeptTask::is_unverified),
        "order_scores": kept.map(|it| it.scores.as_slice()).unwrap_or_default(),
    });
    if let Value::Object(more) = more {
        value.extend(more);
    }
    Value::Object(value)
}

fn sum_json(it: &Figures, has_time: bool) -> Map<String, Value> {
    let mut value = Map::new();
    value.insert("turns".to_owned(), json!(it.turns));
    value.insert("tool_uses".to_owned(), json!(it.tool_uses));
    value.insert("usage".to_owned(), usage(it.tokens));
    value.insert("cost_usd".to_owned(), json!(it.cost.usd()));
    if has_time {
        value.insert("duration_ms".to_owned(), json!(it.time_ms));
    }
    value
}
