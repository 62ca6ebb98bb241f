//! A model server on loopback: plays a script on all three wires and keeps every request.

use crate::check::{Checker, asks_for_summary};
use crate::http::{Request, answer, begin_stream, end_stream, read_request, send};
use crate::limit::Limit;
use crate::{WireKind, decode, encode};
use gaffer_model::script::{Fault, Outcome, Player, Script, Speaker, Turn};
use gaffer_protocol::{Answer, Block, Json, StopReason, Usage};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// One request that arrived.
#[derive(Debug, Clone)]
pub struct Asked {
    pub wire: WireKind,
    /// The agent's name, from the header that tests configure.
    pub agent: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How many bytes of it a provider's cache would have read, and how many it covers.
    pub cached: usize,
    pub cacheable: usize,
}

impl Asked {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a request is JSON")
    }
}

/// Runs on a thread of its own until it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

/// Decides what an agent is answered, by its whole request.
pub type Decide = dyn Fn(&Speaker, &Value) -> Answer + Send + Sync;

struct Shared {
    player: Player,
    /// Decides instead of the script.
    decide: Option<Box<Decide>>,
    asked: Mutex<Vec<Asked>>,
    checkers: Mutex<HashMap<(WireKind, String), Checker>>,
    violations: Mutex<Vec<String>>,
    /// A stream is sent in pieces of so many bytes.
    piece: usize,
    limit: Option<Mutex<Limit>>,
    small: Option<Small>,
}

/// A model with a small context, which counts four bytes a token.
#[derive(Debug, Clone)]
pub struct Small {
    pub window: usize,
    /// What it answers when it is asked for a summary. That takes no step of the script.
    pub summary: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// How a server differs from one that simply plays its script.
#[derive(Default)]
struct Special {
    /// A stream is sent in pieces of so many bytes.
    piece: Option<usize>,
    limit: Option<Limit>,
    decide: Option<Box<Decide>>,
    small: Option<Small>,
}

impl Server {
    pub fn start(script: &str) -> Self {
        Self::listen(script, Special::default())
    }

    /// Sends streams in pieces of a given size, so that events arrive cut in odd places.
    pub fn with_pieces(script: &str, piece: usize) -> Self {
        let piece = Some(piece);
        Self::listen(
            script,
            Special {
                piece,
                ..Special::default()
            },
        )
    }

    /// Answers so many requests a second, and 429 to the rest.
    pub fn limited(script: &str, limit: Limit) -> Self {
        let limit = Some(limit);
        Self::listen(
            script,
            Special {
                limit,
                ..Special::default()
            },
        )
    }

    /// Refuses requests that are too long for its context.
    pub fn small(script: &str, small: Small) -> Self {
        let small = Some(small);
        Self::listen(
            script,
            Special {
                small,
                ..Special::default()
            },
        )
    }

    /// Answers by what a request says and nothing else: it knows no earlier request, so it makes
    /// no difference to it which process asks, and how often.
    pub fn deciding(decide: Box<Decide>) -> Self {
        let decide = Some(decide);
        Self::listen(
            "agents: []",
            Special {
                decide,
                ..Special::default()
            },
        )
    }

    fn listen(script: &str, special: Special) -> Self {
        let script = Script::parse(script).expect("the test's script");
        let shared = Arc::new(Shared {
            player: Player::new(script),
            decide: special.decide,
            asked: Mutex::default(),
            checkers: Mutex::default(),
            violations: Mutex::default(),
            piece: special.piece.unwrap_or(usize::MAX),
            limit: special.limit.map(Mutex::new),
            small: special.small,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let for_task = shared.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(stream.set_nodelay(true));
                let shared = for_task.clone();
                // The runtime owns the task and ends it with itself.
                drop(tokio::runtime::Handle::current().spawn(serve(stream, shared)));
            }
        });
        Self {
            address,
            shared,
            runtime: Some(runtime),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// What was wrong with the requests so far: nothing, in a sound client.
    pub fn violations(&self) -> Vec<String> {
        self.shared.violations.lock().unwrap().clone()
    }

    /// When requests came to a limited server, and which of them passed.
    pub fn passed(&self) -> Vec<(Instant, bool)> {
        let limit = self.shared.limit.as_ref();
        limit.map_or_else(Vec::new, |limit| limit.lock().unwrap().seen().to_vec())
    }

    pub fn left_over(&self) -> Vec<String> {
        self.shared.player.left_over()
    }
}

impl Drop for Server {
    /// No test ends well whose requests were not valid.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if !std::thread::panicking() {
            assert_eq!(self.violations(), [""; 0], "requests that break their wire");
        }
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await? {
        let Some(wire) = WireKind::of_path(&request.path) else {
            answer(&mut stream, 404, &[], "{\"error\":\"no such path\"}").await?;
            continue;
        };
        let agent = request
            .header("x-gaffer-agent")
            .unwrap_or("main")
            .to_owned();
        let agent_type = request
            .header("x-gaffer-type")
            .unwrap_or_default()
            .to_owned();
        note(wire, &agent, &request, &shared);
        let limit = shared.limit.as_ref();
        if let Some(fault) = limit.and_then(|limit| limit.lock().unwrap().take())
            && let Some((status, headers, body)) = refusal(&fault)
        {
            answer(&mut stream, status, &headers, &body).await?;
            continue;
        }
        let speaker = Speaker {
            id: agent.clone(),
            name: agent,
            agent_type,
        };
        let own = shared.small.as_ref().and_then(|it| it.answer(&request));
        let turn = match (own, &shared.decide) {
            (Some(turn), _) => Ok(turn),
            (None, Some(decide)) => {
                let body = serde_json::from_slice(&request.body).unwrap_or_default();
                Ok(Turn {
                    delay: Duration::ZERO,
                    outcome: Outcome::Answer(decide(&speaker, &body)),
                })
            }
            (None, None) => shared
                .player
                .next(&speaker, &decode::input(wire, &request.body)),
        };
        match turn {
            Ok(mut turn) => {
                if shared.small.is_some() {
                    count(&mut turn, request.body.len());
                }
                if !play(&mut stream, wire, turn, shared.piece).await? {
                    return Ok(());
                }
            }
            Err(mismatch) => {
                let body = json!({"error": {"type": "invalid_request_error", "message": mismatch.to_string()}});
                answer(&mut stream, 400, &[], &body.to_string()).await?;
            }
        }
    }
    Ok(())
}

impl Small {
    /// What it answers by itself: that a request is too long, or a summary.
    fn answer(&self, request: &Request) -> Option<Turn> {
        let is_too_long = request.body.len() / 4 > self.window;
        let is_question = asks_for_summary(&String::from_utf8_lossy(&request.body));
        let summary = Answer {
            blocks: vec![Block::text(self.summary.clone())],
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            model: "scripted".to_owned(),
        };
        let outcome = match (is_too_long, is_question) {
            (true, _) => Outcome::Fault(Fault::PromptTooLong, summary),
            (false, true) => Outcome::Answer(summary),
            (false, false) => return None,
        };
        let delay = Duration::ZERO;
        Some(Turn { delay, outcome })
    }
}

/// Says how many tokens a request and its answer had.
fn count(turn: &mut Turn, bytes: usize) {
    if let Outcome::Answer(answer) = &mut turn.outcome {
        let size = |block: &Block| Json::of(block).as_str().len() as u64;
        let written = answer.blocks.iter().map(size).sum::<u64>();
        answer.usage = Usage {
            input: bytes as u64 / 4,
            // So that short answers are easy to add up.
            output: (written / 4).max(100),
            ..Usage::default()
        };
    }
}

fn note(wire: WireKind, agent: &str, request: &Request, shared: &Shared) {
    let mut checkers = shared.checkers.lock().unwrap();
    let checker = checkers.entry((wire, agent.to_owned())).or_default();
    let (cached, cacheable) = checker.take(wire, request, &mut shared.violations.lock().unwrap());
    let window = shared.small.as_ref().map(|small| small.window);
    checker.may_restart |= window.is_some_and(|window| request.body.len() / 4 > window);
    shared.asked.lock().unwrap().push(Asked {
        wire,
        agent: agent.to_owned(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        cached,
        cacheable,
    });
}

/// Plays one attempt; `false` if the connection is to be dropped.
async fn play(
    stream: &mut TcpStream,
    wire: WireKind,
    turn: Turn,
    piece: usize,
) -> io::Result<bool> {
    if !turn.delay.is_zero() {
        tokio::time::sleep(turn.delay).await;
    }
    let (fault, whole) = match turn.outcome {
        Outcome::Answer(whole) => (None, whole),
        Outcome::Fault(fault, whole) => (Some(fault), whole),
    };
    let events = encode::events(wire, &whole);
    let Some(fault) = fault else {
        begin_stream(stream).await?;
        for part in events.concat().as_bytes().chunks(piece) {
            send(stream, part).await?;
        }
        end_stream(stream).await?;
        return Ok(true);
    };
    if let Some((status, headers, body)) = refusal(&fault) {
        answer(stream, status, &headers, &body).await?;
        return Ok(true);
    }
    if fault == Fault::Disconnect {
        return Ok(false);
    }
    if fault == Fault::Hang {
        std::future::pending::<()>().await;
    }
    begin_stream(stream).await?;
    // All but the end: the final event and what leads up to it.
    let begun = encode::without_end(wire, &events);
    send(stream, begun.as_bytes()).await?;
    match fault {
        Fault::Cut => end_stream(stream).await?,
        Fault::Garbled => {
            send(
                stream,
                b"data: {\"type\":\"content_block_de\n\n: noise\n\ndata: }{\n\n",
            )
            .await?;
            send(stream, events.concat().as_bytes()).await?;
            end_stream(stream).await?;
        }
        Fault::OverloadedInside => {
            send(stream, encode::overloaded(wire).as_bytes()).await?;
            end_stream(stream).await?;
        }
        Fault::Flood => {
            let megabyte = vec![b'x'; 1 << 20];
            // Until the client has had enough.
            while send(stream, &megabyte).await.is_ok() {}
        }
        _ => std::future::pending::<()>().await,
    }
    Ok(false)
}

type Refusal = (u16, Vec<(&'static str, String)>, String);

/// Faults that are an answer of their own.
fn refusal(fault: &Fault) -> Option<Refusal> {
    let json = |status: u16, kind: &str, message: &str| {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Some((
            status,
            vec![("content-type", "application/json".to_owned())],
            body.to_string(),
        ))
    };
    match fault {
        Fault::Overloaded => json(529, "overloaded_error", "Overloaded"),
        Fault::ServerError => json(500, "api_error", "internal error"),
        Fault::Unauthorized => json(401, "authentication_error", "invalid key"),
        Fault::Forbidden => json(403, "permission_error", "forbidden"),
        Fault::BadRequest(words) => json(400, "invalid_request_error", words),
        Fault::PromptTooLong => json(
            400,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8",
        ),
        Fault::RateLimited(limit) => {
            let (status, mut headers, body) = json(429, "rate_limit_error", "slow down")?;
            let wait = limit
                .retry_after
                .map(|wait| ("retry-after", wait.0.as_secs_f64().to_string()));
            headers.extend(wait);
            Some((status, headers, body))
        }
        Fault::Html => {
            let headers = vec![("content-type", "text/html".to_owned())];
            Some((
                200,
                headers,
                "<html><body>Welcome to the proxy</body></html>".to_owned(),
            ))
        }
        _ => None,
    }
}
