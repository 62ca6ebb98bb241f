//! Jobs: commands of an agent with all that they start. A job can be waited for, read while it
//! runs, and ended with everything below it.

use crate::output::{Keeper, Kept};
use rustix::process::{Signal, kill_process};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// Where commands are started from: the program that is their warden.
#[derive(Debug, Clone)]
pub struct Launcher {
    warden: PathBuf,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Order {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    pub cwd: PathBuf,
    /// Variables that the command must not see.
    pub hidden: Vec<String>,
    /// Variables that it gets in addition.
    pub env: Vec<(String, OsString)>,
    /// How its output is kept.
    pub keeper: Keeper,
    /// Files that it must not leave behind.
    pub unmade: Vec<PathBuf>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Signalled(i32),
    /// It could not be started, or its warden is gone.
    Lost(String),
}

/// A command's end, and whether it left anything running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub ended: Ended,
    pub left: bool,
}

/// Processes that are still there after an end was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0} processes could not be ended; they may hang in the kernel")]
pub struct StillAlive(pub usize);

/// A command under way or ended. Dropping the last handle ends it with everything below it.
#[derive(Debug)]
pub struct Job {
    /// The warden's process id, as people see it.
    pub pid: u32,
    /// Stands in the environment of everything it starts.
    marker: String,
    /// As long as it is held, the processes may live.
    leash: Mutex<Option<ChildStdin>>,
    status: watch::Receiver<Option<Status>>,
    /// Turns true when the warden itself has gone: nothing is left below it.
    gone: watch::Receiver<bool>,
    pub output: Arc<Kept>,
}

const MARKER: &str = "GAFFER_JOB";

/// Not the same twice on this machine while this process lives.
fn marker() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

/// After the leash is let go, so long may the processes take to be gone.
const END_TIME: Duration = Duration::from_secs(3);

impl Launcher {
    /// `program` is a binary that calls [`crate::warden::main`] for the role of a warden.
    pub fn new(program: PathBuf) -> Self {
        Self { warden: program }
    }

    /// Starts a command.
    pub fn start(&self, order: &Order) -> io::Result<Arc<Job>> {
        let output = Arc::new(Kept::new(order.keeper.clone()));
        let marker = marker();
        let mut child = self.spawn(order, &marker)?;
        let leash = child.stdin.take();
        let (status_sender, status) = watch::channel(None);
        let (gone_sender, gone) = watch::channel(false);
        let job = Arc::new(Job {
            pid: child.id().unwrap_or_default(),
            marker,
            leash: Mutex::new(leash),
            status,
            gone,
            output: output.clone(),
        });
        supervise(child, output, status_sender, gone_sender);
        Ok(job)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "commands are started here, under their warden"
    )]
    fn spawn(&self, order: &Order, marker: &str) -> io::Result<Child> {
        let mut command = Command::new(&self.warden);
        command
            .args(crate::warden::arguments(&order.unmade))
            .args(&order.command)
            .current_dir(&order.cwd)
            .env(MARKER, marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in &order.hidden {
            command.env_remove(name);
        }
        for (name, value) in &order.env {
            command.env(name, value);
        }
        command.spawn()
    }
}

/// Reads a job's output and status until its warden has gone. The task belongs to the job: it
/// ends with the warden, which ends with the leash.
#[expect(
    clippy::disallowed_methods,
    reason = "the task ends with the job that it belongs to"
)]
fn supervise(
    mut child: Child,
    output: Arc<Kept>,
    status: watch::Sender<Option<Status>>,
    gone: watch::Sender<bool>,
) {
    tokio::spawn(async move {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let reading = async {
            let Some(mut err) = err else { return };
            let mut buffer = vec![0; 32 << 10];
            while let Ok(size @ 1..) = err.read(&mut buffer).await {
                output.add(&buffer[..size]);
            }
            output.close();
        };
        let hearing = async {
            let mut line = String::new();
            if let Some(out) = out {
                drop(BufReader::new(out).read_line(&mut line).await);
            }
            status.send_replace(Some(read_status(&line)));
        };
        let (_, (), ()) = tokio::join!(child.wait(), reading, hearing);
        gone.send_replace(true);
    });
}

fn read_status(line: &str) -> Status {
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut words = line.trim_end().split(' ');
    let ended = match words.next() {
        Some("exit") => Ended::Exited(number(words.next())),
        Some("signal") => Ended::Signalled(number(words.next())),
        Some("error") => Ended::Lost(line["error".len()..].trim().to_owned()),
        _ => Ended::Lost("the process that watched over it is gone".to_owned()),
    };
    let left = words.next() == Some("left");
    Status { ended, left }
}

impl Job {
    /// Waits for the command's own end. What it left running may live on.
    pub async fn ended(&self) -> Status {
        let mut status = self.status.clone();
        let ended = status.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|ended| ended.clone());
        ended.unwrap_or_else(|| read_status(""))
    }

    /// The command's end, if it has come.
    pub fn status(&self) -> Option<Ended> {
        let status = self.status.borrow();
        status.as_ref().map(|status| status.ended.clone())
    }

    /// Whether anything of it still runs.
    pub fn is_alive(&self) -> bool {
        !*self.gone.borrow()
    }

    /// Waits until nothing of it is left.
    pub async fn gone(&self) {
        let mut gone = self.gone.clone();
        drop(gone.wait_for(|gone| *gone).await);
    }

    /// Lets go of the leash: the command and all below it will be gone soon.
    pub fn let_go(&self) {
        let mut leash = self.leash.lock().unwrap_or_else(PoisonError::into_inner);
        drop(leash.take());
    }

    /// Ends the command and all below it; answers when they are gone.
    pub async fn end(&self) -> Result<(), StillAlive> {
        self.let_go();
        if timeout(END_TIME, self.gone()).await.is_ok() {
            return Ok(());
        }
        // The warden itself was ended: what it watched over is known by its environment.
        let left = crate::warden::marked(MARKER, &self.marker);
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        match timeout(END_TIME, self.gone()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(StillAlive(left.len().max(1))),
        }
    }
}
