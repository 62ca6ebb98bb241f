//! `stream`: an answer of 5 MB in small deltas, decoded alone and read by the real binary.

use crate::callgrind::instructions;
use crate::report::{Report, count, mib, ms, ratio};
use crate::server::{Play, Process};
use crate::{agent, events, gaffer, process, say};
use anyhow::{Context, bail, ensure};
use gaffer_model::sse::Parser;
use gaffer_model::wire::Wire;
use gaffer_model::{Delta, ModelError};
use gaffer_protocol::Answer;
use std::fs::File;
use std::path::Path;

const TEXT: usize = 5_000_000;
const RUNS: usize = 3;
const MOST_RATIO: f64 = 2.1;

pub(crate) fn run() -> anyhow::Result<Report> {
    let half = instructions(&["__decode", &(TEXT / 2).to_string()])?;
    let whole = instructions(&["__decode", &TEXT.to_string()])?;
    let binary = gaffer::binary()?;

    let mut report = Report::default();
    report.row(["decoded in process", "2.5 MB", "5 MB", "ratio"]);
    let grown = ratio(whole as f64, half as f64);
    report.row(["instructions", &count(half), &count(whole), &grown]);
    let each = |all: u64, text: usize| count(all / (text / events::DELTA) as u64);
    let shown = [each(half, TEXT / 2), each(whole, TEXT)];
    report.row(["instructions a delta", &shown[0], &shown[1]]);
    report.row(["5 MB over HTTP by gaffer", "wall", "CPU", "peak memory"]);
    for format in ["text", "json", "stream-json"] {
        let used = over_http(&binary, format)?;
        report.row([format, &ms(used.wall), &ms(used.cpu), &mib(used.peak)]);
    }
    report.goal(
        "twice the text costs at most 2.1 times the instructions",
        whole as f64 <= MOST_RATIO * half as f64,
    );
    Ok(report)
}

/// The quickest of a few runs of the real binary.
fn over_http(binary: &Path, format: &str) -> anyhow::Result<process::Used> {
    let server = Process::start(Play::Text(TEXT))?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let home = tempfile::tempdir()?;
        let said = home.path().join("said");
        let mut gaffer = gaffer::headless(binary, home.path(), server.address);
        gaffer.args(["--output-format", format]);
        gaffer.stdout(File::create(&said)?);
        let used = process::start(&mut gaffer)?.wait()?;
        ensure!(used.status.success(), "gaffer ended with {}", used.status);
        let printed = said.metadata()?.len();
        ensure!(
            printed >= TEXT as u64,
            "gaffer printed only {printed} bytes"
        );
        runs.push(used);
    }
    server.finish()?;
    runs.into_iter()
        .min_by_key(|used| used.wall)
        .context("no run")
}

/// `__decode BYTES`: reads an answer with so much text, for callgrind.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let [bytes] = words else {
        bail!("expected a number of bytes, not {words:?}")
    };
    let bytes: usize = bytes.parse()?;
    let (streamed, answer) = decode(bytes)?;
    ensure!(streamed == bytes && answer.text().len() == bytes);
    say::out(&format!("{bytes} bytes were decoded"));
    Ok(())
}

/// The pieces are the same bytes again and again, so that making them costs nothing; but each is
/// cut at another place, as a network would.
fn decode(bytes: usize) -> anyhow::Result<(usize, Answer)> {
    let mut parser = Parser::new(64 << 20);
    let mut decoder = agent::wire().decoder();
    let mut streamed = 0;
    let mut feed = |part: &[u8]| {
        let mut sink = |delta: Delta<'_>| {
            if let Delta::Text(text) = delta {
                streamed += text.len();
            }
        };
        parser.feed(part, |event| {
            decoder.event(event, &mut sink) as Result<_, ModelError>
        })
    };
    let piece = events::piece();
    feed(events::text_opening().as_bytes())?;
    for n in 0..bytes / events::PIECE {
        let (before, after) = piece.as_bytes().split_at(n * 37 % piece.len());
        feed(before)?;
        feed(after)?;
    }
    let answer = feed(events::text_closing().as_bytes())?.context("the answer did not end")?;
    Ok((streamed, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_comes_through_whole() {
        let (streamed, answer) = decode(4 * events::PIECE).unwrap();
        assert_eq!(streamed, 4 * events::PIECE);
        assert_eq!(answer.text().len(), streamed);
    }
}
