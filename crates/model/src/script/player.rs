//! Plays a script: which answer an agent gets next, and whether its input fits.

use super::values::{fill, fill_json, take};
use super::{AgentScript, Call, Check, Expect, Fault, Part, Script, Step, Stop, Thought};
use gaffer_protocol::message::{RawReasoning, ToolInput};
use gaffer_protocol::{
    Answer, Block, Json, Origin, Reasoning, StopReason, ToolResult, ToolUse, Usage,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An agent as a script knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Speaker {
    /// Tells agents apart that have the same name and type.
    pub id: String,
    pub name: String,
    pub agent_type: String,
}

/// What a model does with one attempt.
#[derive(Debug, Clone)]
pub struct Turn {
    pub delay: Duration,
    pub outcome: Outcome,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Answer(Answer),
    /// The answer is what the step would say; how much of it comes through is the fault's matter.
    Fault(Fault, Answer),
}

/// The run does not fit the script.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("agent `{agent}`, step {step}: {what}")]
pub struct Mismatch {
    pub agent: String,
    /// Counted from 1, as a reader of the file counts.
    pub step: usize,
    pub what: String,
}

/// Goes through a script for all agents of a run.
#[derive(Debug)]
pub struct Player {
    script: Script,
    places: Mutex<HashMap<String, Place>>,
}

/// Where one agent is in its entry.
#[derive(Debug, Default)]
struct Place {
    entry: usize,
    step: usize,
    repeated: u32,
    calls: u32,
    notifications: u32,
    values: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    /// Bytes that were seen before, for the estimate of tokens.
    seen: u64,
}

impl Player {
    pub fn new(script: Script) -> Self {
        Self {
            script,
            places: Mutex::default(),
        }
    }

    /// The next attempt of an agent, given its user-side input since its last whole answer.
    pub fn next(&self, who: &Speaker, input: &[Block]) -> Result<Turn, Mismatch> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if !places.contains_key(&who.id) {
            let fits = |entry: &AgentScript| fits(entry, who, input);
            let Some(entry) = self.script.agents.iter().position(fits) else {
                return Err(self.nobody(who, input));
            };
            let place = Place {
                entry,
                ..Place::default()
            };
            places.insert(who.id.clone(), place);
        }
        let Some(place) = places.get_mut(&who.id) else {
            return Err(self.nobody(who, input));
        };
        let steps = &self.script.agents[place.entry].steps;
        let number = place.step + 1;
        let wrong = |what| Mismatch {
            agent: who.name.clone(),
            step: number,
            what,
        };
        let Some(step) = steps.get(place.step) else {
            let what = format!(
                "the script ends after step {}; the input was:\n{}",
                steps.len(),
                show(input)
            );
            return Err(wrong(what));
        };
        place.turn(step, input).map_err(wrong)
    }

    /// Passes over what an agent was answered before this run, given its input for each of those
    /// answers: its next step is then the one behind them.
    pub fn catch_up(&self, who: &Speaker, past: &[Vec<Block>]) {
        let known = |player: &Self| {
            let places = player.places.lock();
            let places = places.unwrap_or_else(PoisonError::into_inner);
            places.contains_key(&who.id)
        };
        if known(self) {
            return;
        }
        for input in past {
            // What does not fit now fits no better later: the next step says what is wrong.
            while let Ok(Turn {
                outcome: Outcome::Fault(..),
                ..
            }) = self.next(who, input)
            {}
        }
    }

    fn nobody(&self, who: &Speaker, input: &[Block]) -> Mismatch {
        let what = format!(
            "no entry of the script fits the agent `{}` of type `{}` with the input:\n{}",
            who.name,
            who.agent_type,
            show(input)
        );
        Mismatch {
            agent: who.name.clone(),
            step: 1,
            what,
        }
    }

    /// What the run did not come to, by agent: a script that was played to its end leaves nothing.
    pub fn left_over(&self) -> Vec<String> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::new();
        for (n, entry) in self.script.agents.iter().enumerate() {
            let furthest = places
                .values()
                .filter(|place| place.entry == n)
                .map(|place| place.step)
                .max();
            let done = furthest.unwrap_or(0);
            if done < entry.steps.len() {
                let name = entry
                    .name
                    .as_deref()
                    .or(entry.agent_type.as_deref())
                    .unwrap_or("?");
                left.push(format!("{name}: {} of {} steps", done, entry.steps.len()));
            }
        }
        left
    }
}

fn fits(entry: &AgentScript, who: &Speaker, input: &[Block]) -> bool {
    let same = |want: &Option<String>, is: &str| want.as_deref().is_none_or(|want| want == is);
    let prompt_fits = entry
        .prompt
        .as_ref()
        .is_none_or(|check| check.holds_among(texts(input)));
    same(&entry.name, &who.name) && same(&entry.agent_type, &who.agent_type) && prompt_fits
}

fn texts(input: &[Block]) -> impl Iterator<Item = &str> {
    input.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        _ => None,
    })
}

fn results(input: &[Block]) -> impl Iterator<Item = &ToolResult> {
    input.iter().filter_map(|block| match block {
        Block::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// The input as a person reads it, for the difference that a mismatch shows.
fn show(input: &[Block]) -> String {
    let line = |block: &Block| match block {
        Block::Text(text) => format!("  text: {}", cut(&text.text)),
        Block::ToolResult(result) => {
            let error = if result.is_error { " (error)" } else { "" };
            format!(
                "  result of {}{error}: {}",
                result.call,
                cut(&result.text())
            )
        }
        other => format!("  {}", cut(&format!("{other:?}"))),
    };
    let lines: Vec<String> = input.iter().map(line).collect();
    if lines.is_empty() {
        "  (nothing)".to_owned()
    } else {
        lines.join("\n")
    }
}

fn cut(text: &str) -> String {
    const MOST: usize = 2000;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{:?}… ({} bytes)", &text[..at], text.len()),
        None => format!("{text:?}"),
    }
}

impl Place {
    fn turn(&mut self, step: &Step, input: &[Block]) -> Result<Turn, String> {
        let arrived = self.notifications + notifications(input);
        let delay = step.delay.unwrap_or_default().0;
        if step
            .when
            .as_ref()
            .is_some_and(|when| arrived < when.notifications)
        {
            let text = step.meanwhile.as_deref().unwrap_or("Waiting.");
            let text = fill(text, &self.values)?;
            let answer = self.finish(step, vec![Block::text(text)], input);
            self.notifications = arrived;
            return Ok(Turn {
                delay,
                outcome: Outcome::Answer(answer),
            });
        }
        for expect in &step.expect {
            self.check(expect, input)?;
        }
        for (name, save) in &step.save {
            let result = self.find(save.of.as_deref(), input)?;
            let value =
                take(save, result).map_err(|why| format!("no value for `{name}`: {why}"))?;
            self.values.insert(name.clone(), value);
        }
        let blocks = self.blocks(step)?;
        let answer = self.finish(step, blocks, input);
        self.repeated += 1;
        if self.repeated >= step.repeat.unwrap_or(1) {
            self.repeated = 0;
            self.step += 1;
        }
        let outcome = match &step.fault {
            Some(fault) => Outcome::Fault(fault.clone(), answer),
            None => {
                self.notifications = arrived;
                Outcome::Answer(answer)
            }
        };
        Ok(Turn { delay, outcome })
    }

    fn find<'a>(&self, label: Option<&str>, input: &'a [Block]) -> Result<&'a ToolResult, String> {
        let Some(label) = label else {
            let first = results(input).next();
            return first.ok_or_else(|| format!("the input has no result:\n{}", show(input)));
        };
        let call = self
            .labels
            .get(label)
            .ok_or_else(|| format!("no call was named `{label}`"))?;
        let found = results(input).find(|result| result.call == *call);
        found.ok_or_else(|| format!("the input has no result of `{label}`:\n{}", show(input)))
    }

    fn check(&self, expect: &Expect, input: &[Block]) -> Result<(), String> {
        if let Some(check) = &expect.text
            && !check.holds_among(texts(input))
        {
            return Err(format!(
                "expected a text that {}; the input was:\n{}",
                check.describe(),
                show(input)
            ));
        }
        if expect.result.is_none() && expect.error.is_none() && expect.of.is_none() {
            return Ok(());
        }
        let candidates: Vec<&ToolResult> = match &expect.of {
            Some(label) => vec![self.find(Some(label), input)?],
            None => results(input).collect(),
        };
        let kind_fits =
            |result: &&ToolResult| expect.error.is_none_or(|error| error == result.is_error);
        let mut fitting = candidates.into_iter().filter(kind_fits).peekable();
        let is_there = fitting.peek().is_some();
        let text_fits = |check: &Check| check.holds_among(fitting.map(ToolResult::text));
        if is_there && expect.result.as_ref().is_none_or(text_fits) {
            return Ok(());
        }
        let what = expect
            .result
            .as_ref()
            .map(|check| format!(" that {}", check.describe()));
        let kind = match expect.error {
            Some(true) => "an error result",
            Some(false) => "a result without error",
            None => "a result",
        };
        Err(format!(
            "expected {kind}{}; the input was:\n{}",
            what.unwrap_or_default(),
            show(input)
        ))
    }

    fn blocks(&mut self, step: &Step) -> Result<Vec<Block>, String> {
        let mut blocks = Vec::new();
        if let Some(parts) = &step.answer {
            for part in parts {
                blocks.push(match part {
                    Part::Say(text) => Block::text(fill(text, &self.values)?),
                    Part::Think(thought) => self.thought(thought)?,
                    Part::Call(call) => self.call(call)?,
                });
            }
            return Ok(blocks);
        }
        if let Some(text) = &step.think {
            let thought = Thought {
                text: text.clone(),
                wire: None,
                raw: None,
            };
            blocks.push(self.thought(&thought)?);
        }
        if let Some(text) = &step.say {
            blocks.push(Block::text(fill(text, &self.values)?));
        }
        for call in &step.calls {
            blocks.push(self.call(call)?);
        }
        Ok(blocks)
    }

    fn thought(&self, thought: &Thought) -> Result<Block, String> {
        let raw = match (&thought.wire, &thought.raw) {
            (Some(wire), Some(raw)) => {
                let json =
                    Json::parse(raw).map_err(|error| format!("`raw` is not JSON: {error}"))?;
                Some(RawReasoning {
                    wire: wire.clone(),
                    json,
                })
            }
            _ => None,
        };
        let text = fill(&thought.text, &self.values)?;
        Ok(Block::Reasoning(Reasoning { text, raw }))
    }

    fn call(&mut self, call: &Call) -> Result<Block, String> {
        self.calls += 1;
        let id = call
            .id
            .clone()
            .unwrap_or_else(|| format!("call_{}", self.calls));
        if let Some(label) = &call.label {
            self.labels.insert(label.clone(), id.clone());
        }
        let input = match (&call.input_text, &call.input) {
            (Some(text), _) => ToolInput::from_text(&fill(text, &self.values)?),
            (None, Some(value)) => {
                let value = fill_json(value, &self.values)?;
                ToolInput::from_text(Json::of(&value).as_str())
            }
            (None, None) => ToolInput::from_text(""),
        };
        Ok(Block::ToolUse(ToolUse {
            id,
            name: call.tool.clone(),
            input,
        }))
    }

    /// Four bytes a token is near enough for a show; what came before counts as read from cache.
    fn finish(&mut self, step: &Step, blocks: Vec<Block>, input: &[Block]) -> Answer {
        let size = |blocks: &[Block]| {
            blocks
                .iter()
                .map(|block| Json::of(block).as_str().len() as u64)
                .sum::<u64>()
        };
        let (new, out) = (size(input), size(&blocks));
        let estimate = Usage {
            input: 0,
            cache_read: self.seen / 4,
            cache_write: new / 4,
            output: (out / 4).max(1),
        };
        if step.fault.is_none() {
            self.seen += new + out;
        }
        let usage = step.usage.map_or(estimate, |tokens| Usage {
            input: tokens.input,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            output: tokens.output,
        });
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse(_)));
        let natural = if calls {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        };
        Answer {
            stop: step.stop.map_or(natural, Stop::reason),
            blocks,
            usage,
            model: step.model.clone().unwrap_or_else(|| "scripted".to_owned()),
        }
    }
}

fn notifications(input: &[Block]) -> u32 {
    let count = input.iter().filter(|block| match block {
        Block::Text(text) => text.origin == Some(Origin::TaskNotification),
        _ => false,
    });
    count.count() as u32
}

impl Stop {
    fn reason(self) -> StopReason {
        match self {
            Self::EndTurn => StopReason::EndTurn,
            Self::ToolUse => StopReason::ToolUse,
            Self::MaxTokens => StopReason::MaxTokens,
            Self::ContextFull => StopReason::ContextFull,
            Self::Refusal => StopReason::Refusal,
            Self::StopSequence => StopReason::StopSequence,
            Self::Pause => StopReason::Pause,
        }
    }
}
