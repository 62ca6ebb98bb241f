//! `search`: Grep and Glob on a tree of 100,000 files, each in turn with `rg`.

use crate::caller::Caller;
use crate::paired::Paired;
use crate::process::command;
use crate::report::{Report, count, least_and_middle, ms};
use crate::{options, reach, say, tree};
use anyhow::{Context, bail, ensure};
use gaffer_tools::glob::Glob;
use gaffer_tools::grep::Grep;
use gaffer_tools::{Tool, erase};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAIRS: usize = 9;
const STARTS: usize = 15;
const MOST_RATIO: f64 = 1.15;

/// One thing to look for, as both are asked for it.
struct Row {
    name: &'static str,
    tool: &'static str,
    input: Value,
    program: &'static str,
    args: &'static [&'static str],
}

fn rows() -> Vec<Row> {
    let grep = |name, input, args| Row {
        name,
        tool: "Grep",
        input,
        program: "rg",
        args,
    };
    let glob = |name, pattern: &str, program, args| Row {
        name,
        tool: "Glob",
        input: json!({"pattern": pattern}),
        program,
        args,
    };
    let mut rows = vec![
        grep(
            "a rare literal, content",
            json!({"pattern": tree::RARE, "output_mode": "content"}),
            &["-n", tree::RARE],
        ),
        grep(
            "a literal that is nowhere",
            json!({"pattern": "nowhere_at_all"}),
            &["-l", "nowhere_at_all"],
        ),
        grep(
            "a common word, count",
            json!({"pattern": "return", "output_mode": "count"}),
            &["-c", "return"],
        ),
        grep(
            "a regex, -i, count",
            json!({"pattern": HANDLER, "-i": true, "output_mode": "count"}),
            &["-c", "-i", HANDLER],
        ),
        grep(
            "files with matches",
            json!({"pattern": "deprecated"}),
            &["-l", "deprecated"],
        ),
        grep(
            "content, 2 lines around",
            json!({"pattern": "TODO", "output_mode": "content", "-C": 2}),
            &["-n", "-C", "2", "TODO"],
        ),
        glob("Glob **/*", "**/*", "rg", &["--files", "--hidden"]),
        glob(
            "Glob **/*.rs",
            "**/*.rs",
            "rg",
            &["--files", "--hidden", "-g", "*.rs"],
        ),
    ];
    if let Some(fd) = ["fd", "fdfind"].into_iter().find(|name| is_there(name)) {
        rows.push(glob(
            "Glob **/*, against fd",
            "**/*",
            fd,
            &["-H", "-t", "f"],
        ));
    }
    rows
}

const HANDLER: &str = r"fn\s+[a-z]+_(handler|parser)\b";

pub(crate) fn run() -> anyhow::Result<Report> {
    let mut report = Report::default();
    let absent = absent();
    for name in &absent {
        say::note(&format!("bench: {name} is not installed: skipped"));
    }
    let folder = tempfile::tempdir()?;
    let [files, own, start] = ["files", "own", "start"].map(|name| folder.path().join(name));
    for folder in [&files, &own, &start] {
        std::fs::create_dir(folder)?;
    }
    // Where there is no file at all, rg complains.
    std::fs::write(start.join("empty"), "")?;
    let packages = if options::is_try() { 1 } else { tree::PACKAGES };
    tree::make(&files, packages).context("cannot make the tree")?;
    // No command is ever started, so anything may stand for the warden.
    let caller = Caller::new(&files, &own, &own)?;
    let shown = match version() {
        Some(version) => format!("{version}, up to {PAIRS} pairs each, medians"),
        None => format!("medians of {PAIRS}"),
    };
    report.row([&shown, "gaffer", "rg", "its start", "ratio", "found"]);
    let mut missed = Vec::new();
    let rows = rows();
    for row in &rows {
        let ratio = add(&mut report, row, &caller, (&files, &start))?;
        if ratio.is_some_and(|ratio| ratio > MOST_RATIO) {
            missed.push(row.name);
        }
    }
    if !absent.is_empty() {
        report.row([&format!("not installed: {}", absent.join(", "))]);
    }
    // A ratio, though of times: what else runs meets both sides of a pair.
    let shown = match missed.as_slice() {
        [] => String::new(),
        missed => format!(" ({})", missed.join("; ")),
    };
    if absent.len() < PROGRAMS.len() {
        report.goal(
            format!("every row within 1.15 times of the program{shown}"),
            missed.is_empty(),
        );
    }
    reach::add(&mut report)?;
    Ok(report)
}

/// Measures one row and answers the ratio, if there is a program to compare with.
fn add(
    report: &mut Report,
    row: &Row,
    caller: &Caller,
    (files, start): (&Path, &Path),
) -> anyhow::Result<Option<f64>> {
    let tool = match row.tool {
        "Grep" => erase(Grep),
        _ => erase(Glob {
            respect_gitignore: true,
        }),
    };
    let middle = |spans: &[Duration]| ms(least_and_middle(spans).1);
    if !is_there(row.program) {
        let own = || Ok(caller.call(tool.as_ref(), &row.input)?.1);
        let own: anyhow::Result<Vec<Duration>> = (0..PAIRS).map(|_| own()).collect();
        report.row([row.name, &middle(&own?)]);
        return Ok(None);
    }
    let found = check(row, caller, &tool, files)?;
    let start = start_of(row, start)?;
    let paired = measure(row, caller, &tool, files, start)?;
    let ratio = paired.ratio();
    report.row([
        row.name,
        &middle(&paired.ours),
        &middle(&paired.theirs),
        &ms(start),
        &format!("{ratio:.3}"),
        &count(found as u64),
    ]);
    Ok(Some(ratio))
}

/// What others call the programs that are compared with.
const PROGRAMS: [&[&str]; 2] = [&["rg"], &["fd", "fdfind"]];

fn absent() -> Vec<&'static str> {
    let is_absent = |names: &&&[&str]| !names.iter().any(|name| is_there(name));
    let all = PROGRAMS.iter().filter(is_absent);
    all.map(|names| names[0]).collect()
}

/// Which rg it is: newer ones are quicker at some patterns.
fn version() -> Option<String> {
    let said = command("rg").arg("--version").output().ok()?.stdout;
    let said = String::from_utf8(said).ok()?;
    Some(said.lines().next()?.to_owned())
}

fn is_there(program: &str) -> bool {
    let ran = command(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ran.is_ok_and(|status| status.success())
}

fn program(row: &Row, folder: &Path) -> Command {
    let mut program = command(row.program);
    if row.program == "rg" {
        // Nobody's own settings, and names before lines as Grep writes them.
        program.args(["--no-config", "--no-heading", "--color", "never"]);
    }
    program
        .args(row.args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    program
}

fn timed(row: &Row, folder: &Path) -> anyhow::Result<Duration> {
    let mut program = program(row, folder);
    // What is printed goes nowhere: taking it would be our work, not the program's.
    program.stdout(Stdio::null());
    let began = Instant::now();
    let status = program.status()?;
    let took = began.elapsed();
    // 1 says that nothing matched.
    ensure!(
        matches!(status.code(), Some(0 | 1)),
        "{} failed",
        row.program
    );
    Ok(took)
}

/// What starting the program costs, which the tool, being in a process that runs already, does not
/// pay and so must not gain by.
fn start_of(row: &Row, folder: &Path) -> anyhow::Result<Duration> {
    let starts: anyhow::Result<Vec<Duration>> = (0..STARTS).map(|_| timed(row, folder)).collect();
    Ok(least_and_middle(&starts?).1)
}

fn measure(
    row: &Row,
    caller: &Caller,
    tool: &Arc<dyn Tool>,
    files: &Path,
    start: Duration,
) -> anyhow::Result<Paired> {
    Paired::measure(
        PAIRS,
        || Ok(caller.call(tool.as_ref(), &row.input)?.1),
        || Ok(timed(row, files)?.saturating_sub(start)),
    )
}

/// Makes sure that both find the same, and says how much. Long results come in part; of these the
/// part must be in what the program printed, and the whole must be as long.
fn check(row: &Row, caller: &Caller, tool: &Arc<dyn Tool>, files: &Path) -> anyhow::Result<usize> {
    let theirs = program(row, files).stdout(Stdio::piped()).output()?;
    let theirs = String::from_utf8(theirs.stdout)?;
    let theirs: Vec<&str> = theirs.lines().collect();
    let (ours, _) = caller.call(tool.as_ref(), &row.input)?;
    let agree = agree(&ours, &theirs, row.args.contains(&"-c"));
    agree.with_context(|| format!("{}: not the same was found", row.name))?;
    Ok(theirs.len())
}

fn agree(ours: &str, theirs: &[&str], counts: bool) -> anyhow::Result<()> {
    if ours.starts_with("No match in ") {
        ensure!(theirs.is_empty(), "Grep found nothing");
        return Ok(());
    }
    let known: HashSet<&str> = theirs.iter().copied().collect();
    let (notes, shown): (Vec<&str>, Vec<&str>) =
        ours.lines().partition(|line| line.starts_with('['));
    for line in &shown {
        ensure!(known.contains(line), "only gaffer has {line:?}");
    }
    let mut total = shown.len();
    for note in notes {
        let numbers: Vec<usize> = note
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        match *numbers.as_slice() {
            // [lines 1 to 250 of 5210. Go on with offset 250 …]
            [1, end, all, ..] if end == shown.len() => total = all,
            // [1234 in 56 files]
            [all, files] if counts => {
                let sum = sum(theirs)?;
                ensure!(all == sum, "gaffer counts {all}, not {sum}");
                total = files;
            }
            // [900 more, all older. …]
            [more] => total += more,
            _ => bail!("the note {note:?} is not known here"),
        }
    }
    let all = theirs.len();
    ensure!(total == all, "gaffer found {total}, not {all}");
    Ok(())
}

/// The sum of `NAME:COUNT`.
fn sum(lines: &[&str]) -> anyhow::Result<usize> {
    let mut sum = 0;
    for line in lines {
        let (_, count) = line.rsplit_once(':').context("a line without a count")?;
        sum += count.parse::<usize>()?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_seen() {
        let theirs = ["a:1", "b:2", "c:4"];
        let rows = [
            ("a:1\nb:2\nc:4\n[7 in 3 files]\n", true, true),
            (
                "a:1\n[files 1 to 1 of 3. Go on with offset 1.]\n[7 in 3 files]\n",
                true,
                true,
            ),
            ("a:1\nb:2\nc:4\n[8 in 3 files]\n", true, false),
            ("a:1\nb:2\nd:4\n[7 in 3 files]\n", true, false),
            ("a:1\nb:2\n", false, false),
            ("a:1\n[2 more, all older. A narrower one.]\n", false, true),
            (
                "a:1\n[lines 1 to 1 of 4. Go on with offset 1.]\n",
                false,
                false,
            ),
            ("No match in 9 files.\n", false, false),
        ];
        for (ours, counts, want) in rows {
            assert_eq!(agree(ours, &theirs, counts).is_ok(), want, "{ours}");
        }
        assert!(agree("No match in 9 files.\n", &[], false).is_ok());
    }
}
