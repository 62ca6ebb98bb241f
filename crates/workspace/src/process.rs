//! The one place that starts processes.
//!
//! A process gets a group of its own. In [`run`] it has a closed standard input and one pipe for
//! both outputs, so that what it prints stays in order; in [`talk()`] it is given a text and its
//! outputs are kept apart. Dropping the future ends the whole group. Only what [`through()`] runs is
//! never ended.

mod talk;
mod through;

pub use talk::{Limits, Talked, talk};
pub use through::through;

use crate::handles;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

/// What to start.
#[derive(Debug, Clone)]
pub struct Plan {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// Variables that the process must not see.
    pub hidden: Vec<String>,
    /// Variables that it gets in addition.
    pub env: Vec<(String, String)>,
}

impl Plan {
    pub fn new(program: impl AsRef<OsStr>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            cwd: cwd.into(),
            hidden: Vec::new(),
            env: Vec::new(),
        }
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }
}

/// How a run is bounded.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub time: Duration,
    /// Of the output, so many bytes are kept at its beginning and as many at its end.
    pub keep: usize,
}

/// What came of a run.
#[derive(Debug)]
pub struct Finished {
    pub how: How,
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Exited(ExitStatus),
    /// It was ended at its time limit.
    TimedOut,
}

/// Both outputs in the order of writing, the middle left out where there was too much.
#[derive(Debug, Default)]
pub struct Output {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    keep: usize,
    total: u64,
}

impl Output {
    fn keeping(keep: usize) -> Self {
        Self {
            keep,
            ..Self::default()
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.keep.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let skip = rest.len().saturating_sub(self.keep);
        self.tail.extend(&rest[skip..]);
        let over = self.tail.len().saturating_sub(self.keep);
        self.tail.drain(..over);
    }

    /// Whether nothing had to be left out.
    pub fn is_whole(&self) -> bool {
        self.total == (self.head.len() + self.tail.len()) as u64
    }

    /// The bytes as they came, unless something had to be left out.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let all = self.head.iter().chain(&self.tail);
        self.is_whole().then(|| all.copied().collect())
    }

    /// The text, with a word about what is missing.
    pub fn text(&self) -> String {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&tail);
        match self.total - kept {
            0 => format!("{head}{tail}"),
            left => format!("{head}\n[… {left} bytes left out …]\n{tail}"),
        }
    }
}

/// Ends the group when it goes out of scope, however that happens.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    fn end(&self) {
        if let Some(group) = self.0 {
            // A group that has ended already is no error.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a process and waits for its end. Dropping the future ends the process group.
pub async fn run(plan: &Plan, bounds: Bounds) -> io::Result<Finished> {
    let (mut child, mut pipe) = start(plan)?;
    let group = Group::of(&child);
    let deadline = Instant::now() + bounds.time;
    let mut output = Output::keeping(bounds.keep);
    let mut buffer = vec![0; 16 << 10];
    let mut is_open = true;
    let how = loop {
        let step = async {
            tokio::select! {
                read = pipe.read(&mut buffer), if is_open => Step::Read(read),
                status = child.wait() => Step::Exited(status),
            }
        };
        match timeout_at(deadline, step).await {
            Err(_) => break How::TimedOut,
            Ok(Step::Exited(status)) => break How::Exited(status?),
            Ok(Step::Read(Ok(0) | Err(_))) => is_open = false,
            Ok(Step::Read(Ok(size))) => output.add(&buffer[..size]),
        }
    };
    // What it left running in its group ends with it; then the pipe's end is near.
    group.end();
    let rest = async {
        while let Ok(size @ 1..) = pipe.read(&mut buffer).await {
            output.add(&buffer[..size]);
        }
    };
    // A process that left the group may hold the pipe; its output is not waited for.
    drop(timeout(Duration::from_millis(500), rest).await);
    if how == How::TimedOut {
        child.wait().await?;
    }
    Ok(Finished { how, output })
}

enum Step {
    Read(io::Result<usize>),
    Exited(io::Result<ExitStatus>),
}

fn start(plan: &Plan) -> io::Result<(Child, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let mut command = command(plan);
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let child = command.spawn()?;
    handles::give_back(child.id());
    // The command holds our ends of the pipe; with it they go, so that its end can be seen.
    drop(command);
    let pipe = pipe::Receiver::from_owned_fd(reader.into())?;
    Ok((child, pipe))
}

/// All that is the same however the process is listened to.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that starts processes"
)]
fn command(plan: &Plan) -> Command {
    let mut command = Command::new(&plan.program);
    command
        .args(&plan.args)
        .current_dir(&plan.cwd)
        .process_group(0)
        .kill_on_drop(true);
    for name in &plan.hidden {
        command.env_remove(name);
    }
    for (name, value) in &plan.env {
        command.env(name, value);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        time: Duration::from_secs(20),
        keep: 1000,
    };

    fn shell(script: &str) -> Plan {
        Plan::new("sh", "/").args(["-c", script])
    }

    #[tokio::test]
    async fn outputs_stay_in_order_and_the_status_is_told() {
        let plan = shell("echo one; echo two >&2; echo three; exit 3");
        let finished = run(&plan, BOUNDS).await.unwrap();
        assert_eq!(finished.output.text(), "one\ntwo\nthree\n");
        let How::Exited(status) = finished.how else {
            panic!("timed out")
        };
        assert_eq!(status.code(), Some(3));
    }

    #[tokio::test]
    async fn a_flood_is_kept_at_both_ends() {
        let finished = run(&shell("echo start; seq 100000; echo end"), BOUNDS)
            .await
            .unwrap();
        let text = finished.output.text();
        assert!(text.starts_with("start\n1\n"), "{text}");
        assert!(text.ends_with("100000\nend\n"), "{text}");
        assert!(text.contains("bytes left out"));
        assert!(text.len() < 2200);
    }

    #[tokio::test]
    async fn standard_input_is_closed_and_hidden_variables_are_hidden() {
        let mut plan = shell("cat; echo \"[$SHOWN][$PATH_IS]\"");
        plan.env.push(("SHOWN".into(), "yes".into()));
        plan.hidden.push("PATH_IS".into());
        let finished = run(&plan, BOUNDS).await.unwrap();
        assert_eq!(finished.output.text(), "[yes][]\n");
    }

    #[tokio::test]
    async fn a_time_limit_ends_the_whole_group() {
        let temp = tempfile::tempdir().unwrap();
        let plan = Plan::new("sh", temp.path()).args(["-c", "(sleep 2; touch late) & sleep 60"]);
        let bounds = Bounds {
            time: Duration::from_millis(200),
            ..BOUNDS
        };
        let finished = run(&plan, bounds).await.unwrap();
        assert_eq!(finished.how, How::TimedOut);
        assert!(kill_process_group_is_gone(&temp));
    }

    /// The group's children are gone when nothing has the folder as its own any more.
    pub(super) fn kill_process_group_is_gone(folder: &tempfile::TempDir) -> bool {
        let path = folder.path().canonicalize().unwrap();
        let mut tries = 0;
        loop {
            let alive = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == path)
            });
            tries += 1;
            if !alive || tries > 2000 {
                return !alive;
            }
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let plan = Plan::new("no-such-program-here", "/");
        assert!(run(&plan, BOUNDS).await.is_err());
    }
}
