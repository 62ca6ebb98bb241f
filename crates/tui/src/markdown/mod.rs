//! Markdown as lines for the terminal: what models write, and nothing of HTML.

pub(crate) mod code;
mod table;

use crate::look::Look;
use crate::text::{clean, wrap};
use code::Painter;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use table::Table;

/// Draws a text. No line is wider than `width`.
pub(crate) fn render(text: &str, width: usize, look: Look) -> Vec<Line<'static>> {
    let text = clean(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        lines: Vec::new(),
        spans: Vec::new(),
        styles: Vec::new(),
        levels: Vec::new(),
        numbers: Vec::new(),
        links: Vec::new(),
        code: None,
        table: None,
        width: width.max(1),
        look,
    };
    for event in Parser::new_ext(&text, options) {
        writer.take(event);
    }
    writer.flush();
    writer.lines
}

/// One list item or quotation that the text stands in.
struct Level {
    /// The bullet, until a line has it.
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

struct Link {
    address: String,
    /// Where in the line its text begins.
    from: usize,
}

struct Writer {
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    levels: Vec<Level>,
    /// The next number of each list; none where it has bullets.
    numbers: Vec<Option<u64>>,
    links: Vec<Link>,
    code: Option<(String, String)>,
    table: Option<Table>,
    width: usize,
    look: Look,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, Style::new()),
            Event::Code(text) => self.text(&text, self.look.code()),
            // Entities can write what the source could not: everything is cleaned once more.
            Event::Html(text) | Event::InlineHtml(text) => {
                for (n, line) in text.lines().enumerate() {
                    if n > 0 {
                        self.flush();
                    }
                    self.text(line, self.look.dim());
                }
            }
            Event::SoftBreak => self.text(" ", Style::new()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin();
                let rule = "─".repeat(self.width.min(40));
                self.lines
                    .push(Line::from(Span::styled(rule, self.look.dim())));
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.text(mark, self.look.strong());
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(),
            Tag::Heading { level, .. } => {
                self.begin();
                let style = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => self.look.heading(),
                    _ => self.look.strong(),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.begin();
                self.styles.push(self.look.dim());
                let bar = Span::styled("▏ ", self.look.accent());
                self.levels.push(Level {
                    first: None,
                    rest: bar,
                });
            }
            Tag::CodeBlock(kind) => {
                self.begin();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.begin();
                self.numbers.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(_) => {
                self.begin();
                self.table = Some(Table::default());
            }
            Tag::Emphasis => self.styles.push(self.look.leaning()),
            Tag::Strong => self.styles.push(self.look.strong()),
            Tag::Strikethrough => self
                .styles
                .push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(self.look.link());
                self.links.push(Link {
                    address: dest_url.to_string(),
                    from: self.spans.len(),
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.styles.pop();
                self.levels.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.numbers.pop();
            }
            TagEnd::Item => {
                self.flush();
                self.levels.pop();
            }
            TagEnd::TableCell => {
                let spans = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(spans);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.lines.extend(table.render(self.width, self.look));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// A new block: with space above it, unless it is in a list.
    fn begin(&mut self) {
        self.flush();
        if self.levels.is_empty() && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
    }

    fn item(&mut self) {
        self.flush();
        let bullet = match self.numbers.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number = number.saturating_add(1);
                bullet
            }
            _ => "• ".to_owned(),
        };
        let rest = Span::raw(" ".repeat(crate::text::width(&bullet)));
        self.levels.push(Level {
            first: Some(Span::styled(bullet, self.look.accent())),
            rest,
        });
    }

    fn text(&mut self, text: &str, style: Style) {
        let text = clean(text);
        if let Some((_, code)) = &mut self.code {
            code.push_str(&text);
            return;
        }
        let style = self
            .styles
            .iter()
            .fold(Style::new(), |all, one| all.patch(*one))
            .patch(style);
        self.spans
            .push(Span::styled(text.replace('\n', " "), style));
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some(link) = self.links.pop() else {
            return;
        };
        let shown: String = self.spans[link.from.min(self.spans.len())..]
            .iter()
            .map(|span| span.content.as_ref())
            .collect();
        let address = clean(&link.address).replace('\n', " ");
        // Where a link leads is always seen: its text can claim anything.
        if !address.is_empty() && address != shown {
            let text = format!(" ({address})");
            self.spans.push(Span::styled(text, self.look.dim()));
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        let mut painter = Painter::new(&language, self.look);
        for line in code.lines() {
            self.spans = painter
                .line(line)
                .into_iter()
                .map(|span| Span::styled(span.content.into_owned(), span.style))
                .collect();
            let margin = Span::raw("  ");
            self.levels.push(Level {
                first: None,
                rest: margin,
            });
            self.flush_even_empty();
            self.levels.pop();
        }
    }

    fn flush(&mut self) {
        if !self.spans.is_empty() {
            self.flush_even_empty();
        }
    }

    fn flush_even_empty(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        let (mut first, mut next) = (String::new(), String::new());
        let mut style = Style::new();
        for level in &mut self.levels {
            next.push_str(&level.rest.content);
            let mark = level.first.take();
            let mark = mark.as_ref().unwrap_or(&level.rest);
            first.push_str(&mark.content);
            style = style.patch(mark.style);
        }
        let (first, next) = (Span::styled(first, style), Span::styled(next, style));
        self.lines.extend(wrap(&spans, self.width, &first, &next));
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
