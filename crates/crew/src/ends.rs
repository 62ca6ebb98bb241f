//! How a run ends: its account is closed, its state changes, and whoever is to hear of it hears of
//! it once.

use crate::crew::{Crew, Shared};
use crate::report::Report;
use crate::roster::{Phase, Roster, State};
use crate::worker;
use gaffer_agent::Sender;
use gaffer_protocol::event::AgentEnded;
use gaffer_protocol::{AgentId, Block, End, EventKind, Origin};
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Shared {
    fn told(&self) -> MutexGuard<'_, usize> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crew {
    /// Ends a run: the state changes and the end is told in one step.
    pub(crate) fn finish(&self, id: AgentId, ended: worker::Ended) {
        let parts = &self.0.parts;
        let Some((mut report, run, event)) = self.close(id, ended) else {
            return;
        };
        self.emit(id, EventKind::AgentEnded(Box::new(event)));
        let file = parts.folder.result(id, run);
        let is_long = report.result.len() > parts.limits.result.min(self.room());
        if is_long && let Err(why) = std::fs::write(&file, &report.result) {
            // The coordinator is told as much as fits, and that the rest is not there.
            let note = format!("\n[The whole could not be kept: {why}]");
            report.result.push_str(&note);
        }
        let late = self.tell(id, report, &file);
        if !late.is_empty() {
            self.go_on(id, late);
        }
    }

    /// Closes the account of a run. Answers with what is to be told of it, and its number.
    fn close(&self, id: AgentId, ended: worker::Ended) -> Option<(Report, u32, AgentEnded)> {
        let mut roster = self.0.roster();
        let task = roster.get_mut(id)?;
        let live = task.live_mut()?;
        let time = live.since.elapsed();
        let end = match live.stopped.take() {
            Some(end) if ended.end != End::Done => end,
            _ => ended.end,
        };
        task.spending.time += time;
        task.cwd = ended.cwd.or(task.cwd.take());
        task.seen = ended.seen;
        let is_news = |block: &Block| matches!(block, Block::Text(text) if text.origin == Some(Origin::TaskNotification));
        let (news, unread): (Vec<Block>, _) = ended.unread.into_iter().partition(is_news);
        let unread_count = unread.len();
        task.unread = unread;
        let parent = task.parent;
        let spending = &task.spending;
        let report = Report {
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
            unread: unread_count,
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
        };
        let run = task.runs;
        // Ends of its own workers that it did not come to read are news for the one above it.
        if !news.is_empty() {
            let above = self.way_to(&roster, parent);
            for block in news {
                above.send(block);
            }
        }
        Some((report, run, event))
    }

    /// Tells whoever is to hear of a task's end, and marks it as ended, in one step: nobody can
    /// see the one without the other. Answers with messages that came too late for this run.
    fn tell(&self, id: AgentId, report: Report, file: &Path) -> Vec<Block> {
        let parts = &self.0.parts;
        let (notified, late) = {
            let mut roster = self.0.roster();
            let Some(task) = roster.get_mut(id) else {
                return Vec::new();
            };
            let end = report.end.clone();
            let before = std::mem::replace(&mut task.state, State::Ended(end));
            let (waiter, late) = match before {
                State::Live(live) => (live.waiter, live.late),
                State::Ended(_) => (None, Vec::new()),
            };
            let report = match waiter {
                Some(waiter) => match waiter.send(report) {
                    Ok(()) => return late,
                    Err(report) => report,
                },
                None => report,
            };
            let room = parts.limits.result.min(self.room());
            let notification = report.notification(room, file);
            *self.0.told() += notification.result.as_ref().map_or(0, String::len);
            let parent = roster.get(id).map_or(parts.main, |task| task.parent);
            let text = notification.render();
            let block = Block::from(Origin::TaskNotification, text);
            self.way_to(&roster, parent).send(block);
            (notification, late)
        };
        self.emit(id, EventKind::Notified(Arc::new(notified)));
        late
    }

    /// The inbox of an agent, or of the nearest one above it that still runs.
    fn way_to(&self, roster: &Roster, mut id: AgentId) -> Sender {
        while let Some(task) = roster.get(id) {
            match task.live() {
                Some(live) if live.phase == Phase::Running => return live.inbox.clone(),
                _ => id = task.parent,
            }
        }
        self.0.parts.main_inbox.clone()
    }

    /// How much may still be told of results.
    fn room(&self) -> usize {
        self.0.parts.limits.results.saturating_sub(*self.0.told())
    }

    /// After the conversation was shortened there is room again.
    pub fn forget_told(&self) {
        *self.0.told() = 0;
    }
}
