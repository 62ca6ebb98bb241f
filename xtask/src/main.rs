//! The chores of the workspace, run as `cargo xtask COMMAND`: here the arguments, the work elsewhere.

mod cast;
mod film;
mod fuzz;
mod process;
mod record;
mod say;
mod schema;
mod screen;
mod screenshots;
mod steps;
mod system;
mod tidy;

use std::process::ExitCode;

use process::Invocation;

const HELP: &str = "\
The chores of this workspace.

Usage: cargo xtask COMMAND [ARGUMENT…]

Commands:
  test [NAME…]      Everything a change has to pass: system packages, fmt, clippy, tidy, tests.
                    With names: only the tests whose names contain one of them.
  tidy              Checks of the tree that no compiler makes; findings as `path:line: what`.
  bench [NAME…]     Runs the benchmarks in release mode; all arguments go to them.
  fuzz [TARGET…]    Tries made-up inputs for a while; what fails is kept in fuzz/crashes.
                    --seconds N for each target (60), --keep adds inputs that reached new code to
                    fuzz/corpus, which `test` replays; --list shows the targets.
  schema [--check]  Writes docs/script.schema.json; with --check only says whether it is stale.
  record            Records `gaffer demo` in a terminal as docs/demo.cast, and draws docs/demo.svg.
                    --draw only draws what is recorded.
  screenshots       Makes docs/pictures: an exported session as a browser shows it.
  help              This text.

Examples:
  cargo xtask test                 before each commit
  cargo xtask test merge_conflict  only the tests with that in their name
  cargo xtask bench --help         what the benchmarks accept
  cargo xtask fuzz fence --seconds 600
                                   ten minutes of paths against the fence
  cargo xtask schema --check       in CI, after a change of the script types

Exit codes: 0 all well, 1 something failed or was found, 2 the arguments make no sense.
";

/// Why a command ended badly; which of the two decides the exit code.
#[derive(Debug)]
enum Failure {
    Usage(String),
    Failed(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(why)) => {
            say::note(&format!("xtask: {why}"));
            ExitCode::from(1)
        }
        Err(Failure::Usage(why)) => {
            say::note(&format!("xtask: {why}\n\n{}", HELP.trim_end()));
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Failure::Usage("no command given".to_owned()));
    };
    // The benchmarks have a help of their own, so their arguments stay untouched.
    let wants_help = command != "bench" && rest.iter().any(|word| word == "--help" || word == "-h");
    if wants_help || matches!(command.as_str(), "help" | "--help" | "-h") {
        say::out(HELP.trim_end());
        return Ok(());
    }
    match (command.as_str(), rest) {
        ("test", names) => match names.iter().find(|name| name.starts_with('-')) {
            Some(option) => Err(Failure::Usage(format!("test: unknown option {option}"))),
            None => steps::test(names).map_err(Failure::Failed),
        },
        ("tidy", []) => tidy::run().map_err(Failure::Failed),
        ("bench", names) => bench(names).map_err(Failure::Failed),
        ("fuzz", words) => {
            let order = fuzz::Order::read(words).map_err(Failure::Usage)?;
            fuzz::run(&order).map_err(Failure::Failed)
        }
        ("schema", []) => schema::write().map_err(Failure::Failed),
        ("schema", [check]) if check == "--check" => schema::check().map_err(Failure::Failed),
        ("record", []) => record::record().map_err(Failure::Failed),
        ("record", [draw]) if draw == "--draw" => record::draw().map_err(Failure::Failed),
        ("screenshots", []) => screenshots::make().map_err(Failure::Failed),
        ("tidy" | "schema" | "record" | "screenshots", _) => {
            let rest = rest.join(" ");
            Err(Failure::Usage(format!("{command}: cannot take {rest}")))
        }
        (unknown, _) => Err(Failure::Usage(format!("unknown command {unknown}"))),
    }
}

fn bench(names: &[String]) -> Result<(), String> {
    Invocation::cargo(&["run", "--release", "-q", "-p", "gaffer-benches", "--"])
        .and(names)
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(arguments: &[&str]) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        match dispatch(&arguments) {
            Err(Failure::Usage(why)) => Some(why),
            Err(Failure::Failed(_)) | Ok(()) => None,
        }
    }

    #[test]
    fn nonsense_is_refused_before_anything_runs() {
        assert_eq!(usage(&[]).as_deref(), Some("no command given"));
        assert_eq!(usage(&["fly"]).as_deref(), Some("unknown command fly"));
        assert_eq!(
            usage(&["test", "--fast"]).as_deref(),
            Some("test: unknown option --fast")
        );
        assert_eq!(
            usage(&["tidy", "crates"]).as_deref(),
            Some("tidy: cannot take crates")
        );
        assert_eq!(
            usage(&["schema", "--chekc"]).as_deref(),
            Some("schema: cannot take --chekc")
        );
        assert_eq!(
            usage(&["record", "--fast"]).as_deref(),
            Some("record: cannot take --fast")
        );
        assert_eq!(
            usage(&["fuzz", "--seconds", "soon"]).as_deref(),
            Some("fuzz: --seconds wants a number")
        );
    }

    #[test]
    fn help_is_no_failure() {
        for arguments in [&["help"][..], &["--help"], &["test", "-h"]] {
            assert_eq!(usage(arguments), None);
        }
    }
}
