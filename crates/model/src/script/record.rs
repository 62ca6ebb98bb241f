//! Records a live run as a script that replays it.

use crate::conversation::{Conversation, Prefix, Who};
use crate::error::ModelError;
use crate::{DeltaSink, Model};
use futures_util::future::BoxFuture;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Answer, Block, Json, StopReason, ToolUse};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Wraps a model and keeps every whole answer. Faults and retries leave no trace: a replay is the
/// run as it counted.
#[derive(Debug)]
pub struct Recorder {
    inner: Arc<dyn Model>,
    path: PathBuf,
    /// Shared by the recorders of one run.
    agents: Arc<Mutex<Vec<Recorded>>>,
}

#[derive(Debug)]
struct Recorded {
    who: Who,
    steps: String,
}

impl Recorder {
    pub fn new(inner: Arc<dyn Model>, path: PathBuf) -> Self {
        Self {
            inner,
            path,
            agents: Arc::default(),
        }
    }

    /// Another model of the same run, recorded into the same script.
    pub fn also(&self, inner: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(Self {
            inner,
            path: self.path.clone(),
            agents: self.agents.clone(),
        })
    }

    fn keep(&self, who: &Who, answer: &Answer) {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let place = agents.iter().position(|agent| agent.who.id == who.id);
        let place = place.unwrap_or_else(|| {
            agents.push(Recorded {
                who: who.clone(),
                steps: String::new(),
            });
            agents.len() - 1
        });
        write_step(&mut agents[place].steps, answer);
    }

    /// The script so far.
    pub fn script(&self) -> String {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::from(
            "# A recorded run: gaffer --provider scripted --model THIS-FILE replays it.\nversion: 1\nagents:\n",
        );
        for agent in agents.iter() {
            let _ = writeln!(out, "  - name: {}", Json::of(agent.who.name.as_str()));
            let _ = writeln!(out, "    type: {}", Json::of(&agent.who.agent_type));
            out.push_str("    steps:\n");
            out.push_str(&agent.steps);
        }
        out
    }

    /// Writes the file. A run without an answer leaves an earlier recording as it is.
    pub fn save(&self) -> std::io::Result<()> {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = agents.is_empty();
        drop(agents);
        if is_empty {
            return Ok(());
        }
        std::fs::write(&self.path, self.script())
    }
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.inner.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let answer = self.inner.answer(conversation, deltas).await?;
            self.keep(conversation.who(), &answer);
            Ok(answer)
        })
    }
}

/// One step, as YAML under `steps:`. Values are JSON, which YAML contains; longer texts are block
/// scalars where those give the same bytes back.
fn write_step(out: &mut String, answer: &Answer) {
    const IN: &str = "        ";
    let usage = answer.usage;
    let _ = writeln!(out, "      - model: {}", Json::of(&answer.model));
    let _ = writeln!(
        out,
        "{IN}usage: {{\"input\": {}, \"cache_read\": {}, \"cache_write\": {}, \"output\": {}}}",
        usage.input, usage.cache_read, usage.cache_write, usage.output
    );
    let _ = writeln!(out, "{IN}stop: {}", stop_name(answer.stop));
    if answer.blocks.is_empty() {
        return;
    }
    let _ = writeln!(out, "{IN}answer:");
    for block in &answer.blocks {
        match block {
            Block::Text(text) => {
                let _ = write!(out, "{IN}  - say: ");
                write_text(out, &escape(&text.text), 14);
            }
            Block::Reasoning(reasoning) => {
                let _ = write!(out, "{IN}  - think:\n{IN}      text: ");
                write_text(out, &escape(&reasoning.text), 16);
                if let Some(raw) = &reasoning.raw {
                    let _ = writeln!(out, "{IN}      wire: {}", Json::of(&raw.wire));
                    let _ = writeln!(out, "{IN}      raw: {}", yaml_string(raw.json.as_str()));
                }
            }
            Block::ToolUse(call) => write_call(out, IN, call),
            Block::ToolResult(_) | Block::Image(_) => {}
        }
    }
}

fn write_call(out: &mut String, indent: &str, call: &ToolUse) {
    let _ = writeln!(out, "{indent}  - call:");
    let _ = writeln!(out, "{indent}      tool: {}", yaml_string(&call.name));
    let _ = writeln!(out, "{indent}      id: {}", yaml_string(&call.id));
    let text = call.input.as_text();
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let compact = value.map(|value| Json::of(&value).to_string());
    // Where the model's own text is what we would write, the arguments stand as a value.
    let is_value = matches!(call.input, ToolInput::Json(_)) && compact.as_deref() == Some(text);
    if is_value && is_plain(text) {
        let _ = writeln!(out, "{indent}      input: {}", escape(text));
    } else {
        let _ = writeln!(
            out,
            "{indent}      input_text: {}",
            yaml_string(&escape(text))
        );
    }
}

/// `${` begins a value in scripts.
fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

fn stop_name(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::ContextFull => "context_full",
        StopReason::Refusal => "refusal",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Pause => "pause",
    }
}

/// Characters that YAML takes as they are inside quotes and blocks.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| {
        c == '\n'
            || (c >= ' '
                && !matches!(
                    c,
                    '\u{7f}'
                        ..='\u{9f}'
                            | '\u{2028}'
                            | '\u{2029}'
                            | '\u{feff}'
                            | '\u{fffe}'
                            | '\u{ffff}'
                ))
    })
}

/// A JSON string with everything escaped that YAML would not take as it is.
fn yaml_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in Json::of(text).as_str().chars() {
        if c < ' '
            || matches!(
                c,
                '\u{7f}'
                    ..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
        {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn write_text(out: &mut String, text: &str, indent: usize) {
    let fits_block = text.contains('\n')
        && is_plain(text)
        && !text.starts_with([' ', '\n'])
        && !text.ends_with('\n')
        && text
            .lines()
            .all(|line| !line.ends_with(' ') && !line.contains('\r'));
    if !fits_block {
        let _ = writeln!(out, "{}", yaml_string(text));
        return;
    }
    out.push_str("|-\n");
    for line in text.split('\n') {
        if line.is_empty() {
            out.push('\n');
        } else {
            let _ = writeln!(out, "{:indent$}{line}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Player, Script, Speaker};
    use super::*;
    use gaffer_protocol::message::RawReasoning;
    use gaffer_protocol::{Reasoning, Usage};
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = Block> {
        let text = prop_oneof![
            any::<String>(),
            "[ -~\n]{0,40}",
            "([a-z$#:{}\"' -]{0,10}\n){1,4}[a-z]{1,5}"
        ];
        let input = prop_oneof![
            any::<String>().prop_map(|text| ToolInput::from_text(&text)),
            any::<String>().prop_map(|text| ToolInput::Json(Json::of(
                &serde_json::json!({"b": text, "a": [1.5, null]})
            ))),
        ];
        prop_oneof![
            text.clone().prop_map(Block::text),
            text.clone().prop_map(|text| {
                let raw = Some(RawReasoning {
                    wire: "anthropic".into(),
                    json: Json::of(&text),
                });
                Block::Reasoning(Reasoning { text, raw })
            }),
            (text, any::<String>(), input).prop_map(|(id, name, input)| Block::ToolUse(ToolUse {
                id,
                name,
                input
            })),
        ]
    }

    proptest! {
        #[test]
        fn a_recorded_answer_is_played_back_as_it_was(blocks in prop::collection::vec(block(), 0..4), tokens: u32) {
            let answer = Answer {
                blocks,
                stop: StopReason::EndTurn,
                usage: Usage { input: tokens.into(), output: 7, ..Usage::default() },
                model: "m-1".into(),
            };
            let mut steps = String::new();
            write_step(&mut steps, &answer);
            let text = format!("agents:\n  - steps:\n{steps}");
            let script = Script::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            let who = Speaker { id: "1".into(), name: "main".into(), agent_type: "x".into() };
            let turn = Player::new(script).next(&who, &[]).unwrap();
            let Outcome::Answer(played) = turn.outcome else { panic!("a fault") };
            prop_assert_eq!(played, answer, "{}", text);
        }
    }
}
