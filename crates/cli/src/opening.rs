//! A session on disk is made, or taken up where it was.

use crate::args::{Common, Switch};
use crate::budget;
use crate::exit::Usage;
use crate::main_agent::Earlier;
use crate::run::Job;
use crate::system::SystemEntropy;
use anyhow::Context as _;
use clap::ValueEnum;
use gaffer_crew::Crew;
use gaffer_protocol::{AgentId, Budget, Clock, EventKind};
use gaffer_store::book::Contents;
use gaffer_store::{About, Book, Ownership, Rights, SessionError, SessionFolder};
use gaffer_tools::hook::Source;

/// A session that this process owns.
pub(crate) struct Opened {
    pub(crate) folder: SessionFolder,
    pub(crate) about: About,
    pub(crate) book: Book,
    /// What its book says, if it goes on.
    pub(crate) contents: Option<Contents>,
    switched: Option<&'static str>,
}

impl Opened {
    /// How it begins, as hooks are told.
    pub(crate) fn source(&self) -> Source {
        match (&self.contents, &self.about.forked_from) {
            (None, _) => Source::Startup,
            (Some(_), None) => Source::Resume,
            (Some(_), Some(_)) => Source::Fork,
        }
    }
}

/// Makes a new session on disk, or opens the one that goes on.
pub(crate) fn open(job: &mut Job, clock: &dyn Clock) -> anyhow::Result<(Opened, Ownership)> {
    let now = clock.now();
    let (mut opened, owned) = match job.old.take() {
        Some(mut old) => {
            let owned = old.own(&job.home, &job.cwd, &job.session, now)?;
            let book = old.folder.book();
            let opened = Opened {
                contents: Some(book.take_up()?),
                folder: old.folder,
                about: old.about,
                book,
                switched: old.switched,
            };
            (opened, owned)
        }
        None => {
            let created = job.home.create_session(&job.cwd, &job.session);
            let folder = created.map_err(exists)?;
            let owned = folder.own(now)?;
            let opened = Opened {
                about: About {
                    session: job.session.clone(),
                    main: AgentId::random(&SystemEntropy),
                    mode: job.mode.as_str().to_owned(),
                    cwd: job.cwd.display().to_string(),
                    created: now,
                    name: None,
                    title: About::title_of(job.prompt.as_deref().unwrap_or_default()),
                    rights: Rights::default(),
                    forked_from: None,
                    budget: Budget::default(),
                    account: None,
                },
                book: folder.book(),
                folder,
                contents: None,
                switched: None,
            };
            (opened, owned)
        }
    };
    if let Some(name) = job.common.name.clone() {
        opened.about.name = Some(name.trim().to_owned());
    }
    opened.about.rights = rights(&job.common);
    opened.about.budget = budget::choose(&job.common, &job.settings);
    let written = opened.folder.set_about(&opened.about);
    written.with_context(|| format!("cannot write in {}", opened.folder.path().display()))?;
    Ok((opened, owned))
}

/// What the command line says about permissions.
fn rights(common: &Common) -> Rights {
    let sandbox = common.sandbox.and_then(|mode| mode.to_possible_value());
    Rights {
        mode: common.permission_mode.clone(),
        allowed: common.allowed_tools.clone(),
        denied: common.disallowed_tools.clone(),
        folders: common.add_dir.clone(),
        sandbox: sandbox.map(|value| value.get_name().to_owned()),
        network: common.sandbox_network.map(|switch| switch == Switch::On),
    }
}

pub(crate) fn exists(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Exists(_) => Usage::new(error.to_string()).into(),
        SessionError::Create { .. } => anyhow::Error::new(error),
    }
}

/// Brings the crew of a session that goes on back to where it was. Answers whether its own agent
/// has something to answer.
pub(crate) async fn take_up(
    crew: &Crew,
    opened: Opened,
    earlier: Option<Earlier>,
) -> anyhow::Result<bool> {
    let (Some(contents), Some(earlier)) = (opened.contents, earlier) else {
        return Ok(false);
    };
    let main = opened.about.main;
    let damage = contents.damaged.iter().map(|what| {
        let path = opened.book.path().display();
        format!("{path} is damaged and was read as far as it can be: {what}")
    });
    let words = opened.switched.map(str::to_owned).into_iter();
    for word in words.chain(earlier.damage).chain(damage) {
        crew.events().emit(main, EventKind::Notice(word));
    }
    crew.remember_told(earlier.told);
    let (usage, cost, time) = earlier.spent;
    crew.remember_spent((usage, cost), earlier.turns, time);
    crew.take_up(contents, &earlier.heard).await?;
    if let Some(before) = &opened.about.account {
        crew.remember_sum(before);
    }
    Ok(earlier.is_due)
}
