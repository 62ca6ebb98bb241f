//! A real agent in this process, with real tools and a real transcript. Only its model is canned:
//! it puts the request together as the Anthropic wire does, and answers with a call of Read.

use crate::allocations::{self, Asked};
use crate::{events, say};
use anyhow::{Context, bail, ensure};
use futures_util::future::{BoxFuture, ready};
use gaffer_agent::{Agent, Parts, inbox, prompt};
use gaffer_model::wire::WireOptions;
use gaffer_model::wire::anthropic::Anthropic;
use gaffer_model::{Conversation, DeltaSink, Model, ModelError, Prefix, Prices, Who};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{
    AgentId, AgentName, Answer, Block, Clock, End, EventKind, EventSink, Message, ResultPart,
    StopReason, Timestamp, ToolResult, ToolUse, Usage,
};
use gaffer_store::Transcript;
use gaffer_tools::bash::Bash;
use gaffer_tools::edit::Edit;
use gaffer_tools::notebook_edit::NotebookEdit;
use gaffer_tools::read::Read;
use gaffer_tools::write::Write;
use gaffer_tools::{Context as ToolContext, ToolSet, erase};
use http_body::Body;
use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio_util::sync::CancellationToken;

/// So many turns a run can have. Each reads a file of its own: one that was shown before would only
/// be pointed at.
const MOST_TURNS: usize = 500;

fn file_of(turn: usize) -> String {
    format!("small-{turn:03}.txt")
}

/// How the model puts its requests together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As gaffer does: from bytes that were serialised once.
    Rope,
    /// As it is done most simply: all messages are serialised for each request.
    Naive,
}

impl Way {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rope => "rope",
            Self::Naive => "naive",
        }
    }
}

/// `__agent WAY TURNS`: one run, for callgrind.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let [way, turns] = words else {
        bail!("expected a way and a number, not {words:?}")
    };
    let way = match *way {
        "rope" => Way::Rope,
        "naive" => Way::Naive,
        other => bail!("unknown way {other}"),
    };
    let ran = run(way, turns.parse()?)?;
    say::out(&format!("{} bytes were sent", ran.sent));
    Ok(())
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What had been asked of the allocator when a request was made: one for each answer.
    pub(crate) asked: Vec<Asked>,
    pub(crate) sent: u64,
}

/// Runs an agent for so many turns of a Read, and one for its last word.
pub(crate) fn run(way: Way, turns: usize) -> anyhow::Result<Ran> {
    let folder = tempfile::tempdir()?;
    // As many for a short run as for a long one, so that making them cancels out.
    for turn in 0..MOST_TURNS {
        std::fs::write(folder.path().join(file_of(turn)), events::file())?;
    }
    ensure!(turns <= MOST_TURNS, "there is no file for turn {turns}");
    let model = Arc::new(Canned::new(way, turns));
    let mut agent = agent(model.clone(), folder.path())?;
    // One thread, so that two runs do the same in the same order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(agent.run(&CancellationToken::new()));
    ensure!(
        outcome.end == End::Done,
        "the agent ended with {}",
        outcome.end
    );
    // A run of failed reads would look quick.
    let least = turns * events::file().len();
    ensure!(agent.conversation().len() > least, "the file was not read");
    let state = model.lock();
    Ok(Ran {
        asked: state.asked.clone(),
        sent: state.sent,
    })
}

fn agent(model: Arc<Canned>, folder: &Path) -> anyhow::Result<Agent> {
    let tools = Arc::new(ToolSet::new([
        erase(Bash),
        erase(Edit),
        erase(NotebookEdit),
        erase(Read),
        erase(Write),
    ]));
    let prefix = Prefix {
        system: prompt::AGENT.text.to_owned(),
        tools: tools.specs(),
    };
    let id = AgentId::parse("agent-0123abcd").context("the agent's id")?;
    let who = Who {
        id,
        name: AgentName::main(),
        agent_type: "general-purpose".to_owned(),
    };
    let (sender, inbox) = inbox();
    sender.send(Block::from_human("hi"));
    Ok(Agent::new(Parts {
        id,
        conversation: model.open(&prefix, who),
        model,
        tools,
        // No command is ever started, so anything may stand for the warden.
        context: ToolContext::in_folder(folder, folder, folder, folder),
        transcript: Transcript::create(folder.join("transcript.jsonl"))?,
        inbox,
        events: Arc::new(Nobody),
        prices: Arc::new(Prices::new(&BTreeMap::new())),
        clock: Arc::new(Still),
        max_turns: None,
        compaction: gaffer_agent::Compaction::default(),
        allowance: Arc::new(gaffer_agent::Unlimited),
    }))
}

#[derive(Debug)]
struct Nobody;

impl EventSink for Nobody {
    fn emit(&self, _: AgentId, _: EventKind) {}
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_794_733_200_000)
    }
}

pub(crate) fn wire() -> Anthropic {
    Anthropic {
        options: WireOptions {
            model: events::MODEL.to_owned(),
            max_output: 32_000,
            extra: serde_json::Map::new(),
            images: true,
            server_tools: Vec::new(),
        },
    }
}

#[derive(Debug)]
struct Canned {
    way: Way,
    turns: usize,
    result: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: Vec<Asked>,
    sent: u64,
    /// What the naive way serialises.
    messages: Vec<Message>,
}

impl Canned {
    fn new(way: Way, turns: usize) -> Self {
        let lines = events::file();
        let lines = lines.lines().zip(1..);
        Self {
            way,
            turns,
            result: lines.map(|(line, n)| format!("{n:>6}\t{line}\n")).collect(),
            // Room for all, so that counting does not count itself.
            state: Mutex::new(State {
                asked: Vec::with_capacity(turns + 1),
                messages: Vec::with_capacity(2 * turns),
                ..State::default()
            }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, conversation: &Conversation) -> Answer {
        let mut state = self.lock();
        state.asked.push(allocations::so_far());
        state.sent += match self.way {
            Way::Rope => drain(conversation),
            Way::Naive => serde_json::to_vec(&state.messages).map_or(0, |json| json.len() as u64),
        };
        let turn = state.asked.len() - 1;
        if turn == self.turns {
            return answer(Block::text("done"), StopReason::EndTurn);
        }
        let id = events::call_id(turn as u64);
        let call = Block::ToolUse(ToolUse {
            id: id.clone(),
            name: "Read".to_owned(),
            input: ToolInput::from_text(&format!("{{\"file_path\":\"{}\"}}", file_of(turn))),
        });
        if self.way == Way::Naive {
            let result = Block::ToolResult(ToolResult {
                call: id,
                parts: vec![ResultPart::Text(self.result.clone())],
                is_error: false,
                mail: None,
            });
            let both = [
                Message::assistant(vec![call.clone()]),
                Message::user(vec![result]),
            ];
            state.messages.extend(both);
        }
        answer(call, StopReason::ToolUse)
    }
}

fn answer(block: Block, stop: StopReason) -> Answer {
    Answer {
        blocks: vec![block],
        stop,
        usage: Usage::default(),
        model: events::MODEL.to_owned(),
    }
}

/// Takes the frames as a connection would, but looks only at their lengths: handing the bytes to
/// the system is its work, not ours.
fn drain(conversation: &Conversation) -> u64 {
    let mut request = conversation.request();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut bytes = 0;
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut request).poll_frame(&mut context) {
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    bytes
}

impl Model for Canned {
    fn name(&self) -> &str {
        events::MODEL
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        Conversation::new(Arc::new(wire()), prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        _: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(ready(Ok(self.next(conversation))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_make_all_their_turns() {
        for way in [Way::Rope, Way::Naive] {
            let ran = run(way, 3).unwrap();
            assert_eq!(ran.asked.len(), 4, "{way:?}");
            assert!(ran.sent > 1000, "{way:?}");
        }
    }
}
