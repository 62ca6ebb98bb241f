//! A session as Markdown. What was said stands in fenced blocks, so that none of it becomes a part
//! of the document's own form.

use super::{
    Cover, Item, LONGEST_RESULT, LONGEST_TEXT, Page, arguments, bounded, clean, clock, facts,
    left_out, one_line, speaker, standing, title,
};
use crate::show::Member;
use crate::view::account::{HEADS, branch, figures};
use crate::view::words::{describe, fit};
use gaffer_protocol::{ResultPart, ToolResult, ToolUse};
use std::io::{self, Write};

#[derive(Debug)]
pub(crate) struct Markdown<W> {
    out: W,
}

impl<W: Write> Markdown<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    fn said(&mut self, who: &str, at: Option<String>, kind: &str, text: &str) -> io::Result<()> {
        let at = at.map_or_else(String::new, |at| format!(" · {at}"));
        writeln!(self.out, "**{who}**{at}\n")?;
        self.fenced(kind, text, LONGEST_TEXT)
    }

    fn fenced(&mut self, kind: &str, text: &str, most: usize) -> io::Result<()> {
        let (text, more) = bounded(text, most);
        let text = clean(text);
        let fence = fence(&text);
        writeln!(self.out, "{fence}{kind}\n{}\n{fence}\n", text.trim_end())?;
        match more {
            0 => Ok(()),
            _ => writeln!(self.out, "{}\n", left_out(more)),
        }
    }

    fn call(&mut self, call: &ToolUse, result: Option<&ToolResult>) -> io::Result<()> {
        let summary = escape(&fit(&one_line(&describe(call)), 120));
        writeln!(self.out, "**Call** {summary}\n")?;
        self.fenced("text", &arguments(call), LONGEST_RESULT)?;
        let Some(result) = result else {
            return writeln!(self.out, "No result: it was interrupted.\n");
        };
        let label = if result.is_error { "Error" } else { "Result" };
        writeln!(self.out, "**{label}**\n")?;
        for part in &result.parts {
            match part {
                ResultPart::Text(text) => self.fenced("text", text, LONGEST_RESULT)?,
                ResultPart::Image(image) => self.image(&image.media_type)?,
            }
        }
        Ok(())
    }

    fn image(&mut self, kind: &str) -> io::Result<()> {
        let kind = escape(&one_line(kind));
        writeln!(self.out, "An image, {kind}: the HTML page has it.\n")
    }

    fn row(&mut self, cells: &[String]) -> io::Result<()> {
        writeln!(self.out, "| {} |", cells.join(" | "))
    }
}

impl<W: Write> Page for Markdown<W> {
    fn begin(&mut self, cover: &Cover<'_>) -> io::Result<()> {
        writeln!(self.out, "# {}\n", escape(&title(cover)))?;
        for (what, text) in facts(cover) {
            writeln!(self.out, "- {what}: {}", escape(&text))?;
        }
        writeln!(self.out)?;
        let account = cover.account;
        let heads = ["agent", "type"].into_iter().chain(HEADS).chain(["end"]);
        let heads: Vec<String> = heads.map(str::to_owned).collect();
        self.row(&heads)?;
        let rule: Vec<String> = heads
            .iter()
            .enumerate()
            .map(|(n, _)| {
                let is_figure = (2..heads.len() - 1).contains(&n);
                (if is_figure { "---:" } else { "---" }).to_owned()
            })
            .collect();
        self.row(&rule)?;
        for (n, member) in account.members.iter().enumerate() {
            let name = format!("{}{}", branch(&account.members, n), member.name());
            let mut row = vec![
                escape(&one_line(&name)),
                escape(&one_line(member.agent_type())),
            ];
            row.extend(figures(&member.figures, true));
            row.push(escape(&fit(&standing(member).0, 60)));
            self.row(&row)?;
        }
        let mut row = vec!["all".to_owned(), String::new()];
        row.extend(figures(&account.totals(), true));
        row.push(String::new());
        self.row(&row)?;
        writeln!(self.out, "\nTimes are UTC.\n")
    }

    fn agent(&mut self, member: &Member) -> io::Result<()> {
        let start = member.start.as_ref();
        let name = escape(&one_line(member.name()));
        writeln!(self.out, "## {name} ({})\n", member.id)?;
        let about = start.map(|start| start.description.as_str());
        match about.filter(|about| !about.is_empty()) {
            Some(about) => writeln!(self.out, "{}\n", escape(&one_line(about))),
            None => Ok(()),
        }
    }

    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match *item {
            Item::Words {
                at,
                origin,
                is_order,
                text,
            } => {
                let who = match is_order {
                    true => "The order",
                    false => speaker(origin),
                };
                self.said(who, Some(clock(at)), "text", text)
            }
            Item::Image { image, .. } => self.image(&image.media_type),
            Item::Answer { at, text, .. } => self.said("Answer", Some(clock(at)), "markdown", text),
            Item::Thought(text) if text.trim().is_empty() => Ok(()),
            Item::Thought(text) => self.said("Reasoning", None, "text", text),
            Item::Call { call, result } => self.call(call, result),
            Item::Cut(why) => writeln!(self.out, "The answer was cut: {}.\n", escape(why)),
            Item::Compacted { at, before, after } => writeln!(
                self.out,
                "Compacted from about {before} to {after} tokens at {at}.\n"
            ),
            Item::TakenUp(at) => writeln!(self.out, "Taken up again at {at}.\n"),
            Item::End { at, end } => {
                let word = escape(&one_line(&end.to_string()));
                writeln!(self.out, "**End** · {} · {word}\n", clock(at))
            }
            Item::Damaged => writeln!(self.out, "A line of the transcript could not be read.\n"),
        }
    }

    fn agent_ends(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

/// A line that Markdown takes as nothing but text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' | '>' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
