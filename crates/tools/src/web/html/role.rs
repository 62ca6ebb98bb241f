//! What each element of HTML is to a reader.

use super::scan::attribute;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Left out with all that is in it.
    Noise,
    /// Stands by itself; written as the element of this name.
    Block(&'static str),
    /// A heading: a block that holds no blocks.
    Heading(&'static str),
    /// Runs with the text; written as the element of this name.
    Inline(&'static str),
    Link,
    Image,
    Pre,
    Table,
    Row,
    Cell,
    Break,
    Rule,
    Title,
    Base,
    /// Only its content counts.
    Plain,
}

pub(super) fn role(name: &str) -> Role {
    use Role::*;
    match name {
        "script" | "style" | "nav" | "footer" | "noscript" | "template" | "svg" | "iframe"
        | "object" | "canvas" | "audio" | "video" | "select" | "datalist" | "button" | "dialog"
        | "textarea" | "noembed" | "noframes" | "map" => Noise,
        "p" => Block("p"),
        "div" | "section" | "article" | "main" | "header" | "aside" | "figure" | "figcaption"
        | "address" | "details" | "summary" | "form" | "fieldset" | "center" | "dl" | "dt"
        | "dd" | "hgroup" | "search" | "caption" => Block("div"),
        "ul" | "menu" | "dir" => Block("ul"),
        "ol" => Block("ol"),
        "li" => Block("li"),
        "blockquote" => Block("blockquote"),
        "h1" => Heading("h1"),
        "h2" => Heading("h2"),
        "h3" => Heading("h3"),
        "h4" => Heading("h4"),
        "h5" => Heading("h5"),
        "h6" => Heading("h6"),
        "b" | "strong" => Inline("strong"),
        "i" | "em" | "cite" | "dfn" | "var" => Inline("em"),
        "code" | "kbd" | "samp" | "tt" => Inline("code"),
        "a" => Link,
        "img" => Image,
        "pre" | "xmp" | "listing" => Pre,
        "table" => Table,
        "tr" => Row,
        "td" | "th" => Cell,
        "br" => Break,
        "hr" => Rule,
        "title" => Title,
        "base" => Base,
        _ => Plain,
    }
}

/// Whether an element is there for nobody who reads: hidden, or a way around the site. Elements
/// that need no closing tag are not asked, since it would not be known where they end.
pub(super) fn is_unread(name: &str, attributes: &str) -> bool {
    if attributes.is_empty() || !is_always_closed(name) {
        return false;
    }
    let is = |attribute_name, value: &str| {
        let found = attribute(attributes, attribute_name);
        found.is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
    };
    let is_undisplayed = || {
        let style = attribute(attributes, "style").unwrap_or_default();
        let style: String = style.split_ascii_whitespace().collect();
        let style = style.to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    is("hidden", "")
        || is("hidden", "hidden")
        || is("aria-hidden", "true")
        || is("role", "navigation")
        || is_undisplayed()
}

fn is_always_closed(name: &str) -> bool {
    match role(name) {
        Role::Block(_) => !matches!(name, "p" | "li" | "dt" | "dd" | "caption"),
        Role::Heading(_) | Role::Link | Role::Inline(_) | Role::Table | Role::Pre => true,
        _ => matches!(name, "span" | "small" | "label" | "font" | "sup" | "sub"),
    }
}
