//! `cargo xtask fuzz`: builds libFuzzer's program for the targets in `fuzz/`, runs it on each of
//! them, and makes what it finds small. Nothing has to be installed but a C++ compiler: the flags
//! that put coverage counters into the code are there in any rustc.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Invocation, root};
use crate::{say, system};

/// Inputs that are committed, a folder for each target.
const CORPUS: &str = "fuzz/corpus";
/// Inputs that once failed, likewise.
const CRASHES: &str = "fuzz/crashes";
/// Everything that is built or collected here; code with counters must not mix with other code.
const OUT: &str = "target/fuzz";

/// Counters at every edge and a look at every comparison, which libFuzzer steers by.
const COUNTERS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// How long an input that failed is made smaller.
const SHRINKING: &str = "-max_total_time=20";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// All where it is empty.
    targets: Vec<String>,
    seconds: u32,
    /// Whether inputs that reached new code are added to the corpus.
    keep: bool,
    list: bool,
}

impl Order {
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut order = Self {
            targets: Vec::new(),
            seconds: 60,
            keep: false,
            list: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => order.list = true,
                "--keep" => order.keep = true,
                "--seconds" => {
                    let number = words.next().and_then(|number| number.parse().ok());
                    order.seconds = number
                        .filter(|seconds| *seconds > 0)
                        .ok_or("fuzz: --seconds wants a number")?;
                }
                option if option.starts_with('-') => {
                    return Err(format!("fuzz: unknown option {option}"));
                }
                name if known()?.contains(name) => order.targets.push(name.to_owned()),
                name => {
                    let known: Vec<String> = known()?.into_iter().collect();
                    let known = known.join(", ");
                    return Err(format!("fuzz: no target {name}; there are {known}"));
                }
            }
        }
        if order.targets.is_empty() {
            order.targets = known()?.into_iter().collect();
        }
        Ok(order)
    }
}

/// The targets: each has a corpus, which a test of `fuzz/` makes sure of.
fn known() -> Result<BTreeSet<String>, String> {
    let names = names(&root().join(CORPUS));
    match names.is_empty() {
        true => Err(format!("fuzz: there is nothing in {CORPUS}")),
        false => Ok(names),
    }
}

/// The names in a folder; none where it is not there.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

pub(crate) fn run(order: &Order) -> Result<(), String> {
    if order.list {
        for name in &order.targets {
            let inputs = names(&root().join(CORPUS).join(name)).len();
            let once = names(&root().join(CRASHES).join(name)).len();
            say::out(&format!("{name}: {inputs} inputs, {once} once failed"));
        }
        return Ok(());
    }
    system::check_for_fuzzing()?;
    say::note("== build, with coverage counters");
    let program = build()?;
    let mut failed = Vec::new();
    for name in &order.targets {
        let target = Target::new(name, &program)?;
        say::note(&format!("== {name}, {} s", order.seconds));
        if let Err(why) = target.fuzz(order.seconds) {
            say::note(&why);
            failed.push(name.as_str());
        } else if order.keep {
            target.keep()?;
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(format!("something was found in: {}", names.join(", "))),
    }
}

/// Builds libFuzzer's program; gives back where it is.
fn build() -> Result<String, String> {
    let version = Invocation::new("rustc", &["-vV"]).output()?;
    let version = String::from_utf8_lossy(&version).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    // With a target that is named, flags are not for build scripts and macros: those are linked
    // without libFuzzer, so counters in them would have nobody to go to.
    let arguments = [
        "build",
        "--quiet",
        "--locked",
        "--package=gaffer-fuzz",
        "--features=libfuzzer",
        "--profile=fuzz",
        "--target-dir",
        OUT,
        "--target",
        host,
    ];
    Invocation::cargo(&arguments)
        .with("RUSTFLAGS", COUNTERS)
        .run()?;
    let program = root().join(OUT).join(host).join("fuzz/gaffer-fuzz");
    Ok(program.display().to_string())
}

struct Target<'a> {
    name: &'a str,
    program: &'a str,
    /// What reached new code in this and in earlier runs.
    collected: PathBuf,
    corpus: PathBuf,
    crashes: PathBuf,
    log: PathBuf,
}

impl<'a> Target<'a> {
    fn new(name: &'a str, program: &'a str) -> Result<Self, String> {
        let target = Self {
            name,
            program,
            collected: root().join(OUT).join("collected").join(name),
            corpus: root().join(CORPUS).join(name),
            crashes: root().join(CRASHES).join(name),
            log: root().join(OUT).join(format!("{name}.log")),
        };
        for folder in [&target.collected, &target.crashes] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(target)
    }

    fn invocation(&self, options: &[&str], inputs: &[&Path]) -> Invocation {
        let inputs: Vec<String> = inputs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        Invocation::new(self.program, options)
            .and(&inputs)
            .with("GAFFER_FUZZ_TARGET", self.name)
    }

    fn fuzz(&self, seconds: u32) -> Result<(), String> {
        let before = names(&self.crashes);
        let time = format!("-max_total_time={seconds}");
        let prefix = format!("-artifact_prefix={}/", self.crashes.display());
        let dictionary = root().join("fuzz").join(format!("{}.dict", self.name));
        let dictionary = format!("-dict={}", dictionary.display());
        let options = [
            &time,
            &prefix,
            &dictionary,
            "-max_len=512",
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-detect_leaks=0",
            "-print_final_stats=1",
        ];
        let folders = [
            self.collected.as_path(),
            self.corpus.as_path(),
            self.crashes.as_path(),
        ];
        let ended = self
            .invocation(&options, &folders)
            .run_into(&self.log, || say::note(&format!("   {}", self.news())));
        say::note(&format!("   {}", self.news()));
        let found: Vec<String> = names(&self.crashes).difference(&before).cloned().collect();
        // An empty folder is no news, and git would not keep it anyway.
        drop(fs::remove_dir(&self.crashes));
        let Err(why) = ended else { return Ok(()) };
        if found.is_empty() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let repeat = self.repeat();
            return Err(format!(
                "{log}\n{why}\nno new input is to blame; try those that are kept: {repeat}"
            ));
        }
        let reports = found
            .iter()
            .map(|file| self.report(&self.crashes.join(file)));
        Err(reports.collect::<Vec<_>>().join("\n"))
    }

    /// The last line of libFuzzer's that says how far it is.
    fn news(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let mut lines = log.lines().rev();
        let counts = |line: &str| {
            let number = line.strip_prefix('#');
            number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let last = lines.find(|line| counts(line)).unwrap_or("not begun yet");
        last.replace('\t', " ")
    }

    /// Makes an input that failed smaller, and says all about it.
    fn report(&self, file: &Path) -> String {
        let small = self.collected.with_extension("small");
        let exact = format!("-exact_artifact_path={}", small.display());
        let options = ["-minimize_crash=1", SHRINKING, "-timeout=10", &exact];
        let shrinking = self.invocation(&options, &[file]);
        let log = self.log.with_extension("small.log");
        // Where it cannot be made smaller, the file itself stays what was found.
        if shrinking.run_into(&log, || {}).is_ok() && small.is_file() {
            drop(fs::rename(&small, file));
        }
        let again = self.log.with_extension("again.log");
        drop(self.invocation(&[], &[file]).run_into(&again, || {}));
        let said = fs::read_to_string(again).unwrap_or_default();
        let input = fs::read(file).unwrap_or_default();
        let shown = file.strip_prefix(root()).unwrap_or(file);
        format!(
            "{}\nthe input: {}\nit is kept in: {}\nrepeat it with: {}",
            panicked(&said),
            input.escape_ascii(),
            shown.display(),
            self.repeat()
        )
    }

    fn repeat(&self) -> String {
        let name = self.name;
        format!("cargo test -p gaffer-fuzz --test replay -- {name}")
    }

    /// Adds to the corpus what reaches code that it does not.
    fn keep(&self) -> Result<(), String> {
        let before = names(&self.corpus).len();
        let folders = [self.corpus.as_path(), self.collected.as_path()];
        let log = self.log.with_extension("keep.log");
        // As few as reach all the code; how often each piece of it runs would keep ten times more.
        let options = ["-set_cover_merge=1", "-use_counters=0", "-timeout=10"];
        self.invocation(&options, &folders).run_into(&log, || {})?;
        let added = names(&self.corpus).len() - before;
        say::note(&format!(
            "   added {added} inputs to {CORPUS}/{}",
            self.name
        ));
        Ok(())
    }
}

/// What a panic said, from all that was printed; everything where there was none.
fn panicked(said: &str) -> &str {
    let Some(start) = said.find("thread ") else {
        return said;
    };
    let end = said
        .find("\nnote: run with")
        .or(said.find("\nstack backtrace"));
    said.get(start..end.unwrap_or(said.len())).unwrap_or(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(words: &[&str]) -> Result<Order, String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Order::read(&words)
    }

    #[test]
    fn without_names_all_targets_are_tried_for_a_minute() {
        let order = order(&[]).unwrap();
        assert_eq!((order.seconds, order.keep, order.list), (60, false, false));
        for name in ["splitter", "rules", "fence"] {
            assert!(order.targets.iter().any(|target| target == name), "{name}");
        }
    }

    #[test]
    fn orders_are_read() {
        let order = order(&["fence", "--seconds", "5", "--keep"]).unwrap();
        assert_eq!((order.seconds, order.keep), (5, true));
        assert_eq!(order.targets, ["fence"]);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let why = |words: &[&str]| order(words).unwrap_err();
        assert!(why(&["fences"]).starts_with("fuzz: no target fences; there are fence,"));
        assert_eq!(why(&["--fast"]), "fuzz: unknown option --fast");
        for words in [&["--seconds"][..], &["--seconds", "0"]] {
            assert_eq!(why(words), "fuzz: --seconds wants a number");
        }
    }

    #[test]
    fn a_panic_is_found_in_what_was_printed() {
        let said = "INFO: a\n\nthread 'x' panicked at y:\nz\nnote: run with `RUST_BACKTRACE=1`\nb";
        assert_eq!(panicked(said), "thread 'x' panicked at y:\nz");
        assert_eq!(panicked("out of memory"), "out of memory");
    }
}
