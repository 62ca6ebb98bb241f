//! `append`: a hundred workers write their records from one thread while some of them end; and
//! what the end of a worker costs, against the disk's own sync in the same run.

use crate::past::{self, Pen};
use crate::report::{Report, least_and_middle, ms};
use anyhow::Context;
use gaffer_protocol::{AgentId, End, SessionId, Timestamp};
use gaffer_store::book::{Change, Step};
use gaffer_store::{Book, Entry, Home, Record, SessionFolder, Transcript};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const WORKERS: u32 = 100;
const RECORDS: u32 = 100;
/// A worker ends, and goes on, after so many records.
const RECORDS_A_RUN: u32 = 25;
/// Of single steps, and of a hundred at once.
const STEPS: usize = 200;
const ROUNDS: u32 = 15;
const MOST_APPEND: Duration = Duration::from_millis(1);
const MOST_STEP: f64 = 2.0;
const MOST_END: f64 = 1.25;

pub(crate) fn run() -> anyhow::Result<Report> {
    // As in the product: one thread for all agents, and others for what waits for the disk.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let temp = tempfile::tempdir()?;
    let mut appends = runtime.block_on(appends(&temp.path().join("a")))?;
    appends.sort_unstable();
    let steps = runtime.block_on(steps(&temp.path().join("b")))?;
    let many = runtime.block_on(at_once(&temp.path().join("c")))?;
    let at = |share: f64| {
        let place = (appends.len() as f64 * share) as usize;
        appends
            .get(place)
            .or(appends.last())
            .copied()
            .unwrap_or_default()
    };
    let mut report = Report::default();
    let all = appends.len();
    report.row([
        &format!("{all} appends of 1 to 20 KB, {WORKERS} workers"),
        "median",
        "99th of 100",
        "most",
    ]);
    report.row(["an append", &ms(at(0.5)), &ms(at(0.99)), &ms(at(1.0))]);
    let floor = &steps.disk;
    report.row([
        &format!("{STEPS} of each, in turn"),
        "least",
        "median",
        "by the disk's own, median",
    ]);
    let mut row = |name: &str, spans: &[Duration], floor: &[Duration]| {
        let (least, middle) = least_and_middle(spans);
        let by = format!("{:.2}", middle_ratio(spans, floor));
        report.row([name, &ms(least), &ms(middle), &by]);
    };
    row("the disk: a small append and its sync", floor, floor);
    row("the same in two files, in turn", &steps.twice, floor);
    row("a written step", &steps.written, floor);
    row("a synced step", &steps.synced, floor);
    row(
        "a worker's end: its record, then the step",
        &steps.end,
        floor,
    );
    row("100 ends at once, till the last", &many.all, &many.disk);
    let by_two = format!("{:.2}", middle_ratio(&steps.end, &steps.twice));
    report.row(["a worker's end by two syncs, median", "", "", &by_two]);
    report.time_goal(
        "an append within 1 ms (99th of 100)",
        at(0.99) < MOST_APPEND,
    );
    report.time_goal(
        "a synced step: at most twice the disk's own",
        middle_ratio(&steps.synced, floor) <= MOST_STEP,
    );
    report.time_goal(
        "a worker's end, with two files to sync: at most 1.25 times two syncs",
        middle_ratio(&steps.end, &steps.twice) <= MOST_END,
    );
    Ok(report)
}

/// The middle one of the ratios of what was measured right after each other: what else the disk
/// had to do then met both.
fn middle_ratio(spans: &[Duration], floor: &[Duration]) -> f64 {
    let ratio = |(of, to): (&Duration, &Duration)| of.as_secs_f64() / to.as_secs_f64();
    let mut all: Vec<f64> = spans.iter().zip(floor).map(ratio).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A worker with its transcript.
struct Writer {
    id: AgentId,
    transcript: Transcript,
    /// Records of all sizes, made before the clock runs.
    records: Vec<Record>,
}

fn folder(path: &Path) -> anyhow::Result<SessionFolder> {
    let session = SessionId::parse(past::SESSION)?;
    Ok(Home::new(path.to_owned()).create_session(path, &session)?)
}

/// Workers that are in the book and have begun their records.
async fn writers(folder: &SessionFolder, book: &Book) -> anyhow::Result<Vec<Writer>> {
    let main = past::agent(0)?;
    let mut all = Vec::new();
    for number in 1..=WORKERS {
        let task = past::task(number, main)?;
        let id = task.id;
        let path = folder.transcript(id);
        let start = past::start(Some(&task), main, folder.path())?;
        Pen::new(&path)?.write(Entry::Start(Box::new(start)))?;
        let order = past::order(number, id);
        let began = vec![Change::Start(Box::new(task)), Change::Send(order)];
        book.write(Step::written(began)).await?;
        let record = |n: u32| Record {
            at: Timestamp(1_790_000_000_000 + u64::from(n)),
            entry: past::result(format!("toolu_{n:08}"), 1000 + (n * 7919 % 19_000) as usize),
        };
        all.push(Writer {
            id,
            transcript: Transcript::create(path)?,
            records: (0..RECORDS_A_RUN).map(|n| record(n + number)).collect(),
        });
    }
    Ok(all)
}

impl Writer {
    /// What an end is, as the crew writes it.
    fn end(&mut self, letter: u32) -> anyhow::Result<Step> {
        let entry = Entry::End(End::Done);
        let at = Timestamp(1_790_000_000_000);
        self.transcript.append(&Record { at, entry })?;
        Ok(self.step(letter)?.after(self.transcript.file()?))
    }

    fn step(&self, letter: u32) -> anyhow::Result<Step> {
        let main = past::agent(0)?;
        let news = past::news(letter * 8 + 1, self.id, main);
        Ok(Step::synced(vec![
            Change::End {
                task: self.id,
                end: End::Done,
                notes: past::notes(self.transcript.path()),
            },
            Change::Heard(Vec::new()),
            Change::Hold(Vec::new()),
            Change::Settled(self.id),
            Change::Send(news),
        ]))
    }
}

/// How long each append took while others wrote and ended.
async fn appends(path: &Path) -> anyhow::Result<Vec<Duration>> {
    let folder = folder(path)?;
    let book = folder.book();
    let mut set = JoinSet::new();
    for (number, mut writer) in (0u32..).zip(writers(&folder, &book).await?) {
        let book = book.clone();
        set.spawn(async move {
            let mut spans = Vec::new();
            for run in 0..RECORDS / RECORDS_A_RUN {
                let records = std::mem::take(&mut writer.records);
                for record in &records {
                    let began = Instant::now();
                    writer.transcript.append(record)?;
                    spans.push(began.elapsed());
                    tokio::task::yield_now().await;
                }
                writer.records = records;
                let end = writer.end(1 + number * RECORDS + run)?;
                book.write(end).await?;
            }
            anyhow::Ok(spans)
        });
    }
    let all = set.join_all().await.into_iter();
    let spans: Vec<Vec<Duration>> = all.collect::<Result<_, _>>()?;
    Ok(spans.concat())
}

#[derive(Default)]
struct Steps {
    disk: Vec<Duration>,
    twice: Vec<Duration>,
    written: Vec<Duration>,
    synced: Vec<Duration>,
    end: Vec<Duration>,
}

/// One step at a time, of each kind in turn: what else the disk does meets all of them.
async fn steps(path: &Path) -> anyhow::Result<Steps> {
    let folder = folder(path)?;
    let book = folder.book();
    let mut writers = writers(&folder, &book).await?;
    let (mut one, mut other) = (plain(path, "one")?, plain(path, "other")?);
    let mut all = Steps::default();
    for round in 0..STEPS {
        let letter = u32::try_from(round)? * 4 + 1;
        let place = round % writers.len();
        let writer = writers.get_mut(place).context("no worker")?;
        let began = Instant::now();
        synced(&mut one).await?;
        all.disk.push(began.elapsed());
        let began = Instant::now();
        synced(&mut one).await?;
        synced(&mut other).await?;
        all.twice.push(began.elapsed());
        let step = writer.step(letter)?;
        let began = Instant::now();
        book.write(step).await?;
        all.synced.push(began.elapsed());
        let end = writer.end(letter + 1)?;
        let began = Instant::now();
        book.write(end).await?;
        all.end.push(began.elapsed());
        let order = past::order(1_000_000 + letter, writer.id);
        let began = Instant::now();
        book.write(Step::written(vec![Change::Send(order)])).await?;
        all.written.push(began.elapsed());
    }
    Ok(all)
}

#[derive(Default)]
struct Many {
    disk: Vec<Duration>,
    all: Vec<Duration>,
}

/// All workers end in the same moment.
async fn at_once(path: &Path) -> anyhow::Result<Many> {
    let folder = folder(path)?;
    let book = folder.book();
    let mut writers = writers(&folder, &book).await?;
    let mut file = plain(path, "one")?;
    let mut many = Many::default();
    for round in 0..ROUNDS {
        let began = Instant::now();
        synced(&mut file).await?;
        many.disk.push(began.elapsed());
        let mut ends = Vec::new();
        for (number, writer) in (1u32..).zip(&mut writers) {
            ends.push(writer.end(round * WORKERS + number)?);
        }
        let mut set = JoinSet::new();
        let began = Instant::now();
        for end in ends {
            let book = book.clone();
            set.spawn(async move { book.write(end).await });
        }
        let done = set.join_all().await;
        many.all.push(began.elapsed());
        done.into_iter().collect::<Result<Vec<()>, _>>()?;
    }
    Ok(many)
}

fn plain(folder: &Path, name: &str) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    Ok(options.append(true).create(true).open(folder.join(name))?)
}

/// On another thread, as a step is: handing it over is not the disk's, but both do it.
async fn synced(file: &mut File) -> anyhow::Result<()> {
    let mut file = file.try_clone()?;
    let done = tokio::task::spawn_blocking(move || {
        file.write_all(&[b'x'; 300])?;
        file.sync_data()
    });
    Ok(done.await??)
}
