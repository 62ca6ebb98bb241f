//! `read`: Read in the middle of a file of 1 GB, and what memory that takes.

use crate::caller::Caller;
use crate::process::own;
use crate::report::{Report, mib, ms};
use crate::{allocations, say};
use anyhow::{Context, bail, ensure};
use gaffer_tools::erase;
use gaffer_tools::read::Read;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

const GIGABYTE: u64 = 1_000_000_000;
/// Too large to be taken into memory whole as well, but not by much.
const SMALL: u64 = 40_000_000;
const LINE: usize = 80;
const RUNS: usize = 5;
const MOST_MEMORY: u64 = 4 << 20;

pub(crate) fn run() -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let room = room(folder.path())?;
    let needed = GIGABYTE + SMALL + (100 << 20);
    ensure!(
        room > needed,
        "{} has room for {} only, and {} are needed; TMPDIR names another folder",
        folder.path().display(),
        mib(room),
        mib(needed)
    );
    write(&folder.path().join("small"), SMALL)?;
    write(&folder.path().join("large"), GIGABYTE)?;
    let small = least(folder.path(), "small", SMALL)?;
    let large = least(folder.path(), "large", GIGABYTE)?;
    let plain = plain(&folder.path().join("large"))?;

    let mut report = Report::default();
    let shown = format!("2000 lines in the middle, {RUNS} runs");
    report.row([&shown, "of 40 MB", "of 1 GB"]);
    report.row(["wall, least", &ms(small.wall), &ms(large.wall)]);
    report.row(["wall of half the bytes read for nothing", "", &ms(plain)]);
    let shown = [small.grown, large.grown].map(mib);
    report.row(["peak memory grows by, most", &shown[0], &shown[1]]);
    let shown = [small.asked, large.asked].map(mib);
    report.row(["asked of the allocator, most", &shown[0], &shown[1]]);
    report.goal(
        "1 GB takes under 4 MiB of memory more than a small file",
        large.grown < MOST_MEMORY,
    );
    report.goal(
        "1 GB asks for no more memory than 40 MB, but 64 KiB",
        large.asked <= small.asked + (64 << 10),
    );
    Ok(report)
}

/// Lines that count themselves. Every byte is written: a hole would be read for nothing.
fn write(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut file = io::BufWriter::with_capacity(1 << 20, File::create(path)?);
    let rest = "nothing here is worth a second look, and so it goes on and on";
    for number in 1..=bytes / LINE as u64 {
        let mut line = [b'.'; LINE];
        let mut place = line.as_mut_slice();
        // It holds both; what is left over stays as it was.
        write!(place, "{number:012} {rest}")?;
        line[LINE - 1] = b'\n';
        file.write_all(&line)?;
    }
    file.flush()?;
    Ok(())
}

/// What a read came to.
#[derive(Debug, Clone, Copy)]
struct Took {
    wall: Duration,
    /// By how much it raised the most that was ever resident.
    grown: u64,
    asked: u64,
}

/// The least wall and the most memory of a few reads, each in a process of its own.
fn least(folder: &Path, name: &str, bytes: u64) -> anyhow::Result<Took> {
    let mut all: Option<Took> = None;
    for _ in 0..RUNS {
        let middle = (bytes / LINE as u64 / 2).to_string();
        let ran = own(&["__read", name, &middle])?
            .current_dir(folder)
            .output()?;
        let said = String::from_utf8_lossy(&ran.stdout);
        let why = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "a read failed: {why}");
        let numbers: Vec<u64> = said.split_whitespace().flat_map(str::parse).collect();
        let [micros, grown, asked] = *numbers.as_slice() else {
            bail!("a read said {said:?}")
        };
        let took = Took {
            wall: Duration::from_micros(micros),
            grown,
            asked,
        };
        all = Some(all.map_or(took, |all| Took {
            wall: all.wall.min(took.wall),
            grown: all.grown.max(took.grown),
            asked: all.asked.max(took.asked),
        }));
    }
    all.context("no run")
}

/// `__read NAME LINE`: reads there, after a small file, and says what only the large one took.
pub(crate) fn process(words: &[&str]) -> anyhow::Result<()> {
    let [name, line] = words else {
        bail!("expected a name and a line, not {words:?}")
    };
    let line: usize = line.parse()?;
    let folder = std::env::current_dir()?;
    let own = tempfile::tempdir()?;
    std::fs::write(own.path().join("tiny"), "a line\n".repeat(3000))?;
    let caller = Caller::new(&folder, own.path(), own.path())?;
    let read = erase(Read);
    // Threads, buffers of the output and the like are there after the first call.
    let tiny = json!({"file_path": own.path().join("tiny")});
    caller.call(read.as_ref(), &tiny)?;
    let (peak, asked) = (peak()?, allocations::so_far());
    let input = json!({"file_path": name, "offset": line});
    let (text, wall) = caller.call(read.as_ref(), &input)?;
    let asked = allocations::so_far().bytes - asked.bytes;
    let grown = self::peak()?.saturating_sub(peak);
    ensure!(
        text.trim_start()
            .starts_with(&format!("{line}\t{line:012} ")),
        "another line was read"
    );
    ensure!(text.lines().count() == 2001, "not all lines were read");
    say::out(&format!("{} {grown} {asked}", wall.as_micros()));
    Ok(())
}

/// The most memory that was resident since this program began. What wait says of a child counts
/// its parent too.
fn peak() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.context("the system does not tell the peak")?;
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>()?;
    Ok(kib << 10)
}

/// Below this no read can be that has to count the lines before.
fn plain(path: &Path) -> anyhow::Result<Duration> {
    let mut best = Duration::MAX;
    let mut buffer = vec![0; 256 << 10];
    for _ in 0..RUNS {
        let began = Instant::now();
        let mut file = io::Read::take(File::open(path)?, GIGABYTE / 2);
        while io::Read::read(&mut file, &mut buffer)? > 0 {}
        best = best.min(began.elapsed());
    }
    Ok(best)
}

/// How many bytes can be written in a folder.
#[expect(
    unsafe_code,
    reason = "the standard library does not tell what a file system has left"
)]
fn room(folder: &Path) -> anyhow::Result<u64> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte, and both outlive the call.
    if unsafe { libc::statvfs(path.as_ptr(), &mut stat) } != 0 {
        return Err(io::Error::last_os_error()).context("cannot tell how much room there is");
    }
    Ok(stat.f_bavail * stat.f_frsize)
}
