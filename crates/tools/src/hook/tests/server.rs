//! A tiny HTTP server on loopback: one answer a request, in the order given.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// One request as it came.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) line: String,
    /// Names in small letters.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(super) enum Response {
    Status(u16, String),
    /// It says that more follows than does.
    Cut(String),
    Never,
}

pub(super) fn ok(body: &(impl ToString + ?Sized)) -> Response {
    Response::Status(200, body.to_string())
}

/// Serves the replies; gives its address and the requests.
pub(super) fn serve(replies: Vec<Response>) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut waiting = Vec::new();
        for (reply, stream) in replies.into_iter().zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let request = read(&stream);
            // Whoever does not want the requests any more still wants its answers.
            drop(sender.send(request));
            let (head, body) = match reply {
                Response::Status(status, body) => (format!("{status} X"), body),
                Response::Cut(body) => ("200 OK\r\nX: ".to_owned(), body),
                Response::Never => {
                    waiting.push(stream);
                    continue;
                }
            };
            let length = body.len() + usize::from(head.contains('\n'));
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close");
            drop(stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()));
        }
        // Those without an answer keep their connection until nobody can be waiting any more.
        if !waiting.is_empty() {
            std::thread::sleep(Duration::from_secs(30));
        }
    });
    (address, receiver)
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut next = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let line = next();
    let mut headers = Vec::new();
    loop {
        let line = next();
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut request = Request {
        line,
        headers,
        body: String::new(),
    };
    let length = request.header("content-length").unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request.body = String::from_utf8(body).unwrap();
    request
}
