//! SendMessage: gives a worker more to do.

use crate::crew::Crew;
use crate::mail::Sender;
use gaffer_protocol::mail::Mail;
use gaffer_protocol::{AgentId, CallId};
use gaffer_tools::{Access, Context, Output, Run};
use schemars::JsonSchema;
use serde::Deserialize;

const LONGEST: usize = 256 << 10;

/// Sends a message to a worker. One that runs gets it at its next step, without being
/// interrupted. One that has ended, however it ended, goes on with it and with all that it knew;
/// its report comes by notification.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessageInput {
    /// The worker's id or name, or `*` for all that run.
    pub to: String,
    /// What it is to know or do.
    // The forms are for teammates. As long as there are none, offering them would cost every
    // request a thousand bytes for what is always refused.
    #[schemars(with = "String")]
    pub message: Mail,
    /// What the message is about, in a few words, for those who watch.
    pub summary: Option<String>,
}

#[derive(Debug)]
pub(super) struct SendMessage {
    pub(super) crew: Crew,
    pub(super) caller: AgentId,
}

impl Run for SendMessage {
    const NAME: &'static str = "SendMessage";
    const ACCESS: Access = Access::Writes;
    type Input = SendMessageInput;

    async fn run(&self, input: SendMessageInput, context: &Context) -> Output {
        self.run_as(&CallId::default(), input, context).await
    }

    async fn run_as(&self, call: &CallId, input: SendMessageInput, _: &Context) -> Output {
        let text = match input.message {
            Mail::Text(text) if text.trim().is_empty() => {
                return Output::error("Nothing was sent: the message is empty.");
            }
            Mail::Text(text) if text.len() > LONGEST => {
                return Output::error(format!(
                    "Nothing was sent: the message has {} bytes, {LONGEST} is the most. Write it to the scratchpad and name the file.",
                    text.len()
                ));
            }
            Mail::Text(text) => text,
            Mail::Form(_) => {
                return Output::error(
                    "Nothing was sent: such messages are for teammates. Write to a worker in words.",
                );
            }
        };
        let passed = match self.crew.judge_message(self.caller, &input.to, &text) {
            Ok(passed) => passed,
            Err(why) => return Output::error(format!("Nothing was sent: {why}.")),
        };
        let from = Sender::Agent(self.caller);
        let call = (!call.is_empty()).then(|| (self.caller, call.clone(), passed.text()));
        match self.crew.send_by(from, &input.to, &text, call).await {
            Ok(receipts) => {
                let lines: Vec<String> = receipts.iter().map(ToString::to_string).collect();
                for receipt in &receipts {
                    self.crew.keep_score(receipt.to, passed.score);
                }
                Output::text(lines.join("\n") + &passed.text())
            }
            Err(why) => Output::error(format!("Nothing was sent: {why}.")),
        }
    }
}
