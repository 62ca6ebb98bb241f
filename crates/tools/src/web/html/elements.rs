//! How the elements of a page begin in its cleaned form.

use super::clean::{BREAK, Cleaner, Kind, Open, Table};
use super::role::Role;
use super::scan::attribute;
use std::borrow::Cow;

/// Inline elements inside each other.
const MOST_INLINE: usize = 4;
/// Longer links are for trackers, not for readers.
const LONGEST_LINK: usize = 1000;
const LONGEST_ALT: usize = 300;

impl Cleaner<'_> {
    pub(super) fn start_as(&mut self, role: Role, name: String, attributes: &str, at: usize) {
        match role {
            Role::Block(tag) => self.start_block(name, tag, attributes),
            Role::Heading(tag) => {
                let is_heading = |open: &Open| open.kind == Kind::Narrow && open.name != "a";
                self.close_nearest(is_heading, bars_paragraph);
                let (opening, closing) = tags(tag);
                self.start_wide(name, Kind::Narrow, opening, closing);
            }
            Role::Pre => {
                self.start_wide(name, Kind::Pre, "<pre><code>", "</code></pre>");
                self.language(attributes);
            }
            Role::Inline(tag) => self.start_inline(name, tag),
            Role::Link => self.start_link(name, attributes),
            Role::Image => self.image(attributes),
            Role::Table => self.start_table(name, at),
            Role::Row => self.start_row(name),
            Role::Cell => self.start_cell(name),
            Role::Break | Role::Rule if self.is_narrow() => self.out.push(' '),
            Role::Break => self.out.push_str("<br>"),
            Role::Rule => self.out.push_str("<hr>"),
            Role::Title => self.in_title = self.title.is_none(),
            Role::Base => self.rebase(attributes),
            Role::Plain | Role::Noise => {}
        }
    }

    /// In preformatted text only lines count.
    pub(super) fn start_in_pre(&mut self, role: Role, attributes: &str) {
        match role {
            Role::Break => self.out.push('\n'),
            Role::Block(_) | Role::Row if !self.out.ends_with(['\n', '>']) => self.out.push('\n'),
            Role::Inline("code") => self.language(attributes),
            _ => {}
        }
    }

    /// Whether blocks have no place here.
    fn is_narrow(&self) -> bool {
        self.is_inside(|kind| matches!(kind, Kind::Narrow | Kind::Cell))
    }

    fn start_block(&mut self, name: String, tag: &str, attributes: &str) {
        self.close_nearest(|open| open.name == "p", bars_paragraph);
        let siblings: &[&str] = match name.as_str() {
            "li" => &["li"],
            "dt" | "dd" => &["dt", "dd"],
            _ => &[],
        };
        self.close_nearest(
            |open| siblings.contains(&open.name.as_str()),
            bars_paragraph,
        );
        if self.is_narrow() {
            self.out.push(' ');
            self.push(name, Kind::Ghost, "", "");
        } else if tag == "div" {
            self.part();
            self.push(name, Kind::Block, "", BREAK);
        } else {
            let start = attribute(attributes, "start").filter(|_| tag == "ol");
            let start = start.and_then(|start| start.trim().parse::<u16>().ok());
            let (opening, closing) = tags(tag);
            match start {
                Some(start) => {
                    let opening = format!("<ol start=\"{start}\">");
                    self.push(name, Kind::Block, &opening, closing);
                }
                None => self.push(name, Kind::Block, opening, closing),
            }
        }
    }

    fn start_wide(&mut self, name: String, kind: Kind, opening: &str, closing: &'static str) {
        self.close_nearest(|open| open.name == "p", bars_paragraph);
        if self.is_narrow() {
            self.out.push(' ');
            self.push(name, Kind::Ghost, "", "");
        } else {
            self.push(name, kind, opening, closing);
        }
    }

    fn start_inline(&mut self, name: String, tag: &str) {
        let (opening, closing) = tags(tag);
        let inline = self.open.iter().filter(|open| open.kind == Kind::Inline);
        if inline.count() >= MOST_INLINE || self.open.iter().any(|open| open.is_closed_by(closing))
        {
            self.push(name, Kind::Ghost, "", "");
        } else if self.out.ends_with(closing) {
            // Neighbours become one: the converter would do it too, but one by one.
            self.reopen(name, closing);
        } else {
            self.push(name, Kind::Inline, opening, closing);
        }
    }

    fn start_link(&mut self, name: String, attributes: &str) {
        self.close_nearest(|open| open.name == "a", bars_paragraph);
        match attribute(attributes, "href").and_then(|href| self.resolve(href)) {
            Some(link) => {
                let opening = format!("<a href=\"{link}\">");
                self.push(name, Kind::Narrow, &opening, "</a>");
            }
            None => self.push(name, Kind::Ghost, "", ""),
        }
    }

    fn image(&mut self, attributes: &str) {
        let alt = attribute(attributes, "alt").unwrap_or_default().trim();
        let source = attribute(attributes, "src").and_then(|src| self.resolve(src));
        if let Some(source) = source
            && !alt.is_empty()
            && alt.len() <= LONGEST_ALT
        {
            let alt = alt.replace('"', "&quot;");
            self.out
                .push_str(&format!("<img src=\"{source}\" alt=\"{alt}\">"));
        }
    }

    /// A link as it can be followed from anywhere, ready to stand in quotes. Nothing for places
    /// on the page itself, scripts and data.
    fn resolve(&self, link: &str) -> Option<String> {
        let link = link.trim();
        if link.is_empty() || link.starts_with('#') || link.len() > LONGEST_LINK {
            return None;
        }
        let url = self.base.join(&link.replace("&amp;", "&")).ok()?;
        let is_link = matches!(url.scheme(), "http" | "https" | "mailto");
        let url = url.as_str();
        let fits = is_link && url.len() <= LONGEST_LINK;
        fits.then(|| url.replace('&', "&amp;").replace('"', "%22"))
    }

    fn rebase(&mut self, attributes: &str) {
        let href = attribute(attributes, "href").unwrap_or_default();
        if href.len() <= LONGEST_LINK
            && let Ok(base) = self.base.join(href)
        {
            self.base = Cow::Owned(base);
        }
    }

    /// The language of a code block stands at the element or at the one inside it.
    fn language(&mut self, attributes: &str) {
        const OPENING: &str = "<pre><code>";
        let class = attribute(attributes, "class").unwrap_or_default();
        let mut classes = class.split_ascii_whitespace();
        let named = classes.find_map(|class| {
            let named = class.strip_prefix("language-");
            named.or_else(|| class.strip_prefix("lang-"))
        });
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_');
        if let Some(name) = named
            && name.len() <= 20
            && name.chars().all(is_plain)
            && self.out.ends_with(OPENING)
        {
            self.out.truncate(self.out.len() - OPENING.len());
            self.out
                .push_str(&format!("<pre><code class=\"language-{name}\">"));
        }
    }

    fn start_table(&mut self, name: String, at: usize) {
        self.close_nearest(|open| open.name == "p", bars_paragraph);
        let is_data = self.tables.is_data(self.page, at);
        if is_data && !self.is_narrow() {
            self.push(name, Kind::Table(Table::Data(0)), "<p>", "</p>");
        } else {
            self.push(name, Kind::Table(Table::Layout), "", BREAK);
        }
    }

    fn start_row(&mut self, name: String) {
        self.close_nearest(|open| open.name == "tr", bars_table);
        match self.table() {
            Some(Table::Data(_)) => {
                self.out.push('|');
                self.push(name, Kind::Row(0), "", "");
            }
            _ => self.start_block(name, "div", ""),
        }
    }

    fn start_cell(&mut self, name: String) {
        self.close_nearest(|open| matches!(open.name.as_str(), "td" | "th"), bars_table);
        if let Some(Table::Data(_)) = self.table() {
            if !matches!(self.open.last(), Some(open) if matches!(open.kind, Kind::Row(_))) {
                self.start_row("tr".to_owned());
            }
            if let Some(Open {
                kind: Kind::Row(cells),
                ..
            }) = self.open.last_mut()
            {
                *cells += 1;
            }
            self.out.push(' ');
            self.push(name, Kind::Cell, "", " |");
        } else {
            self.out.truncate(self.out.trim_end().len());
            if !self.out.is_empty() && !self.out.ends_with(BREAK) {
                self.out.push_str(" | ");
            }
            self.push(name, Kind::Block, "", "");
        }
    }

    /// The table that is being written.
    fn table(&self) -> Option<Table> {
        let mut open = self.open.iter().rev();
        open.find_map(|open| match open.kind {
            Kind::Table(table) => Some(table),
            _ => None,
        })
    }

    pub(super) fn end_row(&mut self, cells: usize) {
        self.out.push_str("<br>");
        let mut open = self.open.iter_mut().rev();
        let rows = open.find_map(|open| match &mut open.kind {
            Kind::Table(Table::Data(rows)) => Some(rows),
            _ => None,
        });
        if let Some(rows) = rows {
            if *rows == 0 {
                self.out.push('|');
                self.out.push_str(&" --- |".repeat(cells));
                self.out.push_str("<br>");
            }
            *rows += 1;
        }
    }
}

fn bars_paragraph(kind: Kind) -> bool {
    matches!(kind, Kind::Block | Kind::Cell | Kind::Table(_))
}

fn bars_table(kind: Kind) -> bool {
    matches!(kind, Kind::Table(_))
}

fn tags(name: &str) -> (&'static str, &'static str) {
    match name {
        "ul" => ("<ul>", "</ul>"),
        "ol" => ("<ol>", "</ol>"),
        "li" => ("<li>", "</li>"),
        "blockquote" => ("<blockquote>", "</blockquote>"),
        "h1" => ("<h1>", "</h1>"),
        "h2" => ("<h2>", "</h2>"),
        "h3" => ("<h3>", "</h3>"),
        "h4" => ("<h4>", "</h4>"),
        "h5" => ("<h5>", "</h5>"),
        "h6" => ("<h6>", "</h6>"),
        "strong" => ("<strong>", "</strong>"),
        "em" => ("<em>", "</em>"),
        "code" => ("<code>", "</code>"),
        _ => ("<p>", "</p>"),
    }
}

/// Looks ahead for what kind of table begins. Its places only move forward, so that all looks
/// together cost one pass over the page.
#[derive(Debug, Default)]
pub(super) struct Tables {
    opens: usize,
    ends: usize,
    heads: usize,
}

impl Tables {
    /// A table of data names its columns and holds no other table.
    fn is_data(&mut self, page: &str, at: usize) -> bool {
        let next = |place: &mut usize, tag| {
            if *place < at {
                *place = find(page, at, tag);
            }
            *place
        };
        let ends = next(&mut self.ends, "</table");
        next(&mut self.heads, "<th") < ends && next(&mut self.opens, "<table") >= ends
    }
}

fn find(page: &str, from: usize, tag: &str) -> usize {
    let bytes = page.as_bytes();
    let is_tag = |at: &usize| {
        let found = bytes.get(*at..at + tag.len());
        let after = bytes.get(at + tag.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()))
            && after.is_none_or(|after| after.is_ascii_whitespace() || matches!(after, b'>' | b'/'))
    };
    let mut places = page[from..].match_indices('<').map(|(at, _)| at + from);
    places.find(is_tag).unwrap_or(page.len())
}
