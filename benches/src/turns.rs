//! `turns`: one agent of the real binary, 500 turns of a Read against a server without delay.

use crate::process::Used;
use crate::report::{Report, mib, ms};
use crate::server::{Play, Process, Seen};
use crate::{events, gaffer, process};
use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

const TURNS: u32 = 500;
const RUNS: u32 = 5;
const MOST: Duration = Duration::from_millis(1);

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let (runs, seen) = against(Play::Reads(TURNS.into()), &binary, RUNS)?;
    let (_, late) = against(Play::LateReads(TURNS.into()), &binary, 1)?;
    let bare = bare(seen)?;

    let wall = runs.iter().map(|used| used.wall).min().context("no run")? / TURNS;
    let cpu = runs.iter().map(|used| used.cpu).min().context("no run")? / TURNS;
    let peak = runs.iter().map(|used| used.peak).max().context("no run")?;
    let mut report = Report::default();
    let shown = format!("{TURNS} turns, least of {RUNS} runs");
    report.row([&shown, "a turn"]);
    report.row(["wall, start and end included", &ms(wall)]);
    report.row(["CPU of gaffer", &ms(cpu)]);
    report.row(["wall of the same bytes on a bare socket", &ms(bare)]);
    report.row(["", "a run"]);
    let sent = mib(seen.bytes / u64::from(RUNS));
    report.row(["sent to the server", &sent]);
    let connections = format!("{:.1}", seen.connections as f64 / f64::from(RUNS));
    report.row(["connections", &connections]);
    let connections = format!("{:.1}", late.connections as f64);
    report.row(["connections, where bodies end 1 ms late", &connections]);
    report.row(["peak resident memory (most)", &mib(peak)]);
    report.time_goal("under 1 ms a turn, end to end", wall < MOST);
    Ok(report)
}

fn against(play: Play, binary: &Path, runs: u32) -> anyhow::Result<(Vec<Used>, Seen)> {
    let server = Process::start(play)?;
    let mut all = Vec::new();
    for _ in 0..runs {
        let home = tempfile::tempdir()?;
        std::fs::write(home.path().join(events::FILE), events::file())?;
        let mut gaffer = gaffer::headless(binary, home.path(), server.address);
        let used = process::start(&mut gaffer)?.wait()?;
        ensure!(used.status.success(), "gaffer ended with {}", used.status);
        all.push(used);
    }
    let seen = server.finish()?;
    let asked = u64::from(runs) * u64::from(TURNS + 1);
    ensure!(seen.requests == asked, "the server saw {seen:?}");
    // Every request after the first repeats the file once; failed reads would look quick.
    let least = u64::from(runs) * u64::from(TURNS) * events::file().len() as u64;
    ensure!(seen.bytes > least, "the file was not read: {seen:?}");
    Ok((all, seen))
}

/// What the same requests cost a client that does nothing else: below this no agent can be.
fn bare(seen: Seen) -> anyhow::Result<Duration> {
    let mut best = Duration::MAX;
    // Bodies grow evenly from nothing, so the last has twice the average.
    let last = 2 * usize::try_from(seen.bytes / seen.requests)?;
    let body = vec![b'x'; last];
    let server = Process::start(Play::Reads(TURNS.into()))?;
    for _ in 0..RUNS {
        let began = Instant::now();
        post_all(server.address, &body)?;
        best = best.min(began.elapsed());
    }
    server.finish()?;
    Ok(best / TURNS)
}

fn post_all(address: SocketAddr, body: &[u8]) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut answer = vec![0; 64 << 10];
    for turn in 0..=TURNS as usize {
        let length = body.len() * turn / TURNS as usize;
        let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(&body[..length])?;
        let mut held = 0;
        while !answer[..held].ends_with(b"\r\n0\r\n\r\n") {
            let read = stream.read(&mut answer[held..])?;
            ensure!(read > 0, "the server hung up");
            held += read;
        }
    }
    Ok(())
}
