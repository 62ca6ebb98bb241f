//! Pages on loopback, for tests of what reads the web.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
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

/// A server of pages by their paths. It ends with the process.
#[derive(Debug)]
pub struct Pages {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

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
        self.asked.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    pages: &BTreeMap<String, Page>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let target = first.split(' ').nth(1).unwrap_or("/").to_owned();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    asked.lock().unwrap().push(target);
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
