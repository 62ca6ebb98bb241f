//! `gaffer demo`: the product's real job on a small project, with a scripted model.

use crate::args::{Common, DemoArgs};
use crate::exit::{Exit, Usage};
use crate::gear::Gear;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::model::Chosen;
use crate::policy::policy;
use crate::run::{Job, run};
use crate::settings::Settings;
use crate::settings::merge::Merged;
use crate::system::{self, SystemEntropy};
use crate::view::View;
use crate::view::lines::Lines;
use crate::view::progress::Progress;
use anyhow::{Context, bail};
use gaffer_model::price::Price;
use gaffer_model::provider::{Deadlines, Kind};
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::script::{Script, Scripted};
use gaffer_model::{Gate, Prices};
use gaffer_protocol::{End, Entropy, SessionId};
use gaffer_store::Home;
use gaffer_workspace::process::{self, Bounds, How, Plan};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const PROMPT: &str = "`sh check.sh` fails. Find out why, mend the cause and commit.";
/// What the models answer, and how many commits come of it.
#[cfg(feature = "coordinator")]
const SCRIPT: (&str, &str) = (include_str!("../demo/script.yaml"), "HEAD~2");
#[cfg(not(feature = "coordinator"))]
const SCRIPT: (&str, &str) = (include_str!("../demo/alone.yaml"), "HEAD~1");
const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/project/README.md")),
    ("src/total.sh", include_str!("../demo/project/src/total.sh")),
    ("check.sh", include_str!("../demo/project/check.sh")),
];

pub(crate) fn demo(args: &DemoArgs) -> anyhow::Result<Exit> {
    let home = system::home().unwrap_or_else(|| std::env::temp_dir().join(".gaffer"));
    let folder = new_folder(args.dir.as_deref())?;
    say(&format!(
        "A small project with a bug, in {}",
        folder.display()
    ))?;
    create_project(&folder)?;
    let (passes, output) = check(&folder)?;
    if passes {
        bail!("the demo's check passes before anything was done");
    }
    say(&format!("\n$ sh check.sh\n{output}\nThe task: {PROMPT}\n"))?;

    let view: Box<dyn View> = if system::stderr_is_terminal() {
        Box::new(Progress::new(false))
    } else {
        Box::new(Lines::default())
    };
    let job = Job {
        form: None,
        prompt: Some(PROMPT.to_owned()),
        cwd: folder.clone(),
        home: Home::new(home),
        session: SessionId::random(&SystemEntropy),
        old: None,
        mode: Mode::DEFAULT,
        max_turns: None,
        limits: limits(&folder)?,
        gear: Gear::bare(&folder),
        chosen: Arc::new(scripted()?),
        common: Common::default(),
        settings: Settings::default(),
    };
    let done = run(job, Some(view))?;
    let base = SCRIPT.1;
    say(&format!("\n{}\n\n$ git diff {base}", done.outcome.result))?;
    say(git(&folder, &["diff", base])?.trim_end())?;
    let (passes, output) = check(&folder)?;
    say(&format!(
        "\n$ sh check.sh\n{output}\nThe transcript: {}",
        done.transcript.display()
    ))?;
    if done.outcome.end != End::Done {
        bail!("the crew did not finish: {}", done.outcome.end);
    }
    if !passes {
        bail!("the check still fails");
    }
    Ok(Exit::Done)
}

/// The same limits that an agent has when nobody has set any.
fn limits(folder: &Path) -> Result<Limits, Usage> {
    let (common, settings) = (Common::default(), Settings::default());
    let policy = policy(&common, &settings, &Merged::default(), (folder, true))?;
    Ok(Limits::choose(&common, &settings.sandbox)?.under(policy))
}

fn say(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot print")
}

/// A folder that is ours alone: what is there already is never written over.
fn new_folder(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => {
            let name = format!("gaffer-demo-{:08x}", SystemEntropy.next() as u32);
            std::env::temp_dir().join(name)
        }
    };
    let is_taken = match std::fs::read_dir(&path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    };
    if is_taken {
        return Err(Usage::new(format!("--dir {}: not an empty folder", path.display())).into());
    }
    let create = || format!("cannot create {}", path.display());
    std::fs::create_dir_all(&path).with_context(create)?;
    path.canonicalize().with_context(create)
}

fn create_project(folder: &Path) -> anyhow::Result<()> {
    for (name, text) in PROJECT {
        let path = folder.join(name);
        let written = std::fs::create_dir_all(path.parent().unwrap_or(folder))
            .and_then(|()| std::fs::write(&path, text));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    git(folder, &["init", "-q"])?;
    // The commits here are nobody's: the user's own name does not belong on them.
    git(folder, &["config", "user.name", "gaffer demo"])?;
    git(folder, &["config", "user.email", "demo@localhost"])?;
    git(folder, &["config", "commit.gpgsign", "false"])?;
    git(folder, &["add", "."])?;
    git(folder, &["commit", "-q", "-m", "A till"])?;
    Ok(())
}

fn git(folder: &Path, args: &[&str]) -> anyhow::Result<String> {
    let (passes, output) = command(folder, "git", args)?;
    if !passes {
        bail!("git {}: {output}", args.join(" "));
    }
    Ok(output)
}

fn check(folder: &Path) -> anyhow::Result<(bool, String)> {
    command(folder, "sh", &["check.sh"])
}

fn command(folder: &Path, program: &str, args: &[&str]) -> anyhow::Result<(bool, String)> {
    let plan = Plan::new(program, folder).args(args);
    let bounds = Bounds {
        time: Duration::from_secs(60),
        keep: 100_000,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let finished = runtime.block_on(process::run(&plan, bounds));
    let finished = finished.with_context(|| format!("cannot run {program}; is it installed?"))?;
    let passes = matches!(finished.how, How::Exited(status) if status.success());
    Ok((passes, finished.output.text()))
}

fn scripted() -> anyhow::Result<Chosen> {
    let script = Script::parse(SCRIPT.0).context("the demo's own script")?;
    let model = Arc::new(Scripted::new(script, Deadlines::default()));
    // Nobody is paid for what the script says.
    let free = Price {
        input: Some(0.0),
        output: Some(0.0),
        ..Price::default()
    };
    // All workers may think at once.
    let (gate, patience) = (Gate::new(16), Patience::default());
    let entropy = Arc::new(SystemEntropy);
    let retrying = Retrying::new(model.clone(), gate.clone(), patience, entropy);
    Ok(Chosen {
        model: Arc::new(retrying),
        recorder: None,
        scripted: Some(model),
        kind: Kind::Scripted,
        name: "a scripted model".to_owned(),
        key_source: "none".to_owned(),
        gate,
        prices: Arc::new(Prices::new(&BTreeMap::from([(
            "scripted".to_owned(),
            free,
        )]))),
    })
}
