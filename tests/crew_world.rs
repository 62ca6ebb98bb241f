//! A whole crew in process and in simulated time: scripted or whimsical models, transcripts in a
//! temporary folder, every event kept with the moment it came.

use futures_util::future::BoxFuture;
use gaffer_agent::agent_type::{AgentType, AgentTypes};
use gaffer_agent::{Agent, Parts, Sender, inbox};
use gaffer_crew::tools::{Manner, tools};
use gaffer_crew::{
    Crew, CrewLimits, CrewParts, Guardrails, Hand, Order, Outfit, Outfitter, Report, Started,
};
use gaffer_model::price::Price;
use gaffer_model::provider::Deadlines;
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Conversation, DeltaSink, Gate, Model, ModelError, Prefix, Prices, Who};
use gaffer_protocol::event::AgentEnded;
use gaffer_protocol::{
    AgentId, AgentName, Answer, Block, End, EventKind, EventSink, Message, Notification, Origin,
    Role, SessionId, Timestamp, Usage, Waiting,
};
use gaffer_store::{Fold, Home, SessionFolder, Transcript};
use gaffer_testkit::world::{FixedClock, Seeded};
use gaffer_tools::{Access, Context, Floor, Output, Run, ToolSet, erase};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Takes as long as it is told to.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Toil {
    ms: u64,
}

#[derive(Debug)]
pub(crate) struct Work;

impl Run for Work {
    const NAME: &'static str = "Work";
    const ACCESS: Access = Access::Writes;
    type Input = Toil;

    async fn run(&self, input: Toil, _: &Context) -> Output {
        tokio::time::sleep(Duration::from_millis(input.ms)).await;
        Output::text("worked")
    }
}

/// Counts what a model is asked, and what it reports.
#[derive(Debug)]
pub(crate) struct Counted {
    inner: Arc<dyn Model>,
    pub(crate) asked: Mutex<Vec<Asked>>,
    pub(crate) usage: Mutex<Usage>,
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) agent: String,
    pub(crate) at: Instant,
}

impl Model for Counted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, prefix: &Prefix, who: Who) -> Conversation {
        self.inner.open(prefix, who)
    }

    fn answer<'a>(
        &'a self,
        conversation: &'a Conversation,
        deltas: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.asked.lock().unwrap().push(Asked {
            agent: conversation.who().name.to_string(),
            at: Instant::now(),
        });
        Box::pin(async move {
            let answer = self.inner.answer(conversation, deltas).await?;
            *self.usage.lock().unwrap() += answer.usage;
            Ok(answer)
        })
    }
}

/// So often the whole crew is looked at.
const MOST_LOOKS: usize = 1000;

/// Keeps events, and looks at the crew at each of them.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) crew: OnceLock<Crew>,
    /// Who else sees each of them.
    pub(crate) beside: OnceLock<Arc<dyn EventSink>>,
    events: Mutex<Vec<(Instant, AgentId, EventKind)>>,
}

impl EventSink for Log {
    fn emit(&self, agent: AgentId, kind: EventKind) {
        if let Some(beside) = self.beside.get() {
            beside.emit(agent, kind.clone());
        }
        let entry = (Instant::now(), agent, kind);
        let seen = {
            let mut events = self.events.lock().unwrap();
            events.push(entry);
            events.len()
        };
        // Looking at everybody each time takes its time in a large crew.
        if seen < MOST_LOOKS
            && let Some(crew) = self.crew.get()
        {
            check_states(crew);
        }
    }
}

/// Every worker that has not ended is in one state that can be seen, and the queue is a queue.
fn check_states(crew: &Crew) {
    let workers = crew.workers();
    let ids: BTreeSet<AgentId> = workers.iter().map(|worker| worker.id).collect();
    assert_eq!(ids.len(), workers.len());
    let mut places = Vec::new();
    for worker in &workers {
        if let Waiting::Queue(place) = worker.waiting {
            places.push(place);
        }
    }
    places.sort_unstable();
    assert_eq!(places, (1..=places.len()).collect::<Vec<_>>());
    let most = crew.parts().limits.workers;
    let running = workers.iter().filter(|worker| worker.has_place).count();
    assert!(running <= most, "{workers:?}");
}

impl Log {
    pub(crate) fn all(&self) -> Vec<(Instant, AgentId, EventKind)> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn ends(&self) -> Vec<(Instant, AgentId, AgentEnded)> {
        let ended = |(at, id, kind)| match kind {
            EventKind::AgentEnded(ended) => Some((at, id, *ended)),
            _ => None,
        };
        self.all().into_iter().filter_map(ended).collect()
    }

    pub(crate) fn notified(&self) -> Vec<(Instant, Notification)> {
        let notified = |(at, _, kind)| match kind {
            EventKind::Notified(it) => Some((at, (*it).clone())),
            _ => None,
        };
        self.all().into_iter().filter_map(notified).collect()
    }
}

/// Equips workers with a tool that takes time.
#[derive(Debug)]
struct Camp {
    types: AgentTypes,
    models: BTreeMap<String, Arc<dyn Model>>,
    model: Arc<dyn Model>,
    folder: PathBuf,
}

impl Outfitter for Camp {
    fn types(&self) -> &AgentTypes {
        &self.types
    }

    fn outfit(&self, kind: &AgentType, model: Option<&str>) -> Result<Outfit, String> {
        let model = match model {
            Some(name) => self.models.get(name).ok_or("no such model")?.clone(),
            None => self.model.clone(),
        };
        let (tools, provider) = (ToolSet::new([erase(Work)]), "scripted".to_owned());
        let system = kind.name.clone();
        Ok(Outfit::new(model, tools, system, provider, String::new()))
    }

    fn place(&self, _: &Hand<'_>) -> Result<Context, String> {
        Ok(surroundings(&self.folder))
    }

    fn folder(&self, _: &Hand<'_>) -> PathBuf {
        self.folder.clone()
    }

    fn opening(&self, _: &Hand<'_>) -> Vec<Block> {
        vec![Block::from(Origin::Context, "You are here.")]
    }
}

fn surroundings(folder: &Path) -> Context {
    Context::in_folder(folder, folder, folder, Path::new("none"))
}

/// Makes who equips workers, for a folder that is new.
pub(crate) type MakeOutfitter =
    Box<dyn FnOnce(&Path, &SessionFolder, Arc<dyn Model>) -> Arc<dyn Outfitter>>;

/// What a world is made of.
pub(crate) struct Plan {
    /// None where all that workers have is a tool that takes time.
    pub(crate) outfitter: Option<MakeOutfitter>,
    pub(crate) model: Arc<dyn Model>,
    /// By the names that orders ask for.
    pub(crate) models: BTreeMap<String, Arc<dyn Model>>,
    pub(crate) limits: CrewLimits,
    pub(crate) floor: Floor,
    pub(crate) guardrails: Guardrails,
    pub(crate) manner: Manner,
    pub(crate) max_turns: Option<u32>,
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            outfitter: None,
            model,
            models: BTreeMap::new(),
            limits: CrewLimits::default(),
            floor: Floor::default(),
            guardrails: Guardrails::default(),
            manner: Manner::Coordinator,
            max_turns: None,
            seed: 1,
        }
    }

    /// One script for all agents, with the patience that a provider gets.
    pub(crate) fn script(script: &str) -> Self {
        Self::new(patient(script, Patience::default(), Deadlines::default()))
    }
}

pub(crate) fn patient(script: &str, patience: Patience, deadlines: Deadlines) -> Arc<dyn Model> {
    let script = Script::parse(script).unwrap();
    let scripted = Arc::new(Scripted::new(script, deadlines));
    let entropy = Arc::new(Seeded::new(7));
    Arc::new(Retrying::new(scripted, Gate::new(200), patience, entropy))
}

pub(crate) struct World {
    pub(crate) crew: Crew,
    pub(crate) agent: Agent,
    pub(crate) main: AgentId,
    pub(crate) inbox: Sender,
    pub(crate) log: Arc<Log>,
    pub(crate) model: Arc<Counted>,
    pub(crate) folder: SessionFolder,
    _temp: tempfile::TempDir,
}

/// A dollar for a million tokens of input, ten for output.
fn prices() -> Arc<Prices> {
    let price = Price {
        input: Some(1.0),
        output: Some(10.0),
        ..Price::default()
    };
    let prices = ["scripted", "small", "large"].map(|name| (name.to_owned(), price.clone()));
    Arc::new(Prices::new(&prices.into()))
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let id = SessionId::parse("s").unwrap();
        let folder = Home::new(temp.path().join("home"))
            .create_session(temp.path(), &id)
            .unwrap();
        std::fs::create_dir(folder.results()).unwrap();
        let model = Arc::new(Counted {
            inner: plan.model,
            asked: Mutex::default(),
            usage: Mutex::default(),
        });
        let log = Arc::new(Log::default());
        let entropy = Arc::new(Seeded::new(plan.seed));
        let main = AgentId::random(&*entropy);
        let (sender, inbox) = inbox();
        let prices = prices();
        let clock = Arc::new(FixedClock(Timestamp(0)));
        let camp = |at: &Path, _: &SessionFolder, model: Arc<dyn Model>| -> Arc<dyn Outfitter> {
            Arc::new(Camp {
                types: AgentTypes::built_in(),
                models: plan.models,
                model,
                folder: at.to_owned(),
            })
        };
        let outfitter = plan.outfitter.unwrap_or_else(|| Box::new(camp));
        let crew = Crew::new(CrewParts {
            book: folder.book(),
            session: id,
            folder: folder.clone(),
            mode: "test".into(),
            version: "0".into(),
            main,
            main_inbox: sender.clone(),
            outfitter: outfitter(temp.path(), &folder, model.clone()),
            events: log.clone(),
            clock: clock.clone(),
            entropy,
            prices: prices.clone(),
            limits: plan.limits,
            floor: plan.floor,
            guardrails: plan.guardrails,
        });
        log.crew.set(crew.clone()).unwrap();
        let tools = Arc::new(ToolSet::new(tools(&crew, main, plan.manner)));
        let prefix = Prefix {
            system: "main".into(),
            tools: tools.specs(),
        };
        let who = Who {
            id: main,
            name: AgentName::main(),
            agent_type: "main".into(),
        };
        let agent = Agent::new(Parts {
            id: main,
            conversation: model.open(&prefix, who),
            model: model.clone(),
            tools,
            context: surroundings(temp.path()),
            transcript: Transcript::create(folder.transcript(main)).unwrap(),
            inbox,
            events: crew.events(),
            prices,
            clock,
            max_turns: plan.max_turns,
            compaction: crew.compaction(main),
            allowance: crew.allowance(main),
        });
        Self {
            crew,
            agent,
            main,
            inbox: sender,
            log,
            model,
            folder,
            _temp: temp,
        }
    }

    /// Runs the session's own agent as the program does, until nothing is left to do.
    pub(crate) async fn run(&mut self, prompt: &str) -> End {
        self.inbox.send(Block::from_human(prompt));
        let stop = CancellationToken::new();
        let end = self.crew.run_main(&mut self.agent, &stop).await;
        self.crew.stop_all(&End::Interrupted).await;
        self.agent.close(end).end
    }

    pub(crate) fn order(&self, name: &str, kind: &str, parent: AgentId) -> Order {
        let kind = self.crew.parts().outfitter.types().choose(kind).unwrap();
        Order {
            description: format!("Task of {name}"),
            prompt: "go".into(),
            kind: kind.clone(),
            name: Some(AgentName::parse(name).unwrap()),
            model: None,
            parent,
            call: None,
            depends_on: Vec::new(),
            includes_results: false,
            terms: gaffer_protocol::Terms::default(),
            score: None,
            advice: String::new(),
        }
    }

    pub(crate) async fn start(&self, name: &str) -> Started {
        let order = self.order(name, "worker", self.main);
        self.crew.start(order).await.unwrap()
    }

    /// Runs one worker to its end.
    pub(crate) async fn one(&self, order: Order) -> Report {
        let (_, waited) = self.crew.start_waited(order).await.unwrap();
        waited.await.unwrap()
    }

    pub(crate) fn fold(&self, id: AgentId) -> Fold {
        Fold::read(&self.folder.transcript(id)).unwrap()
    }

    /// Waits until no worker runs.
    pub(crate) async fn settle(&self) {
        while self.crew.is_busy() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn asked_by(&self, agent: &str) -> Vec<Asked> {
        let asked = self.model.asked.lock().unwrap();
        let of = asked.iter().filter(|asked| asked.agent == agent);
        of.cloned().collect()
    }
}

/// All texts of the user's side, with who wrote them.
pub(crate) fn heard(messages: &[Message]) -> Vec<(Option<Origin>, String)> {
    let user = messages.iter().filter(|it| it.role == Role::User);
    let text = |block: &Block| match block {
        Block::Text(text) => Some((text.origin, text.text.clone())),
        _ => None,
    };
    user.flat_map(|message| message.blocks.iter().filter_map(text))
        .collect()
}

/// The notifications that an agent has heard.
pub(crate) fn told(messages: &[Message]) -> Vec<Notification> {
    let heard = heard(messages).into_iter();
    heard
        .filter(|(origin, _)| *origin == Some(Origin::TaskNotification))
        .map(|(_, text)| Notification::parse(&text).unwrap())
        .collect()
}
