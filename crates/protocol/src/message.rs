//! One conversation's parts, independent of any provider's wire format.
//!
//! Enums are tagged from outside (`{"text": …}`): serde's inner tags buffer values, which would
//! lose the exact text of raw JSON.

use crate::ids::{CallId, MailId};
use crate::json::Json;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
}

impl Message {
    pub fn user(blocks: Vec<Block>) -> Self {
        Self {
            role: Role::User,
            blocks,
        }
    }

    pub fn assistant(blocks: Vec<Block>) -> Self {
        Self {
            role: Role::Assistant,
            blocks,
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    Text(Text),
    Reasoning(Reasoning),
    ToolUse(ToolUse),
    ToolResult(ToolResult),
    Image(Image),
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            origin: None,
            mail: None,
        })
    }

    pub fn from_human(text: impl Into<String>) -> Self {
        Self::from(Origin::Human, text)
    }

    pub fn from(origin: Origin, text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            origin: Some(origin),
            mail: None,
        })
    }

    /// The same, as what a letter brought.
    pub fn by_mail(mut self, id: MailId) -> Self {
        if let Self::Text(text) = &mut self {
            text.mail = Some(id);
        }
        self
    }

    /// The letter that brought it, if one did.
    pub fn mail(&self) -> Option<MailId> {
        match self {
            Self::Text(text) => text.mail,
            Self::ToolResult(result) => result.mail,
            _ => None,
        }
    }
}

/// Text, and on the user's side who wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The letter that brought it, if one did. A letter is heard when a transcript has it: so
    /// however often it is delivered again after a crash, it is heard once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailId>,
}

/// Who a user-role text comes from. Recorded beside the text and never guessed from it: what has
/// no origin is not the user's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The person at the keyboard.
    Human,
    /// Facts that gaffer adds: folder, date, project documents.
    Context,
    /// The end of a task.
    TaskNotification,
    /// Mail from another agent.
    Agent,
    /// One of the user's hooks.
    Hook,
    /// What gaffer wrote in place of a conversation that was compacted.
    Compacted,
}

/// What a model thought. `raw` goes back unchanged to the wire that it came from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawReasoning>,
}

/// A provider's own form of a reasoning block, with its signature or encrypted content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RawReasoning {
    /// The wire that wrote it; another wire leaves the block out.
    pub wire: String,
    pub json: Json,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolUse {
    pub id: CallId,
    pub name: String,
    pub input: ToolInput,
}

/// The arguments of a call. Models sometimes write something else than JSON; that text is kept,
/// so that the call can be answered with what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInput {
    Json(Json),
    Broken(String),
}

impl ToolInput {
    /// No text at all is how some providers say "no arguments".
    pub fn from_text(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Json(Json::of(&serde_json::Map::new()));
        }
        match Json::parse(text) {
            Ok(json) if json.is_object() => Self::Json(json),
            _ => Self::Broken(text.to_owned()),
        }
    }

    /// The arguments as an object, for wires that take nothing else.
    pub fn to_object(&self) -> Json {
        match self {
            Self::Json(json) => json.clone(),
            Self::Broken(text) => Json::of(&serde_json::json!({ "unreadable_arguments": text })),
        }
    }

    /// The arguments as the model wrote them.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Json(json) => json.as_str(),
            Self::Broken(text) => text,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolResult {
    pub call: CallId,
    pub parts: Vec<ResultPart>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The letter that says the same: with this result it is heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailId>,
}

impl ToolResult {
    /// All text parts, one after another.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                ResultPart::Text(text) => Some(text.as_str()),
                ResultPart::Image(_) => None,
            })
            .collect();
        texts.join("\n")
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultPart {
    Text(String),
    Image(Image),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Image {
    /// `image/png` and the like.
    pub media_type: String,
    /// Base64, shared: an image is large and stands in more than one place.
    pub data: Arc<str>,
}

/// A whole answer of a model: it exists only once the provider's final event has arrived.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
}

impl Answer {
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n\n")
    }

    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        })
    }
}

/// Why a model stopped writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    /// The answer's own limit: it is cut.
    MaxTokens,
    /// The model's context is full: the answer is cut.
    ContextFull,
    /// The model or a filter declined.
    Refusal,
    /// A stop sequence was written. We set none, but a server may.
    StopSequence,
    /// The provider paused a long turn and wants it sent back to go on.
    Pause,
}

impl StopReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "model_context_window_exceeded",
            Self::Refusal => "refusal",
            Self::StopSequence => "stop_sequence",
            Self::Pause => "pause_turn",
        }
    }
}
