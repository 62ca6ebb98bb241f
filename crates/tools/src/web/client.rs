//! The HTTP client of the web tools: what may be asked for, and how much of an answer is taken.

use super::address::{Allow, Guard, Lookup};
use super::connect::{build, why};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use reqwest::{Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::{Host, Url};

/// Longer addresses are more likely data on its way out than pages.
const LONGEST_ADDRESS: usize = 4096;
/// So much of an error's body is read, to tell what it says.
const LARGEST_ERROR: usize = 8 << 10;

/// How long a page may take and how large it may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the question to the last byte, redirects included.
    pub time: Duration,
    /// So many bytes of a body are read; what follows is left.
    pub body: usize,
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            body: 10_000_000,
            redirects: 5,
        }
    }
}

/// An address that passed all checks that can be made before its host's name is resolved; that
/// name is checked by the resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked(Url);

impl Checked {
    pub(super) fn url(&self) -> &Url {
        &self.0
    }
}

/// What came back.
#[derive(Debug)]
pub(super) enum Got {
    Reply(Reply),
    /// A redirect to another host, which is for the model to follow.
    Elsewhere(Url),
}

#[derive(Debug)]
pub(super) struct Reply {
    /// Where it came from in the end.
    pub(super) url: Url,
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether the body is there to its end.
    pub(super) whole: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    guard: Guard,
    limits: Limits,
    /// Whether http becomes https. Only addresses from the user's settings are asked as they are.
    pub(super) upgrade: bool,
    plain: OnceCell<reqwest::Client>,
    tls: OnceCell<reqwest::Client>,
}

impl Client {
    pub(super) fn new(allow: Allow, limits: Limits, lookup: Arc<dyn Lookup>) -> Self {
        Self {
            guard: Guard {
                allow: Arc::new(allow),
                lookup,
            },
            limits,
            upgrade: true,
            plain: OnceCell::new(),
            tls: OnceCell::new(),
        }
    }

    /// Checks an address as far as that goes without asking anybody.
    pub(super) fn check(&self, mut url: Url) -> Result<Checked, String> {
        if url.as_str().len() > LONGEST_ADDRESS {
            return Err(format!(
                "the address is longer than {LONGEST_ADDRESS} characters"
            ));
        }
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(format!("only http and https are fetched, not {scheme}"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("addresses with a user name or password are not fetched".to_owned());
        }
        // A literal address never reaches the resolver.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) => None,
            None => return Err("the address names no host".to_owned()),
        };
        if let Some(address) = literal {
            let host = std::net::IpAddr::to_string(&address);
            let checked = self.guard.allow.check(&host, address);
            checked.map_err(|refused| refused.to_string())?;
        }
        url.set_fragment(None);
        let is_loopback = literal.is_some_and(|address| address.is_loopback());
        if self.upgrade && url.scheme() == "http" && !is_loopback {
            let changed = url.set_scheme("https");
            changed.map_err(|()| "it cannot be asked over https".to_owned())?;
        }
        Ok(Checked(url))
    }

    /// Fetches a page, following redirects that stay on its host. `takes` says of which content
    /// types the body is wanted.
    pub(super) async fn get(
        &self,
        from: &Checked,
        takes: impl Fn(Option<&str>) -> bool,
    ) -> Result<Got, String> {
        let late = |_| format!("it took longer than {} s", self.limits.time.as_secs_f32());
        let got = timeout(self.limits.time, self.follow(from, takes));
        got.await.map_err(late)?
    }

    async fn follow(
        &self,
        from: &Checked,
        takes: impl Fn(Option<&str>) -> bool,
    ) -> Result<Got, String> {
        let mut at = from.clone();
        for _ in 0..=self.limits.redirects {
            let response = self.ask(&at).await?;
            if !is_redirect(response.status()) {
                let reply = self.read(at.0, response, takes).await?;
                return Ok(Got::Reply(reply));
            }
            let target = location(&at.0, response.headers())?;
            let shown = brief(target.as_str(), 200);
            let refused = |why| format!("it redirects to {shown}: {why}");
            let target = self.check(target).map_err(refused)?;
            if !same_site(&from.0, &target.0) {
                return Ok(Got::Elsewhere(target.0));
            }
            at = target;
        }
        Err(format!("more than {} redirects", self.limits.redirects))
    }

    async fn ask(&self, at: &Checked) -> Result<Response, String> {
        const WANTED: &str = "text/markdown, text/html;q=0.9, application/json;q=0.9, \
                              text/plain;q=0.8, */*;q=0.1";
        let client = self.http(at.0.scheme() == "https").await?;
        let request = client.get(at.0.clone()).header(ACCEPT, WANTED);
        request.send().await.map_err(|error| why(&error))
    }

    async fn read(
        &self,
        url: Url,
        response: Response,
        takes: impl Fn(Option<&str>) -> bool,
    ) -> Result<Reply, String> {
        let status = response.status();
        let content_type = header(response.headers(), CONTENT_TYPE);
        if !status.is_success() {
            let said = error_text(response, content_type.as_deref()).await;
            return Err(format!("the server answered {status}{said}"));
        }
        if let Some(encoding) = header(response.headers(), CONTENT_ENCODING)
            && !encoding.eq_ignore_ascii_case("identity")
        {
            return Err(format!(
                "the server sent it compressed ({encoding}), unasked"
            ));
        }
        if !takes(content_type.as_deref()) {
            let kind = content_type.as_deref().unwrap_or_default();
            let size = response.content_length();
            let size = size.map_or("of unknown size".to_owned(), |size| format!("{size} bytes"));
            return Err(format!(
                "its content is {} ({size}), which cannot be read",
                brief(kind, 100)
            ));
        }
        let (body, whole) = take(response, self.limits.body).await?;
        Ok(Reply {
            url,
            content_type,
            body,
            whole,
        })
    }

    /// Certificates are only read when an https address is first asked for.
    async fn http(&self, tls: bool) -> Result<&reqwest::Client, String> {
        let cell = if tls { &self.tls } else { &self.plain };
        let built = cell.get_or_try_init(|| async { build(self.guard.clone(), tls) });
        let failed = |why| format!("the HTTP client could not be set up: {why}");
        built.await.map_err(failed)
    }
}

/// Reads a body up to a limit; whether that was all of it.
async fn take(mut response: Response, limit: usize) -> Result<(Vec<u8>, bool), String> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let broken = |error| format!("it broke off after {} bytes: {}", body.len(), why(&error));
        let Some(chunk) = chunk.map_err(broken)? else {
            return Ok((body, true));
        };
        let room = limit - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, false));
        }
    }
}

/// What an error says about itself, if it does so in plain words.
async fn error_text(response: Response, content_type: Option<&str>) -> String {
    let kind = content_type.unwrap_or_default().to_ascii_lowercase();
    if !kind.starts_with("text/plain") && !kind.contains("json") {
        return String::new();
    }
    // What cannot be read of an error is no loss.
    let Ok((body, _)) = take(response, LARGEST_ERROR).await else {
        return String::new();
    };
    let said = String::from_utf8_lossy(&body);
    let words: Vec<&str> = said.split_whitespace().collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(": {}", brief(&words.join(" "), 300)),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn location(at: &Url, headers: &HeaderMap) -> Result<Url, String> {
    let location = headers.get(LOCATION).map(|value| value.as_bytes());
    let location = location.and_then(|bytes| std::str::from_utf8(bytes).ok());
    let location = location.ok_or("it redirects without saying where to")?;
    let wrong = |why| format!("it redirects to {}: {why}", brief(location, 200));
    at.join(location).map_err(wrong)
}

/// The same server as far as a reader is concerned: `www.` may come or go.
fn same_site(a: &Url, b: &Url) -> bool {
    let name = |url: &Url| {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        host.strip_prefix("www.").unwrap_or(host).to_owned()
    };
    name(a) == name(b) && a.port_or_known_default() == b.port_or_known_default()
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The beginning of a text that somebody else wrote.
pub(super) fn brief(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn www_and_the_path_may_change_but_not_host_or_port() {
        for (a, b, want) in [
            ("https://a.example/x", "https://a.example/y?z", true),
            ("https://a.example/", "https://www.a.example/", true),
            ("https://www.a.example/", "https://A.example./", true),
            ("https://a.example/", "https://b.a.example/", false),
            ("https://a.example/", "https://a.example:8443/", false),
            ("https://a.example/", "https://a.example.evil/", false),
            ("https://www.example/", "https://www.www.example/", false),
        ] {
            let parse = |url| Url::parse(url).unwrap();
            assert_eq!(same_site(&parse(a), &parse(b)), want, "{a} {b}");
        }
    }
}
