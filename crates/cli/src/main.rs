//! The binary: arguments, settings, wiring, and what is shown.

mod args;
mod budget;
mod bus;
mod config;
mod demo;
mod exit;
mod export;
mod gear;
mod guardrails;
mod headless;
mod hooks;
mod house;
mod input;
mod integrate;
mod limits;
mod live;
mod main_agent;
mod meter;
mod mode;
mod model;
mod models;
mod opening;
mod plan;
mod policy;
mod resume;
mod run;
mod script;
mod search;
mod sessions;
mod settings;
mod setup;
mod show;
mod signals;
mod site;
mod small;
mod stage;
mod system;
mod tracks;
mod view;
mod workshop;
mod worktree;
mod worktree_integrate;
mod yard;

use args::{Args, Command};
use clap::Parser;
use exit::{Exit, Usage};
use gaffer_tools::pdf;
use gaffer_workspace::{handles, sandbox, warden};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Roles that this program plays for itself come before everything that costs time.
    let mut given = std::env::args_os().skip(1);
    match given.next() {
        Some(role) if role == warden::ROLE => return ExitCode::from(warden::main(given)),
        Some(role) if role == sandbox::ROLE => return ExitCode::from(sandbox::main(given)),
        Some(role) if role == pdf::ROLE => return ExitCode::from(pdf::main(given)),
        _ => {}
    }
    handles::raise();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version go to standard output and are no error.
            drop(error.print());
            return if error.use_stderr() {
                Exit::Usage.into()
            } else {
                Exit::Done.into()
            };
        }
    };
    match dispatch(args) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = if error.is::<Usage>() {
                Exit::Usage
            } else {
                Exit::Failed
            };
            system::say(&format!("gaffer: {error:#}"));
            exit.into()
        }
    }
}

fn dispatch(mut args: Args) -> anyhow::Result<Exit> {
    match args.command.take() {
        Some(Command::Config(config)) => config::config(&config),
        Some(Command::Demo(demo)) => demo::demo(&demo),
        Some(Command::Show(args)) => show::show(&args),
        Some(Command::Sessions(args)) => sessions::sessions(args),
        Some(Command::Export(args)) => export::export(&args),
        Some(Command::Script(command)) => script::script(&command),
        Some(Command::Worktree(command)) => worktree::worktree(&command),
        None if args.print.is_some() => headless::headless(args),
        None => live::live(args),
    }
}
