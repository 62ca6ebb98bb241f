//! The turn loop: ask the model, record, run its calls, record, ask again.

use crate::allowance::{Allowance, out_of_time};
use crate::ask::{ask, end_of};
use crate::calls::{not_run, run_all};
use crate::compact::{Compaction, Gauge, Request, Spill};
use crate::hooks::Leave;
use crate::inbox::Inbox;
use crate::recording::Recording;
use crate::switch::gauge;
use gaffer_model::{Checkpoint, Conversation, ErrorKind, Model, Prices};
use gaffer_protocol::{
    AgentId, Answer, Block, Clock, Cost, End, EventKind, EventSink, MailId, Message, StopReason,
    ToolResult, ToolUse, Usage, Waiting,
};
use gaffer_store::transcript::ANSWER_CUT;
use gaffer_store::{Entry, Record, Transcript};
use gaffer_tools::hook::AgentHooks;
use gaffer_tools::{Context, ToolSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CUT_OFF: &str = "The run was stopped while this call was under way or before it began. It may have been carried out in part; look before you repeat it.";

const OUT_OF_TIME: &str = "The time was up while this call was under way or before it began. It was cut off and may have been carried out in part.";

/// So many answers in a row may be cut because the context was full.
const MOST_OVERFULL: u32 = 2;

/// What an agent is made of.
#[derive(Debug)]
pub struct Parts {
    pub id: AgentId,
    pub model: Arc<dyn Model>,
    /// Begun by that model, with the prefix of the agent's type.
    pub conversation: Conversation,
    pub tools: Arc<ToolSet>,
    pub context: Context,
    pub transcript: Transcript,
    pub inbox: Inbox,
    pub events: Arc<dyn EventSink>,
    pub prices: Arc<Prices>,
    pub clock: Arc<dyn Clock>,
    pub max_turns: Option<u32>,
    pub compaction: Compaction,
    /// Whether it may go on asking.
    pub allowance: Arc<dyn Allowance>,
}

/// The record could not be written; nothing further may happen.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the transcript {path}: {why}")]
pub struct AgentError {
    pub path: String,
    pub why: io::Error,
}

/// How a run ended, with its figures.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub end: End,
    /// The text of the last answer that had any.
    pub result: String,
    pub turns: u32,
    pub tool_uses: u32,
    pub usage: Usage,
    pub cost: Cost,
    pub model_time: Duration,
    pub stop: Option<StopReason>,
}

#[derive(Debug)]
pub struct Agent {
    pub(crate) parts: Parts,
    pub(crate) outcome: Outcome,
    pub(crate) gauge: Gauge,
    pub(crate) spill: Spill,
    /// Up to where the conversation was answered: behind it stand calls with their results, and
    /// what has arrived since.
    pub(crate) answered: Checkpoint,
    /// Where in the transcript the conversation begins.
    pub(crate) folded_from: u64,
    /// How often in a row the provider found the conversation too long.
    pub(crate) refusals: u32,
    /// How many answers in a row were cut because the context was full.
    overfull: u32,
    /// Whether there is anything to answer.
    pub(crate) is_asked: bool,
    /// What hooks said when it was last compacted.
    pub(crate) greeting: Option<String>,
    /// Somebody wants the conversation compacted.
    pub(crate) wanted: Option<Request>,
    /// What was taken from the inbox and is not in the conversation yet: hooks look at it.
    pub(crate) unheard: Vec<Block>,
    /// Letters that its transcript has.
    pub(crate) heard: Vec<MailId>,
    /// How often in a row hooks have kept it from ending.
    pub(crate) held: u32,
}

impl Agent {
    pub fn new(parts: Parts) -> Self {
        let outcome = Outcome {
            end: End::Interrupted,
            result: String::new(),
            turns: 0,
            tool_uses: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            model_time: Duration::ZERO,
            stop: None,
        };
        Self {
            gauge: gauge(&parts),
            spill: Spill::new(&parts.context.spill, parts.id),
            answered: parts.conversation.checkpoint(),
            folded_from: 0,
            refusals: 0,
            overfull: 0,
            is_asked: false,
            greeting: None,
            wanted: None,
            parts,
            outcome,
            unheard: Vec::new(),
            heard: Vec::new(),
            held: 0,
        }
    }

    /// Takes the agent apart, to go on with other parts.
    pub fn into_parts(self) -> Parts {
        self.parts
    }

    /// The conversation as it stands: valid for its provider after any end.
    pub fn conversation(&self) -> &Conversation {
        &self.parts.conversation
    }

    /// Works until there is nothing left to do, or `stop` is cancelled, and ends.
    pub async fn run(&mut self, stop: &CancellationToken) -> Outcome {
        let end = self.work(stop).await;
        self.close(end)
    }

    /// Works until there is nothing left to do, or `stop` is cancelled. It can go on after that.
    pub async fn work(&mut self, stop: &CancellationToken) -> End {
        match self.turns(stop).await {
            Ok(end) => end,
            Err(why) => {
                let path = self.parts.transcript.path().display().to_string();
                End::Crashed(AgentError { path, why }.to_string())
            }
        }
    }

    /// Rests until something arrives: it costs nothing. False if nobody can send anything, or if
    /// `stop` is cancelled.
    pub async fn rest(&mut self, stop: &CancellationToken) -> bool {
        self.emit(EventKind::Waiting(Waiting::Mail));
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            arrived = self.parts.inbox.arrived() => arrived,
        }
    }

    /// What has arrived so far is heard with whatever comes next: by itself it wakes nobody.
    pub fn hold(&mut self) {
        self.unheard.extend(self.parts.inbox.take());
    }

    pub fn has_mail(&self) -> bool {
        self.parts.inbox.has_mail()
    }

    /// Takes back what has arrived and was not heard: whoever sent it was told that it would be.
    pub fn take_unread(&mut self) -> Vec<Block> {
        let mut unread = std::mem::take(&mut self.unheard);
        unread.extend(self.parts.inbox.take());
        unread
    }

    /// The letters that it has heard since it was last asked.
    pub fn take_heard(&mut self) -> Vec<MailId> {
        std::mem::take(&mut self.heard)
    }

    /// How many they are.
    pub fn heard_count(&self) -> usize {
        self.heard.len()
    }

    pub fn transcript(&self) -> &Transcript {
        &self.parts.transcript
    }

    /// The text of its last answer that had any.
    pub fn last_words(&self) -> &str {
        &self.outcome.result
    }

    /// Records the end and answers with the figures.
    pub fn close(&mut self, end: End) -> Outcome {
        self.outcome.end = end.clone();
        // If even this cannot be written, the fold finds a run without an end: interrupted.
        drop(self.record(Entry::End(end)));
        self.outcome.clone()
    }

    async fn turns(&mut self, stop: &CancellationToken) -> io::Result<End> {
        let mut is_paused = false;
        let allowance = self.parts.allowance.clone();
        loop {
            self.unheard.extend(self.parts.inbox.take());
            self.unheard.extend(allowance.news());
            let heard = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(End::Interrupted),
                heard = self.hear() => heard?,
            };
            if let Err(end) = heard {
                return Ok(end);
            }
            if let Some(end) = self.wrap_up(stop).await? {
                return Ok(end);
            }
            let is_over = self.wanted.is_some() && !self.is_asked;
            let room = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(End::Interrupted),
                room = self.make_room() => room?,
                () = out_of_time(&*allowance) => continue,
            };
            if let Some(end) = room {
                return Ok(end);
            }
            if is_over {
                return Ok(End::Done);
            }
            if self.parts.conversation.is_empty() {
                return Ok(End::EmptyAnswer);
            }
            let most = self.parts.max_turns;
            if most.is_some_and(|most| self.outcome.turns >= most) {
                return Ok(End::MaxTurns);
            }
            let (answer, took) = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(End::Interrupted),
                answered = ask(&self.parts, &self.parts.conversation, true) => answered,
                () = out_of_time(&*allowance) => continue,
            };
            self.outcome.model_time += took;
            let answer = match answer {
                Ok(answer) => Arc::new(answer),
                Err(error) if error.kind == ErrorKind::PromptTooLong => {
                    match self.shorten(stop).await? {
                        Some(end) => return Ok(end),
                        None => continue,
                    }
                }
                Err(error) => return Ok(end_of(&error)),
            };
            self.take_answer(&answer)?;
            let calls: Vec<Arc<ToolUse>> = answer.tool_uses().cloned().map(Arc::new).collect();
            if !calls.is_empty() {
                if let Some(end) = self.run_calls(&answer, &calls, stop).await? {
                    return Ok(end);
                }
                continue;
            }
            match answer.stop {
                // A pause that follows a pause without a word in between leads nowhere.
                StopReason::Pause if !is_paused || !answer.blocks.is_empty() => is_paused = true,
                StopReason::ContextFull if self.overfull <= MOST_OVERFULL => {
                    if let Some(end) = self.shorten(stop).await? {
                        return Ok(end);
                    }
                }
                _ => match self.natural_end(&answer) {
                    Some(End::Done) if !self.is_held(&answer, stop).await => return Ok(End::Done),
                    Some(End::Done) | None => is_paused = false,
                    Some(end) => return Ok(end),
                },
            }
        }
    }

    /// Makes a conversation shorter that the provider does not take; the end, if that fails.
    async fn shorten(&mut self, stop: &CancellationToken) -> io::Result<Option<End>> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(Some(End::Interrupted)),
            end = self.overflow() => end,
        }
    }

    /// The end that an answer without calls means, unless more input has come meanwhile.
    fn natural_end(&self, answer: &Answer) -> Option<End> {
        match answer.stop {
            StopReason::MaxTokens | StopReason::ContextFull => Some(End::Context),
            StopReason::Refusal => Some(End::ProviderError(
                "the model declined to answer".to_owned(),
            )),
            StopReason::Pause => Some(End::NoProgress(
                "the provider paused again and again".to_owned(),
            )),
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => {
                if self.parts.inbox.has_mail() {
                    None
                } else if answer.text().trim().is_empty() {
                    Some(End::EmptyAnswer)
                } else {
                    Some(End::Done)
                }
            }
        }
    }

    /// Whether hooks keep the agent from ending. Why they do is then its next input.
    async fn is_held(&mut self, answer: &Answer, stop: &CancellationToken) -> bool {
        let last_words = answer.text();
        let leave = tokio::select! {
            biased;
            () = stop.cancelled() => Leave::Granted,
            leave = self.ask_leave(self.held, &last_words) => leave,
        };
        match leave {
            Leave::Granted => false,
            Leave::Held(block) => {
                self.held += 1;
                self.unheard.push(block);
                true
            }
        }
    }

    pub(crate) fn take_answer(&mut self, answer: &Arc<Answer>) -> io::Result<()> {
        self.record(Entry::Answer(answer.clone()))?;
        let message = Message::assistant(answer.blocks.clone());
        self.answered = self.parts.conversation.checkpoint();
        let asked = self.parts.conversation.len();
        self.parts.conversation.push(&message);
        if answer.tool_uses().next().is_none() {
            self.answered = self.parts.conversation.checkpoint();
        }
        self.gauge
            .answered(answer.usage, asked, &self.parts.conversation);
        self.refusals = 0;
        self.is_asked = false;
        self.overfull = match answer.stop {
            StopReason::ContextFull => self.overfull + 1,
            _ => 0,
        };
        let cost = self.price(answer);
        let outcome = &mut self.outcome;
        outcome.turns += 1;
        outcome.usage += answer.usage;
        outcome.cost += cost;
        outcome.stop = Some(answer.stop);
        let text = answer.text();
        if !text.trim().is_empty() {
            outcome.result = text.trim().to_owned();
        }
        let turn = outcome.turns;
        self.emit(EventKind::Answered {
            turn,
            answer: answer.clone(),
            cost,
        });
        Ok(())
    }

    /// What an answer cost.
    pub(crate) fn price(&self, answer: &Answer) -> Cost {
        let prices = &self.parts.prices;
        let known = prices.of(&answer.model).map(|_| answer.model.as_str());
        prices.cost(known.unwrap_or(self.parts.model.name()), answer.usage)
    }

    /// Runs the calls of an answer; the end if it was stopped. Either way every call has its
    /// result in the conversation afterwards.
    async fn run_calls(
        &mut self,
        answer: &Answer,
        calls: &[Arc<ToolUse>],
        stop: &CancellationToken,
    ) -> io::Result<Option<End>> {
        let is_whole = matches!(answer.stop, StopReason::ToolUse | StopReason::EndTurn);
        let mut results: Vec<Option<Arc<ToolResult>>> = vec![None; calls.len()];
        let mut end = None;
        let mut is_out_of_time = false;
        if is_whole {
            let ids = calls.iter().map(|call| call.id.clone()).collect();
            self.emit(EventKind::Waiting(Waiting::Tools(ids)));
            let Parts {
                tools,
                context,
                transcript,
                events,
                clock,
                id,
                allowance,
                ..
            } = &mut self.parts;
            let mut watch = Recording {
                id: *id,
                calls,
                transcript,
                events: &**events,
                clock: &**clock,
                results: &mut results,
                end: &mut end,
                spill: &mut self.spill,
                shown: &context.shown,
                room: self.gauge.room_for_results(),
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => end = Some(End::Interrupted),
                () = allowance.expired() => is_out_of_time = true,
                done = run_all(calls, tools, context, &mut watch) => done?,
            }
            self.outcome.tool_uses += calls.len() as u32;
        }
        let why = match is_whole {
            true if is_out_of_time => OUT_OF_TIME,
            true => CUT_OFF,
            false => ANSWER_CUT,
        };
        let mut blocks = Vec::with_capacity(calls.len());
        for (call, result) in calls.iter().zip(results) {
            let result = match result {
                Some(result) => result,
                None => {
                    // It may have read what is not told now.
                    self.parts.context.shown.forget();
                    let result = not_run(call, why);
                    self.record(Entry::Result(result.clone()))?;
                    self.emit(EventKind::ToolFinished {
                        tool: call.name.clone(),
                        result: result.clone(),
                        duration_ms: 0,
                    });
                    result
                }
            };
            self.heard.extend(result.mail);
            blocks.push(Block::ToolResult(Arc::unwrap_or_clone(result)));
        }
        self.parts.conversation.push(&Message::user(blocks));
        self.is_asked = true;
        Ok(end)
    }

    pub(crate) fn record(&mut self, entry: Entry) -> io::Result<()> {
        let at = self.parts.clock.now();
        self.parts.transcript.append(&Record { at, entry })
    }

    pub(crate) fn all_hooks(&self) -> Option<&AgentHooks> {
        self.parts.context.hooks.as_ref()
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.parts.context.cwd.get()
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        self.parts.events.emit(self.parts.id, kind);
    }
}
