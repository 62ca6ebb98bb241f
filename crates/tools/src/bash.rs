//! Bash: a shell command in the working folder.

use crate::context::{Context, Sandbox};
use crate::lease::Watch;
use crate::tool::{Access, Output, Run};
use gaffer_protocol::ResultPart;
use gaffer_workspace::job::{Ended, Order};
use gaffer_workspace::jobs::{Entry, Held};
use gaffer_workspace::output::Keeper;
use gaffer_workspace::sandbox::{Binding, Hold};
use gaffer_workspace::scratchpad::{Pen, Running};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;

const DEFAULT_TIME: Duration = Duration::from_secs(120);
const LONGEST_TIME: Duration = Duration::from_secs(600);
/// So long is waited for the last output of a command that left something running.
const GRACE: Duration = Duration::from_millis(50);
/// What is kept of the output at each of its ends.
const KEEP: usize = 15_000;
/// The whole of an output goes to a file that grows no further than this.
const FILE_CAP: u64 = 64 << 20;

/// Runs a shell command. The folder and exported variables carry over to the next call. Standard
/// input is closed. A command that runs past its timeout goes on in the background as a job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command. Leave it out to read or stop a job.
    pub command: Option<String>,
    /// Milliseconds to wait, at most 600000. Default 120000.
    pub timeout: Option<u64>,
    /// What the command does, in a few words.
    pub description: Option<String>,
    /// Start it as a job and do not wait.
    pub run_in_background: Option<bool>,
    /// A job's id, such as bash_3: returns what it printed since the last look.
    pub job: Option<String>,
    /// Ends that job and everything it started.
    pub stop: Option<bool>,
    /// Run it outside the sandbox: only where the user's settings allow it, and only for what
    /// cannot work inside.
    #[serde(rename = "dangerouslyDisableSandbox")]
    pub disable_sandbox: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
pub struct Bash;

impl Run for Bash {
    const NAME: &'static str = "Bash";
    const ACCESS: Access = Access::Writes;
    type Input = BashInput;

    async fn run(&self, input: BashInput, context: &Context) -> Output {
        let time = input.timeout.map_or(DEFAULT_TIME, Duration::from_millis);
        let time = time.min(LONGEST_TIME);
        let running = context.scratchpad.as_ref().map(Pen::command);
        let watch = Watch::begin(context, input.command.as_deref()).await;
        let output = match (input.command, input.job) {
            (Some(command), None) => {
                let how = How {
                    time,
                    background: input.run_in_background.unwrap_or(false),
                    unbound: input.disable_sandbox.unwrap_or(false),
                };
                run(&command, how, context).await
            }
            (None, Some(id)) => look(&id, input.stop.unwrap_or(false), context).await,
            _ => Output::error("Give either `command`, or `job` to look at a running one."),
        };
        let output = match watch {
            Some(watch) => watch.end(output, context).await,
            None => output,
        };
        match running {
            Some(running) => record(running, output, context).await,
            None => output,
        }
    }
}

/// Records what commands wrote to the scratchpad.
async fn record(running: Running, mut output: Output, context: &Context) -> Output {
    let has_jobs = !context.jobs.alive().is_empty();
    let scanned = tokio::task::spawn_blocking(move || running.ended(has_jobs)).await;
    let note = match scanned {
        Ok(scanned) => scanned.note,
        Err(why) => Some(format!(
            "What was written in the scratchpad could not be recorded: {why}."
        )),
    };
    let note = note.map(|note| ResultPart::Text(format!("[{note}]")));
    output.parts.extend(note);
    output
}

/// How a command is to run.
#[derive(Debug, Clone, Copy)]
struct How {
    time: Duration,
    background: bool,
    /// Outside the sandbox.
    unbound: bool,
}

async fn run(command: &str, how: How, context: &Context) -> Output {
    if command.contains('\0') {
        return Output::error("The command holds a NUL byte, which no command can.");
    }
    let sandbox = context.sandbox.as_ref();
    if how.unbound && sandbox.is_some_and(|sandbox| !sandbox.may_leave) {
        return Output::error(
            "Commands run in the sandbox here: the settings do not allow `dangerouslyDisableSandbox`.",
        );
    }
    let sandbox = sandbox.filter(|_| !how.unbound);
    let id = context.jobs.next_id();
    let left = Left::of(&context.temp, &id);
    let order = order(command, &id, &left, sandbox, context);
    let held = match start(id, command, &order, context) {
        Ok(held) => held,
        Err(why) => return Output::error(format!("The command could not be started: {why}.")),
    };
    if how.background {
        let entry = held.let_live();
        return Output::text(format!(
            "{} Its output goes to {}.",
            in_background(&entry),
            file(&entry.id, context).display()
        ));
    }
    let job = held.entry.job.clone();
    let Ok(status) = timeout(how.time, job.ended()).await else {
        let entry = held.let_live();
        let seconds = how.time.as_secs_f32();
        let text = shown(&job.output.text());
        return Output::text(format!(
            "{text}\n[After {seconds} s it still runs. {}]",
            in_background(&entry)
        ));
    };
    let mut notes = take_over(&left, context);
    if status.left {
        let entry = held.let_live();
        notes.push(format!("What it left running is job {}.", entry.id));
        // What it printed itself is on its way through the pipe that others hold open.
        drop(timeout(GRACE, job.gone()).await);
    } else {
        job.gone().await;
    }
    let text = shown(&job.output.text());
    let failed = status.ended != Ended::Exited(0);
    notes.extend(sandbox.and_then(|sandbox| met(&text, failed, &sandbox.binding)));
    report(&status.ended, &text, &notes)
}

/// Runs a command to its end, or ends it when its time is up. Whether it succeeded, and what it
/// printed. Nothing that it starts outlives it.
pub(crate) async fn run_to_end(command: &str, time: Duration, context: &Context) -> (bool, String) {
    if command.contains('\0') {
        return (false, "The command holds a NUL byte.".to_owned());
    }
    let id = context.jobs.next_id();
    let left = Left::of(&context.temp, &id);
    let order = order(command, &id, &left, context.sandbox.as_ref(), context);
    let held = match start(id, command, &order, context) {
        Ok(held) => held,
        Err(why) => return (false, format!("It could not be started: {why}.")),
    };
    let job = held.entry.job.clone();
    let ended = timeout(time, job.ended()).await;
    drop(held);
    job.gone().await;
    let text = shown(&job.output.text());
    match ended {
        Ok(status) => {
            let output = report(&status.ended, &text, &[]);
            (!output.is_error, output.to_text())
        }
        Err(_) => {
            let seconds = time.as_secs_f32();
            (false, format!("{text}\n[stopped after {seconds} s]"))
        }
    }
}

fn report(ended: &Ended, text: &str, notes: &[String]) -> Output {
    let mut text = text.to_owned();
    let is_error = *ended != Ended::Exited(0);
    match ended {
        Ended::Exited(0) => {}
        Ended::Exited(code) => text.push_str(&format!("\n[exit code {code}]")),
        Ended::Signalled(signal) => text.push_str(&format!("\n[ended by signal {signal}]")),
        Ended::Lost(why) => text.push_str(&format!("\n[lost: {why}]")),
    }
    for note in notes {
        text.push_str(&format!("\n[{note}]"));
    }
    if is_error {
        Output::error(text)
    } else {
        Output::text(text)
    }
}

/// What the sandbox keeps as it is, where a command's words sound as if it had met that: the
/// system's own words do not say why a file is read-only or busy.
fn met(text: &str, failed: bool, binding: &Binding) -> Option<String> {
    const WORDS: [&str; 4] = ["Read-only file system", "resource busy", "EROFS", "EBUSY"];
    // Git says this and goes on, as when it notes which branch a new one follows.
    const GIT: &str = "could not write config file";
    binding.means.as_ref()?;
    let kept = binding.kept.iter();
    let kept: Vec<String> = kept
        .filter(|one| one.how == Hold::ReadOnly)
        .map(|one| one.path.display().to_string())
        .collect();
    let is_met = failed && WORDS.iter().any(|word| text.contains(word)) || text.contains(GIT);
    (is_met && !kept.is_empty()).then(|| {
        format!(
            "The sandbox keeps these as they are: {}. If they must change, tell the user.",
            kept.join(", ")
        )
    })
}

fn in_background(entry: &Entry) -> String {
    format!(
        "It runs in the background as job {0}: call Bash with `job: \"{0}\"` to read on, with `stop: true` to end it.",
        entry.id
    )
}

/// Reads on in a job, or ends it.
async fn look(id: &str, stop: bool, context: &Context) -> Output {
    let Some(entry) = context.jobs.get(id) else {
        let alive: Vec<String> = context
            .jobs
            .alive()
            .into_iter()
            .map(|entry| entry.id)
            .collect();
        let there = if alive.is_empty() {
            "None runs.".to_owned()
        } else {
            format!("These run: {}.", alive.join(", "))
        };
        return Output::error(format!("There is no job `{id}`. {there}"));
    };
    if stop && let Err(why) = entry.job.end().await {
        return Output::error(format!("Job {id}: {why}."));
    }
    let state = match entry.job.status() {
        _ if stop => "stopped, with everything it started".to_owned(),
        None => "still runs".to_owned(),
        Some(Ended::Exited(code)) => format!("ended with exit code {code}"),
        Some(Ended::Signalled(signal)) => format!("was ended by signal {signal}"),
        Some(Ended::Lost(why)) => format!("was lost: {why}"),
    };
    Output::text(format!(
        "{}\n[Job {id} {state}.]",
        shown(&entry.job.output.news())
    ))
}

fn shown(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        "[no output]".to_owned()
    } else {
        text.to_owned()
    }
}

fn start(id: String, command: &str, order: &Order, context: &Context) -> io::Result<Held> {
    context.made_temp()?;
    context.jobs.start(id, command, order)
}

/// The files in which a command leaves its folder and variables for the next one.
struct Left {
    folder: PathBuf,
    variables: PathBuf,
}

impl Left {
    fn of(temp: &Path, id: &str) -> Self {
        Self {
            folder: temp.join(format!(".{id}.folder")),
            variables: temp.join(format!(".{id}.variables")),
        }
    }
}

/// The next command starts where this one ended, unless that is outside the fence.
fn take_over(left: &Left, context: &Context) -> Vec<String> {
    use std::os::unix::ffi::OsStringExt;
    if left.variables.exists() {
        context.shell.adopt(left.variables.clone());
    }
    let Ok(mut folder) = std::fs::read(&left.folder) else {
        return Vec::new();
    };
    drop(std::fs::remove_file(&left.folder));
    folder.pop();
    let folder = PathBuf::from(OsString::from_vec(folder));
    match context.fence.locate(&context.cwd.get(), &folder) {
        Ok(fenced) => {
            context.cwd.set(fenced.path());
            Vec::new()
        }
        Err(_) => vec![format!(
            "The folder {} is outside the ones to work in; the next command starts in {} again.",
            folder.display(),
            context.cwd.get().display()
        )],
    }
}

/// Takes over what the last command exported, runs this one, and leaves its folder and variables.
/// The job's own marker and folder for temporary files are not handed on.
const WRAPPER: &str = r#"
gaffer_job=$GAFFER_JOB gaffer_temp=$TMPDIR
if [ -r "$1" ]; then . "$1" 2>/dev/null; fi
GAFFER_JOB=$gaffer_job TMPDIR=$gaffer_temp
export GAFFER_JOB TMPDIR
gaffer_variables=$2 gaffer_folder=$3 gaffer_command=$4
set --
gaffer_leave() {
    gaffer_status=$?
    pwd > "$gaffer_folder" 2>/dev/null
    export -p > "$gaffer_variables" 2>/dev/null
    exit $gaffer_status
}
trap gaffer_leave EXIT
eval "$gaffer_command"
"#;

/// Programs that would wait for a person are told that there is none.
const UNATTENDED: [(&str, &str); 7] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("NO_COLOR", "1"),
];

fn order(
    command: &str,
    id: &str,
    left: &Left,
    sandbox: Option<&Sandbox>,
    context: &Context,
) -> Order {
    let state = context.shell.state().unwrap_or_default();
    let mut line: Vec<OsString> = shell().map(OsString::from).into();
    line.extend(["-c".into(), WRAPPER.into(), "bash".into(), state.into()]);
    line.extend([
        left.variables.clone().into(),
        left.folder.clone().into(),
        command.into(),
    ]);
    if let Some(sandbox) = sandbox {
        line = sandbox.binding.wrap(&sandbox.program, line);
    }
    let mut env: Vec<(String, OsString)> = UNATTENDED
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into();
    env.push(("TMPDIR".to_owned(), context.temp.clone().into()));
    Order {
        command: line,
        cwd: context.cwd.get(),
        hidden: context.hidden.to_vec(),
        env,
        keeper: Keeper {
            keep: KEEP,
            file: Some(file(id, context)),
            file_cap: FILE_CAP,
            floor: context.floor.clone(),
        },
        unmade: sandbox.map_or_else(Vec::new, |sandbox| sandbox.binding.unmade.clone()),
    }
}

fn file(id: &str, context: &Context) -> PathBuf {
    context.spill.join(format!("{id}.txt"))
}

/// Bash where there is one; the commands that models write seldom need more than sh.
fn shell() -> [&'static str; 1] {
    const BASH: &str = "/bin/bash";
    [if Path::new(BASH).exists() { BASH } else { "sh" }]
}
