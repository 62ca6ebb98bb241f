//! Just enough HTTP/1.1 to be a server whose every byte the test decides.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The next request on a connection; `None` when the client has closed it.
pub(crate) async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    let Some(head_end) = head(stream, buffer).await? else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1));
    let path = path.unwrap_or_default().to_owned();
    let headers = headers(lines);
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    while buffer.len() < head_end + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = buffer[head_end..head_end + length].to_vec();
    buffer.drain(..head_end + length);
    Ok(Some(Request {
        path,
        headers,
        body,
    }))
}

/// Reads until a head is whole; answers where it ends, or `None` where nothing more comes.
async fn head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(Some(at + 4));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect()
}

/// A whole answer that is no stream.
pub(crate) async fn answer(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

pub(crate) async fn begin_stream(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await
}

/// One chunk of the body. Empty ones would end it.
pub(crate) async fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).await
}

pub(crate) async fn end_stream(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n").await
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What is left of a body whose length is known.
    left: Option<usize>,
}

/// The head of an answer.
pub(crate) async fn read_answer(mut stream: TcpStream) -> io::Result<Answering> {
    let mut buffer = Vec::new();
    let head_end = head(&mut stream, &mut buffer).await?;
    let head_end = head_end.ok_or(io::ErrorKind::UnexpectedEof)?;
    let text = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    buffer.drain(..head_end);
    let mut lines = text.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = headers(lines);
    let length = headers.iter().find(|(name, _)| name == "content-length");
    Ok(Answering {
        status: status.ok_or(io::ErrorKind::InvalidData)?,
        left: length.and_then(|(_, value)| value.parse().ok()),
        headers,
        stream,
        buffer,
    })
}

impl Answering {
    /// The next piece of the body, or nothing at its end.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (length, is_chunk) = match self.left.take() {
            Some(length) => (length, false),
            None => match self.chunk_length().await? {
                Some(length) => (length, true),
                None => return Ok(None),
            },
        };
        let whole = length + if is_chunk { 2 } else { 0 };
        while self.buffer.len() < whole {
            self.more().await?;
        }
        let mut piece: Vec<u8> = self.buffer.drain(..whole).collect();
        piece.truncate(length);
        Ok((length > 0).then_some(piece))
    }

    async fn chunk_length(&mut self) -> io::Result<Option<usize>> {
        let is_chunked = |(name, _): &(String, String)| name == "transfer-encoding";
        if !self.headers.iter().any(is_chunked) {
            return Ok(None);
        }
        let end = loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                break at;
            }
            self.more().await?;
        };
        let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
        let text = String::from_utf8_lossy(&line[..end]);
        let length = usize::from_str_radix(text.trim(), 16);
        Ok(Some(length.map_err(io::Error::other)?))
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
