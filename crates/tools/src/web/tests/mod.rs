//! The web tools against a real server on loopback.

mod fetch;
mod names;
mod search;

use super::address::{Allow, Lookup};
use super::client::Limits;
use super::fetch::{Web, WebFetch};
use crate::testing::call;
use crate::tool::{Tool, erase};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers each request, by its path, with pieces of bytes, each after a pause.
struct Server {
    at: SocketAddr,
    /// The heads of all requests.
    heard: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Pieces = Vec<(u64, Vec<u8>)>;

impl Server {
    async fn start(answer: impl Fn(&str) -> Pieces + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(answer);
        let notes = heard.clone();
        let handle = tokio::runtime::Handle::current();
        let task = handle.spawn(async move {
            let handle = tokio::runtime::Handle::current();
            while let Ok((stream, _)) = listener.accept().await {
                drop(handle.spawn(serve(stream, answer.clone(), notes.clone())));
            }
        });
        Self { at, heard, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn requests(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<impl Fn(&str) -> Pieces>,
    heard: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
        }
        // Not HTTP: the beginning of a TLS connection is heard as it is.
        if head.first() == Some(&0x16) {
            break;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heard.lock().unwrap().push(head);
    for (pause, bytes) in answer(&path) {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Pieces {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    vec![(0, [head.as_bytes(), body].concat())]
}

fn page(kind: &str, body: impl AsRef<[u8]>) -> Pieces {
    reply("200 OK", &format!("content-type: {kind}\r\n"), body)
}

fn redirect(to: &str) -> Pieces {
    reply("302 Found", &format!("location: {to}\r\n"), "")
}

/// Names as the test has them.
#[derive(Debug)]
struct Names(Vec<(&'static str, Vec<&'static str>)>);

impl Lookup for Names {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let known = self.0.iter().find(|(name, _)| *name == host);
        let found = known.map(|(_, found)| found.iter().map(|ip| ip.parse().unwrap()).collect());
        Box::pin(async move { found.ok_or_else(|| io::Error::other(format!("no name {host}"))) })
    }
}

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(5),
        body: 1000,
        redirects: 5,
    }
}

fn web(allow: &[&str], limits: Limits) -> Web {
    let names = Names(vec![
        ("a.example", vec!["127.0.0.1"]),
        ("www.a.example", vec!["127.0.0.1"]),
        ("xn--bcher-kva.example", vec!["127.0.0.1"]),
        ("inside.example", vec!["10.0.0.1", "fd00::1"]),
        ("mixed.example", vec!["127.0.0.9", "127.0.0.1"]),
        ("nowhere.example", vec![]),
    ]);
    Web::with_lookup(Allow::parse(allow).unwrap(), limits, Arc::new(names))
}

fn tool(web: Web) -> Arc<dyn Tool> {
    erase(WebFetch::new(Arc::new(web), None))
}

async fn fetch(url: &str, allow: &[&str]) -> (String, bool) {
    let tool = tool(web(allow, limits()));
    call(&*tool, json!({"url": url, "prompt": "what?"})).await
}

async fn assert_error(url: &str, allow: &[&str], want: &str) {
    let (text, is_error) = fetch(url, allow).await;
    assert!(is_error && text.contains(want), "{url}: {text}");
}

const LOCAL: &[&str] = &["127.0.0.1"];
