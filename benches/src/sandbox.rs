//! `sandbox`: what the sandbox adds to the start of a command.

use crate::caller::Caller;
use crate::gaffer;
use crate::paired::Paired;
use crate::report::{Report, least_and_middle, ms};
use anyhow::ensure;
use gaffer_tools::bash::Bash;
use gaffer_tools::{Sandbox, Tool, erase};
use gaffer_workspace::sandbox::{Binding, Level, kept, unmade};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const PAIRS: usize = 51;
const MOST_MICROS: i128 = 15_000;

pub(crate) fn run() -> anyhow::Result<Report> {
    let binary = gaffer::binary()?;
    let level = Level::find(&binary);
    ensure!(
        level != Level::Rules,
        "this system has no sandbox (Landlock, Linux 5.13 or newer)"
    );
    let folder = tempfile::tempdir()?;
    let [work, own, outside] = ["work", "own", "outside"].map(|name| folder.path().join(name));
    for folder in [&work, &own, &outside] {
        std::fs::create_dir(folder)?;
    }
    // A checkout has what must stay as it is.
    std::fs::create_dir_all(work.join(".git/hooks"))?;
    std::fs::write(work.join(".git/config"), "")?;
    let bash = erase(Bash);
    let free = Caller::new(&work, &own, &binary)?;
    let mut bound = Caller::new(&work, &own, &binary)?;
    bound.context.sandbox = Some(Sandbox {
        program: binary,
        binding: Binding {
            kept: kept(std::slice::from_ref(&work), std::slice::from_ref(&own), &[]),
            means: level.means().cloned(),
            unmade: unmade(std::slice::from_ref(&work), &[]),
            write: vec![work, own],
            network: false,
        },
        may_leave: false,
    });
    check(bash.as_ref(), &free, &bound, &outside)?;
    let input = json!({"command": "true"});
    let run =
        |caller: &Caller| -> anyhow::Result<Duration> { Ok(caller.call(bash.as_ref(), &input)?.1) };
    let paired = Paired::measure(PAIRS, || run(&bound), || run(&free))?;

    let (least_bound, middle_bound) = least_and_middle(&paired.ours);
    let (least_free, middle_free) = least_and_middle(&paired.theirs);
    let difference = paired.difference();
    let mut report = Report::default();
    let shown = format!("Bash with `true`, {PAIRS} pairs");
    report.row([&shown, "least", "median"]);
    report.row(["in the sandbox", &ms(least_bound), &ms(middle_bound)]);
    report.row(["without it", &ms(least_free), &ms(middle_free)]);
    let shown = format!("{:.3} ms", difference as f64 / 1e3);
    report.row(["median of the differences", "", &shown]);
    report.time_goal(
        "the sandbox adds under 15 ms (median of the pairs)",
        difference < MOST_MICROS,
    );
    Ok(report)
}

/// A sandbox that binds nothing would cost nothing.
fn check(bash: &dyn Tool, free: &Caller, bound: &Caller, outside: &Path) -> anyhow::Result<()> {
    let input = json!({"command": format!("echo x > '{}/file'", outside.display())});
    ensure!(
        bound.call(bash, &input).is_err(),
        "the sandbox does not bind"
    );
    free.call(bash, &input)?;
    Ok(())
}
