//! Questions: calls that wait for a yes or a no, which any surface may give.

use gaffer_protocol::{AgentId, EventKind, EventSink, Permission, Question, Waiting};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The open questions of a session. Clones are the same: those who ask and those who answer.
#[derive(Debug, Clone)]
pub struct Questions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    events: Arc<dyn EventSink>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    question: Arc<Question>,
    answer: oneshot::Sender<Permission>,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Draft {
    pub tool: String,
    pub input: Value,
    pub reason: String,
    pub suggestions: Vec<String>,
}

impl Questions {
    pub fn new(events: Arc<dyn EventSink>) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { events, state }))
    }

    /// Asks, and waits for the first answer. Dropping the future takes the question back.
    pub async fn ask(&self, agent: AgentId, draft: Draft) -> Permission {
        let (answer, answered) = oneshot::channel();
        let question = {
            let mut state = self.state();
            state.last += 1;
            let question = Arc::new(Question {
                number: state.last,
                tool: draft.tool,
                input: draft.input,
                reason: draft.reason,
                suggestions: draft.suggestions,
            });
            let open = Open {
                question: question.clone(),
                answer,
            };
            state.open.insert(question.number, open);
            question
        };
        let asked = Asked {
            questions: self,
            agent,
            number: question.number,
        };
        let events = &self.0.events;
        events.emit(agent, EventKind::Waiting(Waiting::User));
        events.emit(agent, EventKind::Asked(question));
        let permission = answered.await;
        drop(asked);
        permission.unwrap_or_else(|_| Permission::Deny {
            message: "nobody answered".to_owned(),
        })
    }

    /// Answers a question. False if it is no longer open: somebody was faster, or the call is gone.
    pub fn answer(&self, number: u64, permission: Permission) -> bool {
        let open = self.state().open.remove(&number);
        open.is_some_and(|open| open.answer.send(permission).is_ok())
    }

    /// The questions that wait, for a surface that joins late.
    pub fn open(&self) -> Vec<Arc<Question>> {
        let state = self.state();
        state
            .open
            .values()
            .map(|open| open.question.clone())
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// However the wait ends, surfaces hear that the question is settled.
struct Asked<'a> {
    questions: &'a Questions,
    agent: AgentId,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.questions.state().open.remove(&self.number);
        let events = &self.questions.0.events;
        events.emit(self.agent, EventKind::Settled(self.number));
    }
}
