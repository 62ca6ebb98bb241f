//! Pages on loopback, for tests of what reads the web.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One page.
#[derive(Debug, Clone)]
pub struct Page {
    kind: &'static str,
    body: String,
}

impl Page {
    pub fn html(body: &str) -> Self {
        Self {
            kind: "text/html; charset=utf-8",
            body: body.to_owned(),
        }
    }

    pub fn json(body: &str) -> Self {
        Self {
            kind: "application/json",
            body: body.to_owned(),
        }
    }
}

impl Page {
    /// A stream of server-sent events.
    pub fn events(body: &str) -> Self {
        Self {
            kind: "text/event-stream",
            body: body.to_owned(),
        }
    }
}

/// A server of pages by their paths. It ends with the process.
#[derive(Debug)]
pub struct Pages {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request: what was asked for, queries included, and the body that came with it.
type Asked = (String, String);

impl Pages {
    pub fn serve<'a>(pages: impl IntoIterator<Item = (&'a str, Page)>) -> Self {
        let pages: BTreeMap<String, Page> = pages
            .into_iter()
            .map(|(path, page)| (path.to_owned(), page))
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up early is no concern of the others.
                drop(answer(stream, &pages, &kept));
            }
        });
        Self { address, asked }
    }

    pub fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What was asked for so far, queries included.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(target, _)| target.clone()).collect()
    }

    /// What came with the requests so far.
    pub fn bodies(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(_, body)| body.clone()).collect()
    }
}

fn answer(
    mut stream: TcpStream,
    pages: &BTreeMap<String, Page>,
    asked: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let came = String::from_utf8_lossy(&body).into_owned();
    let target = first.split(' ').nth(1).unwrap_or("/").to_owned();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    asked.lock().unwrap().push((target, came));
    let (status, kind, body) = match pages.get(&path) {
        Some(page) => ("200 OK", page.kind, page.body.as_str()),
        None => ("404 Not Found", "text/plain", "not here"),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
