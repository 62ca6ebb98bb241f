//! PDFs as text, page by page.
//!
//! A PDF holds programs, pictures and packed data in a dozen formats, and comes from anywhere. So
//! it is taken apart by a process of its own, this program in another role, with limits of time
//! and memory: whatever goes wrong there becomes one sentence for the model. Models are given the
//! text alone; not every provider takes the document itself.

mod sheet;

use crate::context::Context;
use gaffer_workspace::process::{self, How, Limits, Plan};
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{InterpreterCache, InterpreterSettings, interpret_page};
use rustix::process::{Resource, Rlimit, setrlimit};
use sheet::Sheet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::time::Duration;

/// The first argument of a process that is to take a PDF apart.
pub const ROLE: &str = "__pdf";

/// More pages must be asked for by their numbers.
const MOST_UNASKED: usize = 10;
/// How many pages one call gives.
const MOST_PAGES: usize = 20;
/// Of text; the rest has to be asked for in another call.
const MOST_BYTES: usize = 256 << 10;
const TIME: Duration = Duration::from_secs(30);
/// Address space. A packed megabyte may stand for a gigabyte.
const MEMORY: u64 = 1 << 30;
/// What a process says that has an answer, though not the text.
const REFUSED: u8 = 1;

/// By the first bytes: names lie.
pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// The pages that a call asks for, from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    first: usize,
    last: usize,
}

impl Pages {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last && last - first >= MOST_PAGES => {
                let count = last - first + 1;
                Err(format!(
                    "pages names {count} pages, and {MOST_PAGES} at most are read at once"
                ))
            }
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!(
                "pages is {text:?}: write one page or a range, such as \"3\" or \"1-5\""
            )),
        }
    }
}

/// Reads pages of a PDF. An error says what is wrong with the file or with what was asked.
pub(crate) async fn read(
    context: &Context,
    bytes: &[u8],
    wanted: Option<Pages>,
) -> Result<String, String> {
    let failed = |why| format!("the process for it could not be started: {why}");
    let temp = context.made_temp().map_err(failed)?;
    let mut plan = Plan::new(&context.program, temp).args([ROLE]);
    if let Some(Pages { first, last }) = wanted {
        plan = plan.args([format!("{first}-{last}")]);
    }
    plan.hidden = context.hidden.to_vec();
    let limits = Limits {
        time: TIME,
        stdout: MOST_BYTES,
        stderr: 0,
    };
    let talked = process::talk(&plan, bytes, limits).await;
    let talked = talked.map_err(failed)?;
    match talked.how {
        How::Exited(status) if status.success() => Ok(talked.stdout.text()),
        How::Exited(status) if status.code() == Some(i32::from(REFUSED)) => {
            Err(talked.stdout.text())
        }
        How::Exited(_) => {
            Err("it is a PDF that is broken, or needs too much memory to be taken apart".to_owned())
        }
        How::TimedOut => Err(format!(
            "it is a PDF that takes longer than {} s to be taken apart; ask for fewer pages",
            TIME.as_secs()
        )),
    }
}

/// The process that takes a PDF apart: the file comes in, its text goes out. Gives the exit code.
pub fn main(mut args: impl Iterator<Item = OsString>) -> u8 {
    // Of time too, as whoever started this may be gone before it ends.
    for (what, most) in [(Resource::As, MEMORY), (Resource::Cpu, TIME.as_secs())] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        if setrlimit(what, limit).is_err() {
            return REFUSED + 1;
        }
    }
    let wanted = args
        .next()
        .map(|text| Pages::parse(&text.to_string_lossy()));
    let mut bytes = Vec::new();
    let read = std::io::stdin().read_to_end(&mut bytes);
    let text = match (wanted.transpose(), read) {
        (Ok(wanted), Ok(_)) => text(bytes, wanted),
        (Err(why), _) => Err(why),
        (_, Err(why)) => Err(why.to_string()),
    };
    let (text, code) = match text {
        Ok(text) => (text, 0),
        Err(why) => (why, REFUSED),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(_) => REFUSED + 1,
    }
}

fn text(bytes: Vec<u8>, wanted: Option<Pages>) -> Result<String, String> {
    let pdf = Pdf::new(bytes).map_err(explain)?;
    let pages = pdf.pages();
    let count = pages.len();
    let (first, last) = match wanted {
        _ if count == 0 => return Err(explain(LoadPdfError::Invalid)),
        None if count > MOST_UNASKED => {
            return Err(format!(
                "it is a PDF of {count} pages: name up to {MOST_PAGES} of them in pages, such as \"1-{MOST_UNASKED}\""
            ));
        }
        None => (1, count),
        Some(Pages { first, .. }) if first > count => {
            return Err(format!("it has only {}", counted(count)));
        }
        Some(Pages { first, last }) => (first, last.min(count)),
    };
    let cache = InterpreterCache::new();
    let settings = InterpreterSettings::default();
    let mut out = String::new();
    for number in first..=last {
        let Some(page) = pages.get(number - 1) else {
            break;
        };
        // Only where glyphs are to each other matters, so any place will do for the page.
        let mut context = hayro_interpret::Context::new(
            Affine::IDENTITY,
            Rect::new(0.0, 0.0, 1.0, 1.0),
            &cache,
            pdf.xref(),
            settings.clone(),
        );
        let mut sheet = Sheet::new(MOST_BYTES.saturating_sub(out.len()));
        interpret_page(page, &mut context, &mut sheet);
        let is_cut = sheet.is_full();
        out.push_str(&format!("[Page {number} of {count}]\n"));
        out.push_str(&sheet.finish());
        if is_cut {
            out.push_str(&format!(
                "[Page {number} was not shown whole: there was too much text before its end. Read on with pages \"{number}\" or later ones.]\n"
            ));
            return Ok(out);
        }
    }
    if last < count {
        let (next, end) = (last + 1, count.min(last + MOST_PAGES));
        out.push_str(&format!(
            "[The PDF goes on: read it with pages \"{next}-{end}\".]\n"
        ));
    }
    Ok(out)
}

fn explain(why: LoadPdfError) -> String {
    let why = match why {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            "it is a PDF that needs a password; a copy without one can be read"
        }
        LoadPdfError::Decryption(_) => "it is a PDF that is encrypted in a way that is not known",
        LoadPdfError::Invalid => "it begins like a PDF but is broken: it has no pages to be found",
    };
    why.to_owned()
}

fn counted(pages: usize) -> String {
    match pages {
        1 => "1 page".to_owned(),
        pages => format!("{pages} pages"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_one_or_a_range_of_twenty_at_most() {
        let pages = |first, last| Ok(Pages { first, last });
        assert_eq!(Pages::parse("3"), pages(3, 3));
        assert_eq!(Pages::parse(" 1 - 5 "), pages(1, 5));
        assert_eq!(Pages::parse("10-29"), pages(10, 29));
        for text in [
            "", "0", "5-3", "a", "1-", "-2", "1,2", "1-2-3", "-1-2", "0-2",
        ] {
            let why = Pages::parse(text).unwrap_err();
            assert!(why.ends_with("such as \"3\" or \"1-5\""), "{text}: {why}");
        }
        let why = Pages::parse("1-21").unwrap_err();
        assert_eq!(why, "pages names 21 pages, and 20 at most are read at once");
        assert!(Pages::parse(&format!("1-{}", usize::MAX)).is_err());
    }
}
