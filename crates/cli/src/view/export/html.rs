//! A session as one HTML page that needs nothing else: no scripts, no network.

use super::change::{self, Change};
use super::markup::escape;
use super::{
    Cover, Item, LONGEST_RESULT, LONGEST_TEXT, Page, arguments, clean, clock, costs, cover,
    one_line, pre, rendered, speaker, standing, timeline, title, verbatim,
};
use crate::show::Member;
use crate::view::account::{minute, time};
use crate::view::words::{count, describe, fit};
use gaffer_protocol::{
    AgentId, Image, Notification, Origin, ResultPart, Timestamp, ToolResult, ToolUse,
};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");

/// Should something ever slip through, the browser still loads and runs nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// So much base64 one image may have, and all of them.
const LARGEST_IMAGE: usize = 4 << 20;
const ALL_IMAGES: usize = 32 << 20;

/// So much of a call stands on its line.
const SUMMARY: usize = 160;

#[derive(Debug)]
pub(crate) struct Html<W> {
    out: W,
    images: usize,
    /// Where to find an agent, by its name.
    names: HashMap<String, AgentId>,
    /// Whether the agent that is told of was started by another.
    is_worker: bool,
}

impl<W: Write> Html<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            images: 0,
            names: HashMap::new(),
            is_worker: false,
        }
    }

    /// Words with who says them, and when.
    fn article(&mut self, class: &str, who: &str, at: Timestamp, body: &str) -> io::Result<()> {
        let (who, time) = (escape(who), clock(at));
        writeln!(
            self.out,
            "<article class=\"{class}\"><header><b>{who}</b><time datetime=\"{at}\">{time}</time></header>{body}</article>"
        )
    }

    fn words(
        &mut self,
        at: Timestamp,
        origin: Option<Origin>,
        is_order: bool,
        text: &str,
    ) -> io::Result<()> {
        let who = match is_order {
            true => "The order",
            false => speaker(origin),
        };
        match origin {
            Some(Origin::Human) => self.article("user", who, at, &verbatim(text)),
            Some(Origin::TaskNotification) => {
                let body = Notification::parse(text);
                let body = body.map_or_else(|| verbatim(text), |it| self.notification(&it));
                self.article("note", who, at, &body)
            }
            Some(Origin::Agent) if is_order => self.article("user", who, at, &rendered(text)),
            Some(Origin::Agent) => match letter(text) {
                Some((from, text)) => {
                    let who = format!("Mail from {}", one_line(from));
                    self.article("note", &who, at, &rendered(text))
                }
                None => self.article("note", who, at, &rendered(text)),
            },
            Some(Origin::Hook) => self.article("note", who, at, &verbatim(text)),
            // Long, and the same for all agents.
            Some(Origin::Context | Origin::Compacted) | None => {
                let first = clean(text);
                let first = escape(&fit(first.trim(), SUMMARY));
                let body = pre(text, LONGEST_TEXT);
                writeln!(
                    self.out,
                    "<details><summary><b>{who}</b> {first}</summary><div class=\"inside\">{body}</div></details>"
                )
            }
        }
    }

    fn call(&mut self, call: &ToolUse, result: Option<&ToolResult>) -> io::Result<()> {
        let is_error = result.is_none_or(|result| result.is_error);
        let summary = one_line(&describe(call));
        let name = one_line(&call.name);
        let what = summary.strip_prefix(&name).unwrap_or_default();
        let what = escape(&fit(what.trim(), SUMMARY));
        let change = Change::of(call);
        let mut more = change.as_ref().map(Change::counts).unwrap_or_default();
        if is_error {
            more.push_str(" <span class=\"failed\">✗</span>");
        }
        let class = if is_error { "call error" } else { "call" };
        let name = escape(&name);
        let input = match &change {
            Some(change) => change.html(),
            None => pre(&arguments(call), LONGEST_RESULT),
        };
        let to = self
            .started_by(call)
            .map(|(name, id)| format!("<p class=\"soft\">→ <a href=\"#{id}\">{name}</a></p>"));
        let to = to.unwrap_or_default();
        let label = if change.is_some() { "Change" } else { "Input" };
        write!(
            self.out,
            "<details class=\"{class}\"><summary><b>{name}</b> <span class=\"mono\">{what}</span>{more}</summary><div class=\"inside\">{to}<p class=\"label\">{label}</p>{input}"
        )?;
        self.result(result)?;
        writeln!(self.out, "</div></details>")
    }

    fn result(&mut self, result: Option<&ToolResult>) -> io::Result<()> {
        let Some(result) = result else {
            return write!(
                self.out,
                "<p class=\"label\">No result: it was interrupted</p>"
            );
        };
        let label = if result.is_error { "Error" } else { "Result" };
        write!(self.out, "<p class=\"label\">{label}</p>")?;
        for part in &result.parts {
            let part = match part {
                ResultPart::Text(text) => {
                    let printed = change::printed(&clean(text));
                    printed.unwrap_or_else(|| pre(text, LONGEST_RESULT))
                }
                ResultPart::Image(image) => self.image(image),
            };
            self.out.write_all(part.as_bytes())?;
        }
        Ok(())
    }

    /// Whom a call has to do with: its name, and where it is told of.
    fn started_by(&self, call: &ToolUse) -> Option<(String, AgentId)> {
        let input: Value = serde_json::from_str(call.input.as_text()).ok()?;
        let key = match call.name.as_str() {
            "Agent" => "name",
            "SendMessage" => "to",
            "TaskStop" | "TaskOutput" => "task_id",
            _ => return None,
        };
        let name = input.get(key)?.as_str()?;
        let id = *self.names.get(name)?;
        Some((escape(&one_line(name)), id))
    }

    fn notification(&self, it: &Notification) -> String {
        let class = it.status.as_str();
        let mut summary = escape(&one_line(&it.summary));
        let known = it
            .task
            .filter(|id| self.names.values().any(|known| known == id));
        if let Some(id) = known {
            summary = format!("<a href=\"#{id}\">{summary}</a>");
        }
        let mut out = format!("<p class=\"{class}\">{summary}</p>");
        if let Some(result) = &it.result {
            out.push_str(&rendered(result));
        }
        for (what, list) in [("Changed", &it.changed_files), ("Denied", &it.denials)] {
            if !list.is_empty() {
                let list = escape(&one_line(&list.join(", ")));
                out.push_str(&format!("<p class=\"soft\">{what}: {list}</p>"));
            }
        }
        if let Some(advice) = &it.advice {
            out.push_str(&format!("<p class=\"soft\">{}</p>", escape(&clean(advice))));
        }
        out
    }

    /// An image as a part of the page, if it is one that browsers only draw.
    fn image(&mut self, image: &Image) -> String {
        const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        let is_base64 = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
        let (size, kind) = (image.data.len(), image.media_type.as_str());
        let is_sound = KINDS.contains(&kind) && image.data.bytes().all(is_base64);
        if !is_sound || size > LARGEST_IMAGE || self.images + size > ALL_IMAGES {
            let kind = escape(&one_line(kind));
            return format!(
                "<p class=\"soft\">[{kind}, {} kB, left out]</p>",
                size / 1365
            );
        }
        self.images += size;
        format!("<img alt=\"\" src=\"data:{kind};base64,{}\">", image.data)
    }
}

impl<W: Write> Page for Html<W> {
    fn begin(&mut self, cover: &Cover<'_>) -> io::Result<()> {
        let title = escape(&title(cover));
        writeln!(
            self.out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>"
        )?;
        let named = cover.account.members.iter();
        let named = named.filter(|member| member.start.is_some());
        self.names = named.map(|it| (it.name().to_owned(), it.id)).collect();
        self.out.write_all(cover::head(cover).as_bytes())?;
        self.out.write_all(timeline::timeline(cover).as_bytes())?;
        self.out.write_all(cover::tree(cover).as_bytes())?;
        self.out.write_all(costs::costs(cover).as_bytes())?;
        writeln!(self.out, "<section id=\"transcripts\"><h2>Transcripts</h2>")
    }

    /// Folded: a browser opens it for whoever follows a link to what is inside.
    fn agent(&mut self, member: &Member) -> io::Result<()> {
        self.is_worker = member.parent().is_some();
        let start = member.start.as_ref();
        let kind = escape(&one_line(member.agent_type()));
        let order = start.map_or("", |start| start.description.as_str());
        let order = escape(&one_line(order));
        let (id, name) = (member.id, escape(&one_line(member.name())));
        let (word, class) = standing(member);
        let (word, sign) = (
            escape(&fit(&word, SUMMARY)),
            cover::mark(member.end.as_ref()),
        );
        let turns = count(member.figures.turns, "turn");
        let calls = count(member.figures.tool_uses, "call");
        let took = time(member.figures.time_ms);
        let open = if self.is_worker { "" } else { " open" };
        writeln!(
            self.out,
            "<details class=\"agent\"{open}><summary><span class=\"{class}\">{sign}</span> <b>{name}</b> <span class=\"order\"><i>{kind}</i> {order}</span><span class=\"took\">{turns} · {calls} · {took}</span></summary>\n<div class=\"inside\" id=\"{id}\"><p class=\"soft\">{id} · <span class=\"{class}\">{word}</span></p>"
        )
    }

    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match *item {
            Item::Words {
                at,
                origin,
                is_order,
                text,
            } => self.words(at, origin, is_order, text),
            Item::Image { at, image } => {
                let image = self.image(image);
                self.article("note", "Image", at, &image)
            }
            Item::Answer { at, text, is_last } => {
                let (class, who) = match is_last && self.is_worker {
                    true => ("report", "Report"),
                    false => ("answer", "Answer"),
                };
                self.article(class, who, at, &rendered(text))
            }
            Item::Thought(text) if text.trim().is_empty() => Ok(()),
            Item::Thought(text) => {
                let body = verbatim(text);
                writeln!(
                    self.out,
                    "<details><summary>Reasoning</summary><div class=\"inside\">{body}</div></details>"
                )
            }
            Item::Call { call, result } => self.call(call, result),
            Item::Cut(why) => writeln!(
                self.out,
                "<p class=\"end killed\">The answer was cut: {why}</p>"
            ),
            Item::Compacted { at, before, after } => writeln!(
                self.out,
                "<p class=\"end soft\">Compacted from about {before} to {after} tokens · {}</p>",
                clock(at)
            ),
            Item::TakenUp(at) => writeln!(
                self.out,
                "<p class=\"end soft\">Taken up again · {}</p>",
                minute(at)
            ),
            Item::End { at, end } => {
                let (class, sign) = (end.status().as_str(), cover::mark(Some(end)));
                let (word, time) = (escape(&clean(&end.to_string())), clock(at));
                writeln!(
                    self.out,
                    "<p class=\"end\"><span class=\"{class}\">{sign} {word}</span> <small>{time}</small></p>"
                )
            }
            Item::Damaged => writeln!(
                self.out,
                "<p class=\"end failed\">A line of the transcript could not be read</p>"
            ),
        }
    }

    fn agent_ends(&mut self) -> io::Result<()> {
        writeln!(self.out, "</div></details>")
    }

    fn close(&mut self) -> io::Result<()> {
        writeln!(
            self.out,
            "</section>\n<footer>Times are UTC. Written by gaffer.</footer>\n</body>\n</html>"
        )?;
        self.out.flush()
    }
}

/// Who wrote a letter, and what it says.
fn letter(text: &str) -> Option<(&str, &str)> {
    let (from, text) = text.strip_prefix("<message from=\"")?.split_once("\">\n")?;
    Some((from, text.strip_suffix("\n</message>")?))
}
