//! WebSearch: asks a search engine.

use super::address::{Allow, SystemLookup};
use super::client::{Client, Got, Limits, brief};
use crate::context::Context;
use crate::tool::{Access, Output, Run};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use url::{Host, Url};

const MOST_HITS: usize = 10;
const LONGEST_TITLE: usize = 200;
const LONGEST_SNIPPET: usize = 500;
const LARGEST_ANSWER: usize = 2_000_000;

/// Searches the web: up to 10 results with title, address and an extract. Name the addresses
/// that you rely on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchInput {
    /// What to search for.
    pub query: String,
    /// Only results from these domains and what is below them.
    pub allowed_domains: Option<Vec<String>>,
    /// No results from these domains.
    pub blocked_domains: Option<Vec<String>>,
}

/// What is asked of an engine. It may use the domains; results are filtered in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub text: String,
    pub allowed: Vec<String>,
    pub blocked: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub title: String,
    pub url: String,
    pub snippet: String,
}

/// What an engine answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub hits: Vec<Hit>,
    /// What it says about them in its own words, if it does.
    pub words: String,
}

/// Who answers searches. The model's provider can be one.
pub trait SearchEngine: Send + Sync + fmt::Debug {
    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Findings, String>>;
}

/// A SearXNG server, whose address need not be public.
pub fn searxng(address: &str) -> Result<Arc<dyn SearchEngine>, String> {
    let base = Url::parse(address).map_err(|error| format!("`{address}`: {error}"))?;
    match base.scheme() {
        "http" | "https" => Ok(Arc::new(SearxNg::new(&base, Limits::default()))),
        _ => Err(format!("`{address}` is no http or https address")),
    }
}

/// How many searches a session has left. Clones count together.
#[derive(Debug, Clone)]
pub struct Searches(Arc<AtomicU32>);

impl Default for Searches {
    fn default() -> Self {
        Self::new(200)
    }
}

impl Searches {
    pub fn new(most: u32) -> Self {
        Self(Arc::new(AtomicU32::new(most)))
    }

    /// Takes one, if there is one left.
    fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        let taken = self
            .0
            .try_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }
}

#[derive(Debug, Clone)]
pub struct WebSearch {
    engine: Arc<dyn SearchEngine>,
    searches: Searches,
}

impl WebSearch {
    /// Without an engine there is no such tool.
    pub fn new(engine: Option<Arc<dyn SearchEngine>>, searches: Searches) -> Option<Self> {
        engine.map(|engine| Self { engine, searches })
    }
}

impl Run for WebSearch {
    const NAME: &'static str = "WebSearch";
    const ACCESS: Access = Access::Reads;
    type Input = WebSearchInput;

    async fn run(&self, input: WebSearchInput, _: &Context) -> Output {
        let text = input.query.trim().to_owned();
        if text.is_empty() {
            return Output::error("The query is empty.");
        }
        let domains = |list: Option<Vec<String>>| -> Result<Vec<String>, String> {
            list.into_iter().flatten().map(domain).collect()
        };
        let (allowed, blocked) = match (
            domains(input.allowed_domains),
            domains(input.blocked_domains),
        ) {
            (Ok(allowed), Ok(blocked)) => (allowed, blocked),
            (Err(wrong), _) | (_, Err(wrong)) => {
                return Output::error(format!("`{wrong}` is no domain such as docs.rs."));
            }
        };
        let query = Query {
            text,
            allowed,
            blocked,
        };
        if !self.searches.take() {
            return Output::error("All searches of this session are used up.");
        }
        match self.engine.search(&query).await {
            Ok(Findings { hits, words }) => {
                let shown = match hits.is_empty() && !words.trim().is_empty() {
                    true => String::new(),
                    false => show(&query, hits),
                };
                let both = [words.trim(), shown.trim()];
                let both: Vec<&str> = both.into_iter().filter(|text| !text.is_empty()).collect();
                Output::text(both.join("\n\n"))
            }
            Err(why) => Output::error(format!("The search failed: {why}.")),
        }
    }
}

/// A domain as hosts are written in addresses.
fn domain(text: String) -> Result<String, String> {
    let bare = text.trim().trim_start_matches("*.").trim_end_matches('.');
    match Host::parse(bare) {
        Ok(Host::Domain(name)) if !name.contains('*') => Ok(name),
        Ok(Host::Ipv4(address)) => Ok(address.to_string()),
        _ => Err(text),
    }
}

fn show(query: &Query, hits: Vec<Hit>) -> String {
    let within = |host: &str, domain: &String| {
        let below = host.strip_suffix(domain.as_str());
        below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
    };
    let wanted = |hit: &Hit| {
        let Ok(url) = Url::parse(&hit.url) else {
            return false;
        };
        let host = url.host_str().unwrap_or_default();
        matches!(url.scheme(), "http" | "https")
            && (query.allowed.is_empty() || query.allowed.iter().any(|domain| within(host, domain)))
            && !query.blocked.iter().any(|domain| within(host, domain))
    };
    let found = hits.len();
    let hits: Vec<Hit> = hits.into_iter().filter(wanted).take(MOST_HITS).collect();
    if hits.is_empty() {
        return match found {
            0 => "Nothing was found.".to_owned(),
            _ => "Nothing was found in the domains that were asked for.".to_owned(),
        };
    }
    let line = |hit: &Hit| {
        let title = one_line(&hit.title, LONGEST_TITLE);
        let snippet = one_line(&hit.snippet, LONGEST_SNIPPET);
        let mut parts = vec![title, hit.url.clone(), snippet];
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    };
    let lines: Vec<String> = hits.iter().map(line).collect();
    lines.join("\n\n")
}

fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    brief(&words.join(" "), most)
}

#[derive(Debug)]
pub(super) struct SearxNg {
    client: Client,
    base: Url,
}

impl SearxNg {
    pub(super) fn new(base: &Url, limits: Limits) -> Self {
        let limits = Limits {
            body: LARGEST_ANSWER,
            redirects: 0,
            ..limits
        };
        // The server's address is the user's own word: it may be private, and plain http.
        let host = base.host_str().map(|host| host.trim_matches(['[', ']']));
        let allow = Allow::parse(host).unwrap_or_default();
        let mut client = Client::new(allow, limits, Arc::new(SystemLookup));
        client.upgrade = false;
        Self {
            client,
            base: base.clone(),
        }
    }

    fn address(&self, query: &Query) -> Url {
        let mut url = self.base.clone();
        let path = url.path().trim_end_matches('/').trim_end_matches("/search");
        let path = format!("{path}/search");
        url.set_path(&path);
        let sites: Vec<String> = query
            .allowed
            .iter()
            .map(|domain| format!("site:{domain}"))
            .collect();
        let mut text = query.text.clone();
        if !sites.is_empty() {
            text = format!("{text} {}", sites.join(" OR "));
        }
        for domain in &query.blocked {
            text = format!("{text} -site:{domain}");
        }
        url.query_pairs_mut()
            .clear()
            .append_pair("q", &text)
            .append_pair("format", "json");
        url
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, String> {
        #[derive(Deserialize)]
        struct Answer {
            results: Vec<Found>,
        }
        #[derive(Deserialize)]
        struct Found {
            url: Option<String>,
            title: Option<String>,
            content: Option<String>,
        }
        let checked = self.client.check(self.address(query))?;
        let is_json = |kind: Option<&str>| kind.is_some_and(|kind| kind.contains("json"));
        let reply = match self.client.get(&checked, is_json).await {
            Ok(Got::Reply(reply)) => reply,
            Ok(Got::Elsewhere(url)) => return Err(format!("the search server moved to {url}")),
            Err(why) if why.contains("answered 403") => {
                return Err(format!(
                    "{why}. SearXNG only answers programs if its settings.yml has json among \
                     search.formats"
                ));
            }
            Err(why) => return Err(why),
        };
        let answer: Answer = serde_json::from_slice(&reply.body)
            .map_err(|error| format!("the search server's answer is not as expected: {error}"))?;
        let hit = |found: Found| {
            Some(Hit {
                url: found.url?,
                title: found.title.unwrap_or_default(),
                snippet: found.content.unwrap_or_default(),
            })
        };
        Ok(answer.results.into_iter().filter_map(hit).collect())
    }
}

impl SearchEngine for SearxNg {
    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Findings, String>> {
        Box::pin(async move {
            let hits = self.ask(query).await?;
            Ok(Findings {
                hits,
                words: String::new(),
            })
        })
    }
}
