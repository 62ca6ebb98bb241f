//! HTML to Markdown. Pages are written by anybody: a first pass of our own keeps only what a
//! reader needs, within bounds of depth and size, and only what it wrote reaches the converter.
//!
//! The converter walks a tree by recursion, so that 100 KB of `<div>` overflow the stack and end
//! the process; 300 KB of a table with one long cell become gigabytes, since columns are padded;
//! many attributes on one tag take minutes. After the first pass all tags are closed, nesting is
//! flat, attributes are few and tables are lines of text.

mod clean;
mod elements;
mod role;
mod scan;

use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, Options};
use url::Url;

#[derive(Debug)]
pub(super) struct Converted {
    pub(super) title: String,
    pub(super) text: String,
    /// Whether all of the page was looked at.
    pub(super) whole: bool,
}

pub(super) fn markdown(html: &str, base: &Url) -> Result<Converted, String> {
    let cleaned = clean::clean(html, base);
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).build();
    let failed = |error| format!("its HTML could not be read: {error}");
    let text = converter.convert(&cleaned.html).map_err(failed)?;
    // As code its characters stay as they are.
    let title = format!("<code>{}</code>", cleaned.title);
    let title = converter.convert(&title).map_err(failed)?;
    let title = title.trim_matches(['`', ' ']).to_owned();
    Ok(Converted {
        title,
        text: trimmed(&text),
        whole: cleaned.whole,
    })
}

/// Without spaces at the ends of lines, which only cost.
fn trimmed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests;
