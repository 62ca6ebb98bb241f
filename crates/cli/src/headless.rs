//! `gaffer -p`: one prompt, one answer, an exit code that tells the truth.

use crate::args::{Args, Format};
use crate::exit::{Exit, Usage};
use crate::house;
use crate::input;
use crate::plan;
use crate::run::{Job, run};
use crate::setup;
use crate::system;
use crate::view::View;
use crate::view::json::{Json, Style};
use crate::view::progress::Progress;
use anyhow::Context;
use gaffer_protocol::End;
use gaffer_tools::structured::Form;
use std::io::Write;

pub(crate) fn headless(args: Args) -> anyhow::Result<Exit> {
    let Args {
        print,
        prompt,
        common,
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
    let form = json_schema.as_deref().map(form).transpose()?;
    let job = setup::job(common, form, None, |common, is_old| {
        if !is_old {
            return Ok(Some(input::prompt(given)?));
        }
        let approved = || {
            common
                .approve_plan
                .then(|| plan::APPROVED.trim_end().to_owned())
        };
        Ok(input::further_prompt(given)?.or_else(approved))
    })?;
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
