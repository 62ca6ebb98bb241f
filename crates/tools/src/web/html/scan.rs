//! Cuts HTML into tags and text, in one pass whose time grows with the length alone.

/// Elements whose content is no HTML.
const RAW: [&str; 9] = [
    "script",
    "style",
    "title",
    "textarea",
    "iframe",
    "xmp",
    "noembed",
    "noframes",
    "plaintext",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// As it is written: entities are not resolved. Outside of raw elements a `<` in it is none
    /// of a tag.
    Text(&'a str),
    Open {
        name: String,
        attributes: &'a str,
    },
    Close(String),
}

#[derive(Debug)]
pub(super) struct Scan<'a> {
    rest: &'a str,
    /// The raw element that was just opened.
    raw: Option<String>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self {
            rest: html,
            raw: None,
        }
    }

    /// How much is left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Skips to the other side of `end`, or to the end of all.
    fn skip_past(&mut self, end: &str) {
        let at = self.rest.find(end).map(|at| at + end.len());
        self.take(at.unwrap_or(self.rest.len()));
    }

    fn tag(&mut self) -> Option<Token<'a>> {
        let closes = self.rest.starts_with("</");
        self.take(if closes { 2 } else { 1 });
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>');
        let name = self.take(self.rest.find(is_end).unwrap_or(self.rest.len()));
        let name = name.to_ascii_lowercase();
        let end = tag_end(self.rest.as_bytes());
        // A tag that does not end is none, and nothing comes after it.
        let attributes = self.take(end.unwrap_or(self.rest.len()));
        self.take(usize::from(end.is_some()));
        end?;
        if closes {
            return Some(Token::Close(name));
        }
        if RAW.contains(&name.as_str()) && !attributes.ends_with('/') {
            self.raw = Some(name.clone());
        }
        Some(Token::Open { name, attributes })
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw.take() {
            let end = raw_end(self.rest, &name);
            return Some(Token::Text(self.take(end)));
        }
        loop {
            let bytes = self.rest.as_bytes();
            let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
            match bytes {
                [] => return None,
                [b'<', b'!', b'-', b'-', ..] => self.skip_past("-->"),
                [b'<', b'!' | b'?', ..] => self.skip_past(">"),
                [b'<', b'/', ..] if !is_letter(2) => self.skip_past(">"),
                [b'<', b'/', ..] => return self.tag(),
                [b'<', ..] if is_letter(1) => return self.tag(),
                _ => {
                    // A `<` at the beginning starts no tag, so it is text.
                    let from = usize::from(self.rest.starts_with('<'));
                    let next = self.rest[from..].find('<').map(|at| at + from);
                    let end = next.unwrap_or(self.rest.len());
                    return Some(Token::Text(self.take(end)));
                }
            }
        }
    }
}

/// Where a tag ends: at the first `>` outside of quotes, and quotes only count as values.
fn tag_end(bytes: &[u8]) -> Option<usize> {
    let mut quote = None;
    let mut is_value = false;
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') if is_value => quote = Some(*byte),
            (None, _) if byte.is_ascii_whitespace() => continue,
            _ => {}
        }
        is_value = quote.is_none() && *byte == b'=';
    }
    None
}

/// Where a raw element's content ends: before its own closing tag, or at the end of all.
fn raw_end(html: &str, name: &str) -> usize {
    let closes = |at: &usize| {
        let after = &html.as_bytes()[at + 2..];
        let named = after.get(..name.len());
        let end = after.get(name.len()).copied().unwrap_or(b'>');
        named.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && (end.is_ascii_whitespace() || matches!(end, b'/' | b'>'))
    };
    let mut places = html.match_indices("</").map(|(at, _)| at);
    places.find(closes).unwrap_or(html.len())
}

/// The value of an attribute as it is written; empty for one without a value.
pub(super) fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let first = rest.chars().next()?.len_utf8();
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '=');
        let end = rest[first..]
            .find(is_end)
            .map_or(rest.len(), |at| at + first);
        let name = &rest[..end];
        rest = rest[end..].trim_ascii_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            (value, rest) = split_value(after.trim_ascii_start());
        }
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
    }
}

fn split_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    let end = text.find(|c: char| c.is_ascii_whitespace());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(html: &str) -> String {
        let show = |token| match token {
            Token::Text(text) => format!("{text:?}"),
            Token::Open { name, attributes } => format!("<{name}{attributes}>"),
            Token::Close(name) => format!("</{name}>"),
        };
        let tokens: Vec<String> = Scan::new(html).map(show).collect();
        tokens.join(" ")
    }

    #[test]
    fn tags_text_and_what_is_neither() {
        for (html, want) in [
            ("a<B x=1>b</B >c", r#""a" <b x=1> "b" </b> "c""#),
            ("<a title='>' b=\"'>\">x", r#"<a title='>' b="'>"> "x""#),
            ("<a title=it's>x", r#"<a title=it's> "x""#),
            ("<a title = '>'>x", r#"<a title = '>'> "x""#),
            ("a < b<c", r#""a " "< b""#),
            (
                "1<2 3<!-- <b> -->4<!doctype x>5<?php ?>6",
                r#""1" "<2 3" "4" "5" "6""#,
            ),
            ("</>x</ y>z", r#""x" "z""#),
            (
                "<script>if (a</b/.test(x)) '<p>'</SCRIPT >y",
                r#"<script> "if (a</b/.test(x)) '<p>'" </script> "y""#,
            ),
            ("<style>x</stylesheet>y", r#"<style> "x</stylesheet>y""#),
            ("<script/>x", r#"<script/> "x""#),
            ("<title>a</title", r#"<title> "a""#),
            ("x<!-- never", r#""x""#),
            ("<a href='never", ""),
            ("<", r#""<""#),
            ("é<é>é</é>", r#""é" "<é>é""#),
        ] {
            assert_eq!(shown(html), want, "{html}");
        }
    }

    #[test]
    fn attributes_are_found_however_they_are_written() {
        let attributes = " a b = 'x y' HREF=\"q\" data-c=d/e é=ü hidden / last=";
        for (name, want) in [
            ("a", Some("")),
            ("b", Some("x y")),
            ("href", Some("q")),
            ("data-c", Some("d/e")),
            ("é", Some("ü")),
            ("hidden", Some("")),
            ("last", Some("")),
            ("c", None),
        ] {
            assert_eq!(attribute(attributes, name), want, "{name}");
        }
        assert_eq!(attribute("=x a=1", "a"), Some("1"));
        assert_eq!(attribute(" a='never", "a"), Some("never"));
    }
}
