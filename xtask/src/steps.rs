//! The steps of `cargo xtask test`: which there are, in which order, and how a run reports them.

use std::time::Instant;

use crate::process::Invocation;
use crate::{say, system, tidy};

struct Step {
    name: &'static str,
    /// What to type to run this step alone.
    repeat: String,
    action: Action,
}

enum Action {
    Here(fn() -> Result<(), String>),
    Run(Invocation),
}

/// Runs all steps, or only the tests whose names contain one of `names`.
pub(crate) fn test(names: &[String]) -> Result<(), String> {
    let has_nextest = Invocation::cargo(&["nextest", "--version"]).works();
    run(&plan(names, has_nextest))
}

fn plan(names: &[String], has_nextest: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    if names.is_empty() {
        steps.push(here("system", "cargo xtask test", system::check));
        steps.push(cargo("fmt", &["fmt", "--all", "--check"], &[]));
        let clippy = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ];
        steps.push(cargo("clippy", &clippy, &[]));
        steps.push(here("tidy", "cargo xtask tidy", tidy::run));
    }
    // Cargo itself takes one name at most, the test programs behind `--` take any number.
    let mut behind = Vec::new();
    if !names.is_empty() {
        behind.push("--".to_owned());
        behind.extend_from_slice(names);
    }
    if has_nextest {
        // nextest does not know documentation tests. They come first, so that what is read last is
        // the count of all the others.
        let doc = ["test", "--doc", "--workspace", "--locked"];
        steps.push(cargo("doc tests", &doc, &behind));
        if names.is_empty() {
            let alone = ["nextest", "run"];
            steps.push(cargo("tests without the coordinator", &alone, &without()));
        }
        let nextest = ["nextest", "run", "--workspace", "--locked"];
        steps.push(cargo("tests", &nextest, names));
    } else {
        if names.is_empty() {
            let alone = ["test"];
            steps.push(cargo("tests without the coordinator", &alone, &without()));
        }
        let all = ["test", "--workspace", "--locked"];
        steps.push(cargo("tests", &all, &behind));
    }
    steps
}

/// The build that has no coordinator is a build of its own.
fn without() -> Vec<String> {
    let words = ["--package", "gaffer", "--no-default-features", "--locked"];
    words.map(str::to_owned).to_vec()
}

fn here(name: &'static str, repeat: &str, check: fn() -> Result<(), String>) -> Step {
    Step {
        name,
        repeat: repeat.to_owned(),
        action: Action::Here(check),
    }
}

fn cargo(name: &'static str, arguments: &[&str], more: &[String]) -> Step {
    let invocation = Invocation::cargo(arguments).and(more);
    Step {
        name,
        repeat: invocation.to_string(),
        action: Action::Run(invocation),
    }
}

/// Stops at the first failure: what comes after it would only bury it.
fn run(steps: &[Step]) -> Result<(), String> {
    for step in steps {
        let name = step.name;
        say::note(&format!("== {name}"));
        let begin = Instant::now();
        let result = match &step.action {
            Action::Here(check) => check(),
            Action::Run(invocation) => invocation.run(),
        };
        let seconds = begin.elapsed().as_secs_f64();
        if let Err(why) = result {
            let repeat = &step.repeat;
            return Err(format!(
                "step {name} failed after {seconds:.1} s: {why}\nrepeat it with: {repeat}"
            ));
        }
        say::note(&format!("   {name}: {seconds:.1} s"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(names: &[&str], has_nextest: bool) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        plan(&names, has_nextest)
            .into_iter()
            .map(|step| step.repeat)
            .collect()
    }

    #[test]
    fn without_names_every_step_runs() {
        assert_eq!(
            lines(&[], true),
            [
                "cargo xtask test",
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-targets --locked -- -D warnings",
                "cargo xtask tidy",
                "cargo test --doc --workspace --locked",
                "cargo nextest run --package gaffer --no-default-features --locked",
                "cargo nextest run --workspace --locked",
            ]
        );
    }

    #[test]
    fn with_names_only_those_tests_run() {
        assert_eq!(
            lines(&["one", "two"], true),
            [
                "cargo test --doc --workspace --locked -- one two",
                "cargo nextest run --workspace --locked one two",
            ]
        );
        assert_eq!(
            lines(&["one", "two"], false),
            ["cargo test --workspace --locked -- one two"]
        );
    }

    #[test]
    fn the_first_failure_ends_the_run_with_its_remedy() {
        let steps = [
            here("good", "cargo good", || Ok(())),
            here("bad", "cargo bad", || Err("it rained".to_owned())),
            here("worse", "cargo worse", || Err("it poured".to_owned())),
        ];
        let why = run(&steps).err().unwrap_or_default();
        assert!(why.starts_with("step bad failed after "), "{why}");
        assert!(
            why.ends_with(": it rained\nrepeat it with: cargo bad"),
            "{why}"
        );
    }
}
