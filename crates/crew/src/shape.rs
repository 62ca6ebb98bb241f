//! Whether a result has the form that was asked for. What does not fit goes back to whoever gave
//! it, until it fits or the tries are used up.

use crate::crew::Crew;
use crate::proof::{Proving, Verdict};
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, Block, End, Origin};
use gaffer_tools::Context;
use gaffer_tools::structured::Form;
use serde_json::Value;
use std::sync::{MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

const RESULT_SCHEMA: &str = include_str!("../../../prompts/result-schema.md");
const NOT_MET: &str = include_str!("../../../prompts/schema-not-met.md");
/// So often it may be mended.
const TRIES: u32 = 3;

/// The form that one agent's result has to have.
#[derive(Debug)]
pub(crate) struct Shaping {
    form: Form,
    left: u32,
    result: Option<Value>,
}

impl Shaping {
    fn new(form: Form) -> Self {
        Self {
            form,
            left: TRIES,
            result: None,
        }
    }

    /// The result was given by the tool, or is what the agent says at its end.
    fn look(&mut self, last_words: &str) -> Verdict {
        let read = match self.form.given() {
            Some(given) => Ok(given),
            None => self.form.read(last_words),
        };
        let faults = match read {
            Ok(value) => {
                self.result = Some(value);
                return Verdict::Proven;
            }
            Err(faults) => faults,
        };
        if self.left == 0 {
            let first = faults.into_iter().next().unwrap_or_default();
            return Verdict::Not(End::SchemaNotMet(first));
        }
        let text = NOT_MET
            .replace("{left}", &self.left.to_string())
            .replace("{faults}", &escape(&faults.join("\n")));
        self.left -= 1;
        Verdict::Again(Block::from(Origin::Context, text.trim_end()))
    }
}

/// What an agent is told at its start.
pub fn told(schema: &Value) -> Block {
    let text = RESULT_SCHEMA.replace("{schema}", &escape(&format!("{schema:#}")));
    Block::from(Origin::Context, text.trim_end())
}

/// All that an order asks for before a worker has done it.
#[derive(Debug)]
pub(crate) struct Proofs {
    shaping: Option<Shaping>,
    proving: Option<Proving>,
}

impl Proofs {
    pub(crate) fn new(form: Option<Form>, proving: Option<Proving>) -> Self {
        Self {
            shaping: form.map(Shaping::new),
            proving,
        }
    }

    /// The form first, which costs nothing to look at.
    pub(crate) async fn look(
        &mut self,
        last_words: &str,
        (crew, id, context, stop): (&Crew, AgentId, &Context, &CancellationToken),
    ) -> Verdict {
        if let Some(shaping) = &mut self.shaping {
            match shaping.look(last_words) {
                Verdict::Proven => {}
                other => return other,
            }
        }
        match &mut self.proving {
            Some(proving) => proving.look(crew, id, context, stop).await,
            None => Verdict::Proven,
        }
    }

    /// The result in its form, once it was found to fit.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.shaping.as_ref()?.result.as_ref()
    }
}

impl Crew {
    /// What the session's own agent gives at the end has to have this form. It needs the form's
    /// tool, and has to be told.
    pub fn demand(&self, form: Form) {
        *self.shaping() = Some(Shaping::new(form));
    }

    /// The result of the session's own agent, once it was found to fit.
    pub fn formed_result(&self) -> Option<Value> {
        self.shaping().as_ref()?.result.clone()
    }

    pub(crate) fn look_at_form(&self, end: &End, last_words: &str) -> Verdict {
        match self.shaping().as_mut() {
            Some(shaping) if *end == End::Done => shaping.look(last_words),
            _ => Verdict::Proven,
        }
    }

    fn shaping(&self) -> MutexGuard<'_, Option<Shaping>> {
        let shaping = &self.0.clockwork.shaping;
        shaping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
