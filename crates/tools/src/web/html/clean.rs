//! The first pass over a page: what a reader needs, written anew with every tag closed.

use super::elements::Tables;
use super::role::{Role, is_unread, role};
use super::scan::{Scan, Token};
use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// More than enough for the characters of a page that are given out.
const MOST_OUT: usize = 1 << 20;
/// A main part with less in it is an empty frame that scripts would fill.
const LEAST_MAIN: usize = 500;
/// Elements inside each other: those that are written, and those that are followed at all.
const DEEPEST_OUT: usize = 30;
const DEEPEST: usize = 200;

#[derive(Debug)]
pub(super) struct Cleaned {
    pub(super) html: String,
    pub(super) title: String,
    /// Whether it goes to the end of the page.
    pub(super) whole: bool,
}

/// Cleans a page, or only the part of it that it calls its main one, if there is enough in it.
pub(super) fn clean(html: &str, base: &Url) -> Cleaned {
    let main = main_part(html).map(|part| clean_part(html, part, base));
    main.filter(|cleaned| cleaned.html.len() >= LEAST_MAIN)
        .unwrap_or_else(|| clean_part(html, 0..html.len(), base))
}

fn main_part(html: &str) -> Option<Range<usize>> {
    let mut scan = Scan::new(html);
    let mut start = None;
    let mut end = None;
    while let Some(token) = scan.next() {
        let at = html.len() - scan.left();
        match token {
            Token::Open { name, .. } if name == "main" => start = start.or(Some(at)),
            Token::Close(name) if name == "main" => end = Some(at),
            _ => {}
        }
    }
    let start = start?;
    Some(start..end.filter(|end| *end > start).unwrap_or(html.len()))
}

fn clean_part(html: &str, part: Range<usize>, base: &Url) -> Cleaned {
    let mut scan = Scan::new(html);
    let mut cleaner = Cleaner {
        page: html,
        tables: Tables::default(),
        base: Cow::Borrowed(base),
        out: String::new(),
        open: Vec::new(),
        noise: None,
        title: None,
        in_title: false,
        is_outside: false,
    };
    let mut whole = true;
    while let Some(token) = scan.next() {
        let at = html.len() - scan.left();
        cleaner.is_outside = at <= part.start && part.start > 0 || at > part.end;
        match token {
            Token::Text(text) => cleaner.text(text),
            Token::Open { name, attributes } => cleaner.start(name, attributes, at),
            Token::Close(name) => cleaner.end(&name),
        }
        if cleaner.out.len() > MOST_OUT {
            whole = false;
            break;
        }
    }
    cleaner.close_to(0);
    Cleaned {
        html: cleaner.out,
        title: cleaner.title.unwrap_or_default(),
        whole,
    }
}

/// An element that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// What closes it in the output: nothing for an element that is only followed.
    closing: &'static str,
    /// Where it begins in the output, and where its content does.
    from: usize,
    content: usize,
}

impl Open {
    fn is_nothing_when_empty(&self) -> bool {
        let is_item = self.kind == Kind::Block && self.name == "li";
        matches!(self.kind, Kind::Inline | Kind::Narrow) || is_item
    }

    pub(super) fn is_closed_by(&self, closing: &str) -> bool {
        self.closing == closing
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Block,
    /// Holds no blocks: a heading or a link.
    Narrow,
    Inline,
    Pre,
    Table(Table),
    /// A row of data, with how many cells it has.
    Row(usize),
    /// A cell of data, which holds no blocks.
    Cell,
    /// Followed for its end alone.
    Ghost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// Places things on the page, as was done before there were style sheets.
    Layout,
    /// With how many rows were written.
    Data(usize),
}

/// Parts what stands before from what comes after, without nesting.
pub(super) const BREAK: &str = "<div></div>";

#[derive(Debug)]
pub(super) struct Cleaner<'a> {
    pub(super) page: &'a str,
    pub(super) tables: Tables,
    pub(super) base: Cow<'a, Url>,
    pub(super) out: String,
    pub(super) open: Vec<Open>,
    /// What is being left out, and how many of its name are open in it.
    noise: Option<(String, usize)>,
    pub(super) title: Option<String>,
    pub(super) in_title: bool,
    /// Whether this is not the part of the page that is wanted: only title and base count.
    is_outside: bool,
}

impl Cleaner<'_> {
    fn text(&mut self, text: &str) {
        if self.in_title {
            let title: String = text.chars().take(1000).collect();
            self.title = Some(title.replace('<', "&lt;"));
        } else if self.noise.is_none() && !self.is_outside {
            let end = text.floor_char_boundary(MOST_OUT + 1);
            self.out.push_str(&text[..end].replace('<', "&lt;"));
        }
    }

    fn start(&mut self, name: String, attributes: &str, at: usize) {
        let is_empty = attributes.ends_with('/');
        if let Some((noise, depth)) = &mut self.noise {
            *depth += usize::from(*noise == name && !is_empty);
            return;
        }
        let role = role(&name);
        if self.is_outside && !matches!(role, Role::Noise | Role::Title | Role::Base) {
            return;
        }
        if role == Role::Noise || is_unread(&name, attributes) {
            self.noise = (!is_empty).then_some((name, 1));
        } else if self.is_inside(|kind| kind == Kind::Pre) {
            self.start_in_pre(role, attributes);
        } else {
            self.start_as(role, name, attributes, at);
        }
    }

    fn end(&mut self, name: &str) {
        self.in_title = false;
        if let Some((noise, depth)) = &mut self.noise {
            *depth -= usize::from(noise == name);
            if *depth == 0 {
                self.noise = None;
            }
            return;
        }
        let role = role(name);
        let is_inline = matches!(role, Role::Inline(_) | Role::Link);
        let is_of_table = matches!(role, Role::Table | Role::Row | Role::Cell);
        // A closing tag without an opening one must not close what is around it.
        let bars = |kind: Kind| match kind {
            Kind::Block => is_inline || name == "p",
            Kind::Cell => !is_of_table,
            Kind::Pre | Kind::Table(_) => true,
            _ => false,
        };
        self.close_nearest(|open| open.name == name, bars);
    }

    pub(super) fn is_inside(&self, is: impl Fn(Kind) -> bool) -> bool {
        self.open.iter().any(|open| is(open.kind))
    }

    /// Closes the innermost element that `is` what is looked for, unless one that `bars` is
    /// further in.
    pub(super) fn close_nearest(
        &mut self,
        is: impl Fn(&Open) -> bool,
        bars: impl Fn(Kind) -> bool,
    ) {
        for place in (0..self.open.len()).rev() {
            if is(&self.open[place]) {
                self.close_to(place);
                return;
            }
            if bars(self.open[place].kind) {
                return;
            }
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(open) = self.open.pop()
        {
            let content = self.out.get(open.content..);
            let is_empty = content.is_some_and(|content| matches!(content.trim(), "" | BREAK));
            match open.kind {
                // An empty link, heading or item says nothing; the space may part two words.
                _ if is_empty && open.is_nothing_when_empty() => {
                    self.out.truncate(open.from);
                    self.out.push(' ');
                }
                Kind::Row(cells) => self.end_row(cells),
                _ if open.closing == BREAK => self.part(),
                _ => self.out.push_str(open.closing),
            }
        }
    }

    /// Begins an element. What is nested too deep is not followed: its text stays.
    pub(super) fn push(&mut self, name: String, kind: Kind, opening: &str, closing: &'static str) {
        if self.open.len() >= DEEPEST {
            return;
        }
        let written = self.open.iter().filter(|open| !open.closing.is_empty());
        let is_too_deep = !opening.is_empty() && written.count() >= DEEPEST_OUT;
        let (opening, closing) = if is_too_deep {
            ("", "")
        } else {
            (opening, closing)
        };
        let from = self.out.len();
        self.out.push_str(opening);
        self.open.push(Open {
            name,
            kind: if is_too_deep { Kind::Ghost } else { kind },
            closing,
            from,
            content: self.out.len(),
        });
    }

    /// Goes on with an element that was just closed, as if it had not been.
    pub(super) fn reopen(&mut self, name: String, closing: &'static str) {
        if self.open.len() >= DEEPEST {
            return;
        }
        self.out.truncate(self.out.len() - closing.len());
        self.push(name, Kind::Inline, "", closing);
        // It holds what was there before, so it is not empty.
        if let Some(open) = self.open.last_mut() {
            open.content = usize::MAX;
        }
    }

    pub(super) fn part(&mut self) {
        self.out.truncate(self.out.trim_end().len());
        if !self.out.ends_with(BREAK) {
            self.out.push_str(BREAK);
        }
    }
}
