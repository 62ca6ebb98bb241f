//! Results on their way into the conversation: cut to what it has room for, and written down the
//! moment they are there.

use crate::calls::{Ended, Watch};
use crate::compact::Spill;
use gaffer_protocol::{AgentId, Clock, End, EventKind, EventSink, ToolResult, ToolUse};
use gaffer_store::{Entry, Record, Transcript};
use gaffer_tools::Shown;
use std::io;
use std::sync::Arc;

/// So many bytes every result may have, whatever the others took.
const RESERVED: usize = 1024;

/// How many bytes results may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) each: usize,
    pub(crate) all: usize,
}

/// Writes each result down the moment it is there.
pub(crate) struct Recording<'a> {
    pub(crate) id: AgentId,
    pub(crate) calls: &'a [Arc<ToolUse>],
    pub(crate) transcript: &'a mut Transcript,
    pub(crate) events: &'a dyn EventSink,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) results: &'a mut [Option<Arc<ToolResult>>],
    /// The end, once a hook has asked for it.
    pub(crate) end: &'a mut Option<End>,
    pub(crate) spill: &'a mut Spill,
    pub(crate) shown: &'a Shown,
    /// What is left of it for the results that have not come.
    pub(crate) room: Room,
}

impl Recording<'_> {
    /// A result as far as there is room for it. The rest of it goes to a file.
    fn fit(&mut self, result: &Arc<ToolResult>) -> Arc<ToolResult> {
        let waiting = self.results.iter().filter(|it| it.is_none()).count();
        let reserved = RESERVED.min(self.room.all / self.results.len().max(1));
        let others = reserved * waiting.saturating_sub(1);
        let most = self.room.all.saturating_sub(others).min(self.room.each);
        let whole = result;
        let result = self.spill.fit(whole, most.max(reserved));
        if !Arc::ptr_eq(&result, whole) {
            self.shown.forget();
        }
        self.room.all = self.room.all.saturating_sub(result.text().len());
        result
    }
}

impl Watch for Recording<'_> {
    fn started(&mut self, place: usize) {
        let tool_use = self.calls[place].clone();
        self.events
            .emit(self.id, EventKind::ToolStarted { tool_use });
    }

    fn ended(&mut self, ended: &Ended) -> io::Result<()> {
        let result = self.fit(&ended.result);
        let entry = Entry::Result(result.clone());
        self.transcript.append(&Record {
            at: self.clock.now(),
            entry,
        })?;
        self.results[ended.place] = Some(result.clone());
        if let Some(why) = &ended.stop {
            let end = End::Denied(format!("a hook ended the work: {why}"));
            self.end.get_or_insert(end);
        }
        self.events.emit(
            self.id,
            EventKind::ToolFinished {
                tool: self.calls[ended.place].name.clone(),
                result,
                duration_ms: ended.took.as_millis() as u64,
            },
        );
        Ok(())
    }
}
