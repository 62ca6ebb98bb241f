//! Answers are Markdown: the part of it that models write, as HTML. Every letter of the text comes
//! out escaped; what is not understood stays as it was written.

use super::inline::inline;

/// Text as HTML shows it, in elements and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A line that begins an item of a list.
struct Bullet<'a> {
    depth: usize,
    number: Option<u64>,
    text: &'a str,
}

/// What is open, and must be closed before something else begins.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Open {
    Nothing,
    Paragraph,
    Quote,
    List { is_numbered: bool },
}

struct Writer {
    out: String,
    open: Open,
    /// The words of the paragraph, item or quote that is not over.
    words: String,
    item: String,
}

pub(super) fn html(text: &str) -> String {
    let mut writer = Writer {
        out: String::new(),
        open: Open::Nothing,
        words: String::new(),
        item: String::new(),
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut n = 0;
    while n < lines.len() {
        n += writer.take(&lines[n..]);
    }
    writer.close();
    writer.out
}

impl Writer {
    /// Takes the next lines, and answers how many.
    fn take(&mut self, lines: &[&str]) -> usize {
        let line = lines[0];
        let trimmed = line.trim();
        if let Some(fence) = fence(trimmed) {
            self.close();
            let is_close = |line: &&str| {
                let line = line.trim();
                line.starts_with(fence) && line.chars().all(|c| fence.starts_with(c))
            };
            let end = lines[1..].iter().position(is_close);
            let body = &lines[1..end.map_or(lines.len(), |end| end + 1)];
            self.pre(body);
            return body.len() + 1 + usize::from(end.is_some());
        }
        if trimmed.is_empty() {
            // An item of a list goes on behind an empty line if it is indented.
            match self.open {
                Open::List { .. } => {}
                _ => self.close(),
            }
            return 1;
        }
        if let Some((level, text)) = heading(trimmed) {
            self.close();
            let level = (level + 3).min(6);
            let text = inline(text);
            self.out.push_str(&format!("<h{level}>{text}</h{level}>\n"));
            return 1;
        }
        if trimmed.starts_with('|') {
            self.close();
            let is_row = |line: &&&str| line.trim_start().starts_with('|');
            let count = lines.iter().take_while(is_row).count();
            self.table(&lines[..count]);
            return count;
        }
        if trimmed.len() >= 3 && trimmed.chars().all(|c| c == '-') {
            self.close();
            self.out.push_str("<hr>\n");
            return 1;
        }
        self.flow(line, trimmed);
        1
    }

    /// A line of a paragraph, a quote or a list.
    fn flow(&mut self, line: &str, trimmed: &str) {
        if let Some(bullet) = bullet(line) {
            let is_numbered = bullet.number.is_some();
            self.change(Open::List { is_numbered });
            self.end_words();
            let value = bullet.number.map(|number| format!(" value=\"{number}\""));
            let (depth, value) = (bullet.depth, value.unwrap_or_default());
            self.item = format!("<li class=\"d{depth}\"{value}>");
            self.words.push_str(bullet.text);
            return;
        }
        if let Some(text) = trimmed.strip_prefix('>') {
            self.change(Open::Quote);
            self.add(text.trim());
            return;
        }
        let goes_on = match self.open {
            Open::List { .. } => line.starts_with([' ', '\t']),
            Open::Paragraph => true,
            Open::Nothing | Open::Quote => false,
        };
        if !goes_on {
            self.change(Open::Paragraph);
        }
        self.add(trimmed);
    }

    fn add(&mut self, text: &str) {
        if !self.words.is_empty() {
            self.words.push('\n');
        }
        self.words.push_str(text);
    }

    fn change(&mut self, to: Open) {
        if self.open == to {
            return;
        }
        self.close();
        self.out.push_str(match to {
            Open::List { is_numbered: true } => "<ol>\n",
            Open::List { is_numbered: false } => "<ul>\n",
            _ => "",
        });
        self.open = to;
    }

    fn end_words(&mut self) {
        let words = std::mem::take(&mut self.words);
        let item = std::mem::take(&mut self.item);
        if words.is_empty() && item.is_empty() {
            return;
        }
        let words = inline(&words);
        match self.open {
            Open::List { .. } => self.out.push_str(&format!("{item}{words}</li>\n")),
            Open::Quote => {
                let quote = format!("<blockquote>{words}</blockquote>\n");
                self.out.push_str(&quote);
            }
            _ => self.out.push_str(&format!("<p>{words}</p>\n")),
        }
    }

    fn close(&mut self) {
        self.end_words();
        self.out.push_str(match self.open {
            Open::List { is_numbered: true } => "</ol>\n",
            Open::List { is_numbered: false } => "</ul>\n",
            _ => "",
        });
        self.open = Open::Nothing;
    }

    fn pre(&mut self, lines: &[&str]) {
        let text = escape(&lines.join("\n"));
        self.out.push_str(&format!("<pre>{text}</pre>\n"));
    }

    /// Rows between bars; without the line below its heads it is no table.
    fn table(&mut self, lines: &[&str]) {
        let is_rule = |line: &str| line.chars().all(|c| "|-: ".contains(c)) && line.contains('-');
        if !lines.get(1).is_some_and(|line| is_rule(line.trim())) {
            return self.pre(lines);
        }
        self.out.push_str("<div class=\"wide\"><table>\n");
        for (n, line) in lines.iter().enumerate().filter(|(n, _)| *n != 1) {
            let cell = if n == 0 { "th" } else { "td" };
            let row = line.trim().trim_start_matches('|');
            let row = row.strip_suffix('|').unwrap_or(row);
            self.out.push_str("<tr>");
            for text in row.split('|') {
                let text = inline(text.trim());
                self.out.push_str(&format!("<{cell}>{text}</{cell}>"));
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</table></div>\n");
    }
}

/// The marks that open a block of code.
fn fence(line: &str) -> Option<&str> {
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == first).count();
    let is_inline = first == '`' && line[length..].contains('`');
    (length >= 3 && !is_inline).then(|| &line[..length])
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let text = line[level..].strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, text.trim()))
}

fn bullet(line: &str) -> Option<Bullet<'_>> {
    const DEEPEST: usize = 4;
    let text = line.trim_start();
    let depth = ((line.len() - text.len()) / 2).min(DEEPEST);
    let plain = text.strip_prefix("- ").or_else(|| text.strip_prefix("* "));
    if let Some(text) = plain.or_else(|| text.strip_prefix("+ ")) {
        return Some(Bullet {
            depth,
            number: None,
            text: text.trim(),
        });
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let number = text[..digits].parse::<u32>().ok()?;
    let text = text[digits..].strip_prefix(". ")?;
    Some(Bullet {
        depth,
        number: Some(number.into()),
        text: text.trim(),
    })
}
