//! Whether a worker that says it is done has done it: the command that the order named is run, and
//! what it prints goes back to the worker until it succeeds or the tries are used up.

use crate::crew::Crew;
use gaffer_protocol::tags::escape;
use gaffer_protocol::{AgentId, Block, End, EventKind, Origin, Waiting};
use gaffer_tools::Context;
use gaffer_tools::proof::prove;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const NOT_PROVEN: &str = include_str!("../../../prompts/not-proven.md");
/// So often a worker may mend what the command found.
const TRIES: u32 = 3;
/// So long the command may take.
const TIME: Duration = Duration::from_secs(600);

/// The proof that an order asks for.
#[derive(Debug)]
pub(crate) struct Proving {
    command: String,
    folder: PathBuf,
    left: u32,
}

/// What the command says.
#[derive(Debug)]
pub(crate) enum Verdict {
    Proven,
    /// The worker goes on with this.
    Again(Block),
    /// It has had its tries.
    Not(End),
}

impl Proving {
    /// None where the order names no command.
    pub(crate) fn of(command: Option<String>, folder: PathBuf) -> Option<Self> {
        Some(Self {
            command: command?,
            folder,
            left: TRIES,
        })
    }

    pub(crate) async fn look(
        &mut self,
        crew: &Crew,
        id: AgentId,
        context: &Context,
        stop: &CancellationToken,
    ) -> Verdict {
        let waiting = Waiting::Tools(vec!["done_when".to_owned()]);
        crew.emit(id, EventKind::Waiting(waiting));
        let proof = tokio::select! {
            biased;
            () = stop.cancelled() => return Verdict::Not(End::Interrupted),
            proof = prove(&self.command, &self.folder, TIME, context) => proof,
        };
        if proof.is_met {
            return Verdict::Proven;
        }
        if self.left == 0 {
            let last = proof.output.trim().lines().last().unwrap_or_default();
            let why = format!("`{}` failed: {last}", self.command);
            return Verdict::Not(End::NotProven(why));
        }
        let text = NOT_PROVEN
            .replace("{command}", &escape(&self.command))
            .replace("{left}", &self.left.to_string())
            .replace("{output}", &escape(proof.output.trim()));
        self.left -= 1;
        Verdict::Again(Block::from(Origin::Context, text.trim_end()))
    }
}
