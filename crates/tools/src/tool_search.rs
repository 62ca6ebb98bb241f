//! ToolSearch: tools that are only told about when they are asked for.

use crate::context::Context;
use crate::tool::{Access, Output, Run, Tool, erase_as};
use futures_util::future::BoxFuture;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Json, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const DEFAULT_RESULTS: usize = 5;
const MOST_RESULTS: usize = 20;
/// What the tool's description tells of the names there are.
const LARGEST_LIST: usize = 4 << 10;
const LONGEST_ABOUT: usize = 2048;

/// Deferred tools, shared by the agents that may use them: anyone can add and remove some at any
/// time. Clones are the same agent's; `view` is for another agent, which loads tools for itself.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    tools: Arc<Mutex<Tools>>,
    /// The names that this agent has loaded. They stay when a tool goes, to say so.
    loaded: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Debug, Default)]
struct Tools {
    by_name: BTreeMap<String, Arc<dyn Tool>>,
    version: u64,
}

impl Pool {
    /// The same tools for another agent.
    pub fn view(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            loaded: Arc::default(),
        }
    }

    /// Adds a tool, in place of one with its name.
    pub fn defer(&self, tool: Arc<dyn Tool>) {
        let mut tools = self.tools();
        tools.by_name.insert(tool.spec().name.clone(), tool);
        tools.version += 1;
    }

    /// Takes a tool away; whether it was there.
    pub fn remove(&self, name: &str) -> bool {
        let mut tools = self.tools();
        let removed = tools.by_name.remove(name).is_some();
        tools.version += u64::from(removed);
        removed
    }

    /// Changes whenever a tool comes or goes.
    pub fn version(&self) -> u64 {
        self.tools().version
    }

    pub fn is_empty(&self) -> bool {
        self.tools().by_name.is_empty()
    }

    /// The tools that this agent has loaded and that are still there, by name.
    pub fn loaded(&self) -> Vec<Arc<dyn Tool>> {
        let names = self.names().clone();
        let tools = self.tools();
        let there = names.iter().filter_map(|name| tools.by_name.get(name));
        there.cloned().collect()
    }

    /// A tool that this agent has loaded. One that has gone since then answers by saying so.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        if !self.names().contains(name) {
            return None;
        }
        let there = self.tools().by_name.get(name).cloned();
        Some(there.unwrap_or_else(|| Arc::new(Gone::new(name))))
    }

    /// What to tell an agent that calls a tool it has not loaded.
    pub fn hint(&self, name: &str) -> Option<String> {
        let is_there = self.tools().by_name.contains_key(name);
        is_there.then(|| format!("{name} is not loaded: call ToolSearch with select:{name} first."))
    }

    fn load(&self, names: impl IntoIterator<Item = String>) {
        self.names().extend(names);
    }

    fn tools(&self) -> MutexGuard<'_, Tools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.tools().by_name.values().cloned().collect()
    }
}

/// Stands for a tool that is no longer there.
#[derive(Debug)]
struct Gone(ToolSpec);

impl Gone {
    fn new(name: &str) -> Self {
        Self(ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: Json::of(&serde_json::json!({"type": "object"})),
        })
    }
}

impl Tool for Gone {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn access(&self) -> Access {
        Access::Reads
    }

    fn call<'a>(&'a self, _: &'a ToolInput, _: &'a Context) -> BoxFuture<'a, Output> {
        let text = format!(
            "The tool {} is no longer there: what offered it has gone. Nothing was run.",
            self.0.name
        );
        Box::pin(async move { Output::error(text) })
    }
}

/// Finds tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSearchInput {
    /// Words that say what is needed, or `select:Name,Other` for tools whose names you know.
    pub query: String,
    /// How many tools to load at most: 5 if not given.
    pub max_results: Option<usize>,
}

#[derive(Debug)]
struct ToolSearch(Pool);

/// The tool that loads deferred tools; there is none where nothing is deferred.
pub fn tool(pool: Pool) -> Option<Arc<dyn Tool>> {
    let names: Vec<String> = pool
        .all()
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect();
    if names.is_empty() {
        return None;
    }
    let mut description = "Loads tools that are not listed here, after which they can be called. \
                           There are, among others that may come: "
        .to_owned();
    let mut shown = 0;
    for name in &names {
        if description.len() + name.len() > LARGEST_LIST {
            break;
        }
        let comma = if shown == 0 { "" } else { ", " };
        description.push_str(comma);
        description.push_str(name);
        shown += 1;
    }
    match names.len() - shown {
        0 => description.push('.'),
        more => description.push_str(&format!(" and {more} more.")),
    }
    Some(erase_as(ToolSearch(pool), description))
}

impl Run for ToolSearch {
    const NAME: &'static str = "ToolSearch";
    const ACCESS: Access = Access::Reads;
    type Input = ToolSearchInput;

    async fn run(&self, input: ToolSearchInput, _: &Context) -> Output {
        let most = input.max_results.unwrap_or(DEFAULT_RESULTS);
        let most = most.clamp(1, MOST_RESULTS);
        let all = self.0.all();
        if all.is_empty() {
            return Output::error("There are no more tools to load: what offered them has gone.");
        }
        let query = input.query.trim();
        let (found, missing) = match query.strip_prefix("select:") {
            Some(names) => select(&all, names),
            None => (search(&all, query, most), Vec::new()),
        };
        if found.is_empty() {
            let names: Vec<&str> = all.iter().map(|tool| tool.spec().name.as_str()).collect();
            let shown: String = names.join(", ").chars().take(LARGEST_LIST).collect();
            return Output::error(format!("No tool fits `{query}`. There are: {shown}."));
        }
        self.0
            .load(found.iter().map(|tool| tool.spec().name.clone()));
        let mut out = "Loaded, and can be called now:".to_owned();
        for tool in found {
            let spec = tool.spec();
            let about: String = spec.description.chars().take(LONGEST_ABOUT).collect();
            let ToolSpec { name, schema, .. } = spec;
            out.push_str(&format!("\n\n{name}: {about}\nInput: {schema}"));
        }
        if !missing.is_empty() {
            out.push_str(&format!("\n\nThere is no {}.", missing.join(", ")));
        }
        Output::text(out)
    }
}

/// Tools by their exact names, and the names that there are none for.
fn select(all: &[Arc<dyn Tool>], names: &str) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
    let mut found: Vec<Arc<dyn Tool>> = Vec::new();
    let mut missing = Vec::new();
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    for name in names.take(MOST_RESULTS) {
        match all.iter().find(|tool| tool.spec().name == name) {
            Some(tool) if found.iter().any(|known| Arc::ptr_eq(known, tool)) => {}
            Some(tool) => found.push(tool.clone()),
            None => missing.push(name.chars().take(100).collect()),
        }
    }
    (found, missing)
}

/// The tools that fit best, the best first.
fn search(all: &[Arc<dyn Tool>], query: &str, most: usize) -> Vec<Arc<dyn Tool>> {
    let wanted = words(query);
    let scored = all.iter().map(|tool| (score(tool.spec(), &wanted), tool));
    let mut scored: Vec<_> = scored.filter(|(score, _)| *score > 0).collect();
    // They come sorted by name, and a stable sort keeps that where scores are equal.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored
        .into_iter()
        .take(most)
        .map(|(_, tool)| tool.clone())
        .collect()
}

/// A word counts most where it is a part of the name, and least where it only begins a word of
/// the description.
fn score(spec: &ToolSpec, wanted: &[String]) -> u32 {
    let name = words(&spec.name);
    let about = words(&spec.description);
    let whole_name = spec.name.to_lowercase();
    let has = |known: &[String], word: &str| known.iter().any(|known| is_same(known, word));
    let begins = |word: &str| about.iter().any(|known| known.starts_with(word));
    let one = |word: &String| match () {
        () if name.contains(word) => 12,
        () if has(&name, word) => 10,
        () if whole_name.contains(word.as_str()) => 6,
        () if has(&about, word) => 3,
        () if word.len() > 2 && begins(word) => 1,
        () => 0,
    };
    wanted.iter().map(one).sum()
}

/// The same word, or one of them with an ending such as that of a plural.
fn is_same(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let ending = long.strip_prefix(short).map(str::len);
    ending == Some(0) || (short.len() > 2 && ending.is_some_and(|ending| ending <= 2))
}

/// The words of a text in small letters; `readFile_now` has three.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in text.chars() {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && was_small);
        if ends {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests;
