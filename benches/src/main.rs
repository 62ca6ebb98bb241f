//! What gaffer costs, measured: `cargo xtask bench [NAME…]`. Here the names, the work elsewhere.

mod agent;
mod allocations;
mod append;
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
mod machine;
mod options;
mod paired;
mod past;
mod picture;
mod process;
mod read;
mod report;
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

use report::Report;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn() -> anyhow::Result<Report>,
}

const BENCHES: [Bench; 16] = [
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
        about: "10, 100 and 1000 workers at once, with a model that takes 100 ms",
        run: crew::run,
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
];

const HELP: &str = "\
Usage: cargo xtask bench [NAME…]

Without names all of them run. --list shows the names.
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
    if cfg!(debug_assertions) {
        say::note("bench: build it with --release, as `cargo xtask bench` does");
        return ExitCode::from(2);
    }
    let mut holds = true;
    for bench in benches {
        say::out(&format!("{}: {}", bench.name, bench.about));
        let before = machine::ticks();
        match (bench.run)() {
            Ok(report) => {
                report.print();
                if let Some(meanwhile) = before.and_then(machine::since) {
                    say::out(&format!("  {meanwhile}"));
                }
                holds &= report.holds();
            }
            Err(error) => {
                say::out(&format!("  not run: {error:#}"));
                holds = false;
            }
        }
        say::out("");
    }
    ExitCode::from(u8::from(!holds))
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
            "start", "turns", "flat", "stream", "search", "edit", "read", "sandbox", "crew",
            "finished", "wake", "cache", "resume", "append", "fold", "soak",
        ];
        assert_eq!(names(&[]), all);
        assert_eq!(names(&["flat", "start"]), ["flat", "start"]);
        assert_eq!(names(&["--list"]), ["other"]);
        assert_eq!(names(&["fast"]), ["refused"]);
        assert_eq!(names(&["--fast"]), ["refused"]);
    }
}
