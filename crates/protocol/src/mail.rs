//! What agents can write to each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Text, or one of the forms that are answered by form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Mail {
    Text(String),
    Form(Form),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Form {
    /// Asks a teammate to end.
    ShutdownRequest { reason: Option<String> },
    ShutdownResponse {
        request_id: String,
        approve: bool,
        reason: Option<String>,
    },
    PlanApprovalResponse {
        request_id: String,
        approve: bool,
        feedback: Option<String>,
    },
}
