//! What a run of a worker needs before it can begin: its place, its conversation, its record.

use super::{Known, Run, hand};
use crate::crew::Crew;
use crate::outfit::Outfit;
use crate::shape::told;
use crate::tools::{Manner, tools};
use gaffer_agent::{Agent, Inbox, Parts};
use gaffer_model::Conversation;
use gaffer_protocol::{AgentId, Block, EventKind, Origin};
use gaffer_store::{Entry, Fold, Record, Start, Transcript};
use gaffer_tools::Context;
use gaffer_tools::hook::Moment;
use gaffer_tools::structured::Form;
use std::path::PathBuf;

/// All that a worker needs to begin.
pub(super) struct Made {
    pub(super) outfit: Outfit,
    /// Where its work is proven.
    pub(super) folder: PathBuf,
    pub(super) context: Context,
    pub(super) conversation: Conversation,
    pub(super) transcript: Transcript,
    /// What its result has to look like.
    pub(super) form: Option<Form>,
    /// What it is told before its task.
    pub(super) opening: Vec<Block>,
}

pub(super) async fn prepare(
    crew: &Crew,
    id: AgentId,
    known: &Known,
    run: &Run,
) -> Result<Made, String> {
    let parts = crew.parts();
    let outfitter = &parts.outfitter;
    let mut outfit = outfitter.outfit(&known.kind, known.model.as_deref())?;
    if known.depth < parts.limits.depth {
        // It may start workers of its own, and wait for them as its own starter does.
        outfit = outfit.with(tools(crew, id, Manner::Normal));
    }
    let schema = known.terms.result_schema.as_ref();
    let form = schema.map(Form::new).transpose()?;
    if let Some(form) = &form {
        outfit = outfit.with(vec![form.tool()]);
    }
    let hand = hand(id, known);
    if known.terms.isolated {
        outfitter.isolate(&hand).await?;
    }
    let mut context = outfitter.place(&hand)?;
    if let Some(seen) = &known.seen {
        context.seen = seen.clone();
    }
    let folder = parts.outfitter.folder(&hand);
    let mut conversation = outfit.open(id, &known.name, &known.kind);
    let path = known.transcript.clone();
    let (mut transcript, fold) = match run {
        Run::Begins(_) => {
            let transcript = Transcript::create(path.clone()).map_err(|why| why.to_string())?;
            (transcript, Fold::default())
        }
        Run::Continues(_) | Run::Fails(..) => resume(crew, id, known).await?,
    };
    for message in &fold.messages {
        conversation.push(message);
    }
    let mut opening = Vec::new();
    // One that was stopped in the queue has not begun before.
    if fold.start.is_none() {
        let entry = Entry::Start(Box::new(start(crew, id, known, &outfit, &context)));
        let at = parts.clock.now();
        let written = |why: std::io::Error| format!("cannot write {}: {why}", path.display());
        transcript.append(&Record { at, entry }).map_err(written)?;
    }
    // One of which only the first record is lost has been told.
    if fold.start.is_none() && fold.messages.is_empty() {
        opening.extend(outfitter.opening(&hand));
        opening.extend(greeting(id, known, &context).await);
        opening.extend(crew.results_for(id).await);
        opening.extend(schema.map(told));
    }
    Ok(Made {
        outfit,
        folder,
        context,
        conversation,
        transcript,
        form,
        opening,
    })
}

/// Takes a transcript up again. The user hears of it if it was damaged.
async fn resume(crew: &Crew, id: AgentId, known: &Known) -> Result<(Transcript, Fold), String> {
    let path = known.transcript.clone();
    let answers = {
        let mut roster = crew.0.roster();
        let task = roster.get_mut(id);
        task.map(|task| std::mem::take(&mut task.answers))
    };
    let answers = answers.unwrap_or_default();
    let resumed = tokio::task::spawn_blocking(move || Transcript::resume_knowing(path, &answers));
    let resumed = resumed.await.map_err(|error| error.to_string())?;
    let (transcript, fold) = resumed.map_err(|why| why.to_string())?;
    if !fold.damaged.is_empty() {
        let text = format!(
            "the transcript of {} was damaged: {}",
            known.name, fold.damaged
        );
        crew.emit(id, EventKind::Notice(text));
    }
    Ok((transcript, fold))
}

impl Made {
    pub(super) fn agent(self, crew: &Crew, id: AgentId, known: &Known, inbox: Inbox) -> Agent {
        let parts = crew.parts();
        Agent::new(Parts {
            id,
            model: self.outfit.model,
            conversation: self.conversation,
            tools: self.outfit.tools,
            context: self.context,
            transcript: self.transcript,
            inbox,
            events: crew.events(),
            prices: parts.prices.clone(),
            clock: parts.clock.clone(),
            max_turns: known.terms.max_turns,
            compaction: crew.compaction(id),
            allowance: crew.allowance(id),
        })
    }
}

/// What the user's hooks have to say to a new worker.
async fn greeting(id: AgentId, known: &Known, context: &Context) -> Option<Block> {
    let hooks = context.hooks.as_ref()?;
    let moment = Moment::SubagentStart {
        agent_id: id.to_string(),
        agent_type: known.kind.name.clone(),
    };
    let merged = hooks.at(context.cwd.get(), moment).await;
    Some(Block::from(Origin::Hook, merged.context?))
}

fn start(crew: &Crew, id: AgentId, known: &Known, outfit: &Outfit, context: &Context) -> Start {
    let parts = crew.parts();
    Start {
        version: parts.version.clone(),
        session: parts.session.clone(),
        agent: id,
        name: known.name.clone(),
        agent_type: known.kind.name.clone(),
        mode: parts.mode.clone(),
        provider: outfit.provider.clone(),
        model: outfit.model.name().to_owned(),
        cwd: context.cwd.get().display().to_string(),
        prefix_hash: outfit.prefix_hash.clone(),
        prompt_hash: outfit.prompt_hash.clone(),
        parent: Some(known.parent),
        description: known.description.clone(),
    }
}
