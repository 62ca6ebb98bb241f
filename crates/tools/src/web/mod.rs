//! The web: fetching pages and searching.

mod address;
mod cache;
mod client;
mod connect;
mod fetch;
mod html;
mod page;
mod search;

pub use address::{Allow, Lookup, SystemLookup};
pub use client::Limits as WebLimits;
pub use fetch::{Summarise, Web, WebFetch, WebFetchInput};
pub use search::{
    Findings, Hit, Query, SearchEngine, Searches, WebSearch, WebSearchInput, searxng,
};

#[cfg(test)]
mod tests;
