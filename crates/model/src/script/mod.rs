//! Scripted models: a text file that says what each agent answers, step by step.
//!
//! The types here are the format; their comments are its documentation in the JSON schema.

mod duration;
pub mod model;
pub mod player;
pub mod record;
mod values;

pub use duration::Span;
pub use model::Scripted;
pub use player::{Mismatch, Outcome, Player, Speaker, Turn};
pub use record::Recorder;

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What each agent of a run answers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "gaffer script")]
pub struct Script {
    /// The version of this format: 1.
    #[serde(default = "one")]
    pub version: u32,
    /// One entry for each agent or kind of agent. The first entry that fits an agent is used;
    /// each agent goes through its steps on its own.
    pub agents: Vec<AgentScript>,
}

fn one() -> u32 {
    1
}

/// The answers of one agent, or of all agents that fit.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentScript {
    /// Fits the agent of this name. The agent that talks with the user is `main`.
    pub name: Option<String>,
    /// Fits agents of this type.
    #[serde(rename = "type")]
    pub agent_type: Option<String>,
    /// Fits agents whose first prompt passes this check.
    pub prompt: Option<Check>,
    /// One answer each, in order.
    pub steps: Vec<Step>,
}

/// One answer of the model. `say`, `think` and `calls` are the short form; `answer` lists blocks
/// in any order. A step with none of them is an empty answer, or just its fault.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Take this step only when this holds; until then the agent says `meanwhile`.
    pub when: Option<When>,
    /// What is said while `when` does not hold yet. Default: `Waiting.`
    pub meanwhile: Option<String>,
    /// What must be true of the input since the last answer. Anything else fails the run.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Values to remember from the input, for `${name}` in later texts and inputs.
    #[serde(default)]
    pub save: BTreeMap<String, Save>,
    /// How long the model takes before its first byte: `250ms`, `2s`, `1m`.
    pub delay: Option<Span>,
    /// What goes wrong with this attempt. The next step is the next attempt.
    pub fault: Option<Fault>,
    /// Reasoning before the text.
    pub think: Option<String>,
    /// The answer's text.
    pub say: Option<String>,
    /// The tools that the answer calls.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// The answer's blocks in order, instead of `think`, `say` and `calls`.
    pub answer: Option<Vec<Part>>,
    /// Why the model stopped. Default: `tool_use` with calls, else `end_turn`.
    pub stop: Option<Stop>,
    /// The tokens that the answer reports. Default: estimated from the bytes.
    pub usage: Option<Tokens>,
    /// The model's name in the answer.
    pub model: Option<String>,
    /// Take this step so many times in a row. Default: 1.
    pub repeat: Option<u32>,
}

/// A condition on what an agent has received.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// At least so many task notifications have arrived in all.
    pub notifications: u32,
}

/// One condition on the input since the agent's last answer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Some text of the input passes this check.
    pub text: Option<Check>,
    /// A tool's result passes this check.
    pub result: Option<Check>,
    /// Which result is meant: the `as` of its call. Default: any.
    pub of: Option<String>,
    /// Whether that result is an error.
    pub error: Option<bool>,
}

/// A check of a text: what it contains, or one of three kinds by name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a text in quotes, or one of `contains`, `equals`, `matches`, `lacks` with a text"
)]
pub enum Check {
    /// The text contains this.
    Contains(String),
    By(CheckBy),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CheckBy {
    /// The text contains this.
    Contains(String),
    /// The text is exactly this.
    Equals(String),
    /// The text has a match of this regular expression.
    Matches(String),
    /// The text does not contain this.
    Lacks(String),
}

/// A value out of a tool's result.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// Whose result: the `as` of the call. Default: the first result of the input.
    pub of: Option<String>,
    /// A JSON pointer into the result, such as `/task_id`.
    pub json: Option<String>,
    /// A regular expression; its first group, or the whole match, is the value.
    pub matches: Option<String>,
}

/// A tool call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Option<serde_json::Value>,
    /// Its arguments as the model writes them, to the byte; may be something else than JSON.
    pub input_text: Option<String>,
    /// The call's id. Default: counted up.
    pub id: Option<String>,
    /// A name for `of` in later steps.
    #[serde(rename = "as")]
    pub label: Option<String>,
}

/// One block of an answer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Part {
    Say(String),
    Think(Thought),
    Call(Call),
}

/// Reasoning, with the provider's own form of it where one was recorded.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thought {
    pub text: String,
    /// The wire that the block came from.
    pub wire: Option<String>,
    /// The block as that wire wrote it: JSON in a string.
    pub raw: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    EndTurn,
    ToolUse,
    MaxTokens,
    ContextFull,
    Refusal,
    StopSequence,
    Pause,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub cache_read: u64,
    #[serde(default)]
    pub cache_write: u64,
    #[serde(default)]
    pub output: u64,
}

/// What can go wrong with an attempt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Fault {
    /// HTTP 529.
    Overloaded,
    /// HTTP 429, with the wait that the provider asks for.
    RateLimited(RateLimited),
    /// HTTP 500.
    ServerError,
    /// HTTP 401.
    Unauthorized,
    /// HTTP 403.
    Forbidden,
    /// HTTP 400 with these words.
    BadRequest(String),
    /// HTTP 400 that says the conversation is too long.
    PromptTooLong,
    /// The connection breaks before the answer begins.
    Disconnect,
    /// The step's text is streamed, then the stream ends without its final event.
    Cut,
    /// The step's text is streamed, then half an event and noise.
    Garbled,
    /// The step's text is streamed, then the provider reports overload inside the stream.
    OverloadedInside,
    /// No byte ever comes.
    Hang,
    /// The step's text is streamed, then nothing more comes.
    Silence,
    /// A web page with status 200.
    Html,
    /// An event that never ends: a megabyte without a line break, again and again.
    Flood,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimited {
    pub retry_after: Option<Span>,
}

/// Why a file is not a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("{0}")]
    Format(String),
    #[error("this is a script of version {0}; version 1 is known here")]
    Version(u32),
    #[error("agent {0}: {1}")]
    Agent(usize, String),
    #[error("agent {0}, step {1}: {2}")]
    Step(usize, usize, String),
}

impl Script {
    /// Reads YAML (and so JSON). Errors name the line.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_saphyr::from_str(text)
            .map_err(|error| ScriptError::Format(error.to_string().trim_end().to_owned()))?;
        if script.version != 1 {
            return Err(ScriptError::Version(script.version));
        }
        script.check()?;
        Ok(script)
    }

    /// The format's JSON schema.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    /// What types cannot say.
    fn check(&self) -> Result<(), ScriptError> {
        for (a, agent) in self.agents.iter().enumerate() {
            if let Some(pattern) = agent.prompt.as_ref().and_then(Check::pattern) {
                let wrong = |what| ScriptError::Agent(a + 1, what);
                values::check_pattern(pattern).map_err(wrong)?;
            }
            for (s, step) in agent.steps.iter().enumerate() {
                let wrong = |what: String| ScriptError::Step(a + 1, s + 1, what);
                let short = step.say.is_some() || step.think.is_some() || !step.calls.is_empty();
                if short && step.answer.is_some() {
                    let what =
                        "`answer` stands instead of `say`, `think` and `calls`, not beside them";
                    return Err(wrong(what.to_owned()));
                }
                if step.repeat == Some(0) {
                    return Err(wrong("`repeat` is at least 1".to_owned()));
                }
                values::check_patterns(step).map_err(wrong)?;
            }
        }
        Ok(())
    }
}
