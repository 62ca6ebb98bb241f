//! A tool as a model sees it.

use crate::json::Json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// The JSON schema of its input.
    pub schema: Json,
}
