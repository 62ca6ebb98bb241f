//! WebFetch: a page from the web, read for a question.

use super::address::{Allow, Lookup, SystemLookup};
use super::cache::Cache;
use super::client::{Client, Got, Limits, brief};
use super::page::{Page, is_text};
use crate::context::Context;
use crate::tool::{Access, Output, Run};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;
use url::Url;

/// Fetches a page from the web and answers `prompt` from it, or returns its text as Markdown. A
/// redirect to another host is reported instead of followed. Nothing behind a login is reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebFetchInput {
    /// The full address; http becomes https.
    pub url: String,
    /// What you want to know from the page.
    pub prompt: String,
}

/// Answers a question from a page: a small model, so that whole pages need not fill an agent's
/// conversation.
pub trait Summarise: Send + Sync + fmt::Debug {
    fn answer<'a>(
        &'a self,
        page: &'a str,
        prompt: &'a str,
    ) -> BoxFuture<'a, Result<String, String>>;
}

/// The way to the web that all agents of one tree share, with the pages it has seen.
#[derive(Debug)]
pub struct Web {
    client: Client,
    cache: Cache,
}

impl Web {
    pub fn new(allow: Allow, limits: Limits) -> Self {
        Self::with_lookup(allow, limits, Arc::new(SystemLookup))
    }

    pub fn with_lookup(allow: Allow, limits: Limits, lookup: Arc<dyn Lookup>) -> Self {
        Self {
            client: Client::new(allow, limits, lookup),
            cache: Cache::default(),
        }
    }

    /// Lets names be asked over plain http, for servers of tests.
    #[cfg(test)]
    pub(super) fn without_upgrade(mut self) -> Self {
        self.client.upgrade = false;
        self
    }

    async fn page(&self, address: &str) -> Result<Fetched, String> {
        let url = Url::parse(address.trim()).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => {
                "it is no full address, which begins with https://".to_owned()
            }
            error => error.to_string(),
        })?;
        let is_plain = url.scheme() == "http";
        let checked = self.client.check(url)?;
        let key = checked.url().to_string();
        if let Some(page) = self.cache.get(&key) {
            return Ok(Fetched::Page(page));
        }
        let told = |why| match is_plain && checked.url().scheme() == "https" {
            true => format!("{why} (asked over https, as http is not spoken here)"),
            false => why,
        };
        let got = self.client.get(&checked, is_text).await;
        let reply = match got.map_err(told)? {
            Got::Reply(reply) => reply,
            Got::Elsewhere(url) => return Ok(Fetched::Elsewhere(url)),
        };
        let read = tokio::task::spawn_blocking(move || Page::read(&reply));
        let page = read.await.map_err(|_| "it could not be converted")??;
        let page = Arc::new(page);
        self.cache.put(key, page.clone());
        Ok(Fetched::Page(page))
    }
}

enum Fetched {
    Page(Arc<Page>),
    Elsewhere(Url),
}

#[derive(Debug, Clone)]
pub struct WebFetch {
    web: Arc<Web>,
    summarise: Option<Arc<dyn Summarise>>,
}

impl WebFetch {
    /// Without `summarise` the page itself is returned.
    pub fn new(web: Arc<Web>, summarise: Option<Arc<dyn Summarise>>) -> Self {
        Self { web, summarise }
    }
}

impl Run for WebFetch {
    const NAME: &'static str = "WebFetch";
    const ACCESS: Access = Access::Reads;
    type Input = WebFetchInput;

    async fn run(&self, input: WebFetchInput, _: &Context) -> Output {
        let page = match self.web.page(&input.url).await {
            Ok(Fetched::Page(page)) => page,
            Ok(Fetched::Elsewhere(url)) => {
                return Output::text(format!(
                    "This address redirects to another host, {url}. Nothing was fetched: call \
                     WebFetch with that address if it is where you want to go."
                ));
            }
            Err(why) => {
                let shown = brief(&input.url, 200);
                return Output::error(format!("Cannot fetch {shown}: {why}."));
            }
        };
        let page = page.show();
        let prompt = input.prompt.trim();
        match &self.summarise {
            Some(summarise) if !prompt.is_empty() => {
                match summarise.answer(&page, prompt).await {
                    Ok(answer) => Output::text(answer),
                    // The page is there; the agent can read it by itself.
                    Err(why) => Output::text(format!(
                        "[The prompt was not answered ({why}); this is the page.]\n{page}"
                    )),
                }
            }
            _ => Output::text(page),
        }
    }
}
