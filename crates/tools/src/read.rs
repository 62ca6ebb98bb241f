//! Read: a text file with line numbers.

use crate::context::Context;
use crate::tool::{Access, Output, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

const MOST_LINES: usize = 2000;
const LONGEST_LINE: usize = 2000;
const MOST_BYTES: usize = 256 << 10;

/// Reads a text file and returns its lines, each with its number. Relative paths start at the
/// working folder. A long file is returned in part, with a word on how to read on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// The file to read.
    pub file_path: String,
    /// The first line to return, counted from 1.
    pub offset: Option<usize>,
    /// How many lines to return.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub struct Read;

impl Run for Read {
    const NAME: &'static str = "Read";
    const ACCESS: Access = Access::Reads;
    type Input = ReadInput;

    async fn run(&self, input: ReadInput, context: &Context) -> Output {
        let path = context.cwd.get().join(&input.file_path);
        let first = input.offset.unwrap_or(1).max(1);
        let limit = input.limit.unwrap_or(MOST_LINES);
        let shown = input.file_path;
        let read = tokio::task::spawn_blocking(move || read_lines(&path, first, limit));
        match read.await {
            Ok(Ok(text)) => Output::text(text),
            Ok(Err(why)) => Output::error(format!("Cannot read {shown}: {why}.")),
            Err(why) => Output::error(format!("Cannot read {shown}: {why}.")),
        }
    }
}

fn read_lines(path: &PathBuf, first: usize, limit: usize) -> Result<String, String> {
    let say = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    // A pipe or a device would be waited for without end.
    let metadata = path.metadata().map_err(say)?;
    if metadata.is_dir() {
        return Err(format!("it is a folder; {}", listing(path)));
    }
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut reader = BufReader::new(File::open(path).map_err(say)?);
    let mut out = String::new();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(say)? == 0 {
            break;
        }
        number += 1;
        if number < first {
            continue;
        }
        if number >= first + limit || out.len() > MOST_BYTES {
            out.push_str(&format!(
                "[The file goes on: read it with offset {number}.]\n"
            ));
            return Ok(out);
        }
        if line.contains(&0) {
            return Err("it is not a text file".to_owned());
        }
        push_line(&mut out, number, &line);
    }
    if number == 0 {
        return Ok("[The file is empty.]".to_owned());
    }
    if out.is_empty() {
        return Err(format!("it has only {number} lines"));
    }
    Ok(out)
}

fn push_line(out: &mut String, number: usize, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\n', '\r']);
    match text.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => {
            let more = text.len() - end;
            out.push_str(&format!(
                "{number:>6}\t{} [… {more} more bytes]\n",
                &text[..end]
            ));
        }
        None => out.push_str(&format!("{number:>6}\t{text}\n")),
    }
}

fn listing(folder: &Path) -> String {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.truncate(50);
    format!("it holds {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("f");
        std::fs::write(&path, content).unwrap();
        (temp, path)
    }

    #[test]
    fn lines_have_numbers_and_a_range_can_be_asked_for() {
        let (_temp, path) = file(b"a\r\nb\nc");
        assert_eq!(
            read_lines(&path, 1, 10).unwrap(),
            "     1\ta\n     2\tb\n     3\tc\n"
        );
        let part = read_lines(&path, 2, 1).unwrap();
        assert_eq!(
            part,
            "     2\tb\n[The file goes on: read it with offset 3.]\n"
        );
        assert_eq!(read_lines(&path, 9, 1).unwrap_err(), "it has only 3 lines");
    }

    #[test]
    fn what_is_not_a_text_file_is_an_error_that_says_so() {
        let (temp, path) = file(b"\x7fELF\0\0");
        assert_eq!(
            read_lines(&path, 1, 10).unwrap_err(),
            "it is not a text file"
        );
        let folder = read_lines(&temp.path().to_owned(), 1, 10).unwrap_err();
        assert_eq!(folder, "it is a folder; it holds f");
        let missing = read_lines(&temp.path().join("g"), 1, 10).unwrap_err();
        assert_eq!(missing, "there is no such file");
        let device = read_lines(&PathBuf::from("/dev/zero"), 1, 10).unwrap_err();
        assert_eq!(device, "it is not a regular file");
    }

    #[test]
    fn long_lines_and_files_are_cut_with_a_word_how_to_go_on() {
        let (_temp, path) = file(format!("{}\nb\n", "é".repeat(3000)).as_bytes());
        let text = read_lines(&path, 1, 10).unwrap();
        assert!(
            text.contains("é [… 2000 more bytes]\n     2\tb\n"),
            "{text}"
        );
        let (_temp, path) = file("x\n".repeat(5000).as_bytes());
        let text = read_lines(&path, 1, MOST_LINES).unwrap();
        assert!(text.ends_with("read it with offset 2001.]\n"));
    }
}
