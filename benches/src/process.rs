//! Starts processes, and says what one used from its start to its end.

use anyhow::Context;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that starts processes; the product's own would measure itself"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// This program as a child of itself.
pub(crate) fn own(words: &[&str]) -> anyhow::Result<Command> {
    let mut own = command(std::env::current_exe().context("cannot find this program")?);
    own.args(words);
    Ok(own)
}

/// What a process used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) status: ExitStatus,
    pub(crate) wall: Duration,
    /// In the program and in the kernel for it, of all its threads.
    pub(crate) cpu: Duration,
    /// The most memory that was resident at one time, in bytes.
    pub(crate) peak: u64,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) began: Instant,
    child: Child,
}

pub(crate) fn start(command: &mut Command) -> anyhow::Result<Running> {
    let began = Instant::now();
    let child = command.spawn();
    let child = child.with_context(|| format!("cannot start {:?}", command.get_program()))?;
    Ok(Running { began, child })
}

/// A number of a process that runs, by its name in `/proc/…/status`. Memory is in KiB there, and
/// that of the parent before exec is not part of it.
pub(crate) fn status(pid: u32, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':')
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stop(mut self) {
        // It may have ended by itself, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    pub(crate) fn wait(self) -> anyhow::Result<Used> {
        let (status, usage) = wait4(self.child.id()).context("cannot wait for a process")?;
        let wall = self.began.elapsed();
        let span = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec.unsigned_abs())
                + Duration::from_micros(time.tv_usec.unsigned_abs())
        };
        Ok(Used {
            status,
            wall,
            cpu: span(usage.ru_utime) + span(usage.ru_stime),
            // Linux counts in KiB. It also counts what the parent had before exec; this program
            // stays well below what it measures.
            peak: usage.ru_maxrss.unsigned_abs() * 1024,
        })
    }
}

#[expect(
    unsafe_code,
    reason = "the standard library has no wait that says what a process used"
)]
fn wait4(pid: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values that outlive the call.
        let waited = unsafe { libc::wait4(pid.cast_signed(), &mut status, 0, &mut usage) };
        if waited == pid.cast_signed() {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_used_is_known_when_it_ends() {
        let mut shell = command("sh");
        shell.args(["-c", "exit 3"]);
        let used = start(&mut shell).unwrap().wait().unwrap();
        assert_eq!(used.status.code(), Some(3));
        assert!(used.peak > 100 << 10, "{used:?}");
        assert!(used.cpu < Duration::from_secs(5), "{used:?}");
    }
}
