//! The desk: the one place that carries out what the user wants done, whichever surface it comes
//! from. What came of it is told in the event stream.

use super::slash;
use super::{Door, Ready};
use crate::main_agent::{Badge, announce};
use crate::mode::Mode;
use crate::stage::Stage;
use crate::workshop::Workshop;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use gaffer_agent::Agent;
use gaffer_crew::{Crew, Stopped};
use gaffer_model::Model;
use gaffer_protocol::{AgentId, Block, Command, Cost, End, EventKind, Origin, Permission, Usage};
use gaffer_store::{About, Home};
use gaffer_tools::permission::Mode as Rights;
use gaffer_tools::question::Questions;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What comes after this session.
pub(super) enum Next {
    Leave,
    Resume(Box<Ready>),
}

/// What is left to do of a command that takes time. The others do not wait for it.
type Errand<'a> = LocalBoxFuture<'a, ()>;

/// Letters for workers: the order in which they were written is kept.
type Post = UnboundedSender<(AgentId, String)>;

pub(super) struct Desk {
    crew: Crew,
    pub(super) workshop: Arc<Workshop>,
    questions: Questions,
    pub(super) home: Home,
    badge: RefCell<Badge>,
    /// The model that the session's own agent goes on with, once it is at rest.
    wanted: RefCell<Option<Arc<dyn Model>>>,
    is_used: Cell<bool>,
    /// The permission mode that was told last.
    told: Cell<&'static str>,
}

impl Desk {
    pub(super) fn new(stage: &Stage, (questions, home): (Questions, Home), is_used: bool) -> Self {
        Self {
            crew: stage.crew.clone(),
            workshop: stage.workshop.clone(),
            questions,
            home,
            badge: RefCell::new(stage.badge.clone()),
            wanted: RefCell::default(),
            is_used: Cell::new(is_used),
            told: Cell::new(stage.workshop.limits.permission_mode()),
        }
    }

    pub(super) fn crew(&self) -> &Crew {
        &self.crew
    }

    /// Whether anybody said anything.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.get()
    }

    /// Carries out commands until the user leaves this session.
    pub(super) async fn serve(
        &self,
        commands: &mut UnboundedReceiver<Command>,
        door: &Door,
    ) -> Next {
        let (post, letters) = unbounded_channel();
        let mut errands: FuturesUnordered<Errand<'_>> = FuturesUnordered::new();
        errands.push(Box::pin(self.deliver(letters)));
        loop {
            let command = tokio::select! {
                command = commands.recv() => command,
                Some(()) = errands.next() => continue,
            };
            match command {
                // Without anybody to hear from there is nobody to work for.
                None | Some(Command::Quit) => return Next::Leave,
                Some(Command::Slash { name, args }) if name == "resume" && !args.is_empty() => {
                    match slash::resume(self, door, &args) {
                        Ok(ready) => return Next::Resume(Box::new(ready)),
                        Err(why) => self.notice(&why),
                    }
                }
                Some(command) => errands.extend(self.carry_out(command, &post)),
            }
        }
    }

    /// Does what can be done at once; the rest is an errand.
    fn carry_out(&self, command: Command, post: &Post) -> Option<Errand<'_>> {
        let main = self.crew.parts().main;
        match command {
            Command::Say { to, text } => match to.filter(|id| *id != main) {
                None => self.say(&text),
                // The receiver lives as long as the desk serves.
                Some(to) => drop(post.send((to, text))),
            },
            Command::Interrupt { agent } => match agent.filter(|id| *id != main) {
                None => self.crew.interrupt(),
                Some(id) if self.crew.interrupt_worker(id) => {
                    self.note(id, "interrupted: it waits for your word");
                }
                Some(id) => self.note(id, "it does not work, so there is nothing to interrupt"),
            },
            Command::Stop { agent } => return Some(Box::pin(self.stop(agent))),
            Command::Answer { number, permission } => self.answer(number, permission),
            Command::SetModel { model } => self.set_model(model.trim()),
            Command::SetMode { mode } => self.set_mode(mode.trim()),
            Command::Compact { agent, wish } => {
                let agent = agent.unwrap_or(main);
                self.is_used.set(true);
                if !self.crew.compact(agent, wish.as_deref()) {
                    self.note(agent, "it does not work, so there is nothing to compact");
                }
            }
            Command::Slash { name, args } => {
                return slash::answer(self, &name, &args);
            }
            Command::Quit => {}
        }
        None
    }

    /// A message of the user's to the session's own agent.
    pub(super) fn say(&self, text: &str) {
        self.begin(text);
        self.crew.tell_main(text);
    }

    /// The same with what a skill says, which the user called by its name.
    pub(super) fn say_with(&self, text: &str, skill: &str) {
        self.begin(text);
        let block = Block::from(Origin::Context, skill);
        self.crew.parts().main_inbox.send(block);
        self.crew.tell_main(text);
    }

    /// The first message is what the session is called by.
    fn begin(&self, text: &str) {
        self.is_used.set(true);
        let folder = &self.workshop.folder;
        let Some(mut about) = folder.about().filter(|about| about.title.is_empty()) else {
            return;
        };
        about.title = About::title_of(text);
        if let Err(why) = folder.set_about(&about) {
            self.notice(&format!("the session's title could not be kept: {why}"));
        }
    }

    /// Brings letters to workers, one after another.
    async fn deliver(&self, mut letters: UnboundedReceiver<(AgentId, String)>) {
        while let Some((to, text)) = letters.recv().await {
            self.is_used.set(true);
            if let Err(why) = self.crew.steer(&to.to_string(), &text).await {
                self.note(to, &format!("not delivered: {why}\n{text}"));
            }
        }
    }

    async fn stop(&self, agent: AgentId) {
        match self.crew.abort(agent).await {
            Some(Stopped::Gone) => {}
            Some(Stopped::Before(end)) => self.note(agent, &format!("it had ended: {end}")),
            None => self.notice(&format!("there is no worker {agent}")),
        }
    }

    fn answer(&self, number: u64, permission: Permission) {
        if !self.questions.answer(number, permission) {
            self.notice("that question needs no answer any more");
        }
    }

    fn set_model(&self, name: &str) {
        match self.choose_model(name) {
            Ok(name) => {
                self.tell_session();
                self.notice(&format!("the model is {name} from the next turn on"));
            }
            Err(why) => self.notice(&format!("the model stays as it is: {why}")),
        }
    }

    fn choose_model(&self, name: &str) -> Result<String, String> {
        let models = &self.workshop.models;
        let one = Usage {
            input: 1,
            ..Usage::default()
        };
        let is_capped = self.crew.parts().limits.budget.usd.is_some();
        if is_capped && models.chosen.prices.cost(name, one) == Cost::Unknown {
            return Err(format!(
                "the budget is in dollars, and `{name}` has no price"
            ));
        }
        let (name, model) = models.choose(name)?;
        *self.wanted.borrow_mut() = Some(model);
        self.badge.borrow_mut().start.model.clone_from(&name);
        // Workers that start from now on have it too, unless the settings name another.
        let outfits = self.workshop.outfits.lock();
        outfits.unwrap_or_else(PoisonError::into_inner).clear();
        Ok(name)
    }

    /// Lets the session's own agent go on with the model that is wanted, if one is.
    pub(super) async fn change_model(&self, agent: &mut Agent) {
        let wanted = self.wanted.borrow_mut().take();
        let Some(model) = wanted else {
            return;
        };
        let badge = self.badge.borrow().clone();
        let start = Box::new(badge.start);
        let changed = agent.change_model(model, (&badge.prefix, badge.who), start);
        if let Err(why) = changed.await {
            self.notice(&format!("the model could not be changed: {why}"));
        }
    }

    fn set_mode(&self, name: &str) {
        if Mode::parse(name).is_ok() {
            self.notice(&format!(
                "`{name}` is how a session works, from its beginning on: gaffer --mode {name}. Here it is about permissions: {}",
                slash::modes()
            ));
            return;
        }
        let mode: Rights = match name.parse() {
            Ok(mode) => mode,
            Err(why) => {
                let why: gaffer_tools::permission::UnknownMode = why;
                return self.notice(&why.to_string());
            }
        };
        let limits = &self.workshop.limits;
        let is_plan = mode == Rights::Plan;
        // With a coordinator, planning is a state that ends when the plan is approved.
        if !(limits.plan().set_pending(is_plan) && is_plan) {
            limits.standing().set_mode(mode);
        }
        self.tell_session();
        self.notice(&match is_plan {
            true => "plan: nothing is changed before you have approved it".to_owned(),
            false => format!("the permission mode is {mode}"),
        });
    }

    /// How a turn of the session's own agent ended that was not simply done.
    pub(super) fn turn_ended(&self, end: &End) {
        match end {
            End::Done => {}
            End::Interrupted => self.notice("interrupted: what do you want instead?"),
            End::Budget => {
                self.notice("the budget is used up: a session with a higher cap goes on with --resume and, for one, --max-budget-usd");
            }
            end => self.notice(&format!("the turn ended early: {end}")),
        }
    }

    /// A plan that was approved lets another mode begin.
    pub(super) fn look_at_mode(&self) {
        if self.told.get() != self.workshop.limits.permission_mode() {
            self.tell_session();
        }
    }

    /// Tells those who watch what the session is now.
    fn tell_session(&self) {
        self.told.set(self.workshop.limits.permission_mode());
        let badge = self.badge.borrow();
        announce(&self.workshop, &self.crew, &badge, &badge.start.model);
    }

    /// A word for the user.
    pub(super) fn notice(&self, text: &str) {
        self.note(self.crew.parts().main, text);
    }

    /// A word for the user about one agent.
    fn note(&self, agent: AgentId, text: &str) {
        let notice = EventKind::Notice(text.to_owned());
        self.crew.events().emit(agent, notice);
    }

    pub(super) fn model_name(&self) -> String {
        self.badge.borrow().start.model.clone()
    }
}
