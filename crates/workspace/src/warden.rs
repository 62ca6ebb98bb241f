//! The warden: a small process between gaffer and a command that makes sure nothing outlives it.
//!
//! It is the subreaper of everything the command starts, so that also what was forked twice, left
//! its session or ignores hang-ups stays below it and can be found. It holds one end of a pipe,
//! the leash. When gaffer lets go of the leash, by will or by dying, the warden ends all that is
//! below it and then itself. Its standard input is the leash, its standard output carries one
//! line, the status of the command and whether it left anything running, and its standard error
//! is the command's output. When nothing is left below it, it takes away the files that a command
//! must not leave behind.

use crate::handles;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, setsid, wait,
};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument that makes this program a warden.
pub const ROLE: &str = "__warden";

/// So long does the warden try to end what is below it. What cannot be ended by then is stuck in
/// the kernel.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long whoever is asked to end may take for it.
const GRACE: Duration = Duration::from_millis(250);

/// Runs a command under watch. Answers the exit code of the warden itself.
pub fn main(mut command: impl Iterator<Item = OsString>) -> u8 {
    // Before anything is started, so that the command has it for sure.
    handles::take_back(command.next().as_deref());
    let count = command
        .next()
        .and_then(|count| count.to_str()?.parse().ok());
    let unmade: Vec<PathBuf> = command
        .by_ref()
        .take(count.unwrap_or_default())
        .map(PathBuf::from)
        .collect();
    let (Some(_), Some(program)) = (count, command.next()) else {
        return 2;
    };
    // A session of its own has no terminal: nothing below can ask the user for a password there,
    // and an interrupt typed at the terminal is gaffer's to hear. A failure means that it has one.
    let _ = setsid();
    let told = match start(&program, command, unmade.clone()) {
        Ok(child) => watch(child),
        Err(why) => format!("error {why}\n"),
    };
    take_away(&unmade);
    tell(&told);
    // The command has ended; what it left behind lives on until it ends or the leash is let go.
    while let Ok(Some(_)) | Err(Errno::INTR) = wait(WaitOptions::empty()) {}
    take_away(&unmade);
    0
}

/// What the warden was given along with its command.
pub(crate) fn arguments(unmade: &[PathBuf]) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![
        ROLE.into(),
        handles::given().into(),
        unmade.len().to_string().into(),
    ];
    args.extend(unmade.iter().map(OsString::from));
    args
}

/// A file that was not there before the command, and that nobody else makes.
fn take_away(unmade: &[PathBuf]) {
    for path in unmade {
        let gone = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
        drop(gone);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the warden is how processes are started"
)]
fn start(
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
    unmade: Vec<PathBuf>,
) -> Result<Pid, String> {
    set_child_subreaper(Some(getpid())).map_err(|error| format!("no subreaper: {error}"))?;
    let output = || {
        std::io::stderr()
            .as_fd()
            .try_clone_to_owned()
            .map(Stdio::from)
    };
    let out = output().map_err(|error| error.to_string())?;
    let err = output().map_err(|error| error.to_string())?;
    use std::os::unix::process::CommandExt;
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    // From here on nothing is started any more, so threads do no harm.
    std::thread::spawn(move || hold_leash(&unmade));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| "no process id".to_owned())
}

/// Waits for the command's own end while reaping all others.
fn watch(child: Pid) -> String {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return describe(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return format!("error {error}\n"),
        }
    }
}

fn describe(status: WaitStatus) -> String {
    let left = if is_alone() { "alone" } else { "left" };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit {code} {left}\n"),
        (None, signal) => format!("signal {} {left}\n", signal.unwrap_or_default()),
    }
}

/// Whether nothing is left below. What ends together with the command gets a moment to do so.
fn is_alone() -> bool {
    let began = Instant::now();
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return true,
            Ok(Some(_)) | Err(_) => {}
            Ok(None) if began.elapsed() > Duration::from_millis(20) => return false,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Nobody may be there to hear it.
fn tell(line: &str) {
    let mut out = std::io::stdout();
    drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
}

/// Blocks until gaffer lets go, then ends everything.
fn hold_leash(unmade: &[PathBuf]) {
    let mut byte = [0];
    let mut stdin = std::io::stdin();
    loop {
        match stdin.read(&mut byte) {
            Ok(1..) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    end_all();
    take_away(unmade);
    std::process::exit(0);
}

/// Ends all that is below this process, until nothing is there. Each is asked first: git, for one,
/// takes its locks away then, which would otherwise stay and stop the user's own git. What is
/// still there is stopped before it is killed: a process that forks as fast as it is ended would
/// otherwise stay ahead.
fn end_all() {
    for pid in alive() {
        let _ = kill_process(pid, Signal::TERM);
    }
    let began = Instant::now();
    while began.elapsed() < GRACE && !alive().is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let began = Instant::now();
    loop {
        let alive = alive();
        if alive.is_empty() || began.elapsed() > PATIENCE {
            return;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &alive {
                // Who has ended meanwhile needs no signal.
                let _ = kill_process(*pid, signal);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// All processes below this one that have not ended.
fn alive() -> Vec<Pid> {
    let below = below(getpid()).into_iter();
    let alive = below.filter(|(_, dead)| !dead);
    alive.map(|(pid, _)| pid).collect()
}

/// All processes below one, with whether they are dead and only wait to be reaped.
fn below(root: Pid) -> Vec<(Pid, bool)> {
    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some((parent, dead)) = parent_of(pid) {
            children.entry(parent).or_default().push((pid, dead));
        }
    }
    let mut found = Vec::new();
    let mut waiting = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = waiting.pop() {
        for (pid, dead) in children.remove(&parent).unwrap_or_default() {
            waiting.push(pid);
            found.extend(Pid::from_raw(pid).map(|pid| (pid, dead)));
        }
    }
    found
}

/// All live processes that have a variable of this value in their environment.
pub(crate) fn marked(name: &str, value: &str) -> Vec<Pid> {
    let wanted = format!("{name}={value}").into_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted)
        {
            found.extend(pid.and_then(Pid::from_raw));
        }
    }
    found
}

/// The name in `stat` may hold anything, parentheses and line breaks too; what follows the last
/// one is state and parent.
fn parent_of(pid: i32) -> Option<(i32, bool)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some((parent, matches!(state, "Z" | "X")))
}
