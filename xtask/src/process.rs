//! Starting other programs: every process of this crate begins in `Invocation::command`.
#![expect(
    clippy::disallowed_methods,
    reason = "a developer's tool starts cargo, git and apt-get by itself; this is its one place"
)]

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
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
    fn children_do_not_see_the_package_variables_of_xtask() {
        let seen = Invocation::new("sh", &["-c", "echo \"<$CARGO_PKG_NAME>\""]).output();
        assert_eq!(seen.as_deref(), Ok(&b"<>\n"[..]));
    }
}
