//! The calls of the last answer, and the ids of all: each call has one result, and no two calls
//! have one id.

use super::heal;
use gaffer_protocol::{ResultPart, ToolResult};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a call without a result is answered with.
const NO_RESULT: &str = "There is no result: the run was interrupted while this call was under way. \
It may have been carried out in part; look before you repeat it.";
/// The same, where the record has a hole.
const RESULT_LOST: &str = "The result of this call is not on record: the record was damaged or cut \
off. The call may have been carried out, in full or in part; look before you repeat it.";
/// What a call of an answer that is not whole is answered with. It is never run.
pub const ANSWER_CUT: &str = "Not run: your answer reached its length limit, so this call may be \
incomplete. Send it again, in smaller parts.";

/// The honest result of a call that nobody saw end.
pub fn interrupted(call: String) -> ToolResult {
    without_result(call, NO_RESULT)
}

fn without_result(call: String, why: &str) -> ToolResult {
    ToolResult {
        call,
        parts: vec![ResultPart::Text(why.to_owned())],
        is_error: true,
        mail: None,
    }
}

/// What is known from elsewhere about calls that took effect: their answers.
pub type Known = HashMap<String, String>;

fn answered(call: String, answer: &str) -> ToolResult {
    ToolResult {
        is_error: false,
        ..without_result(call, answer)
    }
}

/// Calls that still wait for their results.
#[derive(Debug, Default)]
pub(super) struct Open {
    calls: Vec<Call>,
    /// The places of those that wait, by their recorded ids, the last one first.
    waiting: HashMap<String, Vec<usize>>,
    /// Whether their answer is whole.
    is_whole: bool,
}

#[derive(Debug)]
struct Call {
    /// As it is on record, if it had to be changed.
    recorded: Option<String>,
    id: String,
    result: Option<Arc<ToolResult>>,
}

/// A result of a call, and whether it is made up.
pub(super) struct Closed {
    pub(super) result: ToolResult,
    /// With the recorded id, if nobody saw the call end.
    pub(super) made: Option<ToolResult>,
}

impl Open {
    pub(super) fn new(is_whole: bool) -> Self {
        Self {
            is_whole,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, recorded: &str, id: &str) {
        self.calls.push(Call {
            recorded: (recorded != id).then(|| recorded.to_owned()),
            id: id.to_owned(),
            result: None,
        });
    }

    /// Gives a result to the first call that waits for it; gives it back if none does.
    pub(super) fn take(&mut self, result: Arc<ToolResult>) -> Result<(), Arc<ToolResult>> {
        if self.waiting.is_empty() {
            for (place, call) in self.calls.iter().enumerate().rev() {
                let id = call.recorded.as_ref().unwrap_or(&call.id);
                if call.result.is_none() {
                    self.waiting.entry(id.clone()).or_default().push(place);
                }
            }
        }
        let place = self.waiting.get_mut(&result.call).and_then(Vec::pop);
        match place.and_then(|place| self.calls.get_mut(place)) {
            Some(call) => {
                call.result = Some(result);
                Ok(())
            }
            None => Err(result),
        }
    }

    /// The results in the order of the calls.
    pub(super) fn close(self, is_damaged: bool, known: &Known) -> impl Iterator<Item = Closed> {
        let why = match (self.is_whole, is_damaged) {
            (false, _) => ANSWER_CUT,
            (true, true) => RESULT_LOST,
            (true, false) => NO_RESULT,
        };
        self.calls.into_iter().map(move |call| match call.result {
            Some(result) => {
                let mut result = heal::result(Arc::unwrap_or_clone(result));
                result.call = call.id;
                Closed { result, made: None }
            }
            None => {
                let recorded = call.recorded.unwrap_or_else(|| call.id.clone());
                let answer = known.get(&recorded);
                let made = |id| match answer {
                    Some(answer) => answered(id, answer),
                    None => without_result(id, why),
                };
                Closed {
                    result: made(call.id),
                    made: Some(made(recorded)),
                }
            }
        })
    }
}

/// The ids that calls have in the conversation.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// With the number of the next one that is made of it.
    used: HashMap<String, u32>,
    /// Those on record that stand in the conversation under another one.
    changed: HashSet<String>,
}

impl Ids {
    /// Whether a call had this id on record.
    pub(super) fn knows(&self, recorded: &str) -> bool {
        self.used.contains_key(recorded) || self.changed.contains(recorded)
    }

    /// The id for a call: its own, unless it was used before or no server would make it.
    pub(super) fn unique(&mut self, recorded: &str) -> String {
        if heal::is_id(recorded) && !self.used.contains_key(recorded) {
            self.used.insert(recorded.to_owned(), 2);
            return recorded.to_owned();
        }
        self.changed.insert(recorded.to_owned());
        let base = match heal::is_id(recorded) && recorded.len() < 50 {
            true => recorded,
            false => "call",
        };
        loop {
            let next = self.used.entry(base.to_owned()).or_insert(1);
            let id = format!("{base}_{next}");
            *next = next.wrapping_add(1);
            if !self.used.contains_key(&id) {
                self.used.insert(id.clone(), 2);
                return id;
            }
        }
    }
}
