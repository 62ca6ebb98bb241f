//! From the bytes of an answer to the text of a page.

use super::client::{Reply, brief};
use super::html;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use serde::de::IgnoredAny;

/// So much of a page is given out.
const MOST_CHARS: usize = 100_000;
/// JSON up to this size is laid out for reading; of more, the layout would take the place.
const SMALL_JSON: usize = 20_000;
/// Where a page must have named its charset, says the standard.
const META_WITHIN: usize = 1024;

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) url: String,
    title: String,
    text: String,
    /// How many characters were cut off.
    missing: usize,
    /// Whether nothing beyond those was left out earlier.
    whole: bool,
}

impl Page {
    /// Reads a reply whose type `is_text` accepts. Pages can be large: not for an async thread.
    pub(super) fn read(reply: &Reply) -> Result<Self, String> {
        let named = reply.content_type.as_deref();
        let charset = named.and_then(charset_of);
        let mut kind = kind_of(named);
        if kind == Kind::Unnamed {
            kind = sniff(&reply.body);
        }
        let text = decode(&reply.body, charset, kind == Kind::Html);
        if text.contains('\0') {
            let size = reply.body.len();
            return Err(format!("it is no text, whatever it says: {size} bytes"));
        }
        let mut whole = reply.whole;
        let mut title = String::new();
        let text = match kind {
            Kind::Html => {
                let converted = html::markdown(&text, &reply.url)?;
                whole &= converted.whole;
                title = converted.title;
                converted.text
            }
            Kind::Json if text.len() <= SMALL_JSON => laid_out(&text).unwrap_or(text),
            _ => text,
        };
        let (text, missing) = cut(text);
        Ok(Self {
            url: reply.url.to_string(),
            title: brief(&title, 300),
            text,
            missing,
            whole,
        })
    }

    /// What it takes to keep it.
    pub(super) fn size(&self) -> usize {
        self.text.len() + self.title.len() + self.url.len()
    }

    /// The page for a reader, with where it came from and what is missing.
    pub(super) fn show(&self) -> String {
        let mut out = format!("[{}", self.url);
        if !self.title.is_empty() {
            out.push_str(" – ");
            out.push_str(&self.title);
        }
        out.push_str("]\n\n");
        match self.text.trim() {
            "" => out.push_str("[The page has no text; it may be made by scripts.]"),
            text => out.push_str(text),
        }
        if self.missing > 0 || !self.whole {
            let least = if self.whole { "" } else { "more than " };
            let missing = self.missing;
            out.push_str(&format!(
                "\n\n[The page goes on: {least}{missing} characters are left out here.]"
            ));
        }
        out
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Json,
    Text,
    /// The server did not say.
    Unnamed,
    Other,
}

/// Whether an answer of this content type can be read.
pub(super) fn is_text(content_type: Option<&str>) -> bool {
    kind_of(content_type) != Kind::Other
}

fn kind_of(content_type: Option<&str>) -> Kind {
    let name = content_type.unwrap_or_default();
    let name = name.split(';').next().unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    let (main, sub) = name.split_once('/').unwrap_or((&name, ""));
    match (main, sub) {
        ("", _) => Kind::Unnamed,
        ("text", "html") | ("application", "xhtml+xml") => Kind::Html,
        ("text" | "application", "json") => Kind::Json,
        (_, sub) if sub.ends_with("+json") => Kind::Json,
        ("text" | "message", _) => Kind::Text,
        ("application", "ld+json" | "x-ndjson" | "jsonl" | "json5") => Kind::Text,
        ("application", "xml" | "yaml" | "x-yaml" | "toml" | "javascript") => Kind::Text,
        ("application", "x-javascript" | "ecmascript" | "typescript") => Kind::Text,
        ("application", "x-sh" | "x-httpd-php" | "sql" | "graphql" | "x-tex") => Kind::Text,
        (_, sub) if sub.ends_with("+xml") && main != "image" => Kind::Text,
        _ => Kind::Other,
    }
}

fn sniff(body: &[u8]) -> Kind {
    let start = String::from_utf8_lossy(&body[..body.len().min(META_WITHIN)]);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let start = start.to_ascii_lowercase();
    match start.starts_with("<!doctype html") || start.starts_with("<html") {
        true => Kind::Html,
        false => Kind::Text,
    }
}

fn charset_of(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    let label = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']))
    })?;
    Encoding::for_label(label.as_bytes())
}

/// A byte order mark counts more than the server's word, and that more than the page's own. Old
/// pages without any are Windows-1252, as browsers have it.
fn decode(body: &[u8], named: Option<&'static Encoding>, is_html: bool) -> String {
    let own = || is_html.then(|| meta_charset(body)).flatten();
    let guess = || match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        // The limit of size may have cut through a character.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    };
    let encoding = named.or_else(own).unwrap_or_else(guess);
    // This looks for a byte order mark first.
    encoding.decode(body).0.into_owned()
}

fn meta_charset(body: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&body[..body.len().min(META_WITHIN)]);
    let start = start.to_ascii_lowercase();
    let found = start.split("<meta").skip(1).find_map(|tag| {
        let tag = tag.split('>').next()?;
        let value = tag
            .split_once("charset")?
            .1
            .trim_start()
            .strip_prefix('=')?;
        let value = value.trim_start_matches(['"', '\'', ' ']);
        let end = value
            .find(['"', '\'', ' ', ';', '/'])
            .unwrap_or(value.len());
        Encoding::for_label(&value.as_bytes()[..end])
    })?;
    // It could be read as ASCII, so it is not what it says.
    let is_wide = found == UTF_16LE || found == UTF_16BE;
    Some(if is_wide { UTF_8 } else { found })
}

/// JSON with line breaks and indentation. Only the space between tokens changes: numbers stay as
/// they are written. Nothing for what is no JSON.
fn laid_out(json: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        let is_end = matches!(c, '}' | ']');
        depth -= usize::from(is_end);
        // An empty object or array stays on its line.
        let is_empty = is_end && out.ends_with(['{', '[']);
        let breaks = (is_end || out.ends_with(['{', '[', ','])) && !is_empty;
        if !c.is_ascii_whitespace() {
            if breaks {
                out.push('\n');
                out.push_str(&"  ".repeat(depth));
            }
            out.push(c);
        }
        if c == ':' {
            out.push(' ');
        }
        in_string = c == '"';
        depth += usize::from(matches!(c, '{' | '['));
    }
    Some(out)
}

fn cut(mut text: String) -> (String, usize) {
    let Some((end, _)) = text.char_indices().nth(MOST_CHARS) else {
        return (text, 0);
    };
    let missing = text[end..].chars().count();
    text.truncate(end);
    (text, missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn read(content_type: &str, body: &[u8]) -> Result<Page, String> {
        Page::read(&Reply {
            url: Url::parse("https://a.example/dir/page").unwrap(),
            content_type: Some(content_type.to_owned()).filter(|name| !name.is_empty()),
            body: body.to_owned(),
            whole: true,
        })
    }

    fn text(content_type: &str, body: &[u8]) -> String {
        read(content_type, body).unwrap().text
    }

    #[test]
    fn what_can_be_read_is_told_by_its_type() {
        for (name, want) in [
            ("text/html; charset=utf-8", Kind::Html),
            ("TEXT/HTML", Kind::Html),
            ("application/xhtml+xml", Kind::Html),
            ("application/problem+json", Kind::Json),
            ("text/markdown", Kind::Text),
            ("application/rss+xml", Kind::Text),
            ("application/octet-stream", Kind::Other),
            ("image/png", Kind::Other),
            ("image/svg+xml", Kind::Other),
            ("application/pdf", Kind::Other),
            ("", Kind::Unnamed),
        ] {
            assert_eq!(kind_of(Some(name)), want, "{name}");
        }
        assert!(is_text(None) && !is_text(Some("video/mp4")));
        let unnamed = text("", b"\n<!DOCTYPE HTML><p>a</p>");
        assert_eq!(unnamed, "a");
        assert_eq!(text("", b"<p>a</p>"), "<p>a</p>");
        assert!(read("text/plain", b"\x7fELF\0\0").is_err());
    }

    #[test]
    fn the_charset_comes_from_mark_header_page_or_guess() {
        let rows: [(&str, &[u8], &str); 9] = [
            ("text/plain; charset=\"ISO-8859-1\"", b"caf\xe9", "café"),
            ("text/plain; x=1; Charset=windows-1251", b"\xcf\xf0", "Пр"),
            ("text/html", b"<meta charset='koi8-r'>\xf0\xd2", "Пр"),
            (
                "text/html",
                b"<META http-equiv=Content-Type content=\"text/html; charset=Shift_JIS\">\x93\xfa",
                "日",
            ),
            (
                "text/html; charset=utf-8",
                b"<meta charset=koi8-r>\xc3\xa9",
                "é",
            ),
            ("text/html", b"<meta charset=utf-16>\xc3\xa9", "é"),
            ("text/plain", b"\xff\xfea\0\xe9\0", "aé"),
            ("text/plain", b"na\xefve", "naïve"),
            (
                "text/plain; charset=none-such",
                b"\xef\xbb\xbfx\xc3\xa9",
                "xé",
            ),
        ];
        for (content_type, body, want) in rows {
            assert_eq!(text(content_type, body), want, "{content_type} {body:?}");
        }
        // A character that was cut off is no reason to doubt the rest.
        assert_eq!(text("text/plain", b"\xc3\xa9\xc3"), "é\u{fffd}");
    }

    #[test]
    fn small_json_is_laid_out_and_nothing_else_is_changed() {
        let json =
            r#"{"a":[1.10,12345678901234567890123,{}],"b c":"x: [\\\"{,","d":[ ],"e":{"f":null}}"#;
        let want = "{\n  \"a\": [\n    1.10,\n    12345678901234567890123,\n    {}\n  ],\n  \
                    \"b c\": \"x: [\\\\\\\"{,\",\n  \"d\": [],\n  \"e\": {\n    \"f\": null\n  }\n}";
        assert_eq!(text("application/json", json.as_bytes()), want);
        assert_eq!(text("application/json", b"{\"a\": "), "{\"a\": ");
        let large = format!("[{}1]", "1,".repeat(SMALL_JSON));
        assert_eq!(text("application/json", large.as_bytes()), large);
        let deep = "[".repeat(5000);
        assert_eq!(text("application/json", deep.as_bytes()), deep);
    }

    #[test]
    fn a_long_page_is_cut_with_a_word_how_much_is_missing() {
        let body = "é".repeat(MOST_CHARS + 7);
        let page = read("text/plain", body.as_bytes()).unwrap();
        let shown = page.show();
        assert!(shown.starts_with("[https://a.example/dir/page]\n\néé"));
        assert!(shown.ends_with("é\n\n[The page goes on: 7 characters are left out here.]"));
        let page = read("text/html", b"<title>A &amp; B</title><script>x</script>").unwrap();
        assert_eq!(
            page.show(),
            "[https://a.example/dir/page – A & B]\n\n[The page has no text; it may be made by \
             scripts.]"
        );
    }
}
