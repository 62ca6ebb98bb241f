//! A model server that costs next to nothing: Anthropic Messages over HTTP/1.1, one thread a
//! connection, short canned answers, bodies counted and thrown away.

use crate::process::own;
use crate::{events, say};
use anyhow::Context;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(crate) const LAST_CHUNK: &str = "0\r\n\r\n";
const LATE: Duration = Duration::from_millis(1);

/// What it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Play {
    /// So many calls of Read, then a word; and again from the start.
    Reads(u64),
    /// The same, but what ends the body comes a moment after the answer's last event, as a packet
    /// of its own. A server may well send it so.
    LateReads(u64),
    /// So many bytes of text in small deltas.
    Text(usize),
}

impl Play {
    fn words(self) -> [String; 2] {
        match self {
            Self::Reads(turns) => ["reads".to_owned(), turns.to_string()],
            Self::LateReads(turns) => ["late-reads".to_owned(), turns.to_string()],
            Self::Text(bytes) => ["text".to_owned(), bytes.to_string()],
        }
    }

    fn parse(words: &[&str]) -> Option<Self> {
        match words {
            ["reads", turns] => turns.parse().ok().map(Self::Reads),
            ["late-reads", turns] => turns.parse().ok().map(Self::LateReads),
            ["text", bytes] => bytes.parse().ok().map(Self::Text),
            _ => None,
        }
    }
}

/// What it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    /// Of the bodies alone.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Server {
    play: Play,
    connections: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
    /// Hears when the head of a request has arrived.
    heads: Option<Sender<Instant>>,
}

impl Server {
    /// Serves on threads of this process until it ends.
    pub(crate) fn listen(
        play: Play,
        heads: Option<Sender<Instant>>,
    ) -> io::Result<(Arc<Self>, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let server = Arc::new(Self {
            play,
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            heads,
        });
        let all = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                all.connections.fetch_add(1, Ordering::Relaxed);
                let one = all.clone();
                // A connection that breaks is the client's to report.
                std::thread::spawn(move || drop(one.talk(&stream)));
            }
        });
        Ok((server, address))
    }

    fn seen(&self) -> Seen {
        Seen {
            connections: self.connections.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn talk(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = vec![0; 256 << 10];
        while let Some(mut left) = self.read_head(stream, &mut buffer)? {
            while left > 0 {
                let most = left.min(buffer.len());
                match stream.read(&mut buffer[..most])? {
                    0 => return Ok(()),
                    read => left -= read,
                }
            }
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            match self.play {
                Play::Reads(turns) => {
                    let whole = [HEAD, &chunk(&turn(number, turns)), LAST_CHUNK].concat();
                    stream.write_all(whole.as_bytes())?;
                }
                Play::LateReads(turns) => {
                    let events = [HEAD, &chunk(&turn(number, turns))].concat();
                    stream.write_all(events.as_bytes())?;
                    std::thread::sleep(LATE);
                    stream.write_all(LAST_CHUNK.as_bytes())?;
                }
                Play::Text(bytes) => write_text(stream, bytes)?,
            }
        }
        Ok(())
    }

    /// Reads a head and answers how much of its body is still to come; `None` at the end.
    fn read_head(&self, mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut held = 0;
        loop {
            let read = stream.read(&mut buffer[held..])?;
            if read == 0 {
                return Ok(None);
            }
            held += read;
            let end = buffer[..held].windows(4).position(|at| at == b"\r\n\r\n");
            let Some(end) = end else { continue };
            if let Some(heads) = &self.heads {
                // Nobody may be interested any more.
                let _ = heads.send(Instant::now());
            }
            let length = content_length(&buffer[..end]).ok_or(io::ErrorKind::InvalidData)?;
            self.bytes.fetch_add(length as u64, Ordering::Relaxed);
            return Ok(Some(length.saturating_sub(held - end - 4)));
        }
    }
}

/// The events of the answer to a request, counted from the server's start.
fn turn(request: u64, turns: u64) -> String {
    match request % (turns + 1) {
        last if last == turns => events::words("done"),
        turn => events::read_call(turn),
    }
}

pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let (_, value) = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

pub(crate) fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

fn write_text(mut stream: &TcpStream, bytes: usize) -> io::Result<()> {
    let piece = chunk(&events::piece());
    stream.write_all([HEAD, &chunk(&events::text_opening())].concat().as_bytes())?;
    for _ in 0..bytes / events::PIECE {
        stream.write_all(piece.as_bytes())?;
    }
    let end = [&chunk(&events::text_closing()), LAST_CHUNK].concat();
    stream.write_all(end.as_bytes())
}

/// The server as a process of its own, so that its time is not counted as the client's.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Process {
    pub(crate) fn start(play: Play) -> anyhow::Result<Self> {
        let [kind, size] = play.words();
        let mut command = own(&["__server", &kind, &size])?;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let mut said = BufReader::new(child.stdout.take().context("the server is mute")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let address = line.trim().parse().context("the server has no address")?;
        Ok(Self {
            address,
            child,
            said,
        })
    }

    /// Ends it and answers what it has seen.
    pub(crate) fn finish(mut self) -> anyhow::Result<Seen> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        self.child.wait()?;
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next().context("the server's account is short");
        Ok(Seen {
            connections: next()??,
            requests: next()??,
            bytes: next()??,
        })
    }
}

/// `__server KIND SIZE`: prints its address, serves until standard input closes, prints what it
/// has seen. A parent that dies closes it too, so no server is left behind.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let play = Play::parse(words).with_context(|| format!("cannot play {words:?}"))?;
    let (server, address) = Server::listen(play, None)?;
    say::out(&address.to_string());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let seen = server.seen();
    say::out(&format!(
        "{} {} {}",
        seen.connections, seen.requests, seen.bytes
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_play_reads_back_what_it_wrote() {
        for play in [Play::Reads(5), Play::LateReads(6), Play::Text(7)] {
            let words = play.words();
            assert_eq!(Play::parse(&[&words[0], &words[1]]), Some(play));
        }
        assert_eq!(Play::parse(&["reads", "many"]), None);
    }

    #[test]
    fn requests_on_one_connection_are_answered_in_turn() {
        let (server, address) = Server::listen(Play::Reads(1), None).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        for want in ["\"tool_use\"", "\"done\"", "\"tool_use\""] {
            let request = "POST /v1/messages HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345";
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(LAST_CHUNK.as_bytes()) {
                let mut part = [0; 4096];
                let read = stream.read(&mut part).unwrap();
                answer.extend_from_slice(&part[..read]);
            }
            assert!(String::from_utf8(answer).unwrap().contains(want), "{want}");
        }
        let want = Seen {
            connections: 1,
            requests: 3,
            bytes: 15,
        };
        assert_eq!(server.seen(), want);
    }
}
