//! `fold`: how fast a transcript is read back, and whether a long one costs more by the megabyte.

use crate::callgrind::instructions;
use crate::growth::{Growth, Series};
use crate::past::{self, Pen};
use crate::process::own;
use crate::report::{Report, count, least_and_middle};
use crate::say;
use anyhow::{Context, ensure};
use gaffer_protocol::Block;
use gaffer_store::{Entry, Fold};
use std::path::Path;
use std::time::Duration;

const MB: usize = 1_000_000;
/// In megabytes, and how often each is read.
const SIZES: [(usize, usize); 3] = [(1, 60), (10, 20), (100, 5)];
const MOST_RATIO: f64 = 1.2;

/// What reading one file costs.
#[derive(Debug)]
struct Row {
    bytes: u64,
    least: Duration,
    middle: Duration,
    /// None for the largest: counting takes long.
    instructions: Option<u64>,
}

impl Row {
    fn megabytes(&self) -> f64 {
        self.bytes as f64 / MB as f64
    }

    fn ms_a_megabyte(&self) -> f64 {
        self.least.as_secs_f64() * 1e3 / self.megabytes()
    }
}

pub(crate) fn run() -> anyhow::Result<Report> {
    let temp = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for (megabytes, runs) in SIZES {
        let path = temp.path().join(format!("{megabytes}.jsonl"));
        write(&path, megabytes * MB)?;
        rows.push(measure(&path, runs, megabytes < 100)?);
        std::fs::remove_file(&path)?;
    }
    let nothing = instructions(&["__fold", "/dev/null"])?;
    let [one, ten, hundred] = &rows[..] else {
        anyhow::bail!("a size is missing");
    };
    let mut report = Report::default();
    let of = |show: &dyn Fn(&Row) -> String| [one, ten, hundred].map(show);
    let mut add = |name: &str, [a, b, c]: [String; 3]| report.row([name, &a, &b, &c]);
    add("", of(&|row| format!("{:.0} MB", row.megabytes())));
    add(
        "MB a second of one processor",
        of(&|row| format!("{:.0}", 1e3 / row.ms_a_megabyte())),
    );
    add(
        "ms a MB, least",
        of(&|row| format!("{:.3}", row.ms_a_megabyte())),
    );
    add(
        "ms a MB, median",
        of(&|row| format!("{:.3}", row.middle.as_secs_f64() * 1e3 / row.megabytes())),
    );
    let counted = |row: &Row| {
        let own = row.instructions?.saturating_sub(nothing);
        Some(own as f64 / row.megabytes())
    };
    let shown = |row: &Row| counted(row).map_or_else(String::new, |n| count(n as u64));
    add("instructions a MB", of(&shown));
    if let (Some(one), Some(ten)) = (counted(one), counted(ten)) {
        report.goal(
            "instructions a MB: 10 MB within 20 % of 1 MB",
            near(one, ten),
        );
    }
    let points = rows.iter().map(|row| {
        let whole = row.ms_a_megabyte() * row.megabytes();
        (row.megabytes(), whole)
    });
    report.growth(Growth::new(
        "time",
        ["Time to read a transcript", "MB", "ms on a processor"],
        vec![Series::new("gaffer", points)],
    ));
    let time = Row::ms_a_megabyte;
    report.time_goal(
        "processor time a MB: 10 and 100 MB within 20 % of 1 MB",
        near(time(one), time(ten)) && near(time(one), time(hundred)),
    );
    Ok(report)
}

fn near(one: f64, other: f64) -> bool {
    other <= one * MOST_RATIO && one <= other * MOST_RATIO
}

fn write(path: &Path, bytes: usize) -> anyhow::Result<()> {
    let main = past::agent(0)?;
    let mut pen = Pen::new(path)?;
    pen.write(Entry::Start(Box::new(past::start(None, main, path)?)))?;
    pen.hear(vec![Block::from_human("Look at all of it.")])?;
    pen.turns_until(bytes)
}

/// Each time by a new process, as a session is read: one that has read before has its memory
/// already, but only as long as it is not much.
fn measure(path: &Path, runs: usize, is_counted: bool) -> anyhow::Result<Row> {
    let name = path.to_str().context("a path that is no text")?;
    let mut spans = Vec::new();
    for _ in 0..runs {
        let ran = own(&["__fold", name])?.output()?;
        ensure!(ran.status.success(), "a transcript was not read");
        let said = String::from_utf8(ran.stdout)?;
        spans.push(Duration::from_nanos(said.trim().parse()?));
    }
    let (least, middle) = least_and_middle(&spans);
    let counted = is_counted.then(|| instructions(&["__fold", name]));
    Ok(Row {
        bytes: path.metadata()?.len(),
        least,
        middle,
        instructions: counted.transpose()?,
    })
}

fn read(path: &Path) -> anyhow::Result<Fold> {
    let fold = Fold::read(path)?;
    ensure!(fold.damaged.is_empty(), "{}", fold.damaged);
    Ok(fold)
}

/// `__fold FILE`: prints how much of a processor it took, in nanoseconds. On a busy machine the
/// clock would tell of the others.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let path = words.first().context("which file?")?;
    let began = on_processor()?;
    let fold = read(Path::new(path))?;
    let took = on_processor()?.saturating_sub(began);
    say::out(&took.to_string());
    // Freeing it all would be counted, too, and a process that ends has no need to.
    std::mem::forget(fold);
    Ok(())
}

/// Nanoseconds that this thread has run, and the kernel for it.
#[expect(
    unsafe_code,
    reason = "the standard library has no clock of a thread's own, and /proc has one that stands still for milliseconds"
)]
fn on_processor() -> anyhow::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a value that outlives the call.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    ensure!(answer == 0, "there is no clock of a thread");
    Ok(u64::try_from(time.tv_sec)? * 1_000_000_000 + u64::try_from(time.tv_nsec)?)
}
