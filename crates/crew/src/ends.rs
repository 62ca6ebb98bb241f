//! How a run ends: its account is closed, its state changes, and whoever is to hear of it hears of
//! it once.

use crate::crew::{Crew, Shared};
use crate::notes::Notes;
use crate::report::Report;
use crate::roster::{Progress, Roster, State};
use crate::worker;
use gaffer_agent::{Announced, Sender};
use gaffer_protocol::event::AgentEnded;
use gaffer_protocol::{AgentId, Block, End, EventKind, MailId, Notification, Origin, Status};
use gaffer_store::book::{Change, Letter, Step};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Shared {
    fn told(&self) -> MutexGuard<'_, usize> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An end that was given to an agent which waited for it. Until that agent has recorded it, it may
/// still be lost: whoever waits can be cut off at the very moment at which it has its answer.
#[derive(Debug)]
pub(crate) struct Handed {
    to: AgentId,
    letter: MailId,
    block: Block,
    told: Arc<Notification>,
}

impl Shared {
    fn handed(&self) -> MutexGuard<'_, Vec<Handed>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of ends that an agent has recorded as results of its calls.
    pub(crate) fn see_recorded(&self, kind: &EventKind) {
        if let EventKind::ToolFinished { result, .. } = kind
            && let Some(letter) = result.mail
        {
            self.handed().retain(|it| it.letter != letter);
        }
    }

    /// The ends that were given to an agent and that it did not come to record.
    fn take_unrecorded(&self, agent: AgentId) -> Vec<Handed> {
        let mut handed = self.handed();
        let (own, others) = handed.drain(..).partition(|it| it.to == agent);
        *handed = others;
        own
    }
}

/// A run whose account is closed.
struct Closed {
    /// What it was given and did not record.
    unrecorded: Vec<Handed>,
    report: Report,
    /// Which run of its task it was.
    run: u32,
    event: AgentEnded,
    heard: Vec<MailId>,
    /// Letters that wait for its next run.
    held: Vec<MailId>,
    notes: String,
    record: Option<File>,
}

impl Crew {
    /// Ends a run: in the book its end and the letter that tells it are one step. Only then do
    /// others see it.
    pub(crate) async fn finish(&self, id: AgentId, ended: worker::Ended) {
        let parts = &self.0.parts;
        let Some(closed) = self.close(id, ended) else {
            return;
        };
        let Closed {
            mut report, event, ..
        } = closed;
        if report.end.status() != Status::Completed {
            report.holds = self.0.roster().held_by(id);
        }
        let file = parts.folder.result(id, closed.run);
        let room = parts.limits.result.min(self.room());
        let mut lost = None;
        if report.result.len() > room
            && let Err(why) = self.keep_result(&file, &report.result)
        {
            // The coordinator is told as much as fits, and that the rest is not there.
            let note = format!("The whole could not be kept: {why}");
            report.result.push_str(&format!("\n[{note}]"));
            lost = Some(note);
        }
        let mut told = report.notification(room, &file);
        if let Some(note) = lost {
            told.output_file = None;
            told.advice = Some(match told.advice {
                Some(advice) => format!("{advice}. {note}"),
                None => note,
            });
        }
        let size = told.result.as_ref().map_or(0, String::len);
        *self.0.told() += size;
        let letter = self.0.next_letter();
        let block = Block::from(Origin::TaskNotification, told.render()).by_mail(letter);
        let step = Step::synced(vec![
            Change::End {
                task: id,
                end: report.end.clone(),
                notes: closed.notes,
            },
            Change::Heard(closed.heard),
            Change::Hold(closed.held),
            Change::Settled(id),
            Change::Send(Letter {
                id: letter,
                to: self.reader_above(id),
                about: Some(id),
                block: block.clone(),
                is_held: false,
            }),
        ]);
        let step = match closed.record {
            Some(record) => step.after(record),
            None => step,
        };
        // One who hears of other ends meanwhile waits for this one: a turn costs more.
        let announced = self.announce(id);
        let written = parts.book.write(step).await;
        drop(announced);
        if let Err(why) = written {
            // It is told all the same; only a crash could lose it now.
            let word = format!("the end of {} could not be taken down: {why}", report.name);
            self.emit(parts.main, EventKind::Notice(word));
        }
        self.emit(id, EventKind::AgentEnded(Box::new(event)));
        for it in closed.unrecorded {
            self.emit_told(it.told);
        }
        report.letter = Some(letter);
        let told = Arc::new(told);
        let (is_notified, late) = self.tell(id, report, (letter, block, &told));
        match is_notified {
            true => self.emit(id, EventKind::Notified(told)),
            // Whoever waited has it whole.
            false => {
                let mut sum = self.0.told();
                *sum = sum.saturating_sub(size);
            }
        }
        if !late.is_empty() {
            self.go_on(id, late).await;
        }
    }

    /// What the session's own agent waited for and did not come to record is news for it.
    pub(crate) fn tell_unrecorded(&self) {
        let main = self.0.parts.main;
        for it in self.0.take_unrecorded(main) {
            self.0.parts.main_inbox.send(it.block);
            self.emit_told(it.told);
        }
    }

    /// An end that was to be a result has become a notification.
    fn emit_told(&self, told: Arc<Notification>) {
        *self.0.told() += told.result.as_ref().map_or(0, String::len);
        if let Some(task) = told.task {
            self.emit(task, EventKind::Notified(told));
        }
    }

    /// Keeps a result whole that is too long to be told.
    pub(crate) fn keep_result(&self, file: &Path, result: &str) -> Result<(), String> {
        let parts = &self.0.parts;
        parts.floor.check().map_err(|low| low.to_string())?;
        std::fs::write(file, result).map_err(|why| why.to_string())
    }

    /// Closes the account of a run.
    fn close(&self, id: AgentId, ended: worker::Ended) -> Option<Closed> {
        let mut roster = self.0.roster();
        let task = roster.get_mut(id)?;
        let live = task.live_mut()?;
        let time = live.since.elapsed();
        let end = match live.stopped.take() {
            Some(end) if ended.end != End::Done => end,
            _ => ended.end,
        };
        task.spending.time += time;
        if let Some(stint) = task.stints.last_mut() {
            stint.spending.time += time;
        }
        let has_changed = ended.has_changed || ended.worktree.is_some();
        task.close_stint(self.moment(), &end, has_changed);
        task.cwd = ended.cwd.or(task.cwd.take());
        task.seen = ended.seen;
        task.history.add_written(&ended.changed_files);
        let is_news = |block: &Block| matches!(block, Block::Text(text) if text.origin == Some(Origin::TaskNotification));
        let (mut news, unread): (Vec<Block>, _) = ended.unread.into_iter().partition(is_news);
        let held = unread.iter().filter_map(Block::mail).collect();
        let unread_count = unread.len();
        task.unread = unread;
        let parent = task.parent;
        let spending = &task.spending;
        let advice = self.advice_at_end(task, &end);
        let report = Report {
            advice,
            task: id,
            name: task.name.clone(),
            is_open: !task.kind.is_one_shot,
            description: task.description.clone(),
            end: end.clone(),
            result: ended.result.clone(),
            tokens: spending.usage().total(),
            tool_uses: spending.tool_uses,
            time: spending.time,
            changed_files: ended.changed_files,
            denials: ended.denials.iter().map(ToString::to_string).collect(),
            left_running: ended.left_running,
            worktree: ended.worktree,
            unread: unread_count,
            is_unverified: task.is_unverified(),
            letter: None,
            holds: Vec::new(),
        };
        let event = AgentEnded {
            end,
            result: ended.result,
            turns: spending.turns,
            tool_uses: spending.tool_uses,
            usage: spending.usage(),
            cost: spending.by_model.values().map(|(_, cost)| *cost).sum(),
            duration_ms: time.as_millis() as u64,
            model_ms: ended.model_time.as_millis() as u64,
            stop: ended.stop,
            denials: ended.denials,
            phase: Some(task.phase()),
            is_unverified: task.is_unverified(),
            structured: None,
        };
        let unrecorded = self.0.take_unrecorded(id);
        news.extend(unrecorded.iter().map(|it| it.block.clone()));
        let closed = Closed {
            unrecorded,
            report,
            run: task.runs,
            event,
            heard: ended.heard,
            held,
            notes: Notes::of(task).text(),
            record: ended.record,
        };
        // Ends of its own workers that it did not come to read are news for the one above it.
        if !news.is_empty() {
            let above = self.way_to(&roster, parent);
            for block in news {
                above.send(block);
            }
        }
        Some(closed)
    }

    /// Tells whoever is to hear of a task's end, and marks it as ended, in one step: nobody can
    /// see the one without the other. Answers whether it was told by a notification, and with
    /// messages that came too late for this run.
    fn tell(
        &self,
        id: AgentId,
        report: Report,
        (letter, block, told): (MailId, Block, &Arc<Notification>),
    ) -> (bool, Vec<Block>) {
        let parts = &self.0.parts;
        let mut roster = self.0.roster();
        let Some(task) = roster.get_mut(id) else {
            return (false, Vec::new());
        };
        let end = report.end.clone();
        let before = std::mem::replace(&mut task.state, State::Ended(end));
        if matches!(&before, State::Live(live) if live.progress == Progress::Queued) {
            roster.leave_queue(id);
        }
        self.0.purses().end_run(id, self.0.age());
        self.0.ends.send_modify(|count| *count += 1);
        let (waiter, is_called, late) = match before {
            State::Live(live) => (live.waiter, live.is_called, live.late),
            State::Ended(_) => (None, false, Vec::new()),
        };
        let parent = roster.get(id).map_or(parts.main, |task| task.parent);
        if let Some(waiter) = waiter
            && waiter.send(report).is_ok()
        {
            if is_called {
                self.0.handed().push(Handed {
                    to: parent,
                    letter,
                    block,
                    told: told.clone(),
                });
            }
            return (false, late);
        }
        self.way_to(&roster, parent).send(block);
        (true, late)
    }

    /// Who is to read of the end of a task, as the book has it. Should that agent end first, the
    /// one above it reads it.
    fn reader_above(&self, id: AgentId) -> AgentId {
        let roster = self.0.roster();
        roster.get(id).map_or(self.0.parts.main, |task| task.parent)
    }

    /// The inbox of an agent, or of the nearest one above it that still runs.
    fn way_to(&self, roster: &Roster, mut id: AgentId) -> Sender {
        while let Some(task) = roster.get(id) {
            match task.live() {
                Some(live) if live.progress == Progress::Running => return live.inbox.clone(),
                _ => id = task.parent,
            }
        }
        self.0.parts.main_inbox.clone()
    }

    /// Lets whoever is to hear of a task's end know that it is about to be told.
    fn announce(&self, id: AgentId) -> Announced {
        let above = self.reader_above(id);
        self.way_to(&self.0.roster(), above).announce()
    }

    /// How much may still be told of results.
    fn room(&self) -> usize {
        self.0.parts.limits.results.saturating_sub(*self.0.told())
    }

    /// So much was told before this process took the session up.
    pub fn remember_told(&self, bytes: usize) {
        *self.0.told() += bytes;
    }

    /// After the conversation was shortened there is room again.
    pub fn forget_told(&self) {
        *self.0.told() = 0;
    }
}
