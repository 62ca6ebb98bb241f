//! Read: a file with line numbers, an image, a notebook, or pages of a PDF.

use crate::context::Context;
use crate::file::{LARGEST, aside, explain, load, locate, names, open};
use crate::notebook;
use crate::pdf::{self, Pages};
use crate::tool::{Access, Output, Run};
use base64::Engine;
use gaffer_protocol::{Image, ResultPart};
use gaffer_workspace::fence::Fenced;
use memchr::{memchr, memchr_iter};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::io::{BufRead, BufReader};

pub(crate) const MOST_LINES: usize = 2000;
const LONGEST_LINE: usize = 2000;
const MOST_BYTES: usize = 256 << 10;
/// The answer to a read whose lines the conversation has.
pub const SAME: &str = "[The same as when you read it above.]";
/// Providers take no larger images.
const LARGEST_IMAGE: usize = 5 << 20;

/// Reads a file: text with line numbers, images, notebooks, the text of PDFs. Long files come in
/// part, with a word on how to read on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// Absolute, or from the working folder.
    pub file_path: String,
    /// The first line, from 1.
    pub offset: Option<usize>,
    /// How many lines; 2000 if not given.
    pub limit: Option<usize>,
    /// Of a PDF, which pages, such as `3` or `1-5`, 20 at most; needed if it has more than 10.
    pub pages: Option<String>,
}

/// What was found where a call points.
enum Found {
    Shown(Output),
    Pdf(Vec<u8>),
}

#[derive(Debug, Clone, Copy)]
pub struct Read;

impl Run for Read {
    const NAME: &'static str = "Read";
    const ACCESS: Access = Access::Reads;
    type Input = ReadInput;

    async fn run(&self, input: ReadInput, context: &Context) -> Output {
        let shown = input.file_path.clone();
        let output = found(input, context).await;
        output.unwrap_or_else(|why| Output::error(format!("Cannot read {shown}: {why}.")))
    }
}

async fn found(input: ReadInput, context: &Context) -> Result<Output, String> {
    // Models fill in what they need not.
    let pages = input.pages.as_deref().map(str::trim);
    let pages = pages.filter(|pages| !pages.is_empty());
    let pages = pages.map(Pages::parse).transpose()?;
    let request = format!(
        "{:?} {:?} {:?} {}",
        input.offset,
        input.limit,
        context.cwd.get(),
        input.file_path
    );
    let read = aside(context, move |context| read(&input, context)).await?;
    match (read, pages) {
        (Found::Pdf(bytes), pages) => Ok(Output::text(pdf::read(context, &bytes, pages).await?)),
        (Found::Shown(_), Some(_)) => {
            Err("it is not a PDF, and only those have pages; leave pages out".to_owned())
        }
        (Found::Shown(output), None) => {
            let is_same = |text: &str| context.shown.is_same(request, text);
            match output.parts.as_slice() {
                [ResultPart::Text(text)] if is_same(text) => Ok(Output::text(SAME)),
                _ => Ok(output),
            }
        }
    }
}

/// The same for who cannot read PDFs.
pub(crate) fn read_plain(input: &ReadInput, context: &Context) -> Result<Output, String> {
    match read(input, context)? {
        Found::Shown(output) => Ok(output),
        Found::Pdf(_) => Err("it is a PDF; a worker can read it".to_owned()),
    }
}

fn read(input: &ReadInput, context: &Context) -> Result<Found, String> {
    let first = input.offset.unwrap_or(1).max(1);
    let limit = input.limit.unwrap_or(MOST_LINES).max(1);
    let fenced = locate(context, &input.file_path)?;
    let explain = |error| explain(context, &input.file_path, error);
    let metadata = fenced.metadata().map_err(explain)?;
    if metadata.is_dir() {
        return Err(format!("it is a folder; {}", listing(context, &fenced)));
    }
    if metadata.len() > LARGEST && metadata.is_file() {
        let file = open(context, &fenced).map_err(explain)?;
        let mut file = BufReader::with_capacity(256 << 10, file);
        if file.fill_buf().is_ok_and(pdf::is_pdf) {
            return Err("it is a PDF of more than 32 MB".to_owned());
        }
        return Ok(Found::Shown(Output::text(lines(file, first, limit)?)));
    }
    let loaded = load(context, &fenced).map_err(explain)?;
    let path = fenced.path();
    let kind = path
        .extension()
        .map(|end| end.to_string_lossy().to_lowercase());
    if pdf::is_pdf(&loaded.bytes) {
        context.seen.note(path, &loaded.bytes);
        return Ok(Found::Pdf(loaded.bytes));
    }
    let output = match kind.as_deref() {
        Some("ipynb") => notebook::render(&loaded.bytes)?,
        _ => match image_type(&loaded.bytes) {
            Some(media_type) => image(media_type, &loaded.bytes, context)?,
            None => Output::text(lines(loaded.bytes.as_slice(), first, limit)?),
        },
    };
    context.seen.note(path, &loaded.bytes);
    Ok(Found::Shown(output))
}

/// By their first bytes: names lie.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

fn image(media_type: &str, bytes: &[u8], context: &Context) -> Result<Output, String> {
    if !context.images {
        return Err("it is an image, and this model cannot be shown images".to_owned());
    }
    if bytes.len() > LARGEST_IMAGE {
        return Err("it is an image of more than 5 MB".to_owned());
    }
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    let image = Image {
        media_type: media_type.to_owned(),
        data: data.into(),
    };
    Ok(Output {
        parts: vec![ResultPart::Image(image)],
        is_error: false,
        mail: None,
    })
}

/// Lines with their numbers, from a reader that is never taken into memory whole.
pub(crate) fn lines(
    mut reader: impl BufRead,
    first: usize,
    limit: usize,
) -> Result<String, String> {
    let mut out = String::new();
    let mut line = Vec::new();
    let mut number = skip(&mut reader, first - 1)?;
    // A file that ended before the first line may have grown since; that is for the next call.
    while number + 1 >= first && next_line(&mut reader, &mut line)? {
        number += 1;
        if number - first >= limit || out.len() > MOST_BYTES {
            let _ = writeln!(out, "[The file goes on: read it with offset {number}.]");
            return Ok(out);
        }
        if memchr(0, &line).is_some() {
            return Err("it is not a text file".to_owned());
        }
        push_line(&mut out, number, &line);
    }
    match number {
        0 => Ok("[The file is empty.]".to_owned()),
        _ if out.is_empty() => Err(format!("it has only {number} lines")),
        _ => Ok(out),
    }
}

/// Passes over so many lines, or as many as there are, and says how many that were. Lines are not
/// looked at one by one: in a long file this is nearly all of the work.
fn skip(reader: &mut impl BufRead, lines: usize) -> Result<usize, String> {
    let mut passed = 0;
    // Whether bytes of a line were passed whose end was not.
    let mut is_inside = false;
    while passed < lines {
        let buffer = reader.fill_buf().map_err(|error| error.to_string())?;
        let Some(last) = buffer.last() else {
            return Ok(passed + usize::from(is_inside));
        };
        let mut used = buffer.len();
        let ends = memchr_iter(b'\n', buffer).count();
        if passed + ends < lines {
            is_inside = *last != b'\n';
            passed += ends;
        } else {
            let end = memchr_iter(b'\n', buffer).nth(lines - passed - 1);
            used = end.map_or(used, |end| end + 1);
            passed = lines;
        }
        reader.consume(used);
    }
    Ok(passed)
}

/// Reads a line, keeping no more of it than is ever shown. A file without line breaks costs no
/// more memory than one with.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, String> {
    const KEEP: usize = 5 * LONGEST_LINE;
    line.clear();
    let mut any = false;
    let mut left_out = 0;
    loop {
        let buffer = reader.fill_buf().map_err(|error| error.to_string())?;
        if buffer.is_empty() {
            break;
        }
        any = true;
        let end = memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let kept = part.len().min(KEEP.saturating_sub(line.len()));
        line.extend_from_slice(&part[..kept]);
        left_out += part.len() - kept;
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    if left_out > 0 {
        line.extend_from_slice(format!(" [… {left_out} more bytes]").as_bytes());
    }
    Ok(any)
}

fn push_line(out: &mut String, number: usize, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches('\r');
    let text = if number == 1 {
        text.trim_start_matches('\u{feff}')
    } else {
        text
    };
    match text.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => {
            let more = text.len() - end;
            let text = &text[..end];
            let _ = writeln!(out, "{number}\t{text} [… {more} more bytes]");
        }
        None => {
            let _ = writeln!(out, "{number}\t{text}");
        }
    }
}

fn listing(context: &Context, folder: &Fenced) -> String {
    let mut names = names(context, folder);
    names.sort();
    let more = names.len().saturating_sub(50);
    names.truncate(50);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("it holds {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same line by line.
    fn slow_skip(reader: &mut impl BufRead, lines: usize) -> usize {
        let mut line = Vec::new();
        let mut passed = 0;
        while passed < lines && next_line(reader, &mut line).unwrap() {
            passed += 1;
        }
        passed
    }

    proptest! {
        #[test]
        fn lines_are_passed_over_wherever_buffers_end(
            text in "[ab\n]{0,40}",
            lines in 0usize..20,
            capacity in 1usize..9,
        ) {
            let mut quick = BufReader::with_capacity(capacity, text.as_bytes());
            let mut slow = BufReader::with_capacity(capacity, text.as_bytes());
            prop_assert_eq!(skip(&mut quick, lines), Ok(slow_skip(&mut slow, lines)));
            let mut rests = [String::new(), String::new()];
            std::io::Read::read_to_string(&mut quick, &mut rests[0]).unwrap();
            std::io::Read::read_to_string(&mut slow, &mut rests[1]).unwrap();
            prop_assert_eq!(&rests[0], &rests[1]);
        }
    }

    #[test]
    fn what_lies_behind_the_end_is_said_to() {
        let only = |n: usize| Err(format!("it has only {n} lines"));
        assert_eq!(lines(&b"a\nb"[..], 3, 5), only(2));
        assert_eq!(lines(&b"a\nb\n"[..], 9, 5), only(2));
        assert_eq!(lines(&b"a\nb\n"[..], usize::MAX, usize::MAX), only(2));
        assert_eq!(lines(&b"a\nb"[..], 2, 5), Ok("2\tb\n".to_owned()));
        assert_eq!(lines(&b""[..], 3, 5), Ok("[The file is empty.]".to_owned()));
    }
}
