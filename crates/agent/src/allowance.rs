//! Whether an agent may go on asking its model, and its last turn when it may not.

use crate::agent::Agent;
use crate::ask::ask;
use crate::calls::not_run;
use futures_util::future::BoxFuture;
use gaffer_protocol::{Block, End, EventKind, Message, ToolUse};
use gaffer_store::Entry;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// So long a request that is under way may take when the time is up.
pub const GRACE: Duration = Duration::from_secs(30);

const NOT_CARRIED_OUT: &str = "Not carried out: the budget is used up, and this was the last turn.";

/// What an agent hears before a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    Go,
    /// One more request, with this; none of its calls is carried out.
    WrapUp(Block),
    Stop,
}

/// What an agent may use. It is asked before each request.
pub trait Allowance: Send + Sync + std::fmt::Debug {
    fn say(&self) -> Say;

    /// What the agent is to know with the next request; nothing is asked because of it.
    fn news(&self) -> Vec<Block> {
        Vec::new()
    }

    /// Ends when the time is up; never, where there is no such limit.
    fn expired(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// No limit.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl Allowance for Unlimited {
    fn say(&self) -> Say {
        Say::Go
    }
}

/// Ends when not even a request that is under way may go on.
pub(crate) async fn out_of_time(allowance: &dyn Allowance) {
    allowance.expired().await;
    tokio::time::sleep(GRACE).await;
}

impl Agent {
    /// None if the agent may go on. Else the end, after its last turn if it has one.
    pub(crate) async fn wrap_up(&mut self, stop: &CancellationToken) -> io::Result<Option<End>> {
        let block = match self.parts.allowance.say() {
            Say::Go => return Ok(None),
            Say::Stop => return Ok(Some(End::Budget)),
            Say::WrapUp(block) => block,
        };
        let message = Arc::new(Message::user(vec![block]));
        self.record(Entry::Input(message.clone()))?;
        self.parts.conversation.push(&message);
        self.emit(EventKind::Input(message));
        let (answer, took) = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(Some(End::Interrupted)),
            answered = ask(&self.parts, &self.parts.conversation, true) => answered,
            () = out_of_time(&*self.parts.allowance) => return Ok(Some(End::Budget)),
        };
        self.outcome.model_time += took;
        // Whatever keeps it from its last words, what it said before stands.
        let Ok(answer) = answer else {
            return Ok(Some(End::Budget));
        };
        let answer = Arc::new(answer);
        self.take_answer(&answer)?;
        let calls: Vec<ToolUse> = answer.tool_uses().cloned().collect();
        let mut blocks = Vec::with_capacity(calls.len());
        for call in &calls {
            let result = not_run(call, NOT_CARRIED_OUT);
            self.record(Entry::Result(result.clone()))?;
            self.emit(EventKind::ToolFinished {
                tool: call.name.clone(),
                result: result.clone(),
                duration_ms: 0,
            });
            blocks.push(Block::ToolResult(Arc::unwrap_or_clone(result)));
        }
        if !blocks.is_empty() {
            self.parts.conversation.push(&Message::user(blocks));
        }
        Ok(Some(End::Budget))
    }
}
