//! `gaffer -p`: one prompt, one answer, an exit code that tells the truth.

use crate::args::{Args, Common, Format};
use crate::budget;
use crate::exit::{Exit, Usage};
use crate::gear::Gear;
use crate::house;
use crate::input;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::model::choose;
use crate::plan;
use crate::policy::{further_folders, policy};
use crate::resume::Old;
use crate::run::{Job, run};
use crate::settings::Settings;
use crate::settings::layers::Places;
use crate::system::{self, SystemEntropy};
use crate::view::View;
use crate::view::json::{Json, Style};
use crate::view::progress::Progress;
use anyhow::Context;
use gaffer_protocol::{End, SessionId};
use gaffer_store::{About, Home};
use gaffer_tools::structured::Form;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn headless(args: Args) -> anyhow::Result<Exit> {
    let Args {
        print,
        prompt,
        mut common,
        output_format,
        json_schema,
        verbose,
        ..
    } = args;
    let given = print.flatten();
    let given = match (given, prompt) {
        (Some(first), Some(second)) => Some(format!("{first} {second}")),
        (first, second) => first.or(second),
    };
    let home =
        system::home().ok_or_else(|| Usage::new("no home folder: set HOME or GAFFER_HOME"))?;
    if let Some(Err(error)) = common.name.as_deref().map(About::name_of) {
        return Err(Usage::new(format!("--name: {error}")).into());
    }
    let form = json_schema.as_deref().map(form).transpose()?;
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
    let mut policy = policy(&common, &settings, &merged, &cwd)?;
    let plan = plan::choose(&mut common, &settings, mode, &mut policy);
    let gear = Gear::choose(&common, &settings, &chosen, &policy, &cwd)?;
    let mut limits = Limits::choose(&common, &settings.sandbox)?;
    limits = limits.under(policy).above(floor).after(plan);
    limits
        .add_dirs
        .extend(further_folders(&settings, &merged, &cwd));
    let prompt = match old {
        Some(_) => {
            let approved = || {
                common
                    .approve_plan
                    .then(|| plan::APPROVED.trim_end().to_owned())
            };
            input::further_prompt(given)?.or_else(approved)
        }
        None => Some(input::prompt(given)?),
    };
    let job = Job {
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
    };
    work(job, output_format, verbose)
}

fn work(job: Job, format: Format, verbose: bool) -> anyhow::Result<Exit> {
    let scripted = job.chosen.scripted.clone();
    let (home, rules) = (job.home.clone(), house::rules(&job.settings));
    let view: Option<Box<dyn View>> = match format {
        Format::StreamJson => Some(Box::new(Json::new(Style::Stream))),
        Format::Json => Some(Box::new(Json::new(Style::ResultOnly))),
        Format::Text if system::stderr_is_terminal() => Some(Box::new(Progress::new(verbose))),
        // The answer alone goes to a pipe.
        Format::Text => None,
    };
    let done = run(job, view)?;
    let outcome = done.outcome;
    let left = scripted.as_ref().map(|scripted| scripted.left_over());
    if let Some(left) = left.filter(|left| !left.is_empty() && outcome.end == End::Done) {
        let left = left.join("; ");
        system::say(&format!(
            "gaffer: the script was not played to its end: {left}"
        ));
    }
    if format == Format::Text {
        if outcome.end == End::Done {
            let result = done.formed.unwrap_or(outcome.result);
            let text = if system::stdout_is_terminal() {
                system::plain(&result)
            } else {
                result
            };
            writeln!(std::io::stdout(), "{text}").context("cannot print the answer")?;
        } else {
            if let Some(plan) = &done.plan {
                write!(std::io::stdout(), "{}", system::plain(plan))
                    .context("cannot print the plan")?;
            } else if !outcome.result.is_empty() {
                system::say(&format!(
                    "gaffer: the last words were: {}",
                    system::plain(&outcome.result)
                ));
            }
            let transcript = done.transcript.display();
            system::say(&format!(
                "gaffer: {}\ngaffer: the transcript is {transcript}\ngaffer: to go on: gaffer -p --resume {}",
                outcome.end, done.session
            ));
            if outcome.end == End::Budget {
                system::say(
                    "gaffer: what was used counts: give a higher cap, such as --max-budget-usd, --max-tokens-total or --max-wall",
                );
            }
        }
    }
    if format == Format::Text && !done.unchecked.is_empty() {
        let names: Vec<&str> = done.unchecked.iter().map(|it| it.as_str()).collect();
        system::say(&format!(
            "gaffer: changed, and not verified by a fresh worker since: {}",
            names.join(", ")
        ));
    }
    house::after_run(&home, &rules, &done.transcript);
    Ok(Exit::from(&outcome.end))
}

/// What the answer has to look like, given as a schema or as the file with it.
fn form(given: &str) -> Result<Form, Usage> {
    let wrong = |why: String| Usage::new(format!("--json-schema: {why}"));
    let text = match given.trim_start().starts_with('{') {
        true => given.to_owned(),
        false => std::fs::read_to_string(given).map_err(|why| wrong(format!("{given}: {why}")))?,
    };
    let schema = serde_json::from_str(&text).map_err(|why| wrong(why.to_string()))?;
    Form::new(&schema).map_err(wrong)
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
