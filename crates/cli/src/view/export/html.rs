//! A session as one HTML page that needs nothing else: no scripts, no network.

use super::markup::{self, escape};
use super::{
    Cover, Item, LONGEST_RESULT, LONGEST_TEXT, Page, arguments, bounded, clean, clock, facts,
    left_out, one_line, speaker, standing, title,
};
use crate::show::Member;
use crate::view::account::{HEADS, branch, figures};
use crate::view::words::{describe, fit};
use gaffer_protocol::{Image, Notification, Origin, ResultPart, Timestamp, ToolResult, ToolUse};
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
}

impl<W: Write> Html<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, images: 0 }
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
        mail: bool,
        text: &str,
    ) -> io::Result<()> {
        let who = match (origin, mail) {
            (Some(Origin::Agent), false) => "The task",
            _ => speaker(origin),
        };
        match origin {
            Some(Origin::Human) => self.article("user", who, at, &verbatim(text)),
            Some(Origin::TaskNotification) => {
                let body = Notification::parse(text);
                let body = body.map_or_else(|| verbatim(text), |it| notification(&it));
                self.article("note", who, at, &body)
            }
            Some(Origin::Agent) => self.article("note", who, at, &rendered(text)),
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
        let mark = if is_error {
            " <span class=\"failed\">✗</span>"
        } else {
            ""
        };
        let class = if is_error { " class=\"error\"" } else { "" };
        let (name, input) = (escape(&name), pre(&arguments(call), LONGEST_RESULT));
        write!(
            self.out,
            "<details{class}><summary><b>{name}</b> <span class=\"mono\">{what}</span>{mark}</summary><div class=\"inside\"><p class=\"label\">Input</p>{input}"
        )?;
        match result {
            None => write!(
                self.out,
                "<p class=\"label\">No result: it was interrupted</p>"
            )?,
            Some(result) => {
                let label = if result.is_error { "Error" } else { "Result" };
                write!(self.out, "<p class=\"label\">{label}</p>")?;
                for part in &result.parts {
                    let part = match part {
                        ResultPart::Text(text) => pre(text, LONGEST_RESULT),
                        ResultPart::Image(image) => self.image(image),
                    };
                    self.out.write_all(part.as_bytes())?;
                }
            }
        }
        writeln!(self.out, "</div></details>")
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

    fn tree(&mut self, cover: &Cover<'_>) -> io::Result<()> {
        let account = cover.account;
        write!(
            self.out,
            "<div class=\"wide crew\"><table><tr><th>agent</th><th>type</th>"
        )?;
        for head in HEADS {
            write!(self.out, "<th class=\"n\">{head}</th>")?;
        }
        writeln!(self.out, "<th>end</th></tr>")?;
        let cells = |row: Vec<String>| -> String {
            let row = row
                .iter()
                .map(|cell| format!("<td class=\"n\">{}</td>", escape(cell)));
            row.collect()
        };
        for (n, member) in account.members.iter().enumerate() {
            let (id, branch) = (member.id, branch(&account.members, n));
            let name = escape(&one_line(member.name()));
            let kind = escape(&one_line(member.agent_type()));
            let (word, class) = standing(member);
            let word = escape(&fit(&word, 60));
            let row = cells(figures(&member.figures, true));
            writeln!(
                self.out,
                "<tr><td><span class=\"branch\">{branch}</span><a href=\"#{id}\">{name}</a></td><td>{kind}</td>{row}<td class=\"{class}\">{word}</td></tr>"
            )?;
        }
        let row = cells(figures(&account.totals(), true));
        writeln!(
            self.out,
            "<tr><td>all</td><td></td>{row}<td></td></tr></table></div>"
        )
    }
}

impl<W: Write> Page for Html<W> {
    fn begin(&mut self, cover: &Cover<'_>) -> io::Result<()> {
        let title = escape(&title(cover));
        writeln!(
            self.out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl class=\"facts\">"
        )?;
        for (what, text) in facts(cover) {
            writeln!(self.out, "<dt>{what}</dt><dd>{}</dd>", escape(&text))?;
        }
        writeln!(self.out, "</dl>")?;
        self.tree(cover)
    }

    fn agent(&mut self, member: &Member) -> io::Result<()> {
        let start = member.start.as_ref();
        let about = start.map(|start| match start.description.is_empty() {
            true => start.agent_type.clone(),
            false => format!("{} · {}", start.agent_type, start.description),
        });
        let (id, name) = (member.id, escape(&one_line(member.name())));
        let about = escape(&one_line(&about.unwrap_or_default()));
        writeln!(
            self.out,
            "<section class=\"agent\" id=\"{id}\"><h2>{name} <small>{about} · {id}</small></h2>"
        )
    }

    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match *item {
            Item::Words {
                at,
                origin,
                mail,
                text,
            } => self.words(at, origin, mail.is_some(), text),
            Item::Image { at, image } => {
                let image = self.image(image);
                self.article("note", "Image", at, &image)
            }
            Item::Answer { at, text } => self.article("answer", "Answer", at, &rendered(text)),
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
                super::super::account::minute(at)
            ),
            Item::End { at, end } => {
                let class = end.status().as_str();
                let (word, time) = (escape(&clean(&end.to_string())), clock(at));
                writeln!(
                    self.out,
                    "<p class=\"end\"><span class=\"{class}\">■ {word}</span> <small>{time}</small></p>"
                )
            }
            Item::Damaged => writeln!(
                self.out,
                "<p class=\"end failed\">A line of the transcript could not be read</p>"
            ),
        }
    }

    fn agent_ends(&mut self) -> io::Result<()> {
        writeln!(self.out, "</section>")
    }

    fn close(&mut self) -> io::Result<()> {
        writeln!(
            self.out,
            "<footer>Times are UTC. Written by gaffer.</footer>\n</body>\n</html>"
        )?;
        self.out.flush()
    }
}

/// Text as it was written, its line breaks kept.
fn verbatim(text: &str) -> String {
    let (text, more) = bounded(text, LONGEST_TEXT);
    let text = escape(clean(text).trim());
    format!("<p class=\"words\">{text}</p>{}", rest(more))
}

fn rendered(text: &str) -> String {
    let (text, more) = bounded(text, LONGEST_TEXT);
    let text = markup::html(clean(text).trim());
    format!("{text}{}", rest(more))
}

fn pre(text: &str, most: usize) -> String {
    let (text, more) = bounded(text, most);
    // A line break right behind the tag would be lost.
    let text = escape(clean(text).trim_end());
    format!("<pre>\n{text}</pre>{}", rest(more))
}

fn rest(count: usize) -> String {
    match count {
        0 => String::new(),
        _ => format!("<p class=\"soft\">{}</p>", left_out(count)),
    }
}

fn notification(it: &Notification) -> String {
    let class = it.status.as_str();
    let summary = escape(&one_line(&it.summary));
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
