//! `gaffer script`: checks scripts and prints their schema.

use crate::args::ScriptCommand;
use crate::exit::Exit;
use crate::model::read_script;
use gaffer_model::script::Script;
use std::io::Write;

pub(crate) fn script(command: &ScriptCommand) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout();
    match command {
        ScriptCommand::Check { file } => {
            let script = read_script(file)?;
            let steps: usize = script.agents.iter().map(|agent| agent.steps.len()).sum();
            let agents = count(script.agents.len(), "agent");
            let steps = count(steps, "step");
            writeln!(out, "{}: sound; {agents}, {steps}", file.display())?;
        }
        ScriptCommand::Schema => {
            writeln!(out, "{}", serde_json::to_string_pretty(&Script::schema())?)?;
        }
    }
    Ok(Exit::Done)
}

fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}
