//! The tools that one agent has: a fixed set, sorted by name, so that its prefix never varies.

use crate::tool::Tool;
use gaffer_protocol::ToolSpec;
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// Of two tools with one name the first stays.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut tools: Vec<_> = tools.into_iter().collect();
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools.dedup_by(|later, earlier| later.spec().name == earlier.spec().name);
        Self { tools }
    }

    /// Those of the tools whose names pass.
    pub fn keep(mut self, passes: impl Fn(&str) -> bool) -> Self {
        self.tools.retain(|tool| passes(&tool.spec().name));
        self
    }

    /// These and others.
    pub fn and(self, more: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self::new(self.tools.into_iter().chain(more))
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let place = self
            .tools
            .binary_search_by(|tool| tool.spec().name.as_str().cmp(name));
        place.ok().map(|place| &self.tools[place])
    }

    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }

    pub fn names(&self) -> Vec<String> {
        self.tools
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect()
    }
}
