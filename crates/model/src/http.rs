//! One request over HTTP: sent whole, read as a stream, under its deadlines.

use crate::conversation::{Conversation, Prefix, Who};
use crate::error::{ErrorKind, ModelError};
use crate::provider::Deadlines;
use crate::sse::{Parser, SseError};
use crate::wire::{Decoder, Wire, http_error};
use crate::{DeltaSink, Model};
use futures_util::future::BoxFuture;
use gaffer_protocol::Answer;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, Version};
use secrecy::{ExposeSecret, SecretString};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// An event of this size is no answer. The Responses wire repeats the whole answer in its last
/// event, so the limit is that of an answer.
const LARGEST_EVENT: usize = 64 << 20;
/// No answer is longer; a server that streams for ever is cut off here.
const LARGEST_ANSWER: usize = 192 << 20;
/// So much of an error's body is read.
const LARGEST_ERROR: usize = 64 << 10;
/// Streams on one client. A client has one HTTP/2 connection to a host, and servers commonly allow
/// a hundred streams on it: the next stream would wait for another to end.
const STREAMS_A_CLIENT: u32 = 64;

/// A model behind a wire and an address. Its `answer` is one attempt.
#[derive(Debug)]
pub(crate) struct HttpModel {
    pub(crate) name: String,
    pub(crate) wire: Arc<dyn Wire>,
    pub(crate) url: Url,
    pub(crate) key: Option<SecretString>,
    /// Headers from settings, where `${agent}` and `${agent_type}` stand for who asks.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) deadlines: Deadlines,
    pub(crate) pool: Pool,
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        Conversation::new(self.wire.clone(), prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.attempt(conversation, deltas))
    }
}

impl HttpModel {
    async fn attempt(
        &self,
        conversation: &Conversation,
        deltas: &mut DeltaSink<'_>,
    ) -> Result<Answer, ModelError> {
        let (client, _stream) = self.pool.client(self.url.scheme() == "https")?;
        let headers = self.header_map(conversation.who())?;
        let body = reqwest::Body::wrap(conversation.request());
        let request = client
            .post(self.url.clone())
            .headers(headers)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let first_byte = Instant::now() + self.deadlines.first_byte;
        let late = |_| no_first_byte(self.deadlines.first_byte);
        let sent = timeout_at(first_byte, request.send());
        let response = sent.await.map_err(late)?;
        let response = response.map_err(|error| {
            self.pool.forget();
            connection(&error)
        })?;
        self.pool.learn(response.version());
        let response = self.check(response).await?;
        let decoder = self.wire.decoder();
        read_stream(response, decoder, self.deadlines, first_byte, deltas).await
    }

    fn header_map(&self, who: &Who) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        let key = self.key.as_ref().map(ExposeSecret::expose_secret);
        let own = self.wire.headers(key);
        let own = own
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let extra = self.headers.iter().map(|(name, value)| {
            let value = value
                .replace("${agent}", who.name.as_str())
                .replace("${agent_type}", &who.agent_type);
            (name.clone(), value)
        });
        for (name, value) in own.chain(extra) {
            let (name, value) =
                header(&name, &value).map_err(|why| ModelError::new(ErrorKind::BadRequest, why))?;
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// Whether key and headers are of a form that can be sent at all.
    pub(crate) fn check_headers(&self) -> Result<(), String> {
        let key = self.key.as_ref().map(ExposeSecret::expose_secret);
        for (name, value) in self.wire.headers(key) {
            header(name, &value)?;
        }
        self.headers
            .iter()
            .try_for_each(|(name, value)| header(name, value).map(|_| ()))
    }

    /// Turns every answer that is not a stream of events into an error.
    async fn check(&self, mut response: Response) -> Result<Response, ModelError> {
        let status = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.to_ascii_lowercase();
        let is_other = kind.contains("html") || kind.contains("json") || kind.contains("xml");
        if status == 200 && !is_other {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let mut body = Vec::new();
        // Whatever cannot be read of an error's body is no loss.
        while let Ok(Ok(Some(chunk))) = timeout(self.deadlines.silence, response.chunk()).await
            && body.len() < LARGEST_ERROR
        {
            body.extend_from_slice(&chunk);
        }
        let body = String::from_utf8_lossy(&body);
        if status != 200 {
            return Err(http_error(status, &body, retry_after));
        }
        let mut error = http_error(status, &body, None);
        error.kind = ErrorKind::NotAStream;
        error.message = format!("{} answered with {kind}: {}", self.url, error.message);
        Err(error)
    }
}

async fn read_stream(
    mut response: Response,
    mut decoder: Box<dyn Decoder>,
    deadlines: Deadlines,
    first_byte: Instant,
    deltas: &mut DeltaSink<'_>,
) -> Result<Answer, ModelError> {
    let mut parser = Parser::new(LARGEST_EVENT);
    let mut total = 0;
    let mut deadline = first_byte;
    loop {
        let read = timeout_at(deadline, response.chunk()).await;
        let chunk = read.map_err(|_| match total {
            0 => no_first_byte(deadlines.first_byte),
            _ => {
                let message = format!("nothing came for {} s", deadlines.silence.as_secs_f32());
                ModelError::new(ErrorKind::Silent, message)
            }
        })?;
        let chunk = chunk.map_err(|error| ModelError::new(ErrorKind::Cut, cause(&error)))?;
        let Some(chunk) = chunk else {
            let message = "the stream ended before its final event";
            return Err(ModelError::new(ErrorKind::Cut, message));
        };
        deadline = Instant::now() + deadlines.silence;
        total += chunk.len();
        if total > LARGEST_ANSWER {
            let message = format!("over {LARGEST_ANSWER} bytes");
            return Err(ModelError::new(ErrorKind::TooLarge, message));
        }
        let found = parser.feed(&chunk, |event| decoder.event(event, deltas))?;
        if let Some(answer) = found {
            drain(response).await;
            return Ok(answer);
        }
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let bad = || format!("the key or the header `{name}` has characters that HTTP does not allow");
    let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
    value.set_sensitive(true);
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
    Ok((name, value))
}

/// The answer is whole, but a connection can be used again only when its body has come to its end,
/// which a server may send a moment later. A new one costs far more than that moment.
async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    drop(timeout(Duration::from_millis(20), rest).await);
}

impl From<SseError> for ModelError {
    fn from(error: SseError) -> Self {
        Self::new(ErrorKind::Garbled, error.to_string())
    }
}

fn no_first_byte(deadline: Duration) -> ModelError {
    let message = format!("no byte of an answer came in {} s", deadline.as_secs_f32());
    ModelError::new(ErrorKind::NoFirstByte, message)
}

fn connection(error: &reqwest::Error) -> ModelError {
    ModelError::new(ErrorKind::Connection, cause(error))
}

/// The innermost cause says what happened; the layers around it only that something did.
fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

/// Seconds, milliseconds in OpenAI's own header, or a date, which is measured against the
/// server's own clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let positive = |seconds: f64| (0.0..=1e7).contains(&seconds).then_some(seconds);
    if let Some(ms) = text("retry-after-ms")
        .and_then(|ms| ms.parse().ok())
        .and_then(positive)
    {
        return Some(Duration::from_secs_f64(ms / 1000.0));
    }
    let value = text("retry-after")?;
    if let Some(seconds) = value.parse().ok().and_then(positive) {
        return Some(Duration::from_secs_f64(seconds));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(text("date")?).ok()?;
    until.duration_since(now).ok()
}

/// Clients that share settings. Their number grows with the streams under way.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Mutex<Vec<Slot>>,
    /// The server has answered in HTTP/2. A client that knows so makes one connection and has all
    /// streams wait for it; one that does not makes a connection for each and drops all but one.
    speaks_h2: AtomicBool,
}

#[derive(Debug)]
struct Slot {
    client: Client,
    /// It speaks nothing but HTTP/2.
    is_h2: bool,
    streams: Arc<AtomicU32>,
}

/// Counts a stream on its client until it is dropped.
#[derive(Debug)]
struct Stream(Arc<AtomicU32>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// What the server speaks is known by what it answered in.
    fn learn(&self, version: Version) {
        let is_h2 = version == Version::HTTP_2;
        self.speaks_h2.store(is_h2, Ordering::Relaxed);
    }

    /// What failed may have failed because another server stands there now, or a proxy.
    fn forget(&self) {
        if self.speaks_h2.swap(false, Ordering::Relaxed) {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.retain(|slot| !slot.is_h2);
        }
    }

    fn client(&self, tls: bool) -> Result<(Client, Stream), ModelError> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let free = |slot: &&Slot| slot.streams.load(Ordering::Relaxed) < STREAMS_A_CLIENT;
        let slot = match slots.iter().find(free) {
            Some(slot) => slot,
            None => {
                let is_h2 = tls && self.speaks_h2.load(Ordering::Relaxed);
                slots.push(Slot {
                    client: build_client(tls, is_h2)?,
                    is_h2,
                    streams: Arc::default(),
                });
                &slots[slots.len() - 1]
            }
        };
        slot.streams.fetch_add(1, Ordering::Relaxed);
        Ok((slot.client.clone(), Stream(slot.streams.clone())))
    }
}

fn build_client(tls: bool, is_h2: bool) -> Result<Client, ModelError> {
    let built = tls_config(tls).and_then(|mut config| {
        let mut client = Client::builder();
        if is_h2 {
            config.alpn_protocols = vec![b"h2".to_vec()];
            client = client.http2_prior_knowledge();
        }
        let client = client
            .tls_backend_preconfigured(config)
            .connect_timeout(Duration::from_secs(20))
            .tcp_keepalive(Duration::from_secs(30))
            .pool_max_idle_per_host(STREAMS_A_CLIENT as usize)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("gaffer/", env!("CARGO_PKG_VERSION")))
            .build();
        client.map_err(|error| cause(&error))
    });
    built.map_err(|why| {
        let message = format!("the HTTP client could not be set up: {why}");
        ModelError::new(ErrorKind::BadRequest, message)
    })
}

/// The system's certificates are read only where they are needed: they cost milliseconds and
/// megabytes, and a local server needs none.
fn tls_config(tls: bool) -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = if tls {
        let verified = builder.with_platform_verifier();
        verified
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
    } else {
        builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn clients_speak_what_the_server_is_known_to_speak() {
        let pool = Pool::default();
        let kinds = || -> Vec<bool> {
            let slots = pool.slots.lock().unwrap();
            slots.iter().map(|slot| slot.is_h2).collect()
        };
        let mut streams = Vec::new();
        let mut fill = |clients: u32| {
            for _ in 0..clients * STREAMS_A_CLIENT {
                streams.push(pool.client(true).unwrap());
            }
        };
        fill(1);
        pool.learn(Version::HTTP_2);
        fill(2);
        assert_eq!(kinds(), [false, true, true]);
        // Somebody else may stand there now.
        pool.forget();
        assert_eq!(kinds(), [false]);
        fill(1);
        pool.learn(Version::HTTP_11);
        fill(1);
        assert_eq!(kinds(), [false; 3]);
    }

    #[test]
    fn all_forms_of_retry_after_are_understood() {
        let date = ("date", "Sun, 15 Nov 2026 09:00:00 GMT");
        let rows: [(&[_], _); 7] = [
            (&[("retry-after", "7")], Some(7.0)),
            (&[("retry-after", "0.5")], Some(0.5)),
            (
                &[("retry-after", "9"), ("retry-after-ms", "250")],
                Some(0.25),
            ),
            (
                &[date, ("retry-after", "Sun, 15 Nov 2026 09:00:30 GMT")],
                Some(30.0),
            ),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ];
        for (pairs, want) in rows {
            let got = retry_after(&headers(pairs)).map(|wait| wait.as_secs_f64());
            assert_eq!(got, want, "{pairs:?}");
        }
    }

    #[test]
    fn a_full_client_gets_a_neighbour_and_places_come_back() {
        let pool = Pool::default();
        let streams: Vec<_> = (0..200).map(|_| pool.client(false).unwrap().1).collect();
        assert_eq!(pool.slots.lock().unwrap().len(), 4);
        drop(streams);
        let _again: Vec<_> = (0..64).map(|_| pool.client(false).unwrap().1).collect();
        assert_eq!(pool.slots.lock().unwrap().len(), 4);
    }
}
