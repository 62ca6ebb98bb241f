//! One compaction: the model is asked for a summary of what it has before it, the facts are put
//! around it, the record is written, and the conversation is another.

use super::facts::{Budget, Facts, pending_from, recent_from};
use crate::agent::Agent;
use crate::ask::{ask, end_of};
use crate::prompt;
use gaffer_model::{Checkpoint, Conversation, ErrorKind, ModelError};
use gaffer_protocol::{
    Block, End, EventKind, Message, Origin, ResultPart, StopReason, Trigger, Usage,
};
use gaffer_store::{Compacted, Entry, Fold, Notes};
use gaffer_tools::read;
use std::io;
use std::sync::Arc;

/// So often in a row a provider may say that a conversation is too long for it.
const MOST_REFUSALS: u32 = 4;
/// So often what is kept is halved until it fits.
const STEPS: u32 = 5;
/// The window where nobody knows it, for the sizes of what is kept.
const USUAL_WINDOW: u64 = 128_000;
/// Instead of a word that points at what is no longer there.
const LOST: &str = "[You had read it before, and what it showed is gone: read it again.]";

/// What came of it.
#[derive(Debug)]
enum Outcome {
    Shorter,
    /// There is nothing to gain, or a hook is against it.
    Unchanged,
    /// The provider cannot be reached: nothing was changed.
    Unreachable(ModelError),
}

/// What was paid for summaries.
#[derive(Debug, Default)]
struct Bill {
    usage: Usage,
    model: String,
}

/// A conversation that could replace the present one.
struct Draft {
    conversation: Conversation,
    messages: Vec<Message>,
    notes: Notes,
    /// Where what was not answered yet begins.
    answered: Checkpoint,
    tokens: u64,
}

impl Agent {
    /// Compacts if somebody asked for it or it is due. The end, if the work cannot go on.
    pub(crate) async fn make_room(&mut self) -> io::Result<Option<End>> {
        let outcome = if let Some(request) = self.wanted.take() {
            let outcome = self
                .compact(Trigger::Manual, request.wish.as_deref(), 0)
                .await?;
            if matches!(outcome, Outcome::Unchanged) {
                self.notice("nothing was compacted");
            }
            outcome
        } else if self.is_due() {
            self.compact(Trigger::Auto, None, 0).await?
        } else {
            return Ok(None);
        };
        Ok(match outcome {
            Outcome::Unreachable(error) => Some(end_of(&error)),
            Outcome::Shorter => None,
            // Estimates can be wrong: the provider has the last word.
            Outcome::Unchanged => {
                self.gauge.postpone(&self.parts.conversation);
                None
            }
        })
    }

    fn is_due(&self) -> bool {
        let is_auto = self.parts.compaction.limits.is_auto;
        is_auto && self.gauge.is_due(&self.parts.conversation)
    }

    /// The provider says that the conversation is too long. The end, if it cannot be made shorter.
    pub(crate) async fn overflow(&mut self) -> io::Result<Option<End>> {
        let tokens = self.gauge.tokens(&self.parts.conversation);
        self.gauge.refused(tokens);
        if !self.parts.compaction.limits.is_auto {
            return Ok(Some(End::Context));
        }
        self.refusals += 1;
        // Without an answer since the last time there is nothing new to summarise: less is kept.
        let step = if self.gauge.is_fresh() {
            self.refusals
        } else {
            0
        };
        let outcome = match self.refusals {
            0..=MOST_REFUSALS => self.compact(Trigger::Auto, None, step).await?,
            _ => Outcome::Unchanged,
        };
        Ok(match outcome {
            Outcome::Shorter => None,
            Outcome::Unreachable(error) => Some(end_of(&error)),
            Outcome::Unchanged => {
                let head = self.parts.conversation.head_len();
                self.notice(&format!(
                    "the provider refuses about {tokens} tokens, of which {head} bytes are the prompt and the tools, and the conversation cannot be made shorter"
                ));
                Some(End::Context)
            }
        })
    }

    async fn compact(
        &mut self,
        trigger: Trigger,
        wish: Option<&str>,
        step: u32,
    ) -> io::Result<Outcome> {
        let fold = self.reread().await?;
        let (body, pending) = fold.messages.split_at(pending_from(&fold.messages));
        if !body.is_empty()
            && let Err(why) = self.before_compaction(trigger, wish).await
        {
            self.notice(&format!("a hook refused to compact: {why}"));
            return Ok(Outcome::Unchanged);
        }
        let mut bill = Bill::default();
        let mut summary = None;
        if step == 0 && !body.is_empty() {
            match self.summarise(body, &fold.notes, wish, &mut bill).await {
                Ok(text) => summary = text,
                Err(error) => return Ok(Outcome::Unreachable(error)),
            }
        }
        self.greeting = self.greet_again().await;
        let before = self.gauge.tokens(&self.parts.conversation);
        let draft = self.draft(body, pending, &fold.notes, summary.as_deref(), step);
        // What was paid for is taken, and stands in the record.
        if draft.tokens >= before && summary.is_none() {
            self.spill.forget();
            return Ok(Outcome::Unchanged);
        }
        self.replace(trigger, before, draft, bill)?;
        self.after_compaction(trigger, summary.unwrap_or_default())
            .await;
        Ok(Outcome::Shorter)
    }

    /// The conversation in its neutral form, since the last compaction.
    pub(crate) async fn reread(&self) -> io::Result<Fold> {
        let path = self.parts.transcript.path().to_owned();
        let from = self.folded_from;
        let read = tokio::task::spawn_blocking(move || Fold::read_from(&path, from));
        read.await.map_err(io::Error::other)?
    }

    /// The sizes of what is kept.
    fn budget(&self, step: u32) -> Budget {
        let window = self.gauge.window().unwrap_or(USUAL_WINDOW);
        let head = self.parts.conversation.head_len();
        let all = self.gauge.bytes_of(window);
        // Where the prefix leaves next to nothing, something must be tried all the same.
        Budget::of(all.saturating_sub(head).max(all / 8), step)
    }

    fn facts<'a>(&self, body: &'a [Message], notes: &'a Notes) -> Facts<'a> {
        let memo = self.parts.compaction.memo.as_ref();
        Facts {
            body,
            notes,
            read: self.parts.context.seen.files(),
            changed: self.parts.context.changed.files(),
            open_tasks: memo.and_then(|memo| memo.open_tasks()),
            greeting: self.greeting.clone(),
        }
    }

    /// Asks the model itself for a summary, with the conversation as it was last answered, so that
    /// the provider's cache has all of it. None if it has nothing of use to say.
    async fn summarise(
        &mut self,
        body: &[Message],
        notes: &Notes,
        wish: Option<&str>,
        bill: &mut Bill,
    ) -> Result<Option<String>, ModelError> {
        let question = question(wish, self.budget(0).summary);
        let mut conversation = self.parts.conversation.up_to(&self.answered);
        for step in 0..3 {
            conversation.push(&question);
            let asked = ask(&self.parts, &conversation, false);
            let (answer, took) = asked.await;
            self.outcome.model_time += took;
            match answer {
                Ok(answer) => {
                    self.pay(&answer, bill);
                    let text = answer.text().trim().to_owned();
                    let is_usable = answer.stop != StopReason::Refusal && !text.is_empty();
                    return Ok(is_usable.then_some(text));
                }
                Err(error) if error.kind == ErrorKind::PromptTooLong => {
                    let tokens = self.gauge.estimate(&conversation);
                    self.gauge.refused(tokens);
                    conversation = self.abridged(body, notes, step);
                }
                Err(error) if is_away(error.kind) => return Err(error),
                Err(error) => {
                    self.notice(&format!("no summary could be had: {error}"));
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// The facts with the newest exchanges alone, for a provider that does not take them all.
    fn abridged(&mut self, body: &[Message], notes: &Notes, step: u32) -> Conversation {
        let limit = self.gauge.limit().unwrap_or(USUAL_WINDOW);
        let most = self.gauge.bytes_of(limit) / 2;
        let head = self.parts.conversation.head_len();
        let start = recent_from(body, most.saturating_sub(head) >> step);
        let facts = self.facts(&body[..start], notes);
        let earlier = facts.earlier_summary();
        let budget = self.budget(step + 1);
        let (first, _) = facts.message(earlier.as_deref(), &budget, &mut self.spill);
        self.spill.forget();
        let mut conversation = self.parts.conversation.blank();
        conversation.push(&first);
        let recent = body[start..].iter();
        recent.for_each(|message| conversation.push(message));
        conversation
    }

    fn pay(&mut self, answer: &gaffer_protocol::Answer, bill: &mut Bill) {
        let cost = self.price(answer);
        self.outcome.usage += answer.usage;
        self.outcome.cost += cost;
        bill.usage += answer.usage;
        bill.model.clone_from(&answer.model);
        self.emit(EventKind::Spent {
            model: answer.model.clone(),
            usage: answer.usage,
            cost,
        });
    }

    /// Puts the next conversation together, with less and less in it until it fits. If nothing
    /// does, the least of them: the provider has the last word on what fits.
    fn draft(
        &mut self,
        body: &[Message],
        pending: &[Message],
        notes: &Notes,
        summary: Option<&str>,
        from: u32,
    ) -> Draft {
        let aim = self.gauge.limit().map_or(u64::MAX, |limit| limit / 4 * 3);
        let mut draft = self.draft_at(body, pending, notes, summary, from);
        for step in from + 1..from + STEPS {
            if draft.tokens <= aim {
                break;
            }
            self.spill.forget();
            draft = self.draft_at(body, pending, notes, summary, step);
        }
        draft
    }

    fn draft_at(
        &mut self,
        body: &[Message],
        pending: &[Message],
        notes: &Notes,
        summary: Option<&str>,
        step: u32,
    ) -> Draft {
        let budget = self.budget(step);
        // Where nobody summarised them, the newest exchanges speak for themselves.
        let start = match summary {
            Some(_) => body.len(),
            None => recent_from(body, budget.recent),
        };
        let facts = self.facts(&body[..start], notes);
        let earlier = facts.earlier_summary();
        let (first, next) = facts.message(summary.or(earlier.as_deref()), &budget, &mut self.spill);
        let mut messages = Vec::new();
        let mut notes = notes.clone();
        if !body.is_empty() {
            messages.push(first);
            notes = next;
            messages.extend(body[start..].iter().cloned().map(without_pointers));
        }
        let mut conversation = self.parts.conversation.blank();
        messages.iter().for_each(|it| conversation.push(it));
        let answered = conversation.checkpoint();
        let pending = pending.iter().cloned().map(without_pointers);
        let mut pending: Vec<Message> = pending.collect();
        let whole = if step == 0 { 2 } else { 1 };
        self.spill
            .cut(&mut pending, budget.pending * whole, step < STEPS - 2);
        pending.iter().for_each(|it| conversation.push(it));
        messages.extend(pending);
        let tokens = self.gauge.estimate(&conversation);
        Draft {
            conversation,
            messages,
            notes,
            answered,
            tokens,
        }
    }

    /// Written before it counts: until the record is there, the old conversation holds.
    fn replace(
        &mut self,
        trigger: Trigger,
        tokens_before: u64,
        draft: Draft,
        bill: Bill,
    ) -> io::Result<()> {
        if let Err(why) = self.spill.commit() {
            self.notice(&format!("what was cut could not be kept whole: {why}"));
        }
        let from = self.parts.transcript.end()?;
        let compacted = Arc::new(Compacted {
            trigger,
            tokens_before,
            tokens_after: draft.tokens,
            messages: draft.messages,
            usage: bill.usage,
            model: bill.model,
            notes: draft.notes,
        });
        self.record(Entry::Compacted(compacted))?;
        self.folded_from = from;
        self.parts.conversation = draft.conversation;
        self.answered = draft.answered;
        self.gauge.restart(&self.parts.conversation);
        if let Some(memo) = &self.parts.compaction.memo {
            memo.compacted();
        }
        self.parts.context.shown.forget();
        self.emit(EventKind::Compacted {
            trigger,
            tokens_before,
            tokens_after: draft.tokens,
        });
        Ok(())
    }

    fn notice(&self, text: &str) {
        self.emit(EventKind::Notice(text.to_owned()));
    }
}

/// What a read only points at may be gone from the conversation.
fn without_pointers(mut message: Message) -> Message {
    for block in &mut message.blocks {
        if let Block::ToolResult(result) = block {
            for part in &mut result.parts {
                if matches!(part, ResultPart::Text(text) if text == read::SAME) {
                    *part = ResultPart::Text(LOST.to_owned());
                }
            }
        }
    }
    message
}

/// Whether the provider cannot be reached at all: then nothing else could be asked of it either,
/// and the conversation is better left as it is.
fn is_away(kind: ErrorKind) -> bool {
    use ErrorKind::{Connection, Forbidden, NotFound, Overloaded, RateLimited, Unauthorized};
    matches!(
        kind,
        Connection | Forbidden | NotFound | Overloaded | RateLimited | Unauthorized
    )
}

/// What asks for the summary. A word has about seven bytes, its space included.
fn question(wish: Option<&str>, most: usize) -> Message {
    let words = (most / 7).max(50).to_string();
    let mut text = prompt::COMPACT.text.replace("{words}", &words);
    if let Some(wish) = wish {
        text.push('\n');
        text.push_str(prompt::COMPACT_WISH.text);
        text.push_str(wish);
    }
    Message::user(vec![Block::from(Origin::Compacted, text.trim_end())])
}
