//! What gaffer costs, measured: `cargo xtask bench [NAME…]`. Here the names, the work elsewhere.

mod agent;
mod alive;
mod allocations;
mod append;
mod beside;
mod cache;
mod caller;
mod callgrind;
mod content;
mod crew;
mod crowd;
mod edit;
mod events;
mod finished;
mod flat;
mod fold;
mod gaffer;
mod growth;
mod idle;
mod machine;
mod options;
mod paired;
mod past;
mod peers;
mod picture;
mod process;
mod reach;
mod read;
mod report;
mod results;
mod resume;
mod sandbox;
mod say;
mod search;
mod server;
mod soak;
mod start;
mod stream;
mod tree;
mod turns;
mod wake;

use anyhow::Context;
use report::Report;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn() -> anyhow::Result<Report>,
}

const BENCHES: [Bench; 20] = [
    Bench {
        name: "start",
        about: "from exec of the binary to its first request, and its memory",
        run: start::run,
    },
    Bench {
        name: "turns",
        about: "500 turns of the binary against a server without delay",
        run: turns::run,
    },
    Bench {
        name: "flat",
        about: "whether the last hundred of 500 turns costs what the first cost",
        run: flat::run,
    },
    Bench {
        name: "beside",
        about: "whether a turn costs the same beside many other workers",
        run: beside::run,
    },
    Bench {
        name: "idle",
        about: "what a session costs that waits for its model, alone and with 100 workers",
        run: idle::run,
    },
    Bench {
        name: "stream",
        about: "an answer of 5 MB in small deltas",
        run: stream::run,
    },
    Bench {
        name: "search",
        about: "Grep and Glob against rg on a tree of 100,000 files",
        run: search::run,
    },
    Bench {
        name: "edit",
        about: "Edit of a file of 10 MB",
        run: edit::run,
    },
    Bench {
        name: "read",
        about: "Read in the middle of a file of 1 GB, and its memory",
        run: read::run,
    },
    Bench {
        name: "sandbox",
        about: "what the sandbox adds to the start of a command",
        run: sandbox::run,
    },
    Bench {
        name: "crew",
        about: "10 to 10,000 workers at once, with a model that takes 100 ms",
        run: crew::run,
    },
    Bench {
        name: "alive",
        about: "100 to 10,000 workers alive at once, with a model that takes 2 s: memory and files",
        run: alive::run,
    },
    Bench {
        name: "finished",
        about: "what a finished worker leaves in memory",
        run: finished::run,
    },
    Bench {
        name: "wake",
        about: "from a worker's end to the coordinator's next request",
        run: wake::run,
    },
    Bench {
        name: "cache",
        about: "what the input of ten workers costs, and a worker's fixed prefix",
        run: cache::run,
    },
    Bench {
        name: "resume",
        about: "a session of 1000 agents and 500 MB that goes on after a kill",
        run: resume::run,
    },
    Bench {
        name: "append",
        about: "records of 100 workers, and ends that are on the disk, against its own sync",
        run: append::run,
    },
    Bench {
        name: "fold",
        about: "transcripts of 1, 10 and 100 MB read back",
        run: fold::run,
    },
    Bench {
        name: "soak",
        about: "32 workers at a time with large outputs, 200 ended: memory over the run",
        run: soak::run,
    },
    Bench {
        name: "peers",
        about: "other agent programs that are installed, in the same small session",
        run: peers::run,
    },
];

const HELP: &str = "\
Usage: cargo xtask bench [NAME…]

Without names all of them run. --list shows the names. What was measured is written to
benches/results.json, to the table in benches/README.md and to benches/pictures.
--try measures little, in a build of any kind, and writes to target/bench/try instead.
crew and alive take --workers N for one size alone, alive takes --delay MS (2000);
soak takes --finished N (200) and --picture FILE (target/bench/soak.svg).
Exit codes: 0 all goals hold, 1 one is missed or a bench could not run, 2 the arguments make no
sense. Goals on time are shown but do not decide: another program on the machine can break them.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some((&first, rest)) = words.split_first()
        && first.starts_with("__")
    {
        return ended(part(first, rest));
    }
    match chosen(&options::without(&words)) {
        Ok(Chosen::Help) => say::out(HELP.trim_end()),
        Ok(Chosen::List) => {
            for bench in &BENCHES {
                say::out(&format!("{:<10}{}", bench.name, bench.about));
            }
        }
        Ok(Chosen::Run(benches)) => return run_all(&benches),
        Err(why) => {
            say::note(&format!("bench: {why}\n\n{}", HELP.trim_end()));
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// What this program does as a child of itself.
fn part(name: &str, words: &[&str]) -> anyhow::Result<()> {
    match name {
        "__server" => server::process(words),
        "__crowd" => crowd::process(words),
        "__agent" => agent::process(words),
        "__decode" => stream::process(words),
        "__read" => read::process(words),
        "__past" => past::process(words),
        "__fold" => fold::process(words),
        _ => anyhow::bail!("unknown part {name}"),
    }
}

enum Chosen {
    Help,
    List,
    Run(Vec<&'static Bench>),
}

fn chosen(words: &[&str]) -> Result<Chosen, String> {
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        return Ok(Chosen::Help);
    }
    if words.contains(&"--list") {
        return Ok(Chosen::List);
    }
    let find = |word: &&str| {
        let bench = BENCHES.iter().find(|bench| bench.name == *word);
        bench.ok_or_else(|| format!("unknown name {word}"))
    };
    let named: Vec<_> = words.iter().map(find).collect::<Result<_, _>>()?;
    Ok(Chosen::Run(if named.is_empty() {
        BENCHES.iter().collect()
    } else {
        named
    }))
}

fn run_all(benches: &[&Bench]) -> ExitCode {
    // Figures of a build without optimisation would be believed by somebody.
    if cfg!(debug_assertions) && !options::is_try() {
        say::note("bench: build it with --release, as `cargo xtask bench` does");
        return ExitCode::from(2);
    }
    // The servers of large crews have as many connections.
    gaffer_workspace::handles::raise();
    let date = today();
    let mut results = match results(&date) {
        Ok(results) => results,
        Err(error) => return ended(Err(error)),
    };
    let mut holds = true;
    for bench in benches {
        say::out(&format!("{}: {}", bench.name, bench.about));
        let before = machine::ticks();
        match (bench.run)() {
            Ok(report) => {
                report.print();
                let meanwhile = before.and_then(machine::since);
                if let Some(meanwhile) = meanwhile {
                    say::out(&format!("  {meanwhile}"));
                }
                let shares = meanwhile.map_or(serde_json::Value::Null, machine::Meanwhile::json);
                let version = env!("CARGO_PKG_VERSION");
                let about = json!({"date": date, "version": version, "meanwhile": shares});
                holds &= report.holds();
                if let Err(error) = results.add(bench.name, &report, about) {
                    say::note(&format!("bench: results are not kept: {error:#}"));
                    holds = false;
                }
            }
            Err(error) => {
                say::out(&format!("  not run: {error:#}"));
                holds = false;
            }
        }
        say::out("");
    }
    let order: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
    if let Err(error) = results.write(&order) {
        say::note(&format!("bench: results are not written: {error:#}"));
        holds = false;
    }
    ExitCode::from(u8::from(!holds))
}

/// In the tree, unless it is a try or nobody knows where the tree is.
fn results(date: &str) -> anyhow::Result<results::Results> {
    let published = std::env::var_os("CARGO_MANIFEST_DIR").filter(|_| !options::is_try());
    let folder = match published {
        Some(folder) => folder.into(),
        None => target()?.join("bench/try"),
    };
    results::Results::open(&folder, &machine::Machine::this(), date)
}

/// Where cargo builds.
fn target() -> anyhow::Result<PathBuf> {
    let program = PathBuf::from(process::own(&[])?.get_program());
    let target = program.ancestors().nth(2).context("no target folder")?;
    Ok(target.to_owned())
}

fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis() as u64);
    gaffer_protocol::Timestamp(millis).day()
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::note(&format!("bench: {error:#}"));
            ExitCode::from(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_and_nonsense_is_refused() {
        let names = |words: &[&str]| match chosen(words) {
            Ok(Chosen::Run(benches)) => benches.iter().map(|bench| bench.name).collect(),
            Ok(_) => vec!["other"],
            Err(_) => vec!["refused"],
        };
        let all = [
            "start", "turns", "flat", "beside", "idle", "stream", "search", "edit", "read",
            "sandbox", "crew", "alive", "finished", "wake", "cache", "resume", "append", "fold",
            "soak", "peers",
        ];
        assert_eq!(names(&[]), all);
        assert_eq!(names(&["flat", "start"]), ["flat", "start"]);
        assert_eq!(names(&["--list"]), ["other"]);
        assert_eq!(names(&["fast"]), ["refused"]);
        assert_eq!(names(&["--fast"]), ["refused"]);
    }
}
