//! Starting other programs: every process of this crate begins in `Invocation::command`.
#![expect(
    clippy::disallowed_methods,
    reason = "a developer's tool starts cargo, git and apt-get by itself; this is its one place"
)]

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The folder of the workspace, in which every process runs.
pub(crate) fn root() -> PathBuf {
    // The variable of this run comes first: with a target folder shared by several checkouts the
    // path known when this was compiled can be that of another one.
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), Path::to_path_buf)
}

/// A program with its arguments; displayed as the line to type in a shell.
#[derive(Debug)]
pub(crate) struct Invocation {
    program: OsString,
    shown_as: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Invocation {
    pub(crate) fn new(program: &str, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            shown_as: program.to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            variables: Vec::new(),
        }
    }

    /// The cargo that runs us, not whichever is first in the search path.
    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        Self {
            program: std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()),
            ..Self::new("cargo", arguments)
        }
    }

    pub(crate) fn and(mut self, more: &[String]) -> Self {
        self.arguments.extend_from_slice(more);
        self
    }

    /// With a variable in its environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it with our own input and output.
    pub(crate) fn run(&self) -> Result<(), String> {
        let status = self.command().status();
        self.judge(status.map_err(|error| self.cannot_start(&error))?)
    }

    /// Runs it and returns its standard output; its standard error stays ours.
    pub(crate) fn output(&self) -> Result<Vec<u8>, String> {
        let output = self.command().stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| self.cannot_start(&error))?;
        self.judge(output.status)?;
        Ok(output.stdout)
    }

    /// Runs it with all its output in a file, which `look` is called about every few seconds.
    pub(crate) fn run_into(&self, log: &Path, mut look: impl FnMut()) -> Result<(), String> {
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let other = file.try_clone().map_err(|error| error.to_string())?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(file).stderr(other);
        let mut child = command.spawn().map_err(|error| self.cannot_start(&error))?;
        let mut looked = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return self.judge(status);
            }
            std::thread::sleep(Duration::from_millis(50));
            if looked.elapsed() > Duration::from_secs(10) {
                looked = Instant::now();
                look();
            }
        }
    }

    /// Runs it in a terminal of this size. `take` gets what it prints, as it is printed.
    pub(crate) fn run_in_terminal(
        &self,
        (columns, rows): (u16, u16),
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        let (mut ours, theirs) =
            terminal(columns, rows).map_err(|error| format!("no terminal: {error}"))?;
        let clone = || theirs.try_clone().map_err(|error| error.to_string());
        let mut command = self.command();
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.stdin(clone()?).stdout(clone()?).stderr(clone()?);
        let mut child = command.spawn().map_err(|error| self.cannot_start(&error))?;
        // The terminal ends for us when nobody else has it any more.
        drop((command, theirs));
        let mut buffer = [0; 64 << 10];
        loop {
            match ours.read(&mut buffer) {
                // Linux says an error where others say the end.
                Ok(0) | Err(_) => break,
                Ok(count) => take(&buffer[..count]),
            }
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        self.judge(status)
    }

    /// Whether it can be started and succeeds; prints nothing.
    pub(crate) fn works(&self) -> bool {
        let output = self.command().stdin(Stdio::null()).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn judge(&self, status: ExitStatus) -> Result<(), String> {
        if status.success() {
            return Ok(());
        }
        Err(format!("`{self}` failed: {status}"))
    }

    fn cannot_start(&self, error: &std::io::Error) -> String {
        format!("cannot start `{self}`: {error}")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(root());
        // `cargo run` describes xtask in these. Build scripts that watch them (that of ring, for
        // one) would be run anew with each change between `cargo xtask` and plain cargo.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }
}

/// Both ends of a new terminal: ours, and that of the program in it.
fn terminal(columns: u16, rows: u16) -> io::Result<(File, File)> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
    let size = Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size)?;
    Ok((ours.into(), theirs.into()))
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", self.shown_as)?;
        for word in &self.arguments {
            write!(f, " {}", quoted(word))?;
        }
        Ok(())
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shown_as_a_line_for_the_shell() {
        let names = ["it's here".to_owned(), String::new(), "a::b".to_owned()];
        let shown = Invocation::cargo(&["test", "--locked"])
            .and(&names)
            .to_string();
        assert_eq!(shown, r"cargo test --locked 'it'\''s here' '' a::b");
        let shown = Invocation::new("sh", &[]).with("WHAT", "a b").to_string();
        assert_eq!(shown, "WHAT='a b' sh");
    }

    #[test]
    fn tells_success_failure_and_absence_apart() {
        let echo = Invocation::new("sh", &["-c", "echo out"]).output();
        assert_eq!(echo.as_deref(), Ok(&b"out\n"[..]));
        let failed = Invocation::new("sh", &["-c", "exit 3"]).run();
        assert_eq!(
            failed,
            Err("`sh -c 'exit 3'` failed: exit status: 3".to_owned())
        );
        let absent = Invocation::new("no-such-program", &[]);
        assert!(!absent.works());
        assert!(
            absent
                .run()
                .is_err_and(|why| why.starts_with("cannot start"))
        );
    }

    #[test]
    fn a_program_in_a_terminal_sees_one_of_its_size() {
        let mut seen = Vec::new();
        let ran = Invocation::new("sh", &["-c", "test -t 2 && stty size; exit 4"])
            .run_in_terminal((70, 20), |bytes| seen.extend_from_slice(bytes));
        assert_eq!(String::from_utf8_lossy(&seen), "20 70\r\n");
        assert!(ran.is_err_and(|why| why.ends_with("exit status: 4")));
    }

    #[test]
    fn children_do_not_see_the_package_variables_of_xtask() {
        let seen = Invocation::new("sh", &["-c", "echo \"<$CARGO_PKG_NAME>\""]).output();
        assert_eq!(seen.as_deref(), Ok(&b"<>\n"[..]));
    }
}
