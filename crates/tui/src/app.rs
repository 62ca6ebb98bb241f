//! The UI without its terminal: events and keys go in, commands and a picture come out.

use crate::keys::complete::Completion;
use crate::keys::editor::Editor;
use crate::keys::history::History;
use crate::look::Look;
use crate::options::{Left, Options};
use crate::state::agent::{Agent, Standing};
use crate::state::{Model, Parked};
use gaffer_protocol::{AgentId, Event, EventKind, Timestamp};
use std::collections::HashMap;

/// A question does not take the keyboard from somebody who types.
const QUIET: u64 = 1000;
/// A question that has just come is not answered by a key that was meant for another.
const GRACE: u64 = 300;

/// What fills the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Page {
    #[default]
    Talk,
    Timeline,
    Cost,
    Help,
}

/// Who gets the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Focus {
    #[default]
    Input,
    Crew,
    Question,
}

/// How far a transcript is scrolled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scroll {
    /// The piece and the line in it that the view ends before; none where it follows what is new.
    pub(crate) anchor: Option<(u64, usize)>,
    /// Lines to go up (below zero) or down when it is drawn next.
    pub(crate) pending: i32,
}

#[derive(Debug, Default)]
pub(crate) struct CrewList {
    pub(crate) chosen: Option<AgentId>,
    pub(crate) shows_ended: bool,
    pub(crate) top: usize,
    /// The rows as they were drawn last: what the arrow keys move over.
    pub(crate) order: Vec<AgentId>,
}

#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// The question that is shown.
    pub(crate) number: Option<u64>,
    pub(crate) chosen: usize,
    /// Keys before this moment are not for it.
    pub(crate) armed_at: Timestamp,
    /// The words why not are being written.
    pub(crate) is_denying: bool,
    /// The user has seen it and wants to answer it later.
    pub(crate) is_put_off: bool,
}

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) model: Model,
    pub(crate) look: Look,
    pub(crate) options: Options,
    pub(crate) editor: Editor,
    /// What was being written before the words why not.
    pub(crate) put_aside: Option<Editor>,
    pub(crate) history: History,
    pub(crate) completion: Option<Completion>,
    pub(crate) page: Page,
    pub(crate) focus: Focus,
    /// The worker that is looked at; none for the session's own agent.
    pub(crate) opened: Option<AgentId>,
    pub(crate) scrolls: HashMap<Option<AgentId>, Scroll>,
    /// Lines that pages and questions are scrolled down.
    pub(crate) down: usize,
    pub(crate) crew: CrewList,
    pub(crate) asking: Asking,
    /// One more Ctrl-C leaves.
    pub(crate) is_leaving: bool,
    /// One more press stops this worker.
    pub(crate) stopping: Option<AgentId>,
    /// A word about the last key.
    pub(crate) hint: Option<String>,
    pub(crate) now: Timestamp,
    pub(crate) last_key: Timestamp,
    pub(crate) has_quit: bool,
    pub(crate) wants_suspend: bool,
    pub(crate) wants_redraw: bool,
    /// The first piece of the main transcript that is shown: what is before it was cleared.
    pub(crate) cleared: u64,
    /// How many lines the last picture had for the transcript.
    pub(crate) page_height: usize,
}

impl App {
    pub(crate) fn new(mut options: Options) -> Self {
        let history = History::new(std::mem::take(&mut options.history));
        Self {
            model: Model::default(),
            look: Look {
                has_color: !options.is_colorless,
            },
            options,
            editor: Editor::default(),
            put_aside: None,
            history,
            completion: None,
            page: Page::default(),
            focus: Focus::default(),
            opened: None,
            scrolls: HashMap::new(),
            down: 0,
            crew: CrewList::default(),
            asking: Asking::default(),
            is_leaving: false,
            stopping: None,
            hint: None,
            now: Timestamp::default(),
            last_key: Timestamp::default(),
            has_quit: false,
            wants_suspend: false,
            wants_redraw: false,
            cleared: 0,
            page_height: 10,
        }
    }

    /// Takes in an event.
    pub(crate) fn event(&mut self, event: &Event) {
        self.now = self.now.max(event.at);
        if let EventKind::SessionStarted(session) = &event.kind
            && let Some(before) = &self.model.session
            && before.session != session.session
        {
            self.begin_anew();
        }
        self.model.take(event);
        match &event.kind {
            EventKind::Asked(_) => self.question_came(),
            EventKind::Settled(_) | EventKind::AgentEnded(_) => self.question_went(),
            _ => {}
        }
    }

    /// Another session takes this one's place. What is being written stays.
    fn begin_anew(&mut self) {
        if self.asking.is_denying {
            self.stop_denying();
        }
        self.model = Model::default();
        self.page = Page::default();
        self.focus = Focus::default();
        self.opened = None;
        self.scrolls.clear();
        self.down = 0;
        self.crew = CrewList::default();
        self.asking = Asking::default();
        self.stopping = None;
        self.cleared = 0;
    }

    /// The clock goes on.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    fn question_came(&mut self) {
        if self.asking.number.is_some() {
            return;
        }
        self.next_question();
        self.offer_question();
    }

    /// Nothing has happened for a while: a question that came while the user typed comes up now.
    pub(crate) fn idle(&mut self) {
        if self.asking.number.is_some() && !self.asking.is_put_off && self.page == Page::Talk {
            self.offer_question();
        }
    }

    /// Gives the keyboard to the question, unless somebody needs it.
    fn offer_question(&mut self) {
        let is_quiet = self.now.0.saturating_sub(self.last_key.0) >= QUIET;
        let is_free = self.focus == Focus::Input && !self.asking.is_denying;
        if is_quiet && is_free && self.editor.is_empty() {
            self.asking.armed_at = Timestamp(self.now.0 + GRACE);
            self.focus = Focus::Question;
        }
    }

    fn question_went(&mut self) {
        let shown = self.asking.number;
        let is_there = |parked: &Parked| Some(parked.question.number) == shown;
        if shown.is_some() && !self.model.questions.iter().any(is_there) {
            if self.asking.is_denying {
                self.stop_denying();
                self.hint = Some("the question was answered elsewhere".to_owned());
            }
            self.next_question();
        }
    }

    /// The words why not are written, or not wanted any more.
    pub(crate) fn stop_denying(&mut self) {
        self.asking.is_denying = false;
        self.editor = self.put_aside.take().unwrap_or_default();
    }

    /// Shows the first question, or none if there is none.
    pub(crate) fn next_question(&mut self) {
        let number = self.model.questions.first();
        self.asking = Asking {
            number: number.map(|parked| parked.question.number),
            chosen: 0,
            armed_at: Timestamp(self.now.0 + GRACE),
            is_denying: false,
            is_put_off: false,
        };
        self.down = 0;
        if self.asking.number.is_none() && self.focus == Focus::Question {
            self.focus = Focus::Input;
        }
    }

    pub(crate) fn question(&self) -> Option<&Parked> {
        let number = self.asking.number?;
        let mut all = self.model.questions.iter();
        all.find(|parked| parked.question.number == number)
    }

    /// The agent that is looked at.
    pub(crate) fn seen(&self) -> Option<AgentId> {
        self.opened.or(self.model.main_id())
    }

    pub(crate) fn seen_agent(&self) -> Option<&Agent> {
        self.model.agent(self.seen()?)
    }

    /// Looks at another agent.
    pub(crate) fn open(&mut self, agent: Option<AgentId>) {
        if let Some(seen) = self.seen()
            && let Some(agent) = self.model.agent_mut(seen)
        {
            agent.transcript.forget_lines();
        }
        self.opened = agent.filter(|id| Some(*id) != self.model.main_id());
        self.page = Page::Talk;
        self.focus = Focus::Input;
        self.stopping = None;
    }

    pub(crate) fn show(&mut self, page: Page) {
        self.page = if self.page == page { Page::Talk } else { page };
        self.down = 0;
    }

    pub(crate) fn running(&self) -> Vec<String> {
        let workers = self.model.workers();
        let live = workers.filter(|worker| !worker.has_ended());
        live.map(|worker| worker.name.clone()).collect()
    }

    /// How many workers stand how: asking, working, in the queue, ended.
    pub(crate) fn counts(&self) -> (usize, usize, usize, usize) {
        let (mut asks, mut works, mut queued, mut ended) = (0, 0, 0, 0);
        for worker in self.model.workers() {
            match worker.standing() {
                Standing::Asks => asks += 1,
                Standing::Works | Standing::Rests => works += 1,
                Standing::Queued => queued += 1,
                Standing::Failed | Standing::Stopped | Standing::Done => ended += 1,
            }
        }
        (asks, works, queued, ended)
    }

    pub(crate) fn left(&self) -> Left {
        Left {
            session: self.model.session.as_ref().map(|it| it.session.clone()),
            running: self.running(),
            is_by_user: self.has_quit,
        }
    }
}
