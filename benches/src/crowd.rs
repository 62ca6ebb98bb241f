//! A model server for a whole crew: a coordinator that starts workers, and workers that read. One
//! thread for all connections, nothing parsed beyond what tells one turn from another.

use crate::process::own;
use crate::server::{HEAD, LAST_CHUNK, chunk, content_length};
use crate::{events, say};
use anyhow::{Context, ensure};
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// What is played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// So many workers in one answer of the coordinator.
    pub(crate) workers: u64,
    /// So often, each time when all before have given their answers.
    pub(crate) rounds: u64,
    /// So many calls of Read, one a turn, and then a word.
    pub(crate) reads: u64,
    /// Before each answer, in milliseconds: of the coordinator, and of a worker.
    pub(crate) coordinator_delay: u64,
    pub(crate) worker_delay: u64,
    /// Not in rounds, but so many at any time: for each that has ended another one is started.
    /// None if zero.
    pub(crate) live: u64,
    /// So long is a worker's last answer, and every second call is one of Bash. None if zero.
    pub(crate) big: u64,
}

impl Plan {
    fn words(self) -> [String; 7] {
        let Self {
            workers,
            rounds,
            reads,
            coordinator_delay,
            worker_delay,
            live,
            big,
        } = self;
        let all = [
            workers,
            rounds,
            reads,
            coordinator_delay,
            worker_delay,
            live,
            big,
        ];
        all.map(|it| it.to_string())
    }

    fn parse(words: &[&str]) -> Option<Self> {
        let numbers: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
        let [
            workers,
            rounds,
            reads,
            coordinator_delay,
            worker_delay,
            live,
            big,
        ] = numbers.ok()?[..]
        else {
            return None;
        };
        Some(Self {
            workers,
            rounds,
            reads,
            coordinator_delay,
            worker_delay,
            live,
            big,
        })
    }
}

/// What it has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) connections: u64,
    /// Requests of the coordinator, and of workers.
    pub(crate) coordinator: u64,
    pub(crate) workers: u64,
    /// Last answers of workers.
    pub(crate) finished: u64,
    /// Requests of workers that waited for their answers at one time.
    pub(crate) most_in_flight: u64,
    /// From the last byte of a worker's last answer to the coordinator's next request, where it
    /// was the one thing that the coordinator waited for.
    pub(crate) wakes: Vec<Duration>,
}

/// One request, kept whole.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) is_coordinator: bool,
    pub(crate) body: Vec<u8>,
    pub(crate) arrived: Instant,
    /// When its answer began.
    pub(crate) answered: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    in_flight: u64,
    started: u64,
    has_just_started: bool,
    /// When a worker's last byte went out that the coordinator has not been seen to hear of.
    last_byte: Option<Instant>,
    kept: Vec<Kept>,
}

#[derive(Debug)]
pub(crate) struct Crowd {
    plan: Plan,
    keeps: bool,
    state: Mutex<State>,
}

/// Whose turn it is, and what is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Start { from: u64, count: u64 },
    Word,
    Read(u64),
    Last,
}

impl Crowd {
    /// Serves on a thread of this process until it ends. `keeps` has it keep every request whole.
    pub(crate) fn listen(plan: Plan, keeps: bool) -> anyhow::Result<(Arc<Self>, SocketAddr)> {
        let crowd = Arc::new(Self {
            plan,
            keeps,
            state: Mutex::default(),
        });
        let all = crowd.clone();
        let (sender, address) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                // It ends only with an error, and then nobody can connect, which is seen.
                drop(runtime.block_on(all.serve(&sender)));
            }
        });
        Ok((crowd, address.recv().context("no server came up")?))
    }

    pub(crate) fn seen(&self) -> Seen {
        self.state().seen.clone()
    }

    pub(crate) fn take_kept(&self) -> Vec<Kept> {
        std::mem::take(&mut self.state().kept)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>, address: &mpsc::Sender<SocketAddr>) -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        // Whoever asked for the server waits for this.
        let _ = address.send(listener.local_addr()?);
        let tasks = TaskTracker::new();
        loop {
            let (stream, _) = listener.accept().await?;
            self.state().seen.connections += 1;
            let one = self.clone();
            // A connection that breaks is the client's to report.
            tasks.spawn(async move { drop(one.talk(stream).await) });
        }
    }

    async fn talk(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(32 << 10);
        loop {
            buffer.clear();
            let body = loop {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
                if let Some(end) = memchr::memmem::find(&buffer, b"\r\n\r\n") {
                    break end + 4;
                }
            };
            let arrived = Instant::now();
            let length = content_length(&buffer[..body]).ok_or(io::ErrorKind::InvalidData)?;
            while buffer.len() < body + length {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            self.answer(&mut stream, &buffer[body..], arrived).await?;
        }
    }

    async fn answer(&self, stream: &mut TcpStream, body: &[u8], at: Instant) -> io::Result<()> {
        let is_coordinator = is_coordinator(body);
        let (turn, place) = self.take(is_coordinator, body, at);
        let delay = match is_coordinator {
            true => self.plan.coordinator_delay,
            false => self.plan.worker_delay,
        };
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let events = match turn {
            Turn::Start { from, count } => events::agent_calls(from, count),
            Turn::Word => events::words("well"),
            Turn::Read(turn) if self.plan.big > 0 && turn % 2 == 1 => events::bash_call(turn),
            Turn::Read(turn) => events::read_call(turn),
            Turn::Last => events::words(&events::last_words(self.plan.big)),
        };
        {
            let mut state = self.state();
            if !is_coordinator {
                state.in_flight -= 1;
            }
            if let Some(kept) = place.and_then(|place| state.kept.get_mut(place)) {
                kept.answered = Some(Instant::now());
            }
            if turn == Turn::Last {
                state.seen.finished += 1;
                state.last_byte = Some(Instant::now());
            }
        }
        let whole = [HEAD, &chunk(&events), LAST_CHUNK].concat();
        stream.write_all(whole.as_bytes()).await
    }

    /// Takes note of a request; answers whose turn it is, and where the request is kept.
    fn take(&self, is_coordinator: bool, body: &[u8], arrived: Instant) -> (Turn, Option<usize>) {
        let mut state = self.state();
        let place = self.keeps.then(|| {
            state.kept.push(Kept {
                is_coordinator,
                body: body.to_vec(),
                arrived,
                answered: None,
            });
            state.kept.len() - 1
        });
        let turn = match is_coordinator {
            true => state.coordinator(self.plan, arrived),
            false => state.worker(self.plan, body),
        };
        (turn, place)
    }
}

impl State {
    fn coordinator(&mut self, plan: Plan, arrived: Instant) -> Turn {
        self.seen.coordinator += 1;
        let woken = self.last_byte.take();
        if plan.live > 0 {
            return self.replace_ended(plan);
        }
        if std::mem::take(&mut self.has_just_started) {
            return Turn::Word;
        }
        self.seen
            .wakes
            .extend(woken.map(|sent| arrived.saturating_duration_since(sent)));
        let is_over = self.started == plan.workers * plan.rounds;
        if is_over || self.seen.finished < self.started {
            return Turn::Word;
        }
        let from = self.started;
        self.started += plan.workers;
        self.has_just_started = true;
        Turn::Start {
            from,
            count: plan.workers,
        }
    }

    fn replace_ended(&mut self, plan: Plan) -> Turn {
        let missing = (self.seen.finished + plan.live).saturating_sub(self.started);
        let count = missing.min((plan.workers * plan.rounds).saturating_sub(self.started));
        if count == 0 {
            return Turn::Word;
        }
        let from = self.started;
        self.started += count;
        Turn::Start { from, count }
    }

    fn worker(&mut self, plan: Plan, body: &[u8]) -> Turn {
        self.seen.workers += 1;
        self.in_flight += 1;
        self.seen.most_in_flight = self.seen.most_in_flight.max(self.in_flight);
        match reads_done(body) {
            done if done >= plan.reads => Turn::Last,
            done => Turn::Read(done),
        }
    }
}

/// Managing is the coordinator's alone, and tools stand at a request's beginning.
fn is_coordinator(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"\"name\":\"SendMessage\"").is_some()
}

/// A worker's reads so far: ids are numbered, and the last one counts.
fn reads_done(body: &[u8]) -> u64 {
    let Some(at) = memchr::memmem::rfind(body, b"\"toolu_") else {
        return 0;
    };
    let digits = body[at + 7..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')) + 1
}

/// The server as a process of its own, so that its time is not counted as the client's.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Process {
    pub(crate) fn start(plan: Plan) -> anyhow::Result<Self> {
        let words = plan.words();
        let mut all = vec!["__crowd"];
        all.extend(words.iter().map(String::as_str));
        let mut command = own(&all)?;
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
        let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
        let numbers = numbers.context("the server's account is garbled")?;
        ensure!(numbers.len() >= 5, "the server's account is short");
        Ok(Seen {
            connections: numbers[0],
            coordinator: numbers[1],
            workers: numbers[2],
            finished: numbers[3],
            most_in_flight: numbers[4],
            wakes: numbers[5..]
                .iter()
                .map(|nanos| Duration::from_nanos(*nanos))
                .collect(),
        })
    }
}

/// `__crowd …`: prints its address, serves until standard input closes, prints what it has seen.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let plan = Plan::parse(words).with_context(|| format!("cannot play {words:?}"))?;
    let (crowd, address) = Crowd::listen(plan, false)?;
    say::out(&address.to_string());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let seen = crowd.seen();
    let mut line = format!(
        "{} {} {} {} {}",
        seen.connections, seen.coordinator, seen.workers, seen.finished, seen.most_in_flight
    );
    for wake in &seen.wakes {
        line.push_str(&format!(" {}", wake.as_nanos()));
    }
    say::out(&line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        workers: 2,
        rounds: 1,
        reads: 2,
        coordinator_delay: 0,
        worker_delay: 0,
        live: 0,
        big: 0,
    };

    #[test]
    fn a_plan_reads_back_what_it_wrote() {
        let words = PLAN.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(Plan::parse(&words), Some(PLAN));
        assert_eq!(Plan::parse(&words[1..]), None);
    }

    #[test]
    fn turns_follow_from_what_was_asked() {
        let mut state = State::default();
        let now = Instant::now();
        let all = Turn::Start { from: 0, count: 2 };
        assert_eq!(state.coordinator(PLAN, now), all);
        assert_eq!(state.coordinator(PLAN, now), Turn::Word);
        assert_eq!(state.coordinator(PLAN, now), Turn::Word, "all are started");
        assert_eq!(state.worker(PLAN, b"{}"), Turn::Read(0));
        let body = format!("\"tool_use_id\":\"{}\" more", events::call_id(0));
        assert_eq!(state.worker(PLAN, body.as_bytes()), Turn::Read(1));
        let body = format!("{body}\"tool_use_id\":\"{}\"", events::call_id(1));
        assert_eq!(state.worker(PLAN, body.as_bytes()), Turn::Last);
        assert_eq!(state.seen.most_in_flight, 3);
    }
    #[test]
    fn whoever_has_ended_is_replaced() {
        let plan = Plan {
            workers: 5,
            live: 3,
            ..PLAN
        };
        let mut state = State::default();
        let now = Instant::now();
        let mut starts = |finished| {
            state.seen.finished = finished;
            state.coordinator(plan, now)
        };
        assert_eq!(starts(0), Turn::Start { from: 0, count: 3 });
        assert_eq!(starts(0), Turn::Word);
        assert_eq!(starts(1), Turn::Start { from: 3, count: 1 });
        assert_eq!(starts(3), Turn::Start { from: 4, count: 1 });
        assert_eq!(starts(5), Turn::Word);
    }
}
