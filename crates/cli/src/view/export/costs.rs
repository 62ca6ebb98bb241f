//! What a session took, as tables: by model, by phase, by agent.

use super::Cover;
use super::markup::escape;
use super::one_line;
use crate::show::Figures;
use crate::view::account::{HEADS, branch, time};
use gaffer_protocol::Cost;
use std::fmt::Write;

/// A table of more agents is folded.
const MANY: usize = 15;

pub(super) fn costs(cover: &Cover<'_>) -> String {
    let account = cover.account;
    let mut out = "<section id=\"cost\"><h2>Cost</h2>\n".to_owned();
    if account.totals().cost == Cost::Unknown {
        out.push_str("<p class=\"soft\">The cost is unknown where a model has no price.</p>\n");
    }
    let models = account.by_model().into_iter();
    let models = models.map(|(model, (agents, sum))| Row {
        name: escape(&one_line(model)),
        agents: Some(agents),
        sum,
        has_time: false,
    });
    out.push_str(&table("model", &models.collect::<Vec<_>>()));
    if let Some(course) = account.course() {
        let rows = course.shares.iter().map(|share| Row {
            name: format!("<span class=\"tag {0}\">{0}</span>", share.phase),
            agents: Some(share.agents),
            sum: Figures::of(share),
            has_time: true,
        });
        out.push_str(&table("phase", &rows.collect::<Vec<_>>()));
    }
    let members = account.members.iter().enumerate();
    let mut rows: Vec<Row> = members
        .map(|(n, member)| Row {
            name: format!(
                "<span class=\"branch\">{}</span><a href=\"#{}\">{}</a>",
                branch(&account.members, n),
                member.id,
                escape(&one_line(member.name()))
            ),
            agents: None,
            sum: member.figures,
            has_time: true,
        })
        .collect();
    rows.push(Row {
        name: "<b>all</b>".to_owned(),
        agents: None,
        sum: account.totals(),
        has_time: true,
    });
    let agents = table("agent", &rows);
    match account.members.len() {
        0..=MANY => out.push_str(&agents),
        count => {
            let _ = write!(
                out,
                "<details><summary><b>By agent</b> {count} agents</summary><div class=\"inside\">{agents}</div></details>"
            );
        }
    }
    out.push_str("</section>\n");
    out
}

/// A row: its name is HTML already.
struct Row {
    name: String,
    /// None where each row is one.
    agents: Option<u32>,
    sum: Figures,
    has_time: bool,
}

fn table(what: &str, rows: &[Row]) -> String {
    let has_agents = rows.iter().any(|row| row.agents.is_some());
    let mut out = format!("<div class=\"wide\"><table class=\"sums\"><tr><th>{what}</th>");
    if has_agents {
        out.push_str("<th class=\"n\">agents</th>");
    }
    for head in HEADS {
        let _ = write!(out, "<th class=\"n\">{head}</th>");
    }
    out.push_str("</tr>\n");
    for row in rows {
        let _ = write!(out, "<tr><td>{}</td>", row.name);
        if let Some(agents) = row.agents {
            let _ = write!(out, "<td class=\"n\">{agents}</td>");
        }
        for cell in cells(&row.sum, row.has_time) {
            let _ = write!(out, "<td class=\"n\">{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    out
}

/// In the order of their heads.
fn cells(sum: &Figures, has_time: bool) -> [String; 8] {
    let tokens = sum.tokens;
    [
        grouped(sum.turns.into()),
        grouped(sum.tool_uses.into()),
        grouped(tokens.input),
        grouped(tokens.cache_read),
        grouped(tokens.cache_write),
        grouped(tokens.output),
        if has_time {
            time(sum.time_ms)
        } else {
            "–".to_owned()
        },
        match sum.cost.usd() {
            Some(usd) => format!("${usd:.4}"),
            None => "unknown".to_owned(),
        },
    ]
}

/// A number whose thousands are told apart.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_apart() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(n), text);
        }
    }
}
