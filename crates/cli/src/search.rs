//! The model provider's own search as the engine behind WebSearch.

use crate::args::Common;
use crate::meter::Meter;
use crate::model::{Chosen, named, patience};
use crate::settings::Settings;
use crate::system::{self, SystemEntropy};
use futures_util::future::BoxFuture;
use gaffer_agent::prompt;
use gaffer_model::provider::{Connection, Kind, connect};
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::{Gate, Model, Prefix, Who};
use gaffer_protocol::{AgentId, AgentName, Answer, Block, Json, Message};
use gaffer_tools::web::{Findings, Hit, Query, SearchEngine};
use serde_json::{Value, json};
use std::sync::Arc;

const AGENT_TYPE: &str = "web-search";

#[derive(Debug)]
pub(crate) struct ProviderSearch {
    connection: Connection,
    gate: Gate,
    patience: Patience,
    meter: Meter,
}

impl ProviderSearch {
    /// None, with a word, where the provider has no search.
    pub(crate) fn choose(
        common: &Common,
        settings: &Settings,
        chosen: &Chosen,
        meter: Meter,
    ) -> anyhow::Result<Option<Arc<dyn SearchEngine>>> {
        if !matches!(chosen.kind, Kind::Anthropic | Kind::OpenAi) {
            system::say(&format!(
                "gaffer: the provider {} has no search of its own, so there is no WebSearch; settings, web.search, can name a SearXNG server",
                chosen.kind.as_str()
            ));
            return Ok(None);
        }
        let name = settings.small_model.as_ref().unwrap_or(&chosen.name);
        Ok(Some(Arc::new(Self {
            connection: named(common, settings, chosen, name)?,
            gate: chosen.gate.clone(),
            patience: patience(settings),
            meter,
        })))
    }

    async fn ask(&self, query: &Query) -> Result<Findings, String> {
        let mut connection = self.connection.clone();
        let kind = connection.kind;
        connection.options.server_tools = vec![tool(kind, query)];
        if kind == Kind::OpenAi {
            let include = json!(["web_search_call.action.sources"]);
            let extra = &mut connection.options.extra;
            extra.insert("include".to_owned(), include);
        }
        let single = connect(connection).map_err(|error| error.to_string())?;
        let (gate, patience) = (self.gate.clone(), self.patience);
        let model = Retrying::new(single, gate, patience, Arc::new(SystemEntropy));
        let prefix = Prefix {
            system: prompt::WEB_SEARCH.text.to_owned(),
            tools: Vec::new(),
        };
        let who = Who {
            id: AgentId::random(&SystemEntropy),
            name: AgentName::main(),
            agent_type: AGENT_TYPE.to_owned(),
        };
        let mut conversation = model.open(&prefix, who);
        conversation.push(&Message::user(vec![Block::text(&query.text)]));
        let answer = model.answer(&conversation, &mut |_| {}).await;
        let answer = answer.map_err(|error| error.to_string())?;
        self.meter.count(model.name(), &answer);
        Ok(findings(&answer))
    }
}

impl SearchEngine for ProviderSearch {
    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Findings, String>> {
        Box::pin(self.ask(query))
    }
}

/// The provider's tool. Anthropic takes either of the two lists of domains, so only one is sent;
/// what comes back is filtered in any case.
fn tool(kind: Kind, query: &Query) -> Json {
    let mut tool = match kind {
        Kind::Anthropic => {
            json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3})
        }
        _ => json!({"type": "web_search"}),
    };
    match (kind, query.allowed.as_slice(), query.blocked.as_slice()) {
        (_, [], []) => {}
        (Kind::Anthropic, [], blocked) => tool["blocked_domains"] = json!(blocked),
        (Kind::Anthropic, allowed, _) => tool["allowed_domains"] = json!(allowed),
        (_, [], _) => {}
        (_, allowed, _) => tool["filters"] = json!({"allowed_domains": allowed}),
    }
    Json::of(&tool)
}

/// Results stand in blocks of the provider's own; what the model says about them is text.
fn findings(answer: &Answer) -> Findings {
    let mut hits: Vec<Hit> = Vec::new();
    let raw = answer.blocks.iter().filter_map(|block| match block {
        Block::Reasoning(reasoning) => reasoning.raw.as_ref()?.json.read::<Value>().ok(),
        _ => None,
    });
    for block in raw {
        let found = match block["type"].as_str() {
            Some("web_search_tool_result") => &block["content"],
            Some("web_search_call") => &block["action"]["sources"],
            _ => continue,
        };
        for entry in found.as_array().into_iter().flatten() {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let hit = Hit {
                title: text("title"),
                url: text("url"),
                snippet: text("page_age"),
            };
            if !hit.url.is_empty() && !hits.iter().any(|other| other.url == hit.url) {
                hits.push(hit);
            }
        }
    }
    Findings {
        hits,
        words: answer.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gaffer_model::provider::Deadlines;
    use gaffer_model::wire::WireOptions;
    use gaffer_testkit::web::{Page, Pages};

    fn engine(kind: Kind, pages: &Pages) -> ProviderSearch {
        ProviderSearch {
            connection: Connection {
                kind,
                base: pages.address(""),
                key: None,
                headers: Vec::new(),
                deadlines: Deadlines::default(),
                options: WireOptions {
                    model: "m".to_owned(),
                    max_output: 100,
                    extra: serde_json::Map::new(),
                    images: false,
                    server_tools: Vec::new(),
                },
            },
            gate: Gate::new(4),
            patience: Patience::default(),
            meter: Meter::default(),
        }
    }

    fn stream(events: &[Value]) -> Page {
        let lines = events.iter().map(|event| {
            let name = event["type"].as_str().unwrap();
            format!("event: {name}\ndata: {event}\n\n")
        });
        Page::events(&lines.collect::<String>())
    }

    fn query(allowed: &[&str]) -> Query {
        Query {
            text: "till".to_owned(),
            allowed: allowed.iter().map(|&it| it.to_owned()).collect(),
            blocked: Vec::new(),
        }
    }

    #[tokio::test]
    async fn anthropic_searches_with_its_own_tool() {
        let block = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
        let page = stream(&[
            json!({"type": "message_start", "message": {"model": "m", "usage": {}}}),
            block(
                0,
                json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
            ),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\":\"till\"}"}}),
            stop(0),
            block(
                1,
                json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [
                    {"type": "web_search_result", "url": "https://till.example/", "title": "A till", "page_age": "May 2026"}
                ]}),
            ),
            stop(1),
            block(2, json!({"type": "text", "text": "One result."})),
            stop(2),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}),
            json!({"type": "message_stop"}),
        ]);
        let pages = Pages::serve([("/v1/messages", page)]);
        let (engine, query) = (engine(Kind::Anthropic, &pages), query(&["till.example"]));
        let found = engine.ask(&query).await.unwrap();
        assert_eq!(found.words, "One result.");
        assert_eq!(found.hits[0].url, "https://till.example/");
        assert_eq!(found.hits[0].title, "A till");
        let sent: Value = serde_json::from_str(&pages.bodies()[0]).unwrap();
        assert_eq!(sent["tools"][0]["name"], "web_search");
        assert_eq!(sent["tools"][0]["allowed_domains"], json!(["till.example"]));
    }

    #[tokio::test]
    async fn openai_searches_with_its_own_tool() {
        let search = json!({"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "till", "sources": [{"type": "url", "url": "https://till.example/"}]}});
        let message =
            json!({"type": "message", "content": [{"type": "output_text", "text": "One result."}]});
        let page = stream(&[
            json!({"type": "response.output_item.added", "output_index": 0, "item": search}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": search}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": message}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
            json!({"type": "response.completed", "response": {"model": "m", "status": "completed", "output": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        ]);
        let pages = Pages::serve([("/v1/responses", page)]);
        let found = engine(Kind::OpenAi, &pages).ask(&query(&[])).await.unwrap();
        assert_eq!(found.words, "One result.");
        assert_eq!(found.hits[0].url, "https://till.example/");
        let sent: Value = serde_json::from_str(&pages.bodies()[0]).unwrap();
        assert_eq!(sent["tools"], json!([{"type": "web_search"}]));
    }
}
