//! Hooks that are servers: the event is posted, the reply is the body.

use super::command::LARGEST_REPLY;
use super::config::HttpHook;
use super::outcome::{Reply, Text};
use super::run::Variables;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Posts the event. Whatever the reply says, a status alone decides nothing.
pub(super) async fn post(
    hook: &HttpHook,
    clients: &Clients,
    variables: &Variables,
    input: &str,
    time: Duration,
) -> Reply {
    let exchange = exchange(hook, clients, variables, input);
    match tokio::time::timeout(time, exchange).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(why)) => Reply::NotStarted(why),
        Err(_) => Reply::TimedOut(time),
    }
}

async fn exchange(
    hook: &HttpHook,
    clients: &Clients,
    variables: &Variables,
    input: &str,
) -> Result<Reply, String> {
    let url = address(hook)?;
    let headers = headers(hook, variables)?;
    let request = clients
        .get(&url)?
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .headers(headers)
        .body(input.to_owned());
    // An error of the client may hold the address with its query, which may hold a key.
    let response = request.send().await.map_err(|error| cause(&error))?;
    let status = response.status();
    let body = body(response).await?;
    if status.is_success() {
        return Ok(Reply::Exited {
            code: 0,
            stdout: body,
            stderr: String::new(),
        });
    }
    let line = body.text.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().take(300).collect();
    Ok(Reply::Failed(format!(
        "answered with HTTP {status}: {line}"
    )))
}

/// The body as far as it is bearable.
async fn body(mut response: Response) -> Result<Text, String> {
    let mut bytes = Vec::new();
    let mut is_whole = true;
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| format!("its answer broke off: {}", cause(&error)))?
    {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LARGEST_REPLY {
            is_whole = false;
            break;
        }
    }
    Ok(Text {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        is_whole,
    })
}

/// What can be checked before the first request.
pub(super) fn check(hook: &HttpHook) -> Result<(), String> {
    address(hook)?;
    hook.headers
        .keys()
        .try_for_each(|name| header_name(name).map(|_| ()))
}

fn address(hook: &HttpHook) -> Result<Url, String> {
    let url = Url::parse(&hook.url).map_err(|why| format!("`url` is no address: {why}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("`url` begins with {other}:, not http: or https:")),
    }
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` cannot be the name of a header"))
}

fn headers(hook: &HttpHook, variables: &Variables) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &hook.headers {
        let fill = |piece| match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Variable(name) if hook.allows(name) => variables(name).unwrap_or_default(),
            Piece::Variable(_) => String::new(),
        };
        let filled: String = pieces(value).into_iter().map(fill).collect();
        // The value may be a secret: the error does not show it.
        let mut value = HeaderValue::from_str(&filled)
            .map_err(|_| format!("the header `{name}` has characters that HTTP does not allow"))?;
        value.set_sensitive(true);
        headers.insert(header_name(name)?, value);
    }
    Ok(headers)
}

/// A piece of a header's value.
enum Piece<'a> {
    Text(&'a str),
    /// `$NAME` or `${NAME}`.
    Variable(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(in_name) && !name.starts_with(|c: char| c.is_numeric())
    };
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        let braced = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        let bare = after.split_at(after.find(|c| !in_name(c)).unwrap_or(after.len()));
        let (name, behind) = braced.unwrap_or(bare);
        pieces.push(Piece::Text(before));
        if is_name(name) {
            pieces.push(Piece::Variable(name));
            rest = behind;
        } else {
            pieces.push(Piece::Text("$"));
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The variables that headers name without being allowed to, each with its header.
pub(super) fn unlisted(hook: &HttpHook) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (header, value) in &hook.headers {
        for piece in pieces(value) {
            if let Piece::Variable(name) = piece
                && !hook.allows(name)
            {
                found.push((header.as_str(), name));
            }
        }
    }
    found
}

/// Clients, made when they are needed first.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Vec<(Way, Client)>>);

/// What a client is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    is_secure: bool,
    /// A server on this machine is behind no proxy.
    is_local: bool,
}

impl Clients {
    fn get(&self, url: &Url) -> Result<Client, String> {
        let host = url.host_str().unwrap_or_default();
        let way = Way {
            is_secure: url.scheme() == "https",
            is_local: host == "localhost" || host == "[::1]" || host.starts_with("127."),
        };
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == way) {
            return Ok(client.clone());
        }
        let client = build(way).map_err(|why| format!("no HTTP client could be made: {why}"))?;
        clients.push((way, client.clone()));
        Ok(client)
    }
}

fn build(way: Way) -> Result<Client, String> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls(way.is_secure)?)
        .connect_timeout(Duration::from_secs(20))
        // The headers are for this address and no other.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("gaffer/", env!("CARGO_PKG_VERSION")));
    let builder = match way.is_local {
        true => builder.no_proxy(),
        false => builder,
    };
    builder.build().map_err(|error| cause(&error))
}

/// The system's certificates are read only where they are needed: a local server needs none.
fn tls(is_secure: bool) -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if !is_secure {
        return Ok(builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth());
    }
    let verified = builder.with_platform_verifier();
    let verified = verified.map_err(|error| error.to_string())?;
    Ok(verified.with_no_client_auth())
}

/// The innermost cause says what happened; the layers around it only that something did.
fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}
