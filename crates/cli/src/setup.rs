//! What a session is to be, before anything of it is there: settings, model, mode, permissions.

use crate::args::Common;
use crate::budget;
use crate::exit::Usage;
use crate::gear::Gear;
use crate::house;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::model::choose;
use crate::plan;
use crate::policy::{further_folders, policy};
use crate::resume::Old;
use crate::run::Job;
use crate::settings::Settings;
use crate::settings::layers::Places;
use crate::system::{self, SystemEntropy};
use anyhow::Context;
use gaffer_protocol::SessionId;
use gaffer_store::{About, Home};
use gaffer_tools::question::Questions;
use gaffer_tools::structured::Form;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Puts together what one run needs. `questions` reach somebody, if there are any; `prompt` is
/// asked for last, and told whether the session is one that goes on.
pub(crate) fn job(
    mut common: Common,
    form: Option<Form>,
    questions: Option<Questions>,
    prompt: impl FnOnce(&Common, bool) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<Job> {
    let home =
        system::home().ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"))?;
    if let Some(Err(error)) = common.name.as_deref().map(About::name_of) {
        return Err(Usage::new(format!("--name: {error}")).into());
    }
    let cwd = working_folder(&common)?;
    let sessions = Home::new(home.clone());
    let mut old = Old::find(&sessions, &cwd, &common)?;
    let cwd = old.as_ref().map_or(Ok(cwd), Old::cwd)?;
    if let Some(old) = &old {
        old.restore_rights(&mut common);
    }
    let (settings, merged) = Settings::load(&places(&home, &cwd, common.settings.clone()))?;
    let floor = house::floor(&settings, &sessions);
    house::check(&floor)?;
    let mode = Mode::choose(&common, &settings)?;
    let mode = old.as_mut().map_or(Ok(mode), |old| old.mode(mode))?;
    let chosen = Arc::new(choose(&common, &settings, mode, &home)?);
    budget::check(budget::choose(&common, &settings), &chosen, &settings)?;
    let session = match (&common.session_id, &old) {
        (Some(id), _) => {
            SessionId::parse(id).map_err(|error| Usage::new(format!("--session-id: {error}")))?
        }
        (None, Some(old)) if !old.is_forked => old.about.session.clone(),
        (None, _) => SessionId::random(&SystemEntropy),
    };
    let is_headless = questions.is_none();
    let mut policy = policy(&common, &settings, &merged, (&cwd, is_headless))?;
    let plan = plan::choose(
        &mut common,
        &settings,
        (mode, questions.as_ref()),
        &mut policy,
    );
    let gear = Gear::choose(&common, &settings, &chosen, &policy, &cwd)?;
    let mut limits = Limits::choose(&common, &settings.sandbox)?;
    limits = limits.under(policy).above(floor).after(plan);
    limits = limits.asking(questions);
    limits
        .add_dirs
        .extend(further_folders(&settings, &merged, &cwd));
    let prompt = prompt(&common, old.is_some())?;
    Ok(Job {
        form,
        prompt,
        cwd,
        home: sessions,
        session,
        old,
        mode,
        max_turns: common.max_turns.or(settings.max_turns),
        limits,
        gear,
        chosen,
        common,
        settings,
    })
}

/// The root of the project: the repository, or the folder itself.
pub(crate) fn project(cwd: &Path) -> &Path {
    let repository = cwd.ancestors().find(|folder| folder.join(".git").exists());
    repository.unwrap_or(cwd)
}

/// Where settings are looked for.
pub(crate) fn places(home: &Path, cwd: &Path, given: Option<PathBuf>) -> Places {
    Places {
        home: home.to_owned(),
        user: system::variable("HOME").map(PathBuf::from),
        project: Some(project(cwd).to_owned()),
        system: PathBuf::from("/etc"),
        given,
    }
}

pub(crate) fn working_folder(common: &Common) -> anyhow::Result<PathBuf> {
    let folder = match &common.cwd {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().context("the current folder is gone")?,
    };
    let wrong = |why: String| Usage::new(format!("--cwd {}: {why}", folder.display()));
    let folder = folder
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    if !folder.is_dir() {
        return Err(wrong("not a folder".to_owned()).into());
    }
    Ok(folder)
}
