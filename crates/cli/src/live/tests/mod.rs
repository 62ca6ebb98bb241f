//! The desk with scripted models: each command does what it says.

mod asking;
mod talking;

use super::session::{Over, play};
use super::{Door, Ready};
use crate::args::{Common, SandboxMode};
use crate::bus::{Bus, Early};
use crate::gear::Gear;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::model::Chosen;
use crate::plan;
use crate::policy::policy;
use crate::run::Job;
use crate::settings::Settings;
use crate::settings::merge::Merged;
use crate::system::{SystemClock, SystemEntropy};
use gaffer_model::provider::{Deadlines, Kind};
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Gate, Prices};
use gaffer_protocol::{Command, Event, EventKind, Permission, Question, SessionId};
use gaffer_store::Home;
use gaffer_tools::question::Questions;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Longer than anything here takes on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// A folder with a home and a project.
struct Place {
    root: TempDir,
    mode: Mode,
}

impl Place {
    fn new(mode: Mode) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "project"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, mode }
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project").canonicalize().unwrap()
    }

    fn home(&self) -> Home {
        Home::new(self.root.path().join("home"))
    }

    fn has(&self, file: &str) -> bool {
        self.project().join(file).exists()
    }
}

/// Somebody who sits there: sees what happens and says what is to be done.
struct Sitter {
    events: UnboundedReceiver<Event>,
    commands: UnboundedSender<Command>,
    seen: Vec<Event>,
}

impl Sitter {
    fn wants(&self, command: Command) {
        self.commands.send(command).unwrap();
    }

    fn says(&self, text: &str) {
        self.wants(Command::Say {
            to: None,
            text: text.to_owned(),
        });
    }

    fn slash(&self, name: &str, args: &str) {
        self.wants(Command::Slash {
            name: name.to_owned(),
            args: args.to_owned(),
        });
    }

    /// Waits for what happens next that fits.
    async fn sees<T>(&mut self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        let seeing = async {
            loop {
                let event = self.events.recv().await.expect("the session goes on");
                let picked = pick(&event);
                self.seen.push(event);
                if let Some(picked) = picked {
                    return picked;
                }
            }
        };
        let seen = tokio::time::timeout(DEADLINE, seeing).await;
        seen.unwrap_or_else(|_| panic!("{what} never happened: {:#?}", self.seen))
    }

    async fn hears(&mut self, words: &str) -> String {
        self.sees(words, |event| match &event.kind {
            EventKind::Notice(text) if text.contains(words) => Some(text.clone()),
            EventKind::Answered { answer, .. } if answer.text().contains(words) => {
                Some(answer.text())
            }
            _ => None,
        })
        .await
    }

    /// The worker of this name, when it starts.
    #[cfg(feature = "coordinator")]
    async fn worker(&mut self, name: &str) -> gaffer_protocol::AgentId {
        let started = |event: &Event| match &event.kind {
            EventKind::AgentStarted(started) if started.name.as_str() == name => Some(event.agent),
            _ => None,
        };
        self.sees(name, started).await
    }

    async fn question(&mut self) -> Arc<Question> {
        let asked = |event: &Event| match &event.kind {
            EventKind::Asked(question) => Some(question.clone()),
            _ => None,
        };
        self.sees("a question", asked).await
    }

    fn answers(&self, number: u64, permission: Permission) {
        self.wants(Command::Answer { number, permission });
    }

    fn has_seen(&self, pick: impl Fn(&EventKind) -> bool) -> bool {
        self.seen.iter().any(|event| pick(&event.kind))
    }
}

fn scripted(script: &str) -> Chosen {
    let script = Script::parse(script).unwrap();
    let model = Arc::new(Scripted::new(script, Deadlines::default()));
    let gate = Gate::new(16);
    let entropy = Arc::new(SystemEntropy);
    let retrying = Retrying::new(model.clone(), gate.clone(), Patience::default(), entropy);
    Chosen {
        model: Arc::new(retrying),
        recorder: None,
        scripted: Some(model),
        kind: Kind::Scripted,
        name: "scripted".to_owned(),
        key_source: "none".to_owned(),
        gate,
        prices: Arc::new(Prices::new(&BTreeMap::new())),
    }
}

fn ready(place: &Place, script: &str, events: std::sync::mpsc::Sender<Event>) -> Ready {
    let bus = Arc::new(Bus::to(Arc::new(SystemClock), events));
    let early = Arc::new(Early::new(bus.clone()));
    let questions = Questions::new(early.clone());
    let mut common = Common {
        sandbox: Some(SandboxMode::Off),
        ..Common::default()
    };
    let (settings, cwd) = (Settings::default(), place.project());
    let mut policy = policy(&common, &settings, &Merged::default(), (&cwd, false)).unwrap();
    let asking = (place.mode, Some(&questions));
    let plan = plan::choose(&mut common, &settings, asking, &mut policy);
    let chosen = scripted(script);
    let gear = Gear::choose(&common, &settings, &chosen, &policy, &cwd).unwrap();
    let limits = Limits::choose(&common, &settings.sandbox).unwrap();
    let limits = limits.under(policy).after(plan);
    let job = Job {
        form: None,
        prompt: None,
        cwd,
        home: place.home(),
        session: SessionId::random(&SystemEntropy),
        old: None,
        mode: place.mode,
        max_turns: None,
        limits: limits.asking(Some(questions.clone())),
        gear,
        chosen: Arc::new(chosen),
        common,
        settings,
    };
    Ready {
        job,
        bus,
        early,
        questions,
    }
}

/// Somebody sits at a session until they have had enough.
async fn sit(place: &Place, script: &str, does: impl AsyncFnOnce(&mut Sitter)) -> Over {
    let (events, from_bus) = channel();
    let ready = ready(place, script, events.clone());
    let door = Door {
        common: Common::default(),
        events,
    };
    let (to_sitter, events) = unbounded_channel();
    std::thread::spawn(move || {
        from_bus
            .into_iter()
            .all(|event| to_sitter.send(event).is_ok())
    });
    let (commands, mut out) = unbounded_channel();
    let mut sitter = Sitter {
        events,
        commands,
        seen: Vec::new(),
    };
    let sitting = async {
        does(&mut sitter).await;
        // Somebody who has left already does not leave twice.
        drop(sitter.commands.send(Command::Quit));
    };
    let (over, ()) = tokio::join!(Box::pin(play(ready, &door, &mut out)), sitting);
    over.unwrap()
}
